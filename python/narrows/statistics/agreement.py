"""The agreement of two tables about an order: Kendall's tau with ties, and the signs of differences."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations


@dataclass(frozen=True)
class Agreement:
    """Counts of pairs, by the order of their members in two tables."""

    #: Both tables have the same order.
    same: int = 0
    #: They have opposite orders.
    reversed: int = 0
    #: Ties in the first table only, in the second one only, in both.
    ties_first: int = 0
    ties_second: int = 0
    ties_both: int = 0

    def __add__(self, other: Agreement) -> Agreement:
        return Agreement(*(mine + theirs for mine, theirs in zip(self._counts, other._counts, strict=True)))

    @property
    def _counts(self) -> tuple[int, int, int, int, int]:
        return self.same, self.reversed, self.ties_first, self.ties_second, self.ties_both

    @property
    def pairs(self) -> int:
        """All pairs."""
        return sum(self._counts)

    @property
    def tau(self) -> float | None:
        """Kendall's tau-b, from -1 (reversed) to 1 (the same order); None if one of the tables has only ties.

        For pairs from several groups it is the coefficient for stratified pairs: only pairs within a group
        count. Kendall, "The treatment of ties in ranking problems", Biometrika 33(3), 1945.
        """
        first = self.same + self.reversed + self.ties_second
        second = self.same + self.reversed + self.ties_first
        return (self.same - self.reversed) / math.sqrt(first * second) if first and second else None

    @property
    def same_signs(self) -> float | None:
        """The share of the pairs with an order in the first table that have the same one in the second; None
        if there are none.
        """
        ordered = self.same + self.reversed + self.ties_second
        return self.same / ordered if ordered else None


def agreement(first: Sequence[float], second: Sequence[float]) -> Agreement:
    """Compares the order of all pairs of positions in two lists of the same length and without gaps."""
    result = Agreement()
    for (a, b), (x, y) in zip(combinations(first, 2), combinations(second, 2), strict=True):
        result += _pair(a - b, x - y)
    return result


def total(parts: Iterable[Agreement]) -> Agreement:
    """The sum over several groups."""
    return sum(parts, Agreement())


def _pair(first: float, second: float) -> Agreement:
    if first == 0 or second == 0:
        return (
            Agreement(ties_both=1)
            if first == second
            else (Agreement(ties_first=1) if first == 0 else Agreement(ties_second=1))
        )
    return Agreement(same=1) if (first > 0) == (second > 0) else Agreement(reversed=1)
