"""The behaviour cards that `narrows identify` writes (`narrows/identify/1`)."""

from __future__ import annotations

from msgspec import field

from narrows.documents.data import Count, Number, Part

FORMAT = "narrows/identify/1"


class Span(Part, frozen=True, kw_only=True):
    """A sample of a line: its value (a word for a kind of behaviour), and its seconds of the run."""

    value: Number | str
    from_s: Number
    to_s: Number


class Line(Part, frozen=True, kw_only=True):
    """A line of a card: one feature, measured on one probe."""

    #: The feature, as a name for programs and for people, and the scenario that it was measured on.
    name: str
    title: str
    probe: str
    #: `packets`, `s`, `share` ...; empty for ratios and words.
    unit: str
    #: Why it could not be measured; then all that follows is absent.
    why: str | None = None
    value: Number | None = None
    #: The 95 % interval, with the resolution.
    low: Number | None = None
    high: Number | None = None
    #: The standard error, absent if there were too few repetitions, and its degrees of freedom.
    error: Number | None = None
    freedom: Count = 0
    #: The least difference that the method resolves: whole packets, whole rounds.
    resolution: Number = 0
    #: For a kind of behaviour, how often each was seen.
    words: dict[str, Count] | None = None
    samples: Count = 0
    runs: Count = 0
    #: The run whose samples follow.
    cell: str | None = None
    spans: list[Span] = field(default_factory=list)

    @property
    def key(self) -> tuple[str, str]:
        """Its feature and its probe."""
        return self.name, self.probe

    @property
    def word(self) -> str | None:
        """The most frequent kind of behaviour."""
        return max(self.words, key=self.words.__getitem__) if self.words else None


class Candidate(Part, frozen=True, kw_only=True):
    """A name that a sender may have."""

    name: str
    #: The names that share its law; its own name if there are none.
    family: str
    probability: Number


class Evidence(Part, frozen=True, kw_only=True):
    """A line that speaks for the nearest reference, or contradicts it."""

    name: str
    title: str
    probe: str
    #: The measured value, and the usual ones of the nearest reference and of the next other name.
    value: str
    usual: str
    rival: str
    rival_usual: str
    #: The logarithm of the ratio of likelihoods; below 0 for a contradiction.
    weight: Number


class Naming(Part, frozen=True, kw_only=True):
    """The references of the library that a sender is most like."""

    #: The scheme whose references are nearest.
    nearest: str
    #: Names with their probabilities, the most probable first.
    candidates: list[Candidate]
    #: The probability of a sender that is like none of the references.
    none: Number
    #: Lines that were compared, and those of the library that the card does not have.
    lines: Count
    unknown: Count
    decisive: list[Evidence] = field(default_factory=list)
    contrary: list[Evidence] = field(default_factory=list)


class Card(Part, frozen=True, kw_only=True):
    """The behaviour of a sender."""

    #: The identified scheme or folder.
    what: str
    #: The scheme in the notation of scenarios, and the plane.
    scheme: str
    where: str
    #: The folders of the runs, or the files of a log.
    folders: list[str]
    lines: list[Line]
    #: The number of the connection that was chosen in a log; absent for that which sent most.
    flow: Count | None = None
    #: Sentences about runs that were not used, and about a log: where it was taken, and its connection.
    notes: list[str] = field(default_factory=list)
    #: Absent if the library has none of the lines.
    naming: Naming | None = None


class LineDifference(Part, frozen=True, kw_only=True):
    """A line that differs between two cards."""

    name: str
    title: str
    probe: str
    unit: str
    base: Line
    other: Line
    #: The probability of a difference at least this large between equal senders.
    p: Number


class Differences(Part, frozen=True, kw_only=True):
    """The lines of a card that differ from those of another one."""

    base: str
    other: str
    #: Lines that both cards have, and those that were too few times repeated to be compared.
    compared: Count
    undecided: Count
    #: The probability of a wrong difference among all.
    level: Number
    lines: list[LineDifference]


class Identification(Part, frozen=True, kw_only=True):
    """Behaviour cards of senders, and how they differ."""

    format: str
    narrows: str
    cards: list[Card]
    #: Each card against the last one, with `--against`.
    differences: list[Differences] = field(default_factory=list)
