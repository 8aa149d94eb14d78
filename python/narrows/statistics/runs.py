"""Statistics over runs. The unit is the run: one number per run and metric, never pooled packets."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from statistics import fmean
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from narrows.documents.results import Statistics

if TYPE_CHECKING:
    from numpy import float64, intp
    from numpy.random import RandomState
    from numpy.typing import ArrayLike, NDArray

#: Below this many runs an interval would claim more precision than it has; the single values are shown.
FEWEST_FOR_INTERVAL = 6
#: The number of bootstrap resamples, and the fixed seed that makes the interval repeatable.
RESAMPLES = 10_000
SEED = 20_010_101
LEVEL = 0.95
#: The statistic behind every number of a campaign, in the words of captions and footnotes.
STATISTIC = "median over the valid runs"


def median_over_runs(values: Sequence[float]) -> float:
    """The median: the only statistic that summarises runs, so that tables, figures, answers and sites have
    the same number for the same runs. Raises `ValueError` for no values.
    """
    if not len(values):
        raise ValueError("there is no value of which a median could be taken")
    ordered = sorted(map(float, values))
    below, above = ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]
    return below if below == above else (below + above) / 2


def quantiles_over_runs(samples: Sequence[ArrayLike], shares: ArrayLike) -> NDArray[float64]:
    """The median over the runs of each run's quantiles at some shares (0 to 1), by nearest rank. `samples`
    has the sorted values of each run; none is empty.
    """
    import numpy

    wanted = numpy.asarray(shares, dtype=numpy.float64)
    of_runs = []
    for sample in samples:
        ordered = numpy.asarray(sample, dtype=numpy.float64)
        # For a share such as 0.95, the quantile of 20 values is the 19th, however 0.95 * 20 is rounded.
        ranks = numpy.ceil(wanted * len(ordered) * (1 - 1e-12)).astype(numpy.intp)
        of_runs.append(ordered[numpy.clip(ranks, 1, len(ordered)) - 1])
    medians: NDArray[float64] = numpy.median(numpy.array(of_runs), axis=0)
    return medians


def bootstrap_interval(samples: ArrayLike) -> tuple[Any, Any]:
    """The 95 % percentile bootstrap interval of the median (Efron and Tibshirani 1993, chapter 13).

    `samples` has the values of one sample, or of many of the same size in its rows (shape `(..., n)`); lower
    and upper ends have the shape `(...)`, in the unit of the values.

    The generator is NumPy's frozen Mersenne Twister, whose stream never changes between versions. The same
    resamples serve all samples of one size, so only the ranks of the two middle values of each are kept.
    """
    import numpy

    data = numpy.sort(numpy.asarray(samples, dtype=numpy.float64), axis=-1)
    below, above, times = _middle_ranks(data.shape[-1])
    medians = (data[..., below] + data[..., above]) / 2
    order = numpy.argsort(medians, axis=-1, kind="stable")
    reached = numpy.cumsum(times[order], axis=-1)
    low, high = (
        numpy.take_along_axis(
            medians,
            numpy.take_along_axis(order, (reached <= rank).sum(axis=-1, keepdims=True), axis=-1),
            axis=-1,
        )[..., 0]
        for rank in _tails(RESAMPLES)
    )
    return low, high


#: The number of random numbers drawn at a time.
_MOST_PICKS = 2_000_000


@lru_cache(maxsize=64)
def _middle_ranks(size: int) -> tuple[NDArray[intp], NDArray[intp], NDArray[intp]]:
    """Ranks (from 0) of the two middle values of resamples of a sorted sample, and the frequency of each
    pair.
    """
    import numpy

    chance = numpy.random.RandomState(SEED)
    middle = [(size - 1) // 2, size // 2]
    columns = []
    # Drawn in parts from the same stream: all resamples of thousands of runs at once would take gigabytes.
    part = max(1, _MOST_PICKS // size)
    for done in range(0, RESAMPLES, part):
        picks = chance.randint(0, size, size=(min(part, RESAMPLES - done), size))
        picks.partition(middle, axis=1)
        columns.append(picks[:, middle])
    pairs, times = numpy.unique(numpy.concatenate(columns), axis=0, return_counts=True)
    return pairs[:, 0], pairs[:, 1], times


def bootstrap_ratio(values: Sequence[float], base: Sequence[float]) -> tuple[float, float]:
    """The same interval for the median of `values` divided by that of `base`, two independent samples."""
    import numpy

    chance = numpy.random.RandomState(SEED)
    ratios = numpy.sort(_resample_medians(values, chance) / _resample_medians(base, chance))
    low, high = (float(ratios[rank]) for rank in _tails(RESAMPLES))
    return low, high


def _resample_medians(values: Sequence[float], chance: RandomState) -> NDArray[float64]:
    import numpy

    data = numpy.sort(numpy.asarray(values, dtype=numpy.float64))
    picks = chance.randint(0, len(data), size=(RESAMPLES, len(data)))
    medians: NDArray[float64] = numpy.median(data[picks], axis=1)
    return medians


def _tails(count: int) -> tuple[int, int]:
    """Ranks (from 0) of the ends of the interval among `count` sorted values."""
    tail = (1 - LEVEL) / 2
    return math.floor(tail * (count - 1)), math.ceil((1 - tail) * (count - 1))


def are_identical(values: Sequence[float]) -> bool:
    """True if several runs have the same number to the last bit: nothing in them is random."""
    return len(values) > 1 and bool(min(values) == max(values))


def summarise(values: Sequence[float]) -> Statistics:
    """Mean, median, smallest, largest and number of the runs' values and, for enough runs that are not all
    identical, the interval of the median."""
    identical = are_identical(values)
    interval: tuple[float, float] | None = None
    if len(values) >= FEWEST_FOR_INTERVAL and not identical:
        low, high = bootstrap_interval(values)
        interval = float(low), float(high)
    return Statistics(
        mean=fmean(values),
        median=median_over_runs(values),
        min=min(values),
        max=max(values),
        ci95=interval,
        identical=identical,
        n=len(values),
    )


def summarise_happened(times: Sequence[float], outcomes: Sequence[float]) -> Statistics:
    """The share of the runs in which an event happened, and the median of its times.

    There is no mean: the other runs only show that it would have taken longer than they lasted, and a mean
    that omits them, or counts their length, would measure the length of runs.
    """
    happened = sum(outcome > 0 for outcome in outcomes)
    return Statistics(
        mean=None,
        median=median_over_runs(times) if times else None,
        ci95=None,
        n=len(times),
        happened=happened,
        of=len(outcomes),
        share=happened / len(outcomes),
    )


class Spread(NamedTuple):
    """The spread of runs."""

    #: `interval`: of the median, at the level of 95 %. `range`: smallest and largest, of fewer runs.
    #: `identical`: all runs are equal. `unknown`: one run, or a summary without a spread.
    kind: Literal["interval", "range", "identical", "unknown"]
    low: float | None = None
    high: float | None = None


def spread_of(summary: Statistics) -> Spread:
    """The spread to show beside the median of a summary; an older version recorded only the interval."""
    if summary.identical:
        return Spread("identical")
    if summary.ci95:
        return Spread("interval", *summary.ci95)
    if summary.n > 1 and summary.min is not None and summary.max is not None:
        return Spread("range", summary.min, summary.max)
    return Spread("unknown")
