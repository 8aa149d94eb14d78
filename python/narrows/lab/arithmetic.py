"""Combinations of several values: of flows in a run, or of lines of a table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import fmean, median


def jain(values: Sequence[float]) -> float:
    """Jain's index (sum x)^2 / (n sum x^2) of non-negative values; 1 if all are zero, because they are then
    equal. Jain, Chiu and Hawe, DEC-TR-301, 1984.
    """
    squares = sum(value * value for value in values)
    return 1.0 if squares == 0 else sum(values) ** 2 / (len(values) * squares)


_WAYS: dict[str, Callable[[Sequence[float]], float]] = {
    "sum": sum,
    "mean": fmean,
    "median": median,
    "min": min,
    "max": max,
    "jain": jain,
}


def combine(values: Sequence[float], way: str) -> float:
    """Combines values (at least one) into their `sum`, `mean`, `median`, `min`, `max` or `jain`."""
    return float(_WAYS[way](values))
