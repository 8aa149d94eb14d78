"""hunt.json: the worst path of a hunt, and its minimal form (`narrows/hunt/1`)."""

from __future__ import annotations

from msgspec import UNSET, UnsetType, field

from narrows.documents.data import Count, Integer, Number, Part, from_data

FORMAT = "narrows/hunt/1"


class Bound(Part, frozen=True, kw_only=True):
    """A value that varies between paths, and its bounds."""

    name: str
    about: str
    #: In base units.
    low: Number
    high: Number
    kind: str
    optional: bool
    #: The bounds in words.
    searched: str


class Path(Part, frozen=True, kw_only=True):
    """A path, and the objective's value on it."""

    value: Number
    words: str
    #: The values of the path's elements, in words.
    values: dict[str, str]


class MinimalPath(Path, frozen=True, kw_only=True):
    """A path reduced to the elements that its value requires."""

    #: The value of each run.
    runs: list[Number]
    #: The value that the scenario asserts.
    promised: Number
    #: The omitted elements, and the number of attempted changes.
    removed: list[str]
    tried: Count
    claim: str
    #: The file of the scenario.
    scenario: str


class HuntRun(Part, frozen=True, kw_only=True):
    """A run of the minimal scenario."""

    run: Count
    verdict: str
    value: Number | None


class HuntExpectation(Part, frozen=True, kw_only=True):
    """An expectation of the minimal scenario, and its outcome."""

    text: str
    outcome: str
    value: Number | None


class Replay(Part, frozen=True, kw_only=True):
    """The campaign of the minimal scenario on a plane."""

    runs: list[HuntRun]
    #: Values of the valid runs.
    median: Number | None
    expect: list[HuntExpectation]
    #: True if all expectations hold.
    holds: bool
    folder: str
    #: The medians of the schemes on the same path.
    schemes: dict[str, Number | None]


class HuntReport(Part, frozen=True, kw_only=True):
    """The worst path of a hunt, and its minimal form."""

    format: str
    #: The identity of the search.
    hash: str
    question: str
    scheme: str
    #: The name of the objective.
    worst: str
    against: str | None
    goal: Number | None
    seed: Integer
    duration_ns: Count
    bounds: list[Bound]
    created_at: str
    #: `searching`, `interrupted` or `done`.
    state: str
    evaluations: Count
    searched_s: Number
    best: Path | None = field(default=None, name="found")
    #: Null without a goal; absent until the hunt is done.
    reached: bool | UnsetType | None = UNSET
    minimal: MinimalPath | None = None
    simulated: Replay | None = None
    emulated: Replay | None = None


def read_hunt(document: dict[str, object]) -> HuntReport:
    """Reads the hunt from a file. Raises `DamagedError` if it does not fit its definition."""
    return from_data({"evaluations": 0, "searched_s": 0.0, **document}, HuntReport)
