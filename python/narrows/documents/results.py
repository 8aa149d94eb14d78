"""results.json: every metric of every finished cell, and the summary over runs (`narrows/results/2`)."""

from __future__ import annotations

from typing import ClassVar, Literal

from msgspec import UNSET, UnsetType, field

from narrows.documents.data import Count, Integer, Number, Part, Value, from_data

FORMAT = "narrows/results/2"
ALL = "all"


class Quantity(Part, frozen=True, kw_only=True):
    """A quantity that has values, and its display."""

    name: str
    label: str
    unit: str
    #: The unit for people, and the factor to it.
    show_unit: str
    show_scale: Number

    @classmethod
    def unknown(cls, name: str) -> Quantity:
        """A quantity of which only the name is known."""
        return Quantity(name=name, label=name, unit="", show_unit="", show_scale=1)


class Metric(Quantity, frozen=True, kw_only=True):
    """A metric of flows, and possibly of links."""

    #: `higher`, `lower`, or null if neither is better.
    better: str | None
    scope: str
    links: bool
    #: For times of an event that need not happen: the metric that is 0 in runs in which it did not.
    happened: str | None
    definition: str
    #: For a user-defined metric, the SHA-256 of its file, null for a function of a program.
    own: str | UnsetType | None = UNSET
    source: str | None

    @property
    def is_own(self) -> bool:
        """True if it is user-defined."""
        return self.own is not UNSET


class RegisteredMetric(Metric, frozen=True, kw_only=True):
    """A metric in the registry of the core."""

    #: The part of a scenario that it is about; null if every scenario has it.
    group: str | None = None
    #: The reason why a flow without that part has no value.
    no_subject: str | None = None


class Column(Part, frozen=True, kw_only=True):
    """A column that distinguishes rows: a key of the matrix, or a parameter."""

    name: str
    label: str
    #: `matrix`, `derived` (from the matrix), `scheme` or `transport`.
    source: str = field(name="of")
    #: For a key of the matrix, its address.
    key: str | None = None
    unit: str


class Skipped(Part, frozen=True, kw_only=True):
    """A scheme that cannot run, with the reason."""

    scheme: str
    reason: str


class Row(Part, frozen=True, kw_only=True):
    """A flow of a finished cell, or all its flows under test together."""

    scenario: str | None
    plane: str | None
    #: The scheme without the values of a matrix.
    base: str = field(name="scheme")
    #: Its row in the tables.
    scheme: str = field(name="row")
    run: Count
    seed: Integer | None
    duration_ns: Count | None
    #: None for all flows.
    number: Count | None = field(name="flow")
    flow_scheme: str | None
    verdict: str | None
    cell: str
    values: dict[str, Value] | None = None
    metrics: dict[str, Number | None]
    #: Why metrics have no value.
    absent: dict[str, str]
    label: str | None = None
    background: bool = False

    @property
    def flow(self) -> int | str:
        """The number of the flow, or `all`."""
        return ALL if self.number is None else self.number


class LinkRow(Part, frozen=True, kw_only=True):
    """A link of a finished cell."""

    scenario: str | None
    plane: str | None
    base: str = field(name="scheme")
    scheme: str = field(name="row")
    run: Count
    seed: Integer | None
    duration_ns: Count | None
    link: str
    verdict: str | None
    cell: str
    values: dict[str, Value] | None = None
    metrics: dict[str, Number | None]
    absent: dict[str, str]


class Statistics(Part, frozen=True, kw_only=True):
    """A metric over the valid runs of a row."""

    mean: Number | None
    median: Number | None
    #: Absent, like `identical`, if the metric is the time of an event that need not happen.
    min: Number | None = None
    max: Number | None = None
    #: The 95 % interval of the median; null below 6 runs and where all runs are identical.
    ci95: tuple[Number, Number] | None
    identical: bool | None = None
    n: Count
    #: For such times: the number of runs in which the event happened, of those in which this is known, and
    #: the share.
    happened: Count | None = None
    of: Count | None = None
    share: Number | None = None


class SummaryLine(Part, frozen=True, kw_only=True):
    """A row of the tables: a scheme and one of its flows, or all of them."""

    base: str = field(name="scheme")
    scheme: str = field(name="row")
    number: Count | None = field(name="flow")
    label: str | None = None
    values: dict[str, Value] | None = None
    started: Count
    finished: Count
    valid: Count
    metrics: dict[str, Statistics]

    @property
    def flow(self) -> int | str:
        """The number of the flow, or `all`."""
        return ALL if self.number is None else self.number


