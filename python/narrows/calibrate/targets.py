"""The distance between the results on a path and a table.

Every scheme has a throughput, a 95th percentile of delay and a loss; a target is the mean of one of them over
the runs of the table. The reported error is that of Pantheon: the mean over schemes and both of
throughput and delay of |ours / theirs - 1|. The search goes by more: by differences of logarithms, each in
units of its own noise together with the common misfit of its quantity, with losses besides, and large
differences counting less than their squares. So a table that a path can reproduce exactly is met as exactly
as its noise allows, and one that no path reproduces has its typical difference made small.
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
#: Losses below this share are all alike.
LEAST_LOSS = 1e-3
#: Noise of a value that says none: of one run, or of runs that are printed with few digits.
LEAST_NOISE, UNKNOWN_NOISE = 2e-3, 0.05
#: What losses count for the search beside throughput and delay, which count 1: more where the path reproduces
#: throughputs to this misfit, so that losses don't pull it away from anything.
LOSS_WEIGHT, FULL_LOSS_WEIGHT, REPRODUCED = 0.2, 0.6, 0.03
#: Of how many runs the noise that simulations have is worth, beside that of the runs of the table.
_CHANCE_RUNS = 4
#: The part of the common misfit within which differences count by their squares, and beyond it as they are.
_INNER = 0.5
#: The throughput that counts as none, as a share of the largest of the table.
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
        """True if it enters the error."""
        return self.quantity != LOSS and self.value > 0


@dataclass(frozen=True)
class Targets:
    """All targets of a table in a fixed order, and their noise."""

    all: tuple[Target, ...]
    #: Standard error of each on the scale of `scaled`.
    noise: Floats

    @property
    def schemes(self) -> list[str]:
        """The schemes with a target."""
        return list(dict.fromkeys(one.scheme for one in self.all))

    @property
    def theirs(self) -> Floats:
        """The targets on the scale on which differences are taken: means over runs of scaled values, so that
        the expectation does not depend on how many runs there are."""
        return np.array([fmean(self.of_runs(one)) for one in self.all])

    def of_runs(self, one: Target) -> list[float]:
        """The scaled values of the runs of the table."""
        # A run that all but failed would dominate the mean of logarithms.
        least = 0.0 if one.quantity == LOSS else 0.05 * one.value
        return [self.scaled(one.quantity, max(value, least)) for value in one.runs]

    @property
    def _least(self) -> float:
        return LEAST_THROUGHPUT * max(
            (one.value for one in self.all if one.quantity == THROUGHPUT), default=1.0
        )

    def scaled(self, quantity: str, value: float) -> float:
        """The logarithm; of losses that of loss + 0.1 %."""
        if quantity == LOSS:
            return math.log(max(value, 0.0) + LEAST_LOSS)
        return math.log(max(value, self._least if quantity == THROUGHPUT else 1.0))

    def row(self, runs: Runs) -> Floats:
        """Results in the order of the targets; NaN where there is none."""
        found = []
        for one in self.all:
            scaled = [self.scaled(one.quantity, value) for value in self._values(one, runs)]
            found.append(fmean(scaled) if scaled else math.nan)
        return np.array(found)

    @staticmethod
    def _values(one: Target, runs: Runs) -> list[float]:
        values = runs.get(one.scheme, {}).get(one.flow, {}).get(one.quantity, ())
        return [value for value in values if value is not None]

    def means(self, runs: Runs) -> list[float | None]:
        """The mean over runs of each target; None where there is none."""
        return [fmean(values) if (values := self._values(one, runs)) else None for one in self.all]

    def mask(self, schemes: Sequence[str]) -> NDArray[np.bool_]:
        """Which targets are of these schemes."""
        return np.array([one.scheme in schemes for one in self.all])

    def errors(self, means: Sequence[float | None]) -> list[float | None]:
        """ours / theirs - 1 of each target, of losses ours - theirs; None where there is none."""
        found: list[float | None] = []
        for one, value in zip(self.all, means, strict=True):
            if value is None or (one.quantity != LOSS and not one.relative):
                found.append(None)
            else:
                found.append(value - one.value if one.quantity == LOSS else value / one.value - 1)
        return found

    def mean_error(
        self, errors: Sequence[float | None], schemes: Sequence[str] | None = None
    ) -> float | None:
        """The mean of |error| over throughput and delay; None if there is nothing to take it of."""
        own = [
            abs(error)
            for one, error in zip(self.all, errors, strict=True)
            if error is not None and one.relative and (schemes is None or one.scheme in schemes)
        ]
        return fmean(own) if own else None


@dataclass(frozen=True)
class Floor:
    """The noise of the table: the error of one run against the mean of the others, and the expected error of
    means over all its runs."""

    single: float
    mean: float


def targets_of(table: Table, schemes: Sequence[str]) -> Targets:
    """The targets of some schemes: totals over all flows, of schemes without totals each of their flows."""
    found: list[Target] = []
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
                    found.append(Target(scheme, flow, quantity, fmean(runs), runs))
    made = Targets(tuple(found), np.zeros(len(found)))
    return Targets(made.all, _noise(made))


def _noise(targets: Targets) -> Floats:
    """Standard errors of means. The spread of a few runs is itself uncertain, so each is half that of its own
    and half the typical one of the quantity."""
    spreads = [_spread(targets.of_runs(one)) for one in targets.all]
    found = []
    for one, own in zip(targets.all, spreads, strict=True):
        known = [
            spread
            for other, spread in zip(targets.all, spreads, strict=True)
            if other.quantity == one.quantity and math.isfinite(spread)
        ]
        typical = median(known) if known else UNKNOWN_NOISE
        mine = own if math.isfinite(own) else typical
        found.append(max(LEAST_NOISE, math.sqrt((typical**2 + mine**2) / 2 / len(one.runs))))
    return np.array(found)


def _spread(values: Sequence[float]) -> float:
    """The standard deviation of runs; NaN of a single one."""
    return float(np.std(values, ddof=1)) if len(values) > 1 else math.nan


def floor_of(targets: Targets) -> Floor | None:
    """The noise floor; None if no value has two runs. With n runs of standard deviation s, one run differs
    from the mean of the others by s sqrt(n / (n - 1)), and the mean of all is off by s / sqrt(n)."""
    single, mean = [], []
    for one in targets.all:
        count = len(one.runs)
        if not one.relative or count < 2:
            continue
        for at, value in enumerate(one.runs):
            others = fmean([*one.runs[:at], *one.runs[at + 1 :]])
            if others > 0:
                single.append(abs(value / others - 1))
                mean.append(single[-1] * math.sqrt(count - 1) / count)
    return Floor(fmean(single), fmean(mean)) if single else None


@dataclass(frozen=True)
class Objective:
    """The objective: the mean over targets of sqrt(1 + (difference / scale)^2) - 1."""

    targets: Targets
    #: The common misfit of each quantity.
    misfit: Mapping[str, float]

    #: Standard error of each target.
    noise: Floats

    @classmethod
    def first(cls, targets: Targets) -> Objective:
        """Before anything is known of the misfit."""
        return cls(targets, {THROUGHPUT: 0.05, DELAY: 0.05, LOSS: 0.3}, targets.noise)

    def after(self, rows: Floats, chance: Floats) -> Objective:
        """With the misfit that the best path so far has (its `row`), and the standard deviations that chance
        makes of single runs there. A few runs may be alike by chance; simulations tell how likely that is."""
        counts = np.array([len(one.runs) for one in self.targets.all])
        spreads = np.array([_spread(self.targets.of_runs(one)) for one in self.targets.all])
        pooled = ((counts - 1) * spreads**2 + _CHANCE_RUNS * chance**2) / (counts - 1 + _CHANCE_RUNS)
        own = np.fmax(LEAST_NOISE, np.sqrt(pooled / counts))
        noise = np.where(np.isnan(own), self.targets.noise, own)
        misfit = {}
        for quantity in QUANTITIES:
            own = [
                abs(float(difference))
                for one, difference in zip(self.targets.all, rows - self.targets.theirs, strict=True)
                if one.quantity == quantity and math.isfinite(difference)
            ]
            least = 0.03 if quantity == LOSS else 0.003
            misfit[quantity] = max(least, median(own)) if own else self.misfit[quantity]
        return Objective(self.targets, misfit, noise)

    def of(self, rows: Floats, chosen: NDArray[np.bool_] | None = None) -> Floats:
        """The objective of each row of results (rows x targets), over the chosen targets."""
        targets = self.targets
        common = np.array([self.misfit[one.quantity] for one in targets.all])
        loss = FULL_LOSS_WEIGHT if self.misfit[THROUGHPUT] <= REPRODUCED else LOSS_WEIGHT
        weights = np.array([loss if one.quantity == LOSS else 1.0 for one in targets.all])
        if chosen is not None:
            weights = weights * chosen
        away = np.atleast_2d(rows) - targets.theirs
        # For throughput and delay the ratio is reported: too much counts more than too little.
        ratios = np.array([one.quantity != LOSS for one in targets.all])
        away = np.where(ratios, np.expm1(np.minimum(away, 3.0)), away)
        scaled = away / np.sqrt(self.noise**2 + (_INNER * common) ** 2)
        # A scheme without a result on a path is as far off as one that is wrong by several scales.
        lost = np.sqrt(1 + np.where(np.isnan(scaled), 5.0, scaled) ** 2) - 1
        return np.asarray(lost @ weights / max(weights.sum(), 1e-12), dtype=float)
