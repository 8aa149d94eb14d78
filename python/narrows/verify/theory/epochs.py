"""How long a window grows between reductions: (turn - start) / a round trips for additive increase.

With a share b removed at a turn W, b W / a round trips; Scalable needs ln(8/7) / ln(1.01) = 13.42 of any
window.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from narrows.verify.cells import SimulatedPath, simulated
from narrows.verify.check import Check, Finding
from narrows.verify.states import epochs

KIND = "epochs"
RTT_S = 0.1
TOLERANCE = 0.03
WHY = "an epoch is measured from sample to sample, 5 ms apart, and ends within a round trip"
#: Slow start ends far above; a share of an eighth less each time takes a while.
SKIP = 60


@dataclass(frozen=True)
class Growth:
    """What is expected of a scheme."""

    scheme: str
    #: Round trips from a reduction to the next turn, given the mean window at the turn.
    rounds: Callable[[float], float]
    #: Packets between losses.
    every: int
    seconds: float


def checks(expected: Growth) -> list[Check]:
    """The mean length of an epoch."""
    return [Check(expected.scheme, KIND, "round trips of growth", lambda _: [_length(expected)])]


def _length(expected: Growth) -> Finding:
    path = SimulatedPath(
        expected.scheme, RTT_S * 1000, expected.seconds, (f"{{periodicloss: {expected.every} packets}}",)
    )
    with simulated(path.text()) as record:
        met = epochs(record)
    turn = float(np.mean(met.peaks(SKIP)))
    found = float(np.mean(met.lengths_s(SKIP))) / RTT_S
    what = f"round trips of growth to a window of {turn:.0f} packets"
    return Finding(what, expected.rounds(turn), found, "", TOLERANCE, True, WHY)
