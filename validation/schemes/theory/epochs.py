"""The time for which a window grows between reductions: (turn - start) / a round trips for additive increase.

With a share b removed at a turn W, b W / a round trips; Scalable needs ln(8/7) / ln(1.01) = 13.42 of any
window.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from validation.schemes.check import Check, Finding
from validation.schemes.paths import SimulatedPath
from validation.schemes.states import epochs

KIND = "epochs"
RTT_S = 0.1
TOLERANCE = 0.03
WHY = "an epoch is measured from sample to sample, 5 ms apart, and ends within a round trip"
#: Slow start ends far above; a share of an eighth less each time takes a while.
SKIP = 60


@dataclass(frozen=True)
class Growth:
    """Expectation of a scheme."""

    scheme: str
    #: Round trips from a reduction to the next turn, given the mean window at the turn.
    rounds: Callable[[float], float]
    #: Packets between losses.
    every: int
    seconds: float


def checks(expected: Growth) -> list[Check]:
    """The mean length of an epoch."""
    losses = f"{{periodicloss: {expected.every} packets}}"
    path = SimulatedPath(expected.scheme, RTT_S * 1000, expected.seconds, (losses,))
    return [Check(expected.scheme, KIND, "round trips of growth", (path,), partial(_length, expected))]


def _length(expected: Growth, records: list[Path]) -> list[Finding]:
    met = epochs(records[0])
    turn = float(np.mean(met.peaks(SKIP)))
    found = float(np.mean(met.lengths_s(SKIP))) / RTT_S
    what = f"round trips of growth to a window of {turn:.0f} packets"
    return [Finding(what, expected.rounds(turn), found, "", TOLERANCE, True, WHY)]
