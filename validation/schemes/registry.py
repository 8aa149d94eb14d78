"""All checks of single schemes. A scheme is added by its line in each list that has a law for it."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from narrows.scenario import registry
from validation.schemes.check import Check
from validation.schemes.fluid import WholeFlight
from validation.schemes.laws.aimd import Aimd, Counted, Scalable
from validation.schemes.laws.cubic import Cubic
from validation.schemes.laws.large import Compound, HighSpeed
from validation.schemes.theory import backlog, bbr, buffer, epochs, losses, marks, response
from validation.schemes.theory.backlog import Backlog
from validation.schemes.theory.bbr import Bbr
from validation.schemes.theory.buffer import Buffer
from validation.schemes.theory.epochs import Growth
from validation.schemes.theory.losses import Losses
from validation.schemes.theory.marks import Marks
from validation.schemes.theory.response import RTT_S, Response


def _reno(b: float = 0.5) -> Aimd:
    return Aimd(1.0, b)


def _cubic_mean(p: float) -> float:
    return max(Cubic().mean(p, RTT_S), _reno().mean(p))


_IN_WHOLE = {
    "reno": Counted(lambda w: w, lambda w: np.floor(w) * 0.5),
    "exp": Counted(lambda w: w, lambda w: np.floor(w * 0.75)),
    "veno": Counted(lambda w: w, lambda w: w * 0.8),
    "scalable": Counted(lambda w: np.minimum(w, 100.0), lambda w: w * 0.875),
}

_SLOW_TO_SETTLE = (150, 150)
"""At the plateau of the cubic, a window that is off comes back by a power of its distance."""

RESPONSES = (
    Response("reno", _reno, _reno().mean, whole=_IN_WHOLE["reno"]),
    Response("exp", lambda: _reno(0.25), _reno(0.25).mean, whole=_IN_WHOLE["exp"]),
    Response("scalable", Scalable, Scalable().mean, whole=_IN_WHOLE["scalable"]),
    Response("cubic", Cubic, _cubic_mean, regular=_SLOW_TO_SETTLE, whole=WholeFlight(Cubic, RTT_S)),
    Response("highspeed", HighSpeed, HighSpeed().mean),
    # Round trips of 100 ms are four times the 25 ms that Hybla holds others against: 4^2 packets each.
    Response("hybla", lambda: Aimd(16, 0.5), Aimd(16, 0.5).mean),
    # Without a queue: losses are taken for random, a fifth is removed.
    Response("veno", lambda: _reno(0.2), _reno(0.2).mean, whole=_IN_WHOLE["veno"]),
    # The bound of an empty queue: ten packets per round trip, an eighth less.
    Response("illinois", lambda: Aimd(10, 0.125), Aimd(10, 0.125).mean),
    # The bound of a queue that is always full: 0.3 packets, half. Below 15 packets Illinois is Reno.
    Response(
        "illinois",
        lambda: Aimd(0.3, 0.5),
        Aimd(0.3, 0.5).mean,
        ratios=(1e-4, 1e-5),
        standing_ms=100,
        setting=" with a full queue",
    ),
    Response("yeah", Scalable, Scalable().mean, whole=_IN_WHOLE["scalable"]),
    # Below 38 packets it is Reno, so there in whole packets; at p = 1e-3 both parts matter.
    Response("compound", Compound, Compound().mean, whole=_IN_WHOLE["reno"], whole_above=5e-3),
)

_SAMPLES = "the queue is sampled, and windows move in whole packets once per round trip"

BACKLOGS = (
    Backlog("vegas", 2, 4, 1, _SAMPLES),
    Backlog("vegas-linux", 2, 4, 1, _SAMPLES),
    Backlog("fast", 20, 20, 1, _SAMPLES),
    Backlog("ledbat", 100, 100, 3, _SAMPLES + "; a packet takes half a millisecond", True, 240),
    Backlog("utp", 100, 100, 3, _SAMPLES + "; a packet takes half a millisecond", True, 240),
    # Slowdowns, a tenth of the time, empty the queue on purpose.
    Backlog("ledbat++", 60, 60, 3, _SAMPLES, True, 240, params=(("slowdowns", "false"),)),
)

GROWTHS = (
    Growth("reno", lambda turn: turn / 2, 10_000, 1500),
    Growth("exp", lambda turn: turn / 4, 10_000, 1000),
    Growth("veno", lambda turn: turn / 5, 10_000, 1000),
    Growth("illinois", lambda turn: turn / 8 / 10, 10_000, 500),
    Growth("scalable", lambda _: math.log(8 / 7) / math.log(1.01), 10_000, 200),
)

#: Half a bandwidth-delay product of the path in `theory.bbr`: 24 Mbit/s times 40 ms are 80 packets.
_HALF = 40.0

BBRS = (
    Bbr("bbr1", (0.01, 0.05, 0.1), 1.25, 0.75, 8, 10.2, 4),
    Bbr("bbr3", (), 1.25, 0.906, None, 5.2, _HALF),
    Bbr("bbr-draft", (), 1.25, 0.9, None, 5.2, _HALF),
)

MARKS = (Marks("dctcp", "the queue holds whole packets, and two of them may leave in a burst"),)

LOSSES = (Losses("reno"), Losses("cubic-linux"))

BUFFERS = (
    Buffer("reno", 0.5, _reno, 400, 600),
    Buffer("exp", 0.25, lambda: _reno(0.25), 400, 300),
    Buffer("scalable", 0.125, Scalable, 1000, 60),
    Buffer("cubic", 0.3, lambda: Cubic(converge=False), 400, 300, params=(("fast_convergence", "false"),)),
)


@lru_cache(maxsize=1)
def all_checks() -> tuple[Check, ...]:
    """Every check of a scheme that this package has, in the order of the registry of schemes."""
    found = [check for one in RESPONSES for check in response.checks(one)]
    found += [check for one in BUFFERS for check in buffer.checks(one)]
    found += [check for one in GROWTHS for check in epochs.checks(one)]
    found += [check for one in BBRS for check in bbr.checks(one)]
    found += [check for one in BACKLOGS for check in backlog.checks(one)]
    found += [check for one in MARKS for check in marks.checks(one)]
    found += [check for one in LOSSES for check in losses.checks(one)]
    order = {name: index for index, name in enumerate(registry.load().schemes)}
    return tuple(sorted((one for one in found if one.scheme in order), key=lambda one: order[one.scheme]))
