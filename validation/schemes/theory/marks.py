"""The backlog that mark-based schemes keep in a queue that marks above a step, alone on a path."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from narrows import _native
from validation.schemes.check import Check, Finding
from validation.schemes.paths import EVERY_PACKET, SimulatedPath

KIND = "marks"
#: 100 packets of 1500 bytes fill the path.
RATE_MBPS, RTT_MS, BDP = 100.0, 12.0, 100.0
#: Packets in the queue above which every packet is marked.
STEP = 20
SECONDS = 20


@dataclass(frozen=True)
class Marks:
    """A scheme whose sawtooth is that of Alizadeh et al. (DCTCP, SIGCOMM 2010, section 3.3)."""

    scheme: str
    why: str


def checks(expected: Marks) -> list[Check]:
    """The top and the height of the sawtooth in the queue."""
    title = f"queue of one flow, every packet above {STEP} marked"
    step = (
        f"{{red: {{packets: 1000 packets, min_threshold: {STEP - 1} packets,"
        f" max_threshold: {STEP} packets, weight: 1, gentle: false}}}}"
    )
    path = SimulatedPath(
        expected.scheme,
        RTT_MS,
        SECONDS,
        (f"{{rate: {RATE_MBPS:g} Mbit/s, queue: {step}}}",),
        {},
        {**EVERY_PACKET, "ecn": "true"},
        sample_ms=1,
    )
    return [Check(expected.scheme, KIND, title, (path,), partial(_sawtooth, expected), True)]


def _sawtooth(expected: Marks, records: list[Path]) -> list[Finding]:
    (queue,) = _native.queue_series(str(records[0])).values()
    waiting = queue["backlog_packets"][len(queue["backlog_packets"]) // 2 :]
    # The medians of the tops and bottoms of periods of about six round trips.
    periods = np.array_split(waiting, max(1, int(SECONDS / 2 / (8 * RTT_MS / 1e3))))
    top = float(np.median([np.max(period) for period in periods]))
    bottom = float(np.median([np.min(period) for period in periods]))
    height = math.sqrt(2 * (BDP + STEP)) / 2
    return [
        Finding("largest queue", STEP + 1, top, "packets", 2, False, expected.why),
        Finding(
            "height of the sawtooth in the queue", height, top - bottom, "packets", 2, False, expected.why
        ),
    ]
