"""Comparison of two implementations of the same rules, from numbers alone.

It works on recorded numbers, so that it can be tested without an emulator: one `Measured` per path and run.
"""

from __future__ import annotations

import math
import statistics
from dataclasses import asdict, dataclass
from typing import Any

from validation.schemes.check import Finding, number

#: Delays that differ by at most this many packets in the queue are considered equal: queues hold whole
#: packets.
EQUAL_PACKETS = 2.0


@dataclass(frozen=True)
class Tolerance:
    """Maximum differences of the medians over all paths, as shares."""

    throughput: float
    delay: float
    why: str


STRICT = Tolerance(
    0.03,
    0.15,
    "one run per path and real time: start-up and chance of single losses move 1 to 2 % of the throughput,"
    " and a packet more or less at the queue's limit several percent of a high percentile of the delay",
)
LOOSE = Tolerance(
    0.05,
    0.20,
    "as between ours and the kernel's, and the program counts in fixed point with what the kernel shows it",
)
ALIEN = Tolerance(
    0.10,
    0.30,
    "programs of others have their own transports: differences are described, and count for no verdict",
)


@dataclass(frozen=True)
class Measured:
    """The performance of one implementation on one path: medians over its valid runs."""

    path: str
    throughput_mbps: float
    #: 95th percentile of the queueing delay.
    delay_ms: float
    #: Serialization time of a packet of full size at the bottleneck.
    packet_ms: float = 0.0
    runs: int = 1


@dataclass(frozen=True)
class Row:
    """One path."""

    path: str
    ours: Measured
    theirs: Measured

    @property
    def throughput(self) -> float:
        """Difference of throughput as a share of the reference's."""
        return _share(self.ours.throughput_mbps, self.theirs.throughput_mbps)

    @property
    def delay(self) -> float:
        """Difference of the queueing delay as a share of the reference's."""
        if abs(self.ours.delay_ms - self.theirs.delay_ms) <= EQUAL_PACKETS * self.theirs.packet_ms:
            return 0.0
        return _share(self.ours.delay_ms, self.theirs.delay_ms)


@dataclass(frozen=True)
class Comparison:
    """A scheme against its reference over all paths."""

    scheme: str
    reference: str
    rows: tuple[Row, ...]
    tolerance: Tolerance

    @property
    def throughput(self) -> float:
        """Median over the paths of the absolute differences of throughput."""
        return statistics.median(abs(row.throughput) for row in self.rows)

    @property
    def delay(self) -> float:
        """Median over the paths of the absolute differences of delay."""
        return statistics.median(abs(row.delay) for row in self.rows)

    @property
    def holds(self) -> bool:
        """True if both medians are within the tolerances."""
        return all(finding.holds for finding in self.findings())

    def findings(self) -> list[Finding]:
        """The two decisive numbers."""
        return [
            self._finding("throughput", self.throughput, self.tolerance.throughput),
            self._finding("p95 queueing delay", self.delay, self.tolerance.delay),
        ]

    def _finding(self, what: str, found: float, tolerance: float) -> Finding:
        text = f"{what} against {self.reference}, median difference over {len(self.rows)} paths"
        return Finding(text, 0.0, found * 100, "%", tolerance * 100, False, self.tolerance.why)

    def worst(self) -> tuple[Row, Row]:
        """The paths with the largest differences of throughput and of delay."""
        return max(self.rows, key=lambda row: abs(row.throughput)), max(
            self.rows, key=lambda row: abs(row.delay)
        )

    def trouble(self) -> str:
        """Why it exceeds the tolerances, as a sentence; empty if it does not."""
        parts = []
        for what, found, allowed in (
            ("throughput", self.throughput, self.tolerance.throughput),
            ("p95 queueing delay", self.delay, self.tolerance.delay),
        ):
            if found > allowed:
                share = f"{number(found * 100)} % in the median of {len(self.rows)} paths"
                parts.append(f"{what} differs by {share}, {number(allowed * 100)} % is allowed")
        return f"against {self.reference} {' and '.join(parts)}" if parts else ""

    def to_json(self) -> dict[str, Any]:
        """In stored form."""
        return {
            "scheme": self.scheme,
            "reference": self.reference,
            "tolerance": asdict(self.tolerance),
            "rows": [
                {"path": row.path, "ours": asdict(row.ours), "theirs": asdict(row.theirs)}
                for row in self.rows
            ],
        }


def _share(ours: float, theirs: float) -> float:
    if ours == theirs:
        return 0.0
    return (ours - theirs) / theirs if theirs else math.inf


def compare(
    scheme: str, reference: str, ours: list[Measured], theirs: list[Measured], tolerance: Tolerance
) -> Comparison:
    """Compares the paths that both have.

    Raises ValueError if there is none: no statement is possible then.
    """
    known = {one.path: one for one in theirs}
    rows = tuple(Row(one.path, one, known[one.path]) for one in ours if one.path in known)
    if not rows:
        raise ValueError(f"{scheme} and {reference} have no path in common")
    return Comparison(scheme, reference, rows, tolerance)
