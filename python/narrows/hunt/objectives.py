"""Objectives of a hunt: one number of a path, computed from the metrics of its runs.

Without a competitor, or with one that shares the path (`share`, `rival`), it is a number of one run. Against
another scheme it is the difference between two runs with the same seed, each scheme alone on the path.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from narrows.campaign.expectations import amount
from narrows.documents.results import Metric
from narrows.scenario import registry
from narrows.scenario.quantity import QuantityError, convert, parse

#: The metrics of a run by flow (`1`, `2`, `all`).
Metrics = Mapping[str, Mapping[str, float | None]]

#: Genes that belong to each kind of question.
PATH = ("rate", "delay", "queue", "loss", "bursts", "burst", "low", "period", "outage", "every")
TRAFFIC = ("datagrams", "short", "bulk")
BESIDE = (*PATH, "jitter", "datagrams", "short", "later", "earlier")
#: Without a goal the minimal scenario keeps this share of the worst value, or this multiple of it.
KEPT_HIGH, KEPT_LOW, LEAST_KEPT = 0.8, 1.5, 0.01
#: With a goal it exceeds it by this share, so that it still does in real time.
SPARE = 0.1


@dataclass(frozen=True)
class Objective:
    """One meaning of "worst"."""

    name: str
    #: The source column and the flow.
    metric: str
    flow: str
    #: True if the highest value is the worst.
    high: bool
    genes: tuple[str, ...]
    label: str
    about: str
    #: Two flows that share the path.
    beside: bool = False

    @property
    def columns(self) -> list[str]:
        """The metrics from which it is computed."""
        return [self.metric, "throughput_bps"] if self.beside else [self.metric]

    @property
    def flows(self) -> list[str]:
        """The flows whose metrics are needed."""
        return ["all", "1", "2"] if self.beside else [self.flow]

    def of_run(self, metrics: Metrics) -> float | None:
        """The value of one run; None if it has none."""
        value = metrics.get(self.flow, {}).get(self.metric)
        if value is None or not self.beside:
            return value
        # The ratio is that of the smaller value to the larger, and does not say whose it is.
        own, other = (metrics.get(flow, {}).get("throughput_bps") or 0.0 for flow in ("1", "2"))
        lesser = value / (1 + value)
        mine = lesser if own <= other else 1 - lesser
        return mine if self.name == "share" else 1 - mine

    def of_runs(self, runs: Sequence[Metrics]) -> float | None:
        """The value of a path: of its run, or of the scheme's minus the other's."""
        values = [self.of_run(metrics) for metrics in runs]
        if any(value is None for value in values):
            return None
        first, *rest = [float(value or 0.0) for value in values]
        return first - rest[0] if rest else first

    def worse(self, value: float, than: float) -> bool:
        """True if a value is as bad as another, or worse."""
        return value >= than if self.high else value <= than

    def value_to_keep(self, worst: float, goal: float | None, compared: bool) -> float:
        """The value that the minimal scenario must still reach."""
        if goal is not None:
            return goal * (1 + SPARE if self.high == (goal > 0) else 1 - SPARE)
        # A difference of a quantity that should be low is negative, and shrinks like one that should be high.
        return worst * KEPT_HIGH if self.high or compared else max(worst * KEPT_LOW, LEAST_KEPT)

    def value_to_promise(self, kept: float) -> float:
        """The value that the minimal scenario asserts: less than it reaches, by a margin."""
        return kept / (1 + SPARE if self.high == (kept > 0) else 1 - SPARE)

    @property
    def described(self) -> Metric:
        """The metric whose notation the values use."""
        return registry.metrics()[self.metric] if not self.beside else registry.metrics()["loss_ratio"]

    def words(self, value: float | None) -> str:
        """A value with its unit."""
        if value is not None and value < 0:
            return f"-{amount(-value, self.described)}"
        return amount(value, self.described)

    def read(self, text: str) -> float:
        """Parses a user's value; raises `QuantityError`."""
        kind = "span" if self.described.unit == "ns" else "ratio"
        negative = text.strip().startswith("-")
        value = float(convert(parse(text.strip().removeprefix("-"), kind), kind, None))
        if value <= 0:
            raise QuantityError("must be more than 0")
        return -value if negative else value


OBJECTIVES = {
    objective.name: objective
    for objective in (
        Objective(
            "utilization", "utilization_ratio", "all", False, (*PATH, "jitter", *TRAFFIC, "flows"),
            "utilization", "least utilization of the bottleneck, cross traffic included",
        ),
        Objective(
            "loss", "loss_ratio", "all", True, (*PATH, "jitter", *TRAFFIC, "flows"),
            "loss", "most of the scheme's packets lost",
        ),
        Objective(
            # Jitter cannot be distinguished from queueing.
            "delay", "queueing_delay_p95_ns", "all", True, (*PATH, *TRAFFIC, "flows"),
            "p95 queueing delay", "longest queueing delay (95th percentile)",
        ),
        Objective(
            "share", "throughput_ratio", "all", False, BESIDE,
            "share", "least share of what both carry beside --against: the scheme starves", beside=True,
        ),
        Objective(
            "rival", "throughput_ratio", "all", False, BESIDE,
            "share of the competitor", "least share that --against gets beside the scheme, which starves it",
            beside=True,
        ),
    )
}  # fmt: skip
