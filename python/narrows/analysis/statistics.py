"""Statistics over runs. The unit is the run: one number per run and metric, never pooled packets."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, median
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy import float64
    from numpy.random import RandomState
    from numpy.typing import NDArray

#: Below this many runs an interval would promise more than it knows; the single values are shown.
FEWEST_FOR_INTERVAL = 6
#: Resamples of the bootstrap, and the fixed seed that makes the interval repeatable.
RESAMPLES = 10_000
SEED = 20_010_101
LEVEL = 0.95


def bootstrap_interval(values: Sequence[float]) -> tuple[float, float]:
    """The 95 % percentile bootstrap interval of the median (Efron and Tibshirani 1993, chapter 13).

    The generator is the frozen Mersenne Twister of NumPy, whose stream never changes between versions.
    """
    import numpy

    return _interval(_resampled_medians(values, numpy.random.RandomState(SEED)))


def bootstrap_ratio(values: Sequence[float], base: Sequence[float]) -> tuple[float, float]:
    """The same for the median of `values` divided by that of `base`, samples that are independent."""
    import numpy

    chance = numpy.random.RandomState(SEED)
    return _interval(_resampled_medians(values, chance) / _resampled_medians(base, chance))


def _resampled_medians(values: Sequence[float], chance: RandomState) -> NDArray[float64]:
    import numpy

    data = numpy.sort(numpy.asarray(values, dtype=numpy.float64))
    picks = chance.randint(0, len(data), size=(RESAMPLES, len(data)))
    medians: NDArray[float64] = numpy.median(data[picks], axis=1)
    return medians


def _interval(resampled: NDArray[float64]) -> tuple[float, float]:
    """The range between the tails of resampled values."""
    import numpy

    ordered = numpy.sort(resampled)
    tail = (1 - LEVEL) / 2
    low = ordered[math.floor(tail * (RESAMPLES - 1))]
    high = ordered[math.ceil((1 - tail) * (RESAMPLES - 1))]
    return float(low), float(high)


def summarise(values: Sequence[float]) -> dict[str, Any]:
    """Mean, median and, for enough runs, the interval of the median."""
    interval = bootstrap_interval(values) if len(values) >= FEWEST_FOR_INTERVAL else None
    return {
        "mean": fmean(values),
        "median": median(values),
        "ci95": list(interval) if interval else None,
        "n": len(values),
    }


def summarise_happened(times: Sequence[float], outcomes: Sequence[float]) -> dict[str, Any]:
    """Share of the runs in which something happened, and the median of the times that it took there.

    There is no mean: of the other runs all that is known is that it would have taken longer than they
    lasted, and a mean that leaves them out, or takes their length for it, says how long the runs were.
    """
    happened = sum(outcome > 0 for outcome in outcomes)
    return {
        "mean": None,
        "median": median(times) if times else None,
        "ci95": None,
        "n": len(times),
        "happened": happened,
        "of": len(outcomes),
        "share": happened / len(outcomes),
    }
