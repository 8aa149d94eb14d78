"""Values with intervals from samples, and tests of differences between two of them.

Within a run the median is taken, which a disturbed sample does not move. From four runs on the value is the
mean of the runs' medians, and its error their standard error: runs are independent, samples of a run are not.
Below that it is the median of all samples, and its error that of a median of normal values.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

#: Runs from which on they, and not samples, are repetitions.
FEWEST_RUNS = 4
#: Samples below which nothing is known of their spread.
FEWEST_SAMPLES = 4
#: Standard error of a median of normal values by the median absolute deviation: sqrt(pi / 2) x 1.4826.
_MEDIAN_ERROR = math.sqrt(math.pi / 2) * 1.4826
CONFIDENCE = 0.95
#: From here on Student's distribution is taken for the normal one.
_MANY = 400


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value and its standard error, None if it is unknown, with its degrees of freedom."""

    value: float
    error: float | None
    freedom: int

    def interval(self, resolution: float) -> tuple[float, float]:
        """The 95 % interval, wider by what the method cannot resolve."""
        reach = 0.0 if self.error is None else quantile(0.5 + CONFIDENCE / 2, self.freedom) * self.error
        return self.value - reach - resolution, self.value + reach + resolution


def estimate(runs: Sequence[Sequence[float]]) -> Estimate:
    """The estimate from the samples of each run; a run without samples does not count."""
    filled = [np.asarray(run, np.float64) for run in runs if len(run)]
    medians = np.array([np.median(run) for run in filled])
    if len(medians) >= FEWEST_RUNS:
        error = float(medians.std(ddof=1)) / math.sqrt(len(medians))
        return Estimate(float(medians.mean()), error, len(medians) - 1)
    samples = np.concatenate(filled)
    value = float(np.median(samples))
    if len(samples) < FEWEST_SAMPLES:
        return Estimate(value, None, 0)
    deviation = float(np.median(np.abs(samples - value)))
    return Estimate(value, _MEDIAN_ERROR * deviation / math.sqrt(len(samples)), len(samples) - 1)


def p_value(first: Estimate, second: Estimate, resolution: float) -> float | None:
    """The probability of a difference at least this large between equal senders (Welch's test), of which the
    resolution is not counted; None if an error is unknown."""
    if first.error is None or second.error is None:
        return None
    difference = max(0.0, abs(first.value - second.value) - resolution)
    a, b = first.error**2, second.error**2
    if difference == 0:
        return 1.0
    if a + b == 0:
        return 0.0
    freedom = (a + b) ** 2 / (a**2 / first.freedom + b**2 / second.freedom)
    return 2 * (1 - distribution(difference / math.sqrt(a + b), max(1, int(freedom))))


def p_of_words(first: Counter[str], second: Counter[str]) -> float:
    """The same for words: Fisher's exact test of the first's most frequent word against all others."""
    word = first.most_common(1)[0][0]
    a, b = first[word], second[word]
    n, m = first.total(), second.total()
    whole = math.comb(n + m, n)

    def probability(count: int) -> float:
        return math.comb(a + b, count) * math.comb(n + m - a - b, n - count) / whole

    limit = probability(a) * (1 + 1e-9)
    possible = range(max(0, n - (n + m - a - b)), min(n, a + b) + 1)
    return min(1.0, sum(p for p in map(probability, possible) if p <= limit))


def holm(p_values: Sequence[float], level: float) -> list[bool]:
    """Which hypotheses are rejected if a wrong rejection among all may happen with this probability (Holm
    1979)."""
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    rejected = [False] * len(p_values)
    for rank, index in enumerate(order):
        if p_values[index] > level / (len(p_values) - rank):
            break
        rejected[index] = True
    return rejected


def distribution(t: float, freedom: int) -> float:
    """Student's distribution function, by the finite series for whole degrees of freedom (Abramowitz and
    Stegun, 26.7.3 and 26.7.4)."""
    if freedom > _MANY:
        return 0.5 * (1 + math.erf(t / math.sqrt(2)))
    angle = math.atan2(t, math.sqrt(freedom))
    cosine, sine = math.cos(angle), math.sin(angle)
    odd = freedom % 2
    term, total = (cosine, cosine) if odd else (1.0, 1.0)
    for k in range(2 + odd, freedom - 1, 2):
        term *= cosine**2 * (k - 1) / k
        total += term
    if not odd:
        return 0.5 + sine * total / 2
    return 0.5 + (angle + (sine * total if freedom > 1 else 0.0)) / math.pi


def quantile(share: float, freedom: int) -> float:
    """The quantile of Student's distribution, for shares from a half on."""
    low, high = 0.0, 1.0
    while distribution(high, freedom) < share:
        high *= 2
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if distribution(middle, freedom) < share else (low, middle)
    return (low + high) / 2