class LinkSummary(Part, frozen=True, kw_only=True):
    """A scheme and a link."""

    base: str = field(name="scheme")
    scheme: str = field(name="row")
    link: str
    values: dict[str, Value] | None = None
    metrics: dict[str, Statistics]


class StateQuestion(Part, frozen=True, kw_only=True):
    """A question about a mode of a sender, or about a value over time."""

    mode: str | None = None
    value: str | None = None
    measure: str
    from_ns: Integer | None = None
    until_ns: Integer | None = None


class Expectation(Part, frozen=True, kw_only=True):
    """A condition on a metric, or on the states of senders."""

    UNCHECKED: ClassVar[frozenset[str]] = frozenset({"question"})

    metric: str
    #: None for each scheme.
    scheme: str | None
    #: The number of a flow, or `all`.
    flow: Count | str
    #: The statistic over the runs: `median`, `mean`, `min`, `max`.
    statistic: str = field(name="of")
    at_least: Number | None
    at_most: Number | None
    #: For states of senders, the question and its answers.
    question: StateQuestion | None = None
    about: Quantity | None = None


class Outcome(Expectation, frozen=True, kw_only=True):
    """The outcome of an expectation, for one scheme."""

    text: str
    #: `holds`, `fails`, or `skipped` with the scheme.
    outcome: Literal["holds", "fails", "skipped"]
    value: Number | None
    reason: str | None


class Results(Part, frozen=True, kw_only=True):
    """Every metric of every finished cell, and the summary over runs."""

    format: str
    scenario: str | None
    hash: str | None
    metrics: list[Metric]
    columns: list[Column] = field(default_factory=list)
    rows: list[Row]
    #: The digest of each measured record, by cell name.
    digests: dict[str, str]
    summary: list[SummaryLine]
    skipped: list[Skipped]
    links: list[LinkRow] = field(default_factory=list)
    link_summary: list[LinkSummary] = field(default_factory=list)
    expect: list[Outcome] = field(default_factory=list)


#: Results of a campaign that has none yet.
NO_RESULTS = Results(
    format=FORMAT, scenario=None, hash=None, metrics=[], rows=[], digests={}, summary=[], skipped=[]
)


# -- measurements of one record by the core ---------------------------------------------------------


class MeasuredFlow(Part, frozen=True, kw_only=True):
    """The metrics of a flow of one record, or of all flows under test together."""

    #: The number of the flow as text, or `all`.
    flow: str
    scheme: str | None
    metrics: dict[str, Number | None]
    background: bool = False
    #: The values of user-defined metrics.
    absent: dict[str, str] | None = None


class MeasuredLink(Part, frozen=True, kw_only=True):
    """The metrics of a link of one record."""

    link: str
    metrics: dict[str, Number | None]
    absent: dict[str, str]


class Answer(Part, frozen=True, kw_only=True):
    """The answer of one record to a question about the states of a sender."""

    value: Number | None = None
    absent: str | None = None


class Measured(Part, frozen=True, kw_only=True):
    """All metrics of one record."""

    span_ns: Integer | None = None
    flows: list[MeasuredFlow]
    links: list[MeasuredLink] = field(default_factory=list)
    #: By flow and metric, the reason why it has no value.
    absent: dict[str, dict[str, str]]


# -- reading ---------------------------------------------------------------------------------------

#: Members that earlier versions did not write, by the lists that contain them.
_LACKING: dict[str, dict[str, object]] = {
    "metrics": {"unit": "", "show_unit": "", "show_scale": 1, "better": None, "scope": "both", "links": False}
    | {"happened": None, "definition": "", "source": None},
    "rows": {"scenario": None, "plane": None, "seed": None, "duration_ns": None, "flow_scheme": None}
    | {"verdict": None, "absent": {}},
    "links": {"scenario": None, "plane": None, "seed": None, "duration_ns": None, "absent": {}},
    "summary": {"started": 0, "finished": 0, "valid": 0},
}


def read_results(document: dict[str, object]) -> Results:
    """Reads the results from a file. Raises `DamagedError` if they do not fit their definition."""
    for name, lacking in {**_LACKING, "link_summary": {}}.items():
        listed = document.get(name)
        for part in listed if isinstance(listed, list) else ():
            if isinstance(part, dict):
                more = {"label": part.get("name")} if name == "metrics" else {"row": part.get("scheme")}
                for member, value in {**lacking, **more}.items():
                    part.setdefault(member, value)
    whole = {"scenario": None, "hash": None, "digests": {}, "skipped": [], **document}
    return from_data(whole, Results)
