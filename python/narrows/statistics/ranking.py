"""The order of schemes that runs support: ranks with ties, and the Pareto frontier."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from narrows.statistics.runs import RESAMPLES, SEED

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


def rank_ranges(shown_better: Bools) -> list[tuple[int, int]]:
    """The best and the worst possible rank (from 1) of each scheme.

    `shown_better[i, j]` says that scheme i is shown to be better than scheme j (shape `(m, m)`). Schemes that
    are shown to be better precede a scheme, schemes that are shown to be worse follow it, and the order of
    the others is undecided: if all comparisons hold at once, all ranges do (Mogstad, Romano, Shaikh and
    Wilhelm, "Inference for ranks", Review of Economic Studies, 2024).
    """
    before, behind = shown_better.sum(axis=0), shown_better.sum(axis=1)
    count = len(shown_better)
    return [(int(first) + 1, count - int(last)) for first, last in zip(before, behind, strict=True)]


def on_frontier(points: Floats) -> Bools:
    """True for the points that no other point dominates (at least as good in both coordinates and better in
    one).

    `points` has the shape `(..., m, 2)`, where larger coordinates are better, and the result `(..., m)`; a
    point with NaN is not on the frontier and dominates no other.
    """
    mine, others = points[..., :, None, :], points[..., None, :, :]
    beaten = ((others >= mine).all(axis=-1) & (others > mine).any(axis=-1)).any(axis=-1)
    return np.asarray(~beaten & np.isfinite(points).all(axis=-1))


def frontier_support(values: Floats, resamples: int = RESAMPLES) -> Floats:
    """The share of bootstrap resamples of the runs in which the medians of each scheme are on the frontier.

    `values` has the shape `(m, n, 2)`: schemes, runs, and two metrics of which larger values are better; NaN
    for a missing run of a scheme. A resample takes the same runs of all schemes, since run k of each shares
    its randomness.
    """
    schemes, runs, _ = values.shape
    chance = np.random.RandomState(SEED)
    share = np.zeros(schemes)
    # Limits the memory to some 50 MB.
    step = max(1, 1_000_000 // max(schemes * max(schemes, runs), 1))
    for start in range(0, resamples, step):
        picks = chance.randint(0, runs, size=(min(step, resamples - start), runs))
        share += on_frontier(_medians(values[:, picks, :])).sum(axis=0)
    return share / resamples


def _medians(resampled: Floats) -> Floats:
    """Medians over the runs of `(m, resamples, n, 2)`, as `(resamples, m, 2)`. Missing runs are omitted; if a
    resample has no run of a scheme, its median is NaN.
    """
    ordered = np.sort(resampled, axis=2)
    # NaN is sorted to the end.
    there = np.isfinite(ordered).sum(axis=2, keepdims=True)
    below, above = (
        np.take_along_axis(ordered, np.maximum(rank, 0), axis=2) for rank in ((there - 1) // 2, there // 2)
    )
    middle: Floats = ((below + above) / 2)[:, :, 0, :]
    return middle.swapaxes(0, 1)
