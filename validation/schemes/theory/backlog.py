"""The backlog that a delay-based scheme keeps in the queue, alone on a path with a sufficient buffer."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from narrows import _native
from validation.schemes.check import Check, Finding
from validation.schemes.paths import EVERY_PACKET, SimulatedPath

KIND = "backlog"
RATE_MBPS, RTT_MS = 24.0, 50.0


@dataclass(frozen=True)
class Backlog:
    """Expectation of a scheme: packets in the queue, or (`milliseconds`) the time that they wait."""

    scheme: str
    low: float
    high: float
    #: Packets or milliseconds.
    tolerance: float
    why: str
    milliseconds: bool = False
    seconds: float = 60
    params: tuple[tuple[str, str], ...] = ()


def checks(expected: Backlog) -> list[Check]:
    """The mean of the second half of a run."""
    title = "queueing delay of one flow" if expected.milliseconds else "packets of one flow in the queue"
    path = SimulatedPath(
        expected.scheme,
        RTT_MS,
        expected.seconds,
        (f"{{rate: {RATE_MBPS:g} Mbit/s, queue: {{droptail: 3000 packets}}}}",),
        dict(expected.params),
        dict(EVERY_PACKET),
    )
    return [Check(expected.scheme, KIND, title, (path,), partial(_mean, expected, title), True)]


def _mean(expected: Backlog, title: str, records: list[Path]) -> list[Finding]:
    (queue,) = _native.queue_series(str(records[0])).values()
    waiting = queue["backlog_packets"]
    # Without the packet in service, whose time is part of the delay of an empty path.
    found = float(np.mean(waiting[len(waiting) // 2 :]))
    unit = "packets"
    if expected.milliseconds:
        found, unit = found * 1500 * 8 / (RATE_MBPS * 1e3), "ms"
    upper = expected.high if expected.high > expected.low else None
    return [Finding(title, expected.low, found, unit, expected.tolerance, False, expected.why, upper)]
