"""The examination of a fitted path: its error on fresh seeds, the error of each scheme on a path fitted
without it, whether any path explains that error, and the rate at which the scheme would fit.

The schemes of a table mostly ran one after the other, and the capacity of the path may have changed while one
of them ran. A separate rate for each scheme shows how much of the error that would explain. It is not part of
the fit, since it is unknown for a scheme that was not measured.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

import numpy as np

from narrows.calibrate.paths import RATE, Path, Space
from narrows.calibrate.search import Search
from narrows.calibrate.simulate import Evaluation, Wanted
from narrows.calibrate.surrogate import Floats

#: Runs of each scheme on fresh seeds, and on the path that was fitted without it.
FRESH_RUNS, LEFT_OUT_RUNS = 10, 5
#: A difference of more standard errors than this is significant.
BEYOND = 3.0
#: A smaller difference does not matter, even if it is significant.
MATTERS = 0.05
#: How much worse than at their best the other schemes may fit: as a share of their error, and in absolute
#: terms.
_OTHERS, BESIDE = 0.15, 0.005
#: Rates to try for each scheme, as multiples of the path's rate, and the number of runs at each.
RATES = tuple(round(0.7 + 0.05 * step, 2) for step in range(13))
_RATE_RUNS = 3


@dataclass(frozen=True)
class LeftOut:
    """A scheme left out of the fit: the path that fits the others, and the scheme's results on it."""

    scheme: str
    path: Path
    evaluation: Evaluation
    error: float | None


@dataclass(frozen=True)
class Explained:
    """For a scheme, the path that suits it best among those on which the others fit."""

    scheme: str
    path: Path
    evaluation: Evaluation
    error: float | None
    #: False if no such path explains it: a significant difference remains.
    explained: bool


@dataclass(frozen=True)
class OwnRate:
    """For a scheme, the best-fitting rate, as a multiple of the path's, and the error at that rate on seeds
    that were not used to choose it.
    """

    scheme: str
    factor: float
    error: float | None


class Examination:
    """Examines the result of a search. `seed` returns the seeds of a purpose, and `check` simulates outside
    the budget of the search."""

    def __init__(
        self,
        search: Search,
        seed: Callable[[str, int], int],
        check: Callable[[Sequence[Wanted]], list[Evaluation]],
    ) -> None:
        self.search, self.seed, self.check = search, seed, check

    @property
    def schemes(self) -> tuple[str, ...]:
        """The schemes by their published names."""
        return tuple(self.search.simulator.entries)

    def fresh(self, path: Path) -> Evaluation:
        """The path on seeds that the fit has not used."""
        return self.check([Wanted(path, self.schemes, FRESH_RUNS, self.seed("fresh", 0))])[0]

    def fit_left_out(self, space: Space) -> list[LeftOut]:
        """Each scheme on the path that was fitted without it: the processes of the other schemes determine
        the path, and the scheme itself is simulated on it.
        """
        paths = self.search.hold_out(space)
        wanted = [
            Wanted(path, (scheme,), LEFT_OUT_RUNS, self.seed("left out", number))
            for number, (scheme, (path, _)) in enumerate(paths.items())
        ]
        return [
            LeftOut(scheme, paths[scheme][0], evaluation, self.error([scheme], evaluation))
            for scheme, evaluation in zip(paths, self.check(wanted), strict=True)
        ]

    def explain_schemes(self, space: Space, fresh: Evaluation) -> list[Explained]:
        """For each scheme, the path that suits it best among those on which the others fit about as well as
        they can; the fitted path is a candidate as well.
        """
        search = self.search
        pool = search.pool(space)
        errors = search.relative(search.surrogate(space).means(pool))
        wanted = []
        for number, scheme in enumerate(search.targets.schemes):
            mask = search.targets.mask([scheme])
            others = _means(errors[:, ~mask])
            allowed = others <= (1 + _OTHERS) * others.min() + BESIDE
            own = np.where(allowed, search.objective.of(search.surrogate(space).means(pool), mask), np.inf)
            path = space.path(pool[int(np.argmin(own))])
            wanted.append(Wanted(path, (scheme,), LEFT_OUT_RUNS, self.seed("explained", number)))
        result = []
        for scheme, best in zip(search.targets.schemes, self.check(wanted), strict=True):
            one = fresh if self.beyond(scheme, best) and not self.beyond(scheme, fresh) else best
            explained = not self.beyond(scheme, one)
            result.append(Explained(scheme, one.path, one, self.error([scheme], one), explained))
        return result

    def own_rates(self, path: Path) -> list[OwnRate]:
        """For each scheme, the rate at which it fits best. All rates are tried with the same seeds."""
        paths = {
            factor: replace(path, values={**path.values, RATE.name: RATE.at(factor * path[RATE])})
            for factor in RATES
        }
        seed = self.seed("rates", 0)
        evaluations = self.check([Wanted(place, self.schemes, _RATE_RUNS, seed) for place in paths.values()])
        best: dict[str, float] = {}
        for scheme in self.search.targets.schemes:
            errors = {
                factor: self.error([scheme], evaluation)
                for factor, evaluation in zip(paths, evaluations, strict=True)
            }
            known = {factor: error for factor, error in errors.items() if error is not None}
            if known:
                # Among rates that fit equally well, take the one nearest to the path's rate.
                best[scheme] = min(known, key=lambda factor: (known[factor], abs(factor - 1)))
        wanted = [
            Wanted(paths[factor], (scheme,), FRESH_RUNS, self.seed("own rate", number))
            for number, (scheme, factor) in enumerate(best.items())
        ]
        return [
            OwnRate(scheme, best[scheme], self.error([scheme], evaluation))
            for scheme, evaluation in zip(best, self.check(wanted), strict=True)
        ]

    def error(self, schemes: Sequence[str], evaluation: Evaluation) -> float | None:
        """The mean error of some schemes."""
        targets = self.search.targets
        errors = targets.errors(targets.means(evaluation.runs(self.search.metrics)))
        return targets.mean_error(errors, schemes)

    def beyond(self, scheme: str, evaluation: Evaluation) -> bool:
        """True if the throughput or the delay of a scheme differs significantly, given the randomness of both
        sides.
        """
        targets, runs = self.search.targets, evaluation.runs(self.search.metrics)
        row = targets.row(runs)
        for at, target in enumerate(targets.all):
            if target.scheme != scheme or not target.relative or not math.isfinite(row[at]):
                continue
            values = [v for v in runs[scheme][target.flow][target.quantity] if v is not None]
            scaled = [targets.scale(target.quantity, value) for value in values]
            ours = float(np.std(scaled, ddof=1)) / math.sqrt(len(scaled)) if len(scaled) > 1 else 0.0
            away = abs(float(row[at] - targets.theirs[at]))
            if away > max(MATTERS, BEYOND * math.hypot(ours, float(targets.noise[at]))):
                return True
        return False


def _means(errors: Floats) -> Floats:
    known = np.isfinite(errors)
    return np.asarray(np.where(known, errors, 0.0).sum(axis=1) / np.maximum(known.sum(axis=1), 1))


def mean_error(left_outs: Sequence[LeftOut | OwnRate]) -> float | None:
    """The mean over schemes; None if none has an error."""
    errors = [item.error for item in left_outs if item.error is not None]
    return fmean(errors) if errors else None
