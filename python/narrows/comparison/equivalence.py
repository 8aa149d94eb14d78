"""The smallest effect that matters: is a difference larger than a margin, smaller, or undecided?

Two one-sided tests (Schuirmann 1987; Lakens 2017): a difference is within the margin if it is shown to be
above the lower and below the upper margin, and beyond it if it is shown to be above the upper or below the
lower one. Each is the test of a difference after the margin has been subtracted from one side, so the
permutation test that bounds false claims of differences (`narrows.statistics.permutation`) bounds these too,
over all comparisons and both margins together. As for differences, the 95 % interval must agree: it lies
within the margins, or beyond one of them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from narrows.analysis.metrics import find, head_of
from narrows.comparison.amounts import read_amount
from narrows.comparison.findings import ERROR_RATE, LEVEL, MISSING, SAME, Finding, least_p
from narrows.documents.comparison import MarginOutcome
from narrows.documents.results import Metric
from narrows.errors import UsageError
from narrows.statistics import permutation
from narrows.statistics.runs import FEWEST_FOR_INTERVAL
from narrows.text import shorten

Floats = NDArray[np.float64]

BEYOND, WITHIN, UNDECIDED = "differs by more than the margin", "equivalent within the margin", "undecided"
OPTION = "--margin"
_FORM = re.compile(r"(?:(?P<metric>.*?\S)\s+)?(?P<amount>[0-9.][^\s]*(?:\s+\S+){0,2})")
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Margin:
    """The smallest difference that matters: in the metric's unit, or as a share of the base."""

    text: str
    amount: float
    share: bool


@dataclass(frozen=True)
class Equivalence:
    """The finding about a margin: `outcome`, the p value of the claim among all claims made together, and the
    reason if nothing is shown."""

    margin: Margin
    outcome: str
    p: float | None = None
    why: str | None = None

    def to_document(self) -> MarginOutcome:
        """The finding in the form of the comparison document."""
        return MarginOutcome(
            text=self.margin.text,
            amount=self.margin.amount,
            share=self.margin.share,
            outcome=self.outcome,
            p=self.p,
            why=self.why,
        )


def read_margins(texts: Sequence[str], metrics: Sequence[Metric]) -> dict[str, Margin]:
    """The margin of each metric by its name, from texts such as `1 %`, `2 ms`, `loss 0.5 points`. An amount
    alone applies to every metric that it fits; an amount with a metric takes precedence. Raises `UsageError`
    for amounts that fit no metric, and for two amounts of one metric.
    """
    general: dict[str, Margin] = {}
    own: dict[str, Margin] = {}
    for text in texts:
        match = _FORM.fullmatch(text.strip())
        if match is None:
            raise UsageError(
                f'{OPTION}: "{shorten(text)}" is not a margin; write an amount such as "1 %" or "2 ms", after'
                ' a metric if need be: "loss 0.5 points"'
            )
        if match["metric"]:
            metric = find(metrics, match["metric"])
            _add(own, metric, _margin(text, match["amount"], metric))
            continue
        fitting = 0
        problem: UsageError | None = None
        for metric in metrics:
            try:
                margin = _margin(text, match["amount"], metric)
            except UsageError as error:
                problem = problem or error
                continue
            fitting += 1
            _add(general, metric, margin)
        if problem is not None and not fitting:
            raise problem
    return {**general, **own}


def _add(entry: dict[str, Margin], metric: Metric, margin: Margin) -> None:
    name = metric.name
    if name in entry and entry[name].share != margin.share:
        # With "1 %" and "2 ms" the second one applies to times only.
        entry[name] = entry[name] if margin.share else margin
        return
    if name in entry:
        raise UsageError(
            f'{OPTION}: {head_of(metric)} has two margins, "{entry[name].text}" and "{margin.text}"'
        )
    entry[name] = margin


def _margin(text: str, amount: str, metric: Metric) -> Margin:
    size, share = read_amount(amount.strip(), metric, OPTION)
    if not 0 < size < math.inf:
        raise UsageError(f'{OPTION}: "{shorten(text)}" must be more than 0')
    if share and size >= 1:
        raise UsageError(f'{OPTION}: "{shorten(text)}" is the whole of the base; write less than 100 %')
    return Margin(text.strip(), size, share)


def decide(findings: Sequence[Finding], margins: Mapping[str, Margin]) -> None:
    """Sets the `equivalence` of each finding whose metric has a margin."""
    tested: dict[tuple[str, str, bool], list[_Test]] = {}
    for finding in findings:
        margin = margins.get(finding.metric.name)
        if margin is None:
            continue
        finding.equivalence = _without_test(finding, margin)
        if finding.equivalence is None:
            test = _Test.of(finding, margin)
            finding.equivalence = test.open()
            tested.setdefault(finding.pairing.group, []).append(test)
    for (_, _, paired), family in tested.items():
        for test, p in zip(family, _p_values(family, paired), strict=True):
            test.finding.equivalence = test.judge(p * len(tested), len(tested))


