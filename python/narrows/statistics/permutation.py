"""Many comparisons at once: the significant differences, with one bound on the chance of any false claim.

A campaign of ten schemes and six metrics is sixty comparisons. Tested one by one at 5 %, three of them appear
significant by chance alone. The test here is that of Westfall and Young ("Resampling-Based Multiple Testing",
1993), stepping down: if nothing differs, the assignment of two runs to the sides is arbitrary, so the sides
are exchanged in every possible way and the largest statistic of *all* comparisons is recorded each time. A
comparison is significant if its statistic is rarely reached by the largest of those that have not been
decided before it. No distribution is assumed, and since a run's schemes and metrics are always exchanged
together, neither is any dependence between them.

The statistic is Student's t of the paired differences, or Welch's of the two samples: it makes rates and
delays comparable. With n pairs there are 2^n exchanges, half of which give the same absolute values, so no p
value is below 2/2^n: three pairs can't show anything at 5 %.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from narrows.statistics.runs import SEED

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

#: Up to this number all exchanges are made, beyond it as many random ones (with a fixed seed), including the
#: actual one.
MOST_EXCHANGES = 4096
#: This many exchanges are evaluated together, which bounds the memory.
_TOGETHER = 512
#: Two statistics that differ by less than this share are considered equal up to rounding.
_ROUNDING = 1e-9
#: Variances below this share of the whole are rounding errors.
_LEAST_VARIANCE = 1e-12


def permute_pairs(differences: Floats) -> Floats:
    """Adjusted p values of comparisons whose runs are paired.

    `differences` has a row for each comparison and a column for each pair of runs (shape `(m, n)`), NaN for
    missing runs; the p values have the shape `(m,)`. All rows must have the runs in the same order.
    """
    scaled, there = _scale(differences)
    size = there.sum(axis=1)
    squares = (scaled**2).sum(axis=1)

    def statistic(signs: Floats) -> Floats:
        share = (signs @ scaled.T) ** 2 / (size * squares)
        # The square of Student's t, from the mean's share of the sum of squares.
        values: Floats = (size - 1) * share / np.maximum(1 - share, _LEAST_VARIANCE)
        return values

    return _stepping_down(sign_exchanges(differences.shape[1]), statistic)


def permute_samples(base: Floats, other: Floats) -> Floats:
    """Adjusted p values of comparisons without pairs: a row for each comparison, the runs of each side in the
    columns (shapes `(m, n)` and `(m, k)`), NaN for missing runs.
    """
    scaled, there = _scale(np.concatenate([base, other], axis=1), centred=True)
    known = there.astype(np.float64)
    whole, squares, count = scaled.sum(axis=1), (scaled**2).sum(axis=1), known.sum(axis=1)
    spread = np.maximum(squares / count, np.finfo(np.float64).tiny)

    def statistic(second: Floats) -> Floats:
        of_second = [second @ part.T for part in (known, scaled, scaled**2)]
        of_first = [total - part for total, part in zip((count, whole, squares), of_second, strict=True)]
        means, errors = [], []
        for size, total, square in (of_first, of_second):
            many = np.maximum(size, 1)
            variance = (square - total**2 / many) / np.maximum(size - 1, 1)
            means.append(total / many)
            errors.append(np.maximum(variance, _LEAST_VARIANCE * spread) / many)
        values: Floats = (means[1] - means[0]) ** 2 / (errors[0] + errors[1])
        # One side has too few runs to estimate its variance.
        return np.where((of_first[0] > 1) & (of_second[0] > 1), values, 0.0)

    return _stepping_down(group_exchanges(base.shape[1], other.shape[1]), statistic)


def least_paired_p(pairs: int) -> float:
    """The smallest p value that this many pairs of runs can reach."""
    return min(1.0, 2.0 ** (1 - pairs))


def least_unpaired_p(base: int, other: int) -> float:
    """The smallest p value that this many runs on each side can reach."""
    return min(1.0, (2 if base == other else 1) / math.comb(base + other, other))


def sign_exchanges(pairs: int) -> Floats:
    """The ways to exchange the sides within pairs, as factors 1 and -1 (shape `(ways, pairs)`), the actual
    one first. Of two that differ in all signs only one is listed, because their absolute statistics are
    equal.
    """
    if 2 ** max(pairs - 1, 0) <= MOST_EXCHANGES:
        flips = np.arange(2 ** max(pairs - 1, 0))[:, None] >> np.arange(pairs)[None, :] & 1
    else:
        flips = np.random.RandomState(SEED).randint(0, 2, size=(MOST_EXCHANGES, pairs))
        flips[0] = 0
    return np.asarray(1.0 - 2.0 * flips, dtype=np.float64)


def group_exchanges(base: int, other: int) -> Floats:
    """The ways to assign runs to the other side, as 1 and 0 (shape `(ways, base + other)`), including the
    actual one.
    """
    runs = base + other
    if math.comb(runs, other) <= MOST_EXCHANGES:
        chosen = np.array(list(itertools.combinations(range(runs), other)), dtype=np.intp)
    else:
        chance = np.random.RandomState(SEED)
        chosen = np.argsort(chance.random_sample((MOST_EXCHANGES, runs)), axis=1)[:, :other]
        chosen[0] = np.arange(base, runs)
    values = np.zeros((len(chosen), runs))
    np.put_along_axis(values, chosen, 1.0, axis=1)
    # The actual one first, wherever it was.
    actual = int(np.argmax(values[:, base:].sum(axis=1)))
    values[[0, actual]] = values[[actual, 0]]
    return values


def _scale(values: Floats, *, centred: bool = False) -> tuple[Floats, Bools]:
    """Rows without units, with 0 for missing values, and a mask of the values."""
    there = np.isfinite(values)
    known = np.where(there, values, 0.0)
    if centred:
        middle = known.sum(axis=1, keepdims=True) / np.maximum(there.sum(axis=1, keepdims=True), 1)
        known = np.where(there, known - middle, 0.0)
    size = np.abs(known).max(axis=1, keepdims=True, initial=0.0)
    return known / np.where(size > 0, size, 1.0), there


def _stepping_down(exchanges: Floats, statistic: Callable[[Floats], Floats]) -> Floats:
    """Adjusted p values from the statistics (shape `(ways, m)`) of the exchanges, the actual one first."""
    with np.errstate(invalid="ignore", divide="ignore"):
        actual = np.nan_to_num(statistic(exchanges[:1])[0])
        order = np.argsort(-actual, kind="stable")
        threshold = actual[order] * (1 - _ROUNDING)
        reached = np.zeros(len(actual))
        for start in range(0, len(exchanges), _TOGETHER):
            values = np.nan_to_num(statistic(exchanges[start : start + _TOGETHER]))[:, order]
            # The maximum over a comparison and all that follow it.
            largest = np.maximum.accumulate(values[:, ::-1], axis=1)[:, ::-1]
            reached += (largest >= threshold).sum(axis=0)
    adjusted = np.empty(len(actual))
    adjusted[order] = np.maximum.accumulate(reached / len(exchanges))
    return adjusted
