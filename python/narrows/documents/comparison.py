"""The comparison that `narrows compare DIR --json` prints (`narrows/compare/1`)."""

from __future__ import annotations

from typing import Literal

from msgspec import UNSET, UnsetType, field

from narrows.documents.data import Count, Integer, Number, Part
from narrows.documents.results import Metric, Statistics

FORMAT = "narrows/compare/1"
CAMPAIGNS, SCHEMES = "campaigns", "schemes"


class SideFacts(Part, frozen=True, kw_only=True):
    """A compared campaign, and its letter."""

    name: str
    folder: str
    scenario: str | None
    hash: str | None
    where: str
    created_at: str | None
    narrows: str | None
    cells: Count
    pending: Count


class Unread(Part, frozen=True, kw_only=True):
    """A campaign that can't be read, with the reason."""

    folder: str
    why: str


class Unmatched(Part, frozen=True, kw_only=True):
    """The schemes of a campaign that have no counterpart."""

    side: str
    schemes: list[str]


class Difference(Part, frozen=True, kw_only=True):
    """A difference between the set-ups of two campaigns."""

    #: `condition`, `scheme` or `circumstance`.
    kind: str
    #: The key or fact, and its value on both sides, in words.
    what: str
    base: str
    other: str
    #: Letters of the campaigns.
    sides: tuple[str, str]
    #: Two rows with these values, if they are rows of one campaign.
    rows: tuple[str, str] | None = None
    #: The schemes concerned; empty for all.
    schemes: list[str]
    #: For a condition, the word for `--across`.
    group: str | None

    @property
    def places(self) -> tuple[str, str]:
        """Where each value is: `for` the rows of one campaign, `in` two campaigns."""
        if self.rows is not None:
            return f"for {self.rows[0]}", f"for {self.rows[1]}"
        return f"in {self.sides[0]}", f"in {self.sides[1]}"


class Estimate(Part, frozen=True, kw_only=True):
    """A difference: in the metric's unit, or as a share of the base."""

    estimate: Number
    low: Number
    high: Number
    #: `interval` (of 95 %), `range` (smallest and largest of a few pairs), `identical` or `unknown`.
    kind: Literal["interval", "range", "identical", "unknown"]


class MarginOutcome(Part, frozen=True, kw_only=True):
    """The finding about the smallest difference that matters."""

    text: str
    #: In the metric's unit, or as a share of the base.
    amount: Number
    share: bool
    outcome: str
    p: Number | None
    why: str | None


class ComparedMetric(Part, frozen=True, kw_only=True):
    """One metric of two samples."""

    outcome: str
    base: Statistics | None
    other: Statistics | None
    #: The number of compared runs: pairs, or the smaller number of both sides.
    runs: Count
    absolute: Estimate | None
    relative: Estimate | None
    #: Which of both is shown to the reader.
    told_as: Literal["relative", "absolute"]
    p: Number | None
    p_alone: Number | None
    #: Differences below this are not resolved, in the metric's unit.
    resolution: Number
    exact: bool
    why: str | None
    margin: MarginOutcome | None = None

    @property
    def shown(self) -> Estimate | None:
        """The estimate that is shown to the reader."""
        return self.relative if self.told_as == "relative" else self.absolute


class ComparedSample(Part, frozen=True, kw_only=True):
    """The runs of one row of a campaign."""

    side: str
    scheme: str
    #: The scheme without the matrix values, and these values.
    name: str
    values: dict[str, str]
    started: Count
    finished: Count
    valid: Count
    degraded: Count
    #: The reason if it was skipped.
    skipped: str | None


class ComparedRow(Part, frozen=True, kw_only=True):
    """Two samples, the first of which is the base."""

    title: str
    base: ComparedSample
    other: ComparedSample
    paired: bool
    #: Whether the runs have the `same` seeds, `different` ones, or `none`.
    seeds: str
    runs: Count | None
    metrics: dict[str, ComparedMetric]


