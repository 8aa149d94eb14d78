"""Checks and their findings."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from validation.schemes.paths import SimulatedPath

HOLDS, FAILS = "holds", "fails"


@dataclass(frozen=True)
class Finding:
    """A measured number and its expectation."""

    #: The measured quantity, in words that are clear in a table by themselves.
    what: str
    expected: float
    found: float
    unit: str
    #: Maximum difference: a share of the expectation, or an amount in its unit.
    tolerance: float
    #: True if the tolerance is a share.
    relative: bool
    #: The reason for this tolerance, as a sentence.
    why: str
    #: For expectations that are a range: its other end; the tolerance is added on both sides.
    upper: float | None = None

    @property
    def difference(self) -> float:
        """The distance of the finding from the expectation (or from its nearest end), in the
        finding's unit."""
        low, high = self.expected, self.expected if self.upper is None else self.upper
        return self.found - min(max(self.found, low), high)

    @property
    def allowed(self) -> float:
        """The tolerance in the finding's own unit."""
        if not self.relative:
            return self.tolerance
        nearest = self.upper if self.upper is not None and self.found > self.upper else self.expected
        return self.tolerance * abs(nearest)

    @property
    def holds(self) -> bool:
        """True if the difference is within the tolerance; always False for NaN."""
        return bool(abs(self.difference) <= self.allowed)

    def to_json(self) -> dict[str, Any]:
        """In stored and in displayed form."""
        unit = f" {self.unit}" if self.unit else ""
        expected = number(self.expected) if self.upper is None else _range(self.expected, self.upper)
        tolerance = (
            f"{number(self.tolerance * 100)} %" if self.relative else f"{number(self.tolerance)}{unit}"
        )
        return {
            "what": self.what,
            "expected": f"{expected}{unit}",
            "found": f"{number(self.found)}{unit}",
            "difference": self._shown_difference(),
            "tolerance": tolerance,
            "why": self.why,
            "outcome": HOLDS if self.holds else FAILS,
            "values": asdict(self),
        }

    def _shown_difference(self) -> str:
        if self.difference == 0 and self.upper is not None:
            return "within"
        if self.relative and self.expected:
            share = self.difference / abs(self.expected) * 100
            return f"{share:+.1f} %"
        return f"{self.difference:+.3g}{f' {self.unit}' if self.unit else ''}"


def _range(low: float, high: float) -> str:
    return f"{number(low)} to {number(high)}"


def number(value: float) -> str:
    """A number with at most four digits, without exponents for ordinary sizes."""
    if math.isnan(value):
        return "none"
    if abs(value) >= 1000:
        return f"{value:.0f}"
    return f"{value:.4g}"


@dataclass(frozen=True)
class Check:
    """A test: which scheme, which kind, and how."""

    scheme: str
    #: Name of the kind, such as `response`; findings of one kind share a table.
    kind: str
    #: The check in one line.
    title: str
    #: Its runs.
    paths: tuple[SimulatedPath, ...]
    #: Computes the findings from the records of these runs.
    judge: Callable[[list[Path]], list[Finding]]
    #: Set if it is worth running even when time is short.
    quick: bool = False
