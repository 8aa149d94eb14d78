"""The distance between the results on a path and a table.

Every scheme has a throughput, a 95th percentile of delay and a loss; a target is the mean of one of them over
the runs of the table. The reported error is that of Pantheon: the mean over schemes and both of throughput
and delay of |ours / theirs - 1|. The search uses more: differences of logarithms, each in units of its noise
combined with the common misfit of its quantity, with losses included, and with large differences counting
less than their squares. A table that a path can reproduce exactly is therefore met as exactly as its noise
allows, and for one that no path reproduces the typical difference is minimised.

A scheme may be off the path: it was limited by its application, ran while the path was another one, or is not
the scheme that Narrows has. The further a scheme differs, the less it counts, so that the path is that of the
schemes that agree about one (the function of Geman and McClure, of the differences of each scheme).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median

import numpy as np
from numpy.typing import NDArray

from narrows.calibrate.table import ALL, DELAY, LOSS, QUANTITIES, THROUGHPUT, Table

Floats = NDArray[np.float64]
#: Results: scheme, flow, quantity, and the values of the runs.
Runs = Mapping[str, Mapping[str, Mapping[str, Sequence[float | None]]]]
#: Losses below this share count as equal.
LEAST_LOSS = 1e-3
#: Noise of a value without a stated noise: of a single run, or of runs printed with few digits.
LEAST_NOISE, UNKNOWN_NOISE = 2e-3, 0.05
#: Weight of losses in the search relative to throughput and delay: larger if the path reproduces throughputs
#: to this misfit, so that losses never worsen the fit of the others.
LOSS_WEIGHT, FULL_LOSS_WEIGHT, REPRODUCED = 0.2, 0.6, 0.03
#: The noise of simulations counts as much as this many runs of the table.
_CHANCE_RUNS = 4
#: Up to this multiple of the common misfit differences count by their squares, beyond it linearly.
_INNER = 0.5
#: The loss of a scheme at which it counts half, with differences of about four times the typical ones.
#: Beyond it the scheme is off the path, unless its error is below `LEAST_OFF` or this multiple of the median
#: error of schemes.
_OFF, LEAST_OFF, _TYPICAL = 8.0, 0.1, 3.0
#: Throughput below this share of the table's largest counts as none.
LEAST_THROUGHPUT = 1e-3


@dataclass(frozen=True)
class Target:
    """The mean of a value over the runs of a table."""

    scheme: str
    flow: str
    quantity: str
    value: float
    runs: tuple[float, ...]

    @property
    def relative(self) -> bool:
        """True if the target enters the error."""
        return self.quantity != LOSS and self.value > 0


@dataclass(frozen=True)
class Targets:
    """All targets of a table in a fixed order, and their noise."""

    all: tuple[Target, ...]
    #: The standard error of each target on the scale of `scale`.
    noise: Floats

    @property
    def schemes(self) -> list[str]:
        """The schemes with a target."""
        return list(dict.fromkeys(target.scheme for target in self.all))

    @property
    def theirs(self) -> Floats:
        """The targets on the scale of the differences: means over runs of scaled values, so that the
        expectation does not depend on the number of runs.
        """
        return np.array([fmean(self.of_runs(target)) for target in self.all])

    def of_runs(self, target: Target) -> list[float]:
        """The scaled values of the runs of the table."""
        # A run that nearly failed would dominate the mean of logarithms.
        least = 0.0 if target.quantity == LOSS else 0.05 * target.value
        return [self.scale(target.quantity, max(value, least)) for value in target.runs]

    @property
    def _least(self) -> float:
        return LEAST_THROUGHPUT * max(
            (target.value for target in self.all if target.quantity == THROUGHPUT), default=1.0
        )

    def scale(self, quantity: str, value: float) -> float:
        """The logarithm; for losses the logarithm of loss + 0.1 %."""
        if quantity == LOSS:
            return math.log(max(value, 0.0) + LEAST_LOSS)
        return math.log(max(value, self._least if quantity == THROUGHPUT else 1.0))

    def row(self, runs: Runs) -> Floats:
        """Results in the order of the targets; NaN for missing ones."""
        values = []
        for target in self.all:
            scaled = [self.scale(target.quantity, value) for value in self._values(target, runs)]
            values.append(fmean(scaled) if scaled else math.nan)
        return np.array(values)

    @staticmethod
    def _values(target: Target, runs: Runs) -> list[float]:
        values = runs.get(target.scheme, {}).get(target.flow, {}).get(target.quantity, ())
        return [value for value in values if value is not None]

    def means(self, runs: Runs) -> list[float | None]:
        """The mean over runs of each target; None for missing ones."""
        return [fmean(values) if (values := self._values(target, runs)) else None for target in self.all]

    def mask(self, schemes: Sequence[str]) -> NDArray[np.bool_]:
        """Which targets are of these schemes."""
        return np.array([target.scheme in schemes for target in self.all])

    def errors(self, means: Sequence[float | None]) -> list[float | None]:
        """ours / theirs - 1 of each target, for losses ours - theirs; None for missing ones."""
        values: list[float | None] = []
        for target, value in zip(self.all, means, strict=True):
            if value is None or (target.quantity != LOSS and not target.relative):
                values.append(None)
            else:
                values.append(value - target.value if target.quantity == LOSS else value / target.value - 1)
        return values

    def mean_error(
        self, errors: Sequence[float | None], schemes: Sequence[str] | None = None
    ) -> float | None:
        """The mean of |error| over throughput and delay; None if neither has an error."""
        own = [
            abs(error)
            for target, error in zip(self.all, errors, strict=True)
            if error is not None and target.relative and (schemes is None or target.scheme in schemes)
        ]
        return fmean(own) if own else None


@dataclass(frozen=True)
class Floor:
    """The noise of the table: the error of one run against the mean of the others, and the expected error of
    means over all its runs."""

    single: float
    mean: float


def targets_of(table: Table, schemes: Sequence[str]) -> Targets:
    """The targets of some schemes: totals over all flows, or each flow of schemes without totals."""
    targets: list[Target] = []
    for scheme in schemes:
        rows = [row for row in table.rows if row.scheme == scheme]
        totals = [row for row in rows if row.flow == ALL]
        of = totals if any(v is not None for row in totals for v in row.values.values()) else rows
        for flow in dict.fromkeys(row.flow for row in of):
            for quantity in QUANTITIES:
                runs = tuple(
                    value
                    for row in of
                    if row.flow == flow and (value := row.values.get(quantity)) is not None
                )
                if runs:
                    targets.append(Target(scheme, flow, quantity, fmean(runs), runs))
    made = Targets(tuple(targets), np.zeros(len(targets)))
    return Targets(made.all, _noise(made))


def _noise(targets: Targets) -> Floats:
    """The standard errors of means. The spread of a few runs is itself uncertain, so each value is the
    average of its spread and the typical spread of the quantity.
    """
    spreads = [_spread(targets.of_runs(target)) for target in targets.all]
    values = []
    for target, own in zip(targets.all, spreads, strict=True):
        known = [
            spread
            for other, spread in zip(targets.all, spreads, strict=True)
            if other.quantity == target.quantity and math.isfinite(spread)
        ]
        typical = median(known) if known else UNKNOWN_NOISE
        mine = own if math.isfinite(own) else typical
        values.append(max(LEAST_NOISE, math.sqrt((typical**2 + mine**2) / 2 / len(target.runs))))
    return np.array(values)


def _spread(values: Sequence[float]) -> float:
    """The standard deviation of runs; NaN for a single one."""
    return float(np.std(values, ddof=1)) if len(values) > 1 else math.nan


def floor_of(targets: Targets) -> Floor | None:
    """The noise floor; None if no value has two runs. With n runs of standard deviation s, one run differs
    from the mean of the others by s sqrt(n / (n - 1)), and the mean of all is off by s / sqrt(n)."""
    single, mean = [], []
    for target in targets.all:
        count = len(target.runs)
        if not target.relative or count < 2:
            continue
        for at, value in enumerate(target.runs):
            others = fmean([*target.runs[:at], *target.runs[at + 1 :]])
            if others > 0:
                single.append(abs(value / others - 1))
                mean.append(single[-1] * math.sqrt(count - 1) / count)
    return Floor(fmean(single), fmean(mean)) if single else None


@dataclass(frozen=True)
class Objective:
    """The objective: the mean over schemes of L / (1 + L / 8), where L is the mean over the targets of the
    scheme of sqrt(1 + (difference / scale)^2) - 1.
    """

    targets: Targets
    #: The common misfit of each quantity.
    misfit: Mapping[str, float]

    #: Standard error of each target.
    noise: Floats

    @classmethod
    def first(cls, targets: Targets) -> Objective:
        """The objective before any misfit is known."""
        return cls(targets, {THROUGHPUT: 0.05, DELAY: 0.05, LOSS: 0.3}, targets.noise)

    def after(self, rows: Floats, chance: Floats) -> Objective:
        """The objective with the misfit of the best path so far (its `row`) and the standard deviations of
        single runs there. A few runs may be alike by chance; simulations show how likely that is.
        """
        counts = np.array([len(target.runs) for target in self.targets.all])
        spreads = np.array([_spread(self.targets.of_runs(target)) for target in self.targets.all])
        pooled = ((counts - 1) * spreads**2 + _CHANCE_RUNS * chance**2) / (counts - 1 + _CHANCE_RUNS)
        own = np.fmax(LEAST_NOISE, np.sqrt(pooled / counts))
        noise = np.where(np.isnan(own), self.targets.noise, own)
        misfit = {}
        for quantity in QUANTITIES:
            own = [
                abs(float(difference))
                for target, difference in zip(self.targets.all, rows - self.targets.theirs, strict=True)
                if target.quantity == quantity and math.isfinite(difference)
            ]
            least = 0.03 if quantity == LOSS else 0.003
            misfit[quantity] = max(least, median(own)) if own else self.misfit[quantity]
        return Objective(self.targets, misfit, noise)

    def of(self, rows: Floats, chosen: NDArray[np.bool_] | None = None) -> Floats:
        """The objective of each row of results (rows x targets), over the chosen targets."""
        lost, weights = self._by_scheme(rows, chosen)
        return np.asarray((lost / (1 + lost / _OFF)) @ weights / max(weights.sum(), 1e-12), dtype=float)

    def off_path(self, row: Floats) -> set[str]:
        """The schemes that are off the path on which the results are `row`."""
        lost, _ = self._by_scheme(row, None)
        errors = np.abs(np.expm1(row - self.targets.theirs))
        relative = np.array([target.relative for target in self.targets.all])
        schemes = self.targets.schemes
        of_schemes = {scheme: errors[self.targets.mask([scheme]) & relative] for scheme in schemes}
        means = {scheme: float(np.mean(own)) for scheme, own in of_schemes.items() if np.isfinite(own).any()}
        least = max(LEAST_OFF, _TYPICAL * median(means.values())) if means else 0.0
        return {
            scheme
            for scheme, value in zip(schemes, lost[0], strict=True)
            if value > _OFF and means.get(scheme, math.inf) > least
        }

    def _by_scheme(self, rows: Floats, chosen: NDArray[np.bool_] | None) -> tuple[Floats, Floats]:
        """The lost value of each scheme (rows x schemes), and the weight of each scheme."""
        targets = self.targets
        common = np.array([self.misfit[target.quantity] for target in targets.all])
        loss = FULL_LOSS_WEIGHT if self.misfit[THROUGHPUT] <= REPRODUCED else LOSS_WEIGHT
        weights = np.array([loss if target.quantity == LOSS else 1.0 for target in targets.all])
        if chosen is not None:
            weights = weights * chosen
        away = np.atleast_2d(rows) - targets.theirs
        # The reported error is the ratio for throughput and delay: too high a value counts more than too low
        # a one.
        ratios = np.array([target.quantity != LOSS for target in targets.all])
        away = np.where(ratios, np.expm1(np.minimum(away, 3.0)), away)
        scaled = away / np.sqrt(self.noise**2 + (_INNER * common) ** 2)
        # A target without a result on a path counts as one that is wrong by several scales.
        lost = np.sqrt(1 + np.where(np.isnan(scaled), 5.0, scaled) ** 2) - 1
        members = np.array([targets.mask([scheme]) for scheme in targets.schemes]) * weights
        of_schemes = members.sum(axis=1)
        return np.asarray(lost @ members.T / np.maximum(of_schemes, 1e-12)), of_schemes
