"""The two-sample Kolmogorov-Smirnov test, exact: whether two samples may come from one distribution.

J. L. Hodges, "The significance probability of the Smirnov two-sample test", Arkiv för Matematik 3 (1958).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import comb


def distance(first: Sequence[float], second: Sequence[float]) -> int:
    """The largest distance of the two empirical distributions, times the numbers of both samples."""
    n, m = len(first), len(second)
    most = i = j = 0
    ordered_first, ordered_second = sorted(first), sorted(second)
    for value in sorted({*first, *second}):
        # Equal values are one common step.
        while i < n and ordered_first[i] <= value:
            i += 1
        while j < m and ordered_second[j] <= value:
            j += 1
        most = max(most, abs(i * m - j * n))
    return most


def significance(n: int, m: int, at_least: int) -> float:
    """Probability that samples of `n` and `m` from one continuous distribution are at least `at_least` apart
    (see `distance`). With ties it is an upper bound."""
    if at_least <= 0:
        return 1.0
    # Orders of the values of both, as walks from (0, 0) to (n, m) that never get that far apart.
    row = [0] * (m + 1)
    for i in range(n + 1):
        for j in range(m + 1):
            if abs(i * m - j * n) >= at_least:
                row[j] = 0
            elif i == j == 0:
                row[j] = 1
            elif j > 0:
                # row[j] is still that of i - 1, and zero before the first one.
                row[j] += row[j - 1]
    # Computed from whole numbers, so that small probabilities are not differences of rounded ones.
    every = comb(n + m, n)
    return (every - row[m]) / every


def test(first: Sequence[float], second: Sequence[float]) -> tuple[float, float]:
    """The statistic D (0 to 1) and the probability of one as large if nothing differs."""
    n, m = len(first), len(second)
    if not n or not m:
        raise ValueError("a sample is empty")
    apart = distance(first, second)
    return apart / (n * m), significance(n, m, apart)


def holm(probabilities: Sequence[float]) -> list[float]:
    """The same probabilities for all of several tests at once (Holm 1979, "A simple sequentially rejective
    multiple test procedure")."""
    count, so_far = len(probabilities), 0.0
    adjusted = [0.0] * count
    for place, index in enumerate(sorted(range(count), key=lambda index: probabilities[index])):
        so_far = max(so_far, min(1.0, (count - place) * probabilities[index]))
        adjusted[index] = so_far
    return adjusted
