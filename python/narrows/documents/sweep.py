"""sweep.json: the keys of a sweep, and its progress (`narrows/sweep/1`)."""

from __future__ import annotations

from typing import ClassVar

from msgspec import UNSET, UnsetType, field

from narrows.documents.campaign import Override
from narrows.documents.data import Count, Number, Part, Value

FORMAT = "narrows/sweep/1"


class SweepKey(Part, frozen=True, kw_only=True):
    """A key of a scenario that a sweep varies."""

    #: The name of its column in the data set.
    name: str
    #: The name of the key for people.
    label: str
    #: The address of the key.
    key: str = ""
    #: The type of its values: `text`, `flag`, or a kind of quantity.
    kind: str
    #: The values or their distribution, in words.
    law: str = ""


class Until(Part, frozen=True, kw_only=True):
    """The rule that ends the runs of a point: half the 95 % interval of the median of a metric is at most a
    share of the median, or `most` runs have ended."""

    metric: str
    flow: str
    within: Number
    most: Count


class SweepSession(Part, frozen=True, kw_only=True):
    """A process that worked on a sweep."""

    started_at: str | None = None
    version: str | UnsetType = UNSET
    ended_at: str | None = None
    #: `done`, `merged`, `interrupted`, `stopped` or `incomplete`; absent while it works, or if it was killed.
    outcome: str | None = None


class FailedCell(Part, frozen=True, kw_only=True):
    """A cell that could not be simulated."""

    UNCHECKED: ClassVar[frozenset[str]] = frozenset({"message"})

    point: Count
    scheme: str
    run: Count
    message: str


class FailingPoint(Part, frozen=True, kw_only=True):
    """A point at which an expectation does not hold."""

    point: Count
    value: Number | None
    reason: str | None
    #: The values of the keys, by column.
    parameters: dict[str, Value]


class SweepExpectation(Part, frozen=True, kw_only=True):
    """An expectation, the number of points at which it holds, and the first ones at which it does not."""

    text: str
    points: Count
    holds: Count
    fails: list[FailingPoint]

    @property
    def holds_everywhere(self) -> bool:
        """True if it holds at every point."""
        return self.holds == self.points


class Sweep(Part, frozen=True, kw_only=True, omit_defaults=False):
    """The keys of a sweep, and its progress."""

    UNCHECKED: ClassVar[frozenset[str]] = frozenset({"written", "overrides", "constraints"})

    format: str = FORMAT
    name: str
    title: str | None = None
    question: str | None = None
    #: The identity of the sweep.
    hash: str
    #: The scenario as it was written, and the options that changed it.
    written: str = ""
    overrides: list[Override] = field(default_factory=list)
    parameters: list[SweepKey]
    design: str = ""
    constraints: list[str] = field(default_factory=list)
    until: Until | UnsetType = UNSET
    schemes: list[str]
    metrics: list[str]
    created_at: str | None = None
    sessions: list[SweepSession] = field(default_factory=list)
    #: The number of finished cells when the last session ended.
    cells: Count = 0
    failed: list[FailedCell] = field(default_factory=list)
    #: The digests of the parts of the data set, by path below `data/`.
    parts: dict[str, str] | UnsetType = UNSET
    expect: list[SweepExpectation] | UnsetType = UNSET

    @property
    def is_open(self) -> bool:
        """True if a process works on it, or was killed."""
        return not self.sessions or not self.sessions[-1].ended_at

    @property
    def outcome(self) -> str:
        """How the last session ended."""
        return (self.sessions and self.sessions[-1].outcome) or "running, or killed"
