"""The buffer that one flow needs to keep a link busy: b/(1-b) of the bandwidth-delay product.

At a drop-tail queue of B packets on a path of C packets the window turns at C + B and falls to (1-b)(C + B).
The queue just runs empty when that is C, so B* = b/(1-b) C. It is computed from a run with a larger buffer,
in which the queue falls only to q = (1-b)(B - B*): B* = B - q/(1-b). Half of it leaves the link idle for a
while, and the share of the link that is used then follows from the curve of the window. (Where the window
turns is read off the run as well: it is above C + B by what it grows until the loss is known, 1 % for
Scalable.)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np

from narrows import _native
from validation.schemes import fluid
from validation.schemes.check import Check, Finding
from validation.schemes.fluid import Law
from validation.schemes.paths import EVERY_PACKET, SimulatedPath
from validation.schemes.states import Epochs, epochs

KIND = "buffer"
NEEDED, HALF = "buffer that keeps the link busy", "use of the link with half of that buffer"
RTT_MS = 40.0
TOLERANCE = 0.03
WHY = "windows and queues move in whole packets, 1 % of the buffers tried here, and samples are 1 ms apart"


@dataclass(frozen=True)
class Buffer:
    """Expectation of a scheme."""

    scheme: str
    #: Share of the window removed by a loss.
    decrease: float
    law: Callable[[], Law]
    #: Packets of 1500 bytes that fill the path.
    path: int
    seconds: float
    params: tuple[tuple[str, str], ...] = ()

    @property
    def needed(self) -> float:
        """Packets."""
        return self.decrease / (1 - self.decrease) * self.path


def checks(expected: Buffer) -> list[Check]:
    """The required buffer, and the effect of half of it."""
    enough, half = round(expected.needed * 1.3), round(expected.needed / 2)
    return [
        Check(expected.scheme, KIND, NEEDED, (_path(expected, enough),), partial(_needed, expected), True),
        Check(expected.scheme, KIND, HALF, (_path(expected, half),), partial(_half, expected, half), True),
    ]


def _path(expected: Buffer, packets: int) -> SimulatedPath:
    rate = expected.path * 1500 * 8 / (RTT_MS / 1000)
    bottleneck = f"{{rate: {rate:.0f} bit/s, queue: {{droptail: {packets} packets}}}}"
    params, transport = dict(expected.params), dict(EVERY_PACKET)
    return SimulatedPath(
        expected.scheme, RTT_MS, expected.seconds, (bottleneck,), params, transport, sample_ms=1.0
    )


def _needed(expected: Buffer, records: list[Path]) -> list[Finding]:
    met = epochs(records[0])
    lowest = _lowest(records[0], met)
    turn = float(np.mean(met.peaks(len(met.begins) // 3)))
    found = (turn - expected.path - lowest / (1 - expected.decrease)) / expected.path
    return [Finding(NEEDED, expected.needed / expected.path, found, "BDP", TOLERANCE, True, WHY)]


def _lowest(record: Path, met: Epochs) -> float:
    """The mean of the lowest backlogs between reductions."""
    (queue,) = _native.queue_series(str(record)).values()
    backlog, time = queue["backlog_packets"], queue["time_s"]
    edges = np.searchsorted(time, met.time_s[met.begins[len(met.begins) // 3 :]])
    lows = [float(np.min(backlog[one:other])) for one, other in pairwise(edges) if other > one]
    if len(lows) < 3:
        raise ValueError("there are fewer than 3 reductions to look at; the run is too short")
    # The packet in service is not in the samples, but has also left the path.
    return float(np.mean(lows)) + 1


def _half(expected: Buffer, buffer: int, records: list[Path]) -> list[Finding]:
    met = epochs(records[0])
    skip = len(met.begins) // 3
    first, last = met.begins[skip], met.begins[-1]
    carried = (met.delivered[last] - met.delivered[first]) / (met.time_s[last] - met.time_s[first])
    found = float(carried) / (expected.path / (RTT_MS / 1000))
    share = fluid.utilization(expected.law(), expected.path, buffer, RTT_MS / 1000)
    return [Finding(HALF, share, found, "", TOLERANCE, True, WHY)]
