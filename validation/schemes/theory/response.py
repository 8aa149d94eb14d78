"""The response function: the mean window at a given loss ratio.

A path without limit but with losses: every (1/p)-th packet (`periodicloss`), or each with probability p
(`loss`). The result is the mean over time in congestion avoidance. The loss ratio that enters the expectation
is the one that moves the window: reductions per packet acknowledged in congestion avoidance. The loss ratio
in the expectation is the one that moves the window: reductions per packet acknowledged in congestion
avoidance.

At p = 1e-2 and 1e-3 windows are so small that whole packets matter: there, schemes that count whole packets
are held against the law in whole packets (`laws.aimd.Counted`), and the closed form is named beside it.

For independent losses the same random numbers are used twice: the law runs through the gaps that the scheme
met, and the finding is multiplied by (stationary mean of the law) / (mean of the law over these gaps). That
removes most of the randomness of a run of finite length (a control variate), and nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from validation.schemes import fluid
from validation.schemes.check import Check, Finding, number
from validation.schemes.fluid import Law, WholeFlight
from validation.schemes.laws.aimd import Counted
from validation.schemes.paths import SimulatedPath
from validation.schemes.states import Epochs, epochs

KIND = "response"
RTT_S = 0.1
RATIOS = (1e-2, 1e-3, 1e-4, 1e-5)
TOLERANCE = 0.05
WHY = (
    "closed forms know no whole packets, which make windows of 40 packets about 2 % smaller, and neglect a"
    " packet or two of each reduction; sampling and chance are below 2 %"
)
#: Random losses per window up to which they are tried: with more, reductions follow each other every round
#: trip, and growth within one is not fluid.
MOST_LOSSES = 0.3
#: Loss ratio from which whole packets matter.
WHOLE = 5e-4


@dataclass(frozen=True)
class Response:
    """Expectation of a scheme."""

    scheme: str
    law: Callable[[], Law]
    #: The mean window with one loss in 1/p packets.
    closed: Callable[[float], float]
    #: Losses to forget the start, and losses that count, for equidistant and for random losses.
    regular: tuple[int, int] = (60, 30)
    chance: tuple[int, int] = (60, 150)
    params: tuple[tuple[str, str], ...] = ()
    whole: Counted | WholeFlight | None = None
    #: Loss ratio from which on `whole` holds.
    whole_above: float = WHOLE
    ratios: tuple[float, ...] = RATIOS
    #: Additional round-trip time (ms) after the first half second, and its purpose: to delay-based schemes it
    #: looks like a queue that never empties.
    standing_ms: float = 0
    setting: str = ""


def checks(response: Response) -> list[Check]:
    """Two checks for each loss ratio."""
    found = []
    for p in response.ratios:
        title = f"mean window{response.setting}, one loss in {1 / p:.0f} packets"
        path = _path(response, p, f"{{periodicloss: {round(1 / p)} packets}}", sum(response.regular))
        judge = partial(_regular, response, p, title)
        found.append(Check(response.scheme, KIND, title, (path,), judge, p >= 1e-3))
        if response.closed(p) * p > MOST_LOSSES:
            continue
        title = f"mean window{response.setting}, {p * 100:g} % random loss"
        skip, losses = response.chance
        # Short runs cost nothing.
        losses *= 6 if p > WHOLE else 1
        path = _path(response, p, f"{{loss: {p * 100:g} %}}", skip + losses)
        judge = partial(_chance, response, p, title)
        found.append(Check(response.scheme, KIND, title, (path,), judge, p >= 1e-2))
    return found


def _path(response: Response, p: float, element: str, losses: int) -> SimulatedPath:
    # Losses come every 1/p packets, so often as the mean window is sent; half as long again, and a start.
    rtt_s = RTT_S + response.standing_ms / 1000
    seconds = losses / p * rtt_s / response.closed(p) * 1.5 + 20
    elements: tuple[str, ...] = (element,)
    if response.standing_ms:
        elements += (f"{{delaysteps: [[0 s, 0 ms], [0.5 s, {response.standing_ms:g} ms]]}}",)
    return SimulatedPath(
        response.scheme,
        RTT_S * 1000,
        seconds,
        elements,
        dict(response.params),
        sample_ms=RTT_S * 1000 / 20,
    )


def _regular(response: Response, p: float, what: str, records: list[Path]) -> list[Finding]:
    met, (skip, _) = epochs(records[0]), response.regular
    gaps = met.gaps(skip)
    expected = response.closed(1 / float(np.mean(gaps)))
    if response.whole is not None and p > response.whole_above:
        what += f", in whole packets (closed form: {number(expected)})"
        expected = response.whole.mean_window(gaps.reshape(-1, 1), 0, _first(met, skip))
    return _finding(what, expected, met.mean_window(skip))


def _chance(response: Response, p: float, what: str, records: list[Path]) -> list[Finding]:
    met, (skip, _) = epochs(records[0]), response.chance
    start = response.closed(p)
    gaps, first = met.gaps(skip).reshape(-1, 1), _first(met, skip)
    stationary = fluid.random(response.law(), p, RTT_S, start)
    if response.whole is not None and p > response.whole_above:
        what += f", in whole packets (fluid: {number(stationary)})"
        stationary = response.whole.mean_window(fluid.random_gaps(p), 40, start)
        same = response.whole.mean_window(gaps, 0, first)
    else:
        same = fluid.mean_window(response.law(), gaps, RTT_S, 0, first, steps=64)
    return _finding(what, stationary, met.mean_window(skip) * stationary / same)


def _first(met: Epochs, skip: int) -> float:
    return float(met.window[met.ends[skip]])


def _finding(what: str, expected: float, found: float) -> list[Finding]:
    known = found if math.isfinite(found) else math.nan
    return [Finding(what, expected, known, "packets", TOLERANCE, True, WHY)]