def _without_test(finding: Finding, margin: Margin) -> Equivalence | None:
    """The outcome without a test: for identical runs, or when no test is possible."""
    undecided = Equivalence(margin, UNDECIDED)
    if finding.outcome == MISSING or finding.absolute is None:
        return replace(undecided, why=finding.why)
    repeated = finding.pairing.base.is_repeated and finding.pairing.other.is_repeated
    size = _size(finding, margin)
    if size is None:
        return replace(undecided, why="the base is 0, so a share of it is undefined")
    if size <= finding.resolution:
        return replace(undecided, why="the margin is below the lateness of the runs")
    if repeated:
        estimate = finding.relative if margin.share else finding.absolute
        amount = abs((estimate or finding.absolute).estimate)
        within = finding.outcome == SAME or amount <= margin.amount * (1 + _ROUNDING)
        return Equivalence(margin, WITHIN if within else BEYOND)
    if finding.runs < FEWEST_FOR_INTERVAL:
        few = f"{finding.runs} {finding.counted}: at least {FEWEST_FOR_INTERVAL} are needed"
        return replace(undecided, why=finding.why or few)
    return None


def _size(finding: Finding, margin: Margin) -> float | None:
    """The margin in the metric's unit; None for a share of zero."""
    if not margin.share:
        return margin.amount
    middle = (finding.base.median or 0) if finding.base else 0
    return margin.amount * middle if middle > 0 else None


@dataclass(frozen=True)
class _Test:
    """A finding with its values by run and both margins, on the scale of the test: logarithms if the margin
    is a share and all values are positive.
    """

    finding: Finding
    margin: Margin
    base: Mapping[int, float]
    other: Mapping[int, float]
    low: float
    high: float
    #: The 95 % interval and the estimate of the difference on the same scale.
    interval: tuple[float, float]
    estimate: float

    @classmethod
    def of(cls, finding: Finding, margin: Margin) -> _Test:
        """The test of a finding that has an estimate."""
        base, other = finding.pairing.values(finding.metric.name)
        assert finding.absolute is not None
        ends = (finding.absolute.low, finding.absolute.high, finding.absolute.estimate)
        if margin.share and finding.relative and all(v > 0 for side in (base, other) for v in side.values()):
            base, other = ({run: math.log(v) for run, v in side.items()} for side in (base, other))
            low, high = math.log1p(-margin.amount), math.log1p(margin.amount)
            share = finding.relative
            ends = math.log1p(share.low), math.log1p(share.high), math.log1p(share.estimate)
        else:
            size = _size(finding, margin)
            assert size is not None
            low, high = -size, size
        return cls(finding, margin, base, other, low, high, ends[:2], ends[2])

    def open(self) -> Equivalence:
        """Sets the outcome to undecided."""
        return Equivalence(self.margin, UNDECIDED)

    def judge(self, p: Floats, groups: int) -> Equivalence:
        """The outcome from the p values of both margins, the lower one first."""
        least = groups * least_p(self.finding)
        if least > ERROR_RATE:
            counted = f"{self.finding.runs} {self.finding.counted}"
            why = f"{counted}: the least p value that they can give is {least:.2g}"
            return replace(self.open(), why=why)
        level = max(LEVEL, least) * (1 + _ROUNDING)
        of_low, of_high = (min(1.0, float(item)) for item in p)
        (low, high), worst = self.interval, max(of_low, of_high)
        if self.low < low and high < self.high and worst <= level:
            return Equivalence(self.margin, WITHIN, worst)
        if low > self.high and of_high <= level:
            return Equivalence(self.margin, BEYOND, of_high)
        if high < self.low and of_low <= level:
            return Equivalence(self.margin, BEYOND, of_low)
        return Equivalence(self.margin, UNDECIDED, worst)


def _p_values(family: Sequence[_Test], paired: bool) -> Floats:
    """The adjusted p values of the lower and the upper margin of each test, of shape `(tests, 2)`."""
    margins = [(test, margin) for test in family for margin in (test.low, test.high)]
    if paired:
        runs = sorted({run for test in family for run in test.base})
        apart = [
            [test.other.get(run, np.nan) - test.base.get(run, np.nan) - margin for run in runs]
            for test, margin in margins
        ]
        return permutation.permute_pairs(np.array(apart)).reshape(-1, 2)
    first = sorted({run for test in family for run in test.base})
    second = sorted({run for test in family for run in test.other})
    base = [[test.base.get(run, np.nan) for run in first] for test, _ in margins]
    other = [[test.other.get(run, np.nan) - margin for run in second] for test, margin in margins]
    return permutation.permute_samples(np.array(base), np.array(other)).reshape(-1, 2)
