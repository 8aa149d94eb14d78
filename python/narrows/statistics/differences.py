"""The difference between two samples of runs: its size, its interval, and its significance.

The estimate is that of Hodges and Lehmann ("Estimates of location based on rank tests", 1963), the interval
that of inverting Wilcoxon's test, so that it excludes 0 exactly where the test of the same row alone rejects
(Hollander, Wolfe and Chicken, "Nonparametric Statistical Methods", 3rd edition, sections 3.2, 3.3, 4.2 and
4.3). No distribution is assumed; the probabilities are exact, ties included, since they are counted over the
actual ranks.

*Paired*: run k of both sides met the same random events (they have the same seed), so the difference within
each pair counts. *Unpaired*: the runs of the sides are independent.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from narrows.statistics.runs import LEVEL

Floats = NDArray[np.float64]


def shift_of_pairs(differences: Floats) -> Any:
    """The Hodges-Lehmann estimate of paired differences: the median of the means of all pairs of them.

    `differences` has the shape `(..., n)`; the estimates, in its unit, have the shape `(...)`.
    """
    return np.median(_walsh_averages(differences), axis=-1)


def interval_of_pairs(differences: Floats) -> tuple[Any, Any]:
    """The 95 % interval of `shift_of_pairs`, for any distribution: lower and upper ends of shape `(...)`.

    Needs at least 6 differences: with fewer, not even the smallest and largest enclose the true one in 95 %
    of cases.
    """
    averages = np.sort(_walsh_averages(differences), axis=-1)
    rank = _signed_rank_cut(differences.shape[-1])
    return averages[..., rank], averages[..., -1 - rank]


def signed_rank_p(differences: Floats) -> float:
    """The two-sided p value of Wilcoxon's signed-rank test that paired differences (shape `(n,)`) lie around
    0.

    Exact given the ranks, ties included. Differences of 0 carry no information and are omitted, as Wilcoxon
    did; without any other the p value is 1.
    """
    there = differences[differences != 0]
    ranks = _double_ranks(np.abs(there))
    return _two_sided(_signed_rank_law(tuple(ranks)), int(ranks[there > 0].sum()))


def shift_of_samples(base: Floats, other: Floats) -> Any:
    """The Hodges-Lehmann estimate of the shift from `base` (shape `(..., m)`) to `other` (shape `(..., n)`):
    the median of all differences between a value of `other` and one of `base`, of shape `(...)`."""
    return np.median(_all_differences(base, other), axis=-1)


def interval_of_samples(base: Floats, other: Floats) -> tuple[Any, Any]:
    """The 95 % interval of `shift_of_samples`, whatever the distribution. Needs at least 4 values on each
    side."""
    values = np.sort(_all_differences(base, other), axis=-1)
    rank = _rank_sum_cut(base.shape[-1], other.shape[-1])
    return values[..., rank], values[..., -1 - rank]


def rank_sum_p(base: Floats, other: Floats) -> float:
    """The two-sided p value of Wilcoxon's rank-sum test (Mann and Whitney's U) for shapes `(m,)` and `(n,)`;
    exact given the ranks, ties included."""
    ranks = _double_ranks(np.concatenate([base, other]))
    return _two_sided(_rank_sum_law(tuple(ranks), len(other)), int(ranks[len(base) :].sum()))


def _walsh_averages(differences: Floats) -> Floats:
    """The means of all pairs of differences, including each with itself."""
    first, second = np.triu_indices(differences.shape[-1])
    return (differences[..., first] + differences[..., second]) / 2


def _all_differences(base: Floats, other: Floats) -> Floats:
    values = other[..., :, None] - base[..., None, :]
    return values.reshape(*values.shape[:-2], -1)


def _double_ranks(values: Floats) -> NDArray[np.int64]:
    """Twice the rank of each value, from 2; equal values get the average rank, which doubling keeps whole."""
    ordered = np.sort(values)
    below = np.searchsorted(ordered, values, side="left")
    upto = np.searchsorted(ordered, values, side="right")
    return (below + upto + 1).astype(np.int64)


def _two_sided(law: Floats, number: int) -> float:
    """Twice the smaller tail from `number` on, at most 1."""
    lower, upper = float(law[: number + 1].sum()), float(law[number:].sum())
    return min(1.0, 2 * min(lower, upper))


@lru_cache(maxsize=256)
def _signed_rank_law(ranks: tuple[int, ...]) -> Floats:
    """Probability of each sum of the positive ranks, if each rank is positive with probability one half."""
    law = np.ones(1)
    for rank in ranks:
        longer = np.zeros(len(law) + rank)
        longer[: len(law)] += law / 2
        longer[rank:] += law / 2
        law = longer
    return law


@lru_cache(maxsize=256)
def _rank_sum_law(ranks: tuple[int, ...], size: int) -> Floats:
    """Probability of each sum of `size` ranks drawn at random."""
    law = np.zeros((size + 1, sum(sorted(ranks)[-size:]) + 1 if size else 1))
    law[0, 0] = 1
    for rank in ranks:
        # Downwards from the largest number of ranks, so that no rank is used twice.
        for taken in range(size, 0, -1):
            law[taken, rank:] += law[taken - 1, : law.shape[1] - rank]
    values: Floats = law[size] / math.comb(len(ranks), size)
    return values


def _signed_rank_cut(size: int) -> int:
    """The number of Walsh averages that the interval excludes at each end."""
    return _cut(_signed_rank_law(tuple(range(1, size + 1))), f"{size} pairs of runs")


def _rank_sum_cut(base: int, other: int) -> int:
    """The number of differences that the interval excludes at each end."""
    law = _rank_sum_law(tuple(range(1, base + other + 1)), other)
    # From the smallest possible sum on: Mann and Whitney's U.
    return _cut(law[other * (other + 1) // 2 :], f"{base} and {other} runs")


def _cut(law: Floats, runs: str) -> int:
    below = np.cumsum(law) <= (1 - LEVEL) / 2 * (1 + 1e-12)
    count = int(np.argmin(below)) if not below.all() else len(law)
    if count == 0:
        raise ValueError(f"{runs} are too few for an interval")
    return count - 1