class Breach(Part, frozen=True, kw_only=True):
    """A finding that broke a limit."""

    scheme: str
    sides: tuple[str, str]
    why: str | None


class LimitOutcome(Part, frozen=True, kw_only=True):
    """The outcome of a limit of `--fail-on`."""

    limit: str
    metric: str
    broken: bool
    by: list[Breach]
    undecided: list[str]


class Rank(Part, frozen=True, kw_only=True):
    """The possible ranks of a scheme, from the first to the last; none without a value."""

    scheme: str
    first: Count | None = field(name="from")
    last: Count | None = field(name="to")
    summary: Statistics | None


class Ranks(Part, frozen=True, kw_only=True):
    """The ranks of schemes that met the same conditions, in one metric."""

    metric: str
    #: The matrix values in words, and by their names.
    values: str
    conditions: dict[str, str]
    schemes: list[Rank]


class FrontierEntry(Part, frozen=True, kw_only=True):
    """Whether a scheme is on the frontier, and in which share of the resamples."""

    scheme: str
    on: bool
    support: Number | None


class Frontier(Part, frozen=True, kw_only=True):
    """The Pareto frontier of schemes that met the same conditions."""

    metrics: list[str]
    values: str
    schemes: list[FrontierEntry]
    conditions: dict[str, str]


class StateDifference(Part, frozen=True, kw_only=True):
    """A value of the senders' states that differs."""

    name: str
    unit: str
    base: Number
    other: Number


class FlowTrace(Part, frozen=True, kw_only=True):
    """How long the states of two senders agree; to the end without a time."""

    run: Count
    flow: Count
    samples: Count
    at_s: Number | None
    values: list[StateDifference]


class Trace(Part, frozen=True, kw_only=True):
    """The traces of states of two samples, or the reason for their absence."""

    title: str
    sides: tuple[str, str]
    schemes: tuple[str, str]
    absent: str | None = None
    tolerance: Number | None = None
    flows: list[FlowTrace]


class EnvelopeSide(Part, frozen=True, kw_only=True):
    """The performance envelope of a sample: its middle, and its hull as corners of delay and throughput."""

    points: Count
    delay_ns: Number
    throughput_bps: Number
    hull: list[tuple[Number, Number]]


class Envelope(Part, frozen=True, kw_only=True):
    """The agreement of the performance envelopes of two samples, or the reason for their absence."""

    title: str
    sides: tuple[str, str]
    schemes: tuple[str, str]
    absent: str | None = None
    window_ns: Integer | None = None
    conformance: Number | None = None
    #: Null if an envelope has no area.
    overlap: Number | UnsetType | None = UNSET
    base: EnvelopeSide | None = None
    other: EnvelopeSide | None = None


class Comparison(Part, frozen=True, kw_only=True):
    """A comparison of campaigns, or of the schemes of one campaign."""

    format: str
    #: `campaigns`, or `schemes` of one.
    kind: str
    sides: list[SideFacts]
    unread: list[Unread]
    unmatched: list[Unmatched]
    #: Rows whose conditions differ from those of the base.
    uncompared: list[str]
    #: A flow's number or label, or `all`.
    flow: str
    differences: list[Difference]
    error_rate: Number
    level: Number
    fewest_runs: Count
    metrics: list[Metric]
    rows: list[ComparedRow]
    against: str | None
    margin: list[str] = field(default_factory=list)
    #: The number of differences that are shown, and of tests.
    shown: Count
    tests: Count
    limits: list[LimitOutcome]
    #: Present for the schemes of one campaign, without `against`.
    ranks: list[Ranks] | None = None
    frontiers: list[Frontier] | None = None
    #: Whether traces of states and envelopes were compared.
    looked_behind: bool
    traces: list[Trace] | None = None
    envelopes: list[Envelope] | None = None
    #: The compared rows whose models Narrows trained.
    own_models: list[str] = field(default_factory=list)
