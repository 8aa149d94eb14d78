"""The finding for each metric of each pairing: better, worse, no difference shown, or undecidable.

A difference is claimed under three conditions: the permutation test over *all* simultaneous comparisons shows
it (`narrows.statistics.permutation`), its own interval excludes 0, and, in real time, it exceeds the lateness
of the runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from narrows.analysis.verdicts import resolution
from narrows.comparison.sides import Pairing
from narrows.documents.comparison import ComparedMetric, Estimate
from narrows.documents.results import Metric, Statistics
from narrows.statistics import differences, permutation
from narrows.statistics.runs import FEWEST_FOR_INTERVAL, summarise

if TYPE_CHECKING:
    from narrows.comparison.equivalence import Equivalence

Floats = NDArray[np.float64]

#: The promised bound: if nothing differs, at most this share of comparisons makes any claim.
ERROR_RATE = 0.05
#: The level of the test, stricter than the promise: the runs of a campaign share a machine and an hour, so
#: they are not quite as exchangeable as the test assumes. If the runs are too few to reach it, their smallest
#: possible p value suffices, as long as it keeps the promise.
LEVEL = 0.01

BETTER, WORSE, DIFFERENT = "better", "worse", "different"
NOT_SHOWN, SAME, TOO_FEW, MISSING = "no difference shown", "identical", "too few runs", "missing"
#: The outcomes that count as claims.
CLAIMS = (BETTER, WORSE, DIFFERENT)

#: Differences in these units are stated as a share of the base; others are in the metric's unit.
_RATIO_UNITS = ("bit/s", "ns", "bytes", "packets")


@dataclass
class Finding:
    """One metric of one pairing."""

    pairing: Pairing
    metric: Metric
    outcome: str
    #: Summaries of both sides over all valid runs, as in every table; None if absent.
    base: Statistics | None
    other: Statistics | None
    #: The number of compared runs: pairs, or the smaller number of both sides.
    runs: int
    #: The difference in the metric's unit: `estimate`, and `low` and `high` of its 95 % interval or, below 6
    #: runs and between paired runs, of the smallest and largest difference (`range`).
    absolute: Estimate | None = None
    #: The same as a share of the base; None if the base is 0.
    relative: Estimate | None = None
    #: The p value among all comparisons, and that of Wilcoxon's test of this comparison alone.
    p: float | None = None
    p_alone: float | None = None
    #: Differences below this are not resolved, in the metric's unit.
    resolution: float = 0.0
    #: True if all runs of each side are identical, so that the difference is not due to chance.
    exact: bool = False
    why: str | None = None
    #: The finding about the smallest difference that matters, if one was named.
    equivalence: Equivalence | None = None

    @property
    def counted(self) -> str:
        """The word for the compared runs."""
        return _runs_word(self.pairing.is_paired, self.runs)

    @property
    def is_relative(self) -> bool:
        """True if the difference is best stated in per cent of the base."""
        return self.relative is not None and self.metric.unit in _RATIO_UNITS

    def to_document(self) -> ComparedMetric:
        """The finding in the form of the comparison document."""
        return ComparedMetric(
            outcome=self.outcome,
            base=self.base,
            other=self.other,
            runs=self.runs,
            absolute=self.absolute,
            relative=self.relative,
            told_as="relative" if self.is_relative else "absolute",
            p=self.p,
            p_alone=self.p_alone,
            resolution=self.resolution,
            exact=self.exact,
            why=self.why,
            margin=self.equivalence.to_document() if self.equivalence else None,
        )


def judge(pairings: Sequence[Pairing], metrics: Sequence[Metric]) -> list[Finding]:
    """The findings of all pairings in all metrics, in this order; they form one family of tests."""
    findings = [_measure(pairing, metric) for pairing in pairings for metric in metrics]
    groups: dict[tuple[str, str, bool], list[Finding]] = {}
    for finding in findings:
        if finding.outcome == NOT_SHOWN and not finding.exact:
            groups.setdefault(finding.pairing.group, []).append(finding)
    for (_, _, paired), family in groups.items():
        adjusted = _test_pairs(family) if paired else _test_samples(family)
        for finding, p in zip(family, adjusted, strict=True):
            # Families of different campaigns are permuted separately; Bonferroni's bound joins them.
            finding.p = min(1.0, float(p) * len(groups))
            _decide(finding, len(groups))
    return findings


def _measure(pairing: Pairing, metric: Metric) -> Finding:
    """A finding with its estimates, before the test."""
    first, second = pairing.values(metric.name)
    x, y = _array(first), _array(second)
    runs = min(len(x), len(y))
    name = metric.name
    base = summarise(pairing.base.values(name)) if len(x) else None
    other = summarise(pairing.other.values(name)) if len(y) else None
    finding = Finding(pairing, metric, NOT_SHOWN, base, other, runs)
    if base is None or other is None:
        finding.outcome, finding.why = MISSING, _why_missing(pairing, metric.name, base is None)
        return finding
    paired, middle = pairing.is_paired, base.median or 0.0
    finding.resolution = _resolution(pairing, metric, middle)
    finding.absolute = _estimate(x, y, paired)
    finding.relative = _relative(x, y, paired, finding.absolute, middle)
    if (paired and np.array_equal(x, y)) or x.min() == x.max() == y.min() == y.max():
        finding.outcome = SAME
    elif pairing.base.is_repeated and pairing.other.is_repeated:
        finding.exact = True
        finding.outcome = _way(finding)
        if finding.outcome in CLAIMS and abs(finding.absolute.estimate) <= finding.resolution:
            finding.outcome, finding.why = NOT_SHOWN, "the difference is below the lateness of the runs"
    elif runs < FEWEST_FOR_INTERVAL:
        finding.outcome = TOO_FEW
        finding.why = f"{runs} {_runs_word(paired, runs)}: at least {FEWEST_FOR_INTERVAL} are needed"
    else:
        finding.p_alone = differences.signed_rank_p(y - x) if paired else differences.rank_sum_p(x, y)
    return finding


def _array(values: Mapping[int, float]) -> Floats:
    return np.array(list(values.values()), dtype=np.float64)


def _estimate(x: Floats, y: Floats, paired: bool) -> Estimate:
    """The shift from `x` to `y`, and its interval or range."""
    enough = min(len(x), len(y)) >= FEWEST_FOR_INTERVAL
    if paired:
        apart = y - x
        shift = differences.shift_of_pairs(apart)
        ends = differences.interval_of_pairs(apart) if enough else (apart.min(), apart.max())
    else:
        shift = differences.shift_of_samples(x, y)
        ends = differences.interval_of_samples(x, y) if enough else (y.min() - x.max(), y.max() - x.min())
    kind: Literal["interval", "range", "identical", "unknown"]
    kind = "interval" if enough else "range" if len(x) > 1 else "unknown"
    if ends[0] == ends[1] and kind != "unknown":
        kind = "identical"
    return Estimate(estimate=float(shift), low=float(ends[0]), high=float(ends[1]), kind=kind)


def _relative(x: Floats, y: Floats, paired: bool, absolute: Estimate, middle: float) -> Estimate | None:
    """The shift as a share of the base: from logarithms if all values are positive, so that a half and a
    double count alike, else from the median of the base.
    """
    if x.min() > 0 and y.min() > 0:
        estimate = _estimate(np.log(x), np.log(y), paired)
        return _scale(estimate, lambda value: float(np.expm1(value)))
    if middle <= 0:
        return None
    return _scale(absolute, lambda value: value / middle)


def _scale(estimate: Estimate, scale: Callable[[float], float]) -> Estimate:
    return structs.replace(
        estimate, estimate=scale(estimate.estimate), low=scale(estimate.low), high=scale(estimate.high)
    )


def _resolution(pairing: Pairing, metric: Metric, middle: float) -> float:
    """The difference that lateness alone can cause."""
    late = max(pairing.base.lateness_ns, pairing.other.lateness_ns)
    duration = float(pairing.base.side.resolved.duration_ns)
    return resolution(metric.unit, middle, late, duration)


def _way(finding: Finding) -> str:
    """The direction of the estimate."""
    better = finding.metric.better
    estimate = finding.absolute.estimate if finding.absolute else 0.0
    if estimate == 0:
        return NOT_SHOWN
    if better not in ("higher", "lower"):
        return DIFFERENT
    return BETTER if (estimate > 0) == (better == "higher") else WORSE


def _decide(finding: Finding, groups: int) -> None:
    """Sets the outcome from the adjusted p value, the interval and the resolution."""
    assert finding.absolute is not None
    assert finding.p is not None
    least = groups * least_p(finding)
    if least > ERROR_RATE:
        finding.outcome = TOO_FEW
        finding.why = (
            f"{finding.runs} {_runs_word(finding.pairing.is_paired, finding.runs)}: the least p value that"
            " they can"
            f" give is {least:.2g}"
        )
        return
    if finding.p > max(LEVEL, least) * (1 + 1e-9):
        return
    estimate = (finding.relative or finding.absolute) if finding.is_relative else finding.absolute
    if estimate.low <= 0 <= estimate.high:
        return
    if abs(finding.absolute.estimate) <= finding.resolution:
        finding.why = "the difference is below the lateness of the runs"
        return
    finding.outcome = _way(finding)


def least_p(finding: Finding) -> float:
    """The smallest p value that the runs of a finding can reach."""
    if finding.pairing.is_paired:
        return permutation.least_paired_p(finding.runs)
    assert finding.base is not None
    assert finding.other is not None
    return permutation.least_unpaired_p(int(finding.base.n), int(finding.other.n))


def _runs_word(paired: bool, count: int) -> str:
    if paired:
        return "pair of runs" if count == 1 else "pairs of runs"
    return "run on a side" if count == 1 else "runs on a side"


def _values_to_test(finding: Finding) -> tuple[dict[int, float], dict[int, float]]:
    """The values by run in the form of the test: logarithms if a share is stated."""
    pair = finding.pairing.values(finding.metric.name)
    if finding.is_relative and all(value > 0 for side in pair for value in side.values()):
        base, other = ({run: float(np.log(value)) for run, value in side.items()} for side in pair)
        return base, other
    return pair


def _test_pairs(family: Sequence[Finding]) -> Floats:
    values = [_values_to_test(finding) for finding in family]
    runs = sorted({run for base, _ in values for run in base})
    apart = np.array(
        [[other.get(run, np.nan) - base.get(run, np.nan) for run in runs] for base, other in values]
    )
    return permutation.permute_pairs(apart)


def _test_samples(family: Sequence[Finding]) -> Floats:
    values = [_values_to_test(finding) for finding in family]
    tables = []
    for side in range(2):
        runs = sorted({run for value in values for run in value[side]})
        tables.append(np.array([[value[side].get(run, np.nan) for run in runs] for value in values]))
    return permutation.permute_samples(*tables)


def _why_missing(pairing: Pairing, metric: str, in_base: bool) -> str:
    sample = pairing.base if in_base else pairing.other
    name = sample.side.name
    if sample.skipped:
        return f"skipped in {name}: {sample.skipped}"
    if not sample.started:
        return f"is not part of {name}"
    if not sample.runs:
        return f"no valid run in {name}"
    for row in sample.side.results.rows:
        if row.scheme == sample.scheme and metric in row.absent:
            return f"in {name}: {row.absent[metric]}"
    return f"no value in {name}"
