"""The start of a search: ranges of the path's basic parameters, by formula from the table.

- rate: the largest total throughput is a little less than the rate.
- delay: the smallest 95th percentile is a little more than the delay of the path.
- queue: what fills it has a delay of the path's and of a full queue: (delay - smallest delay) x rate.
- loss: no scheme loses less than the path does.

A path carries at least what each scheme carried, and delays packets by no more than each scheme met: the
search never leaves these bounds, but for three standard errors of the table.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from narrows.calibrate.paths import BASIC, DELAY, LOSS, PACKET_BYTES, QUEUE, RATE, Parameter
from narrows.calibrate.table import DELAY as P95
from narrows.calibrate.table import LOSS as LOST
from narrows.calibrate.table import THROUGHPUT
from narrows.calibrate.targets import Targets

#: Standard errors by which the table may be off, and the largest share of a tunnel's headers in throughput.
_ERRORS, _OVERHEAD = 3.0, 0.03
#: A largest throughput by this factor above the second one is of another path.
_ALONE = 1.3


def ranges(targets: Targets) -> dict[str, tuple[float, float]]:
    """The range of each parameter on its axis."""
    throughputs = _values(targets, THROUGHPUT)
    delays, losses = _values(targets, P95), _values(targets, LOST)
    top = max(throughputs)
    if delays:
        shortest = delays[0]
        # The longest delay of a few schemes often comes from one that queues at its own sender.
        longest = delays[-1] if len(delays) < 4 else delays[-2]
        full = (longest - shortest) / 1e9 * top / (8 * PACKET_BYTES)
        delay = (0.3 * shortest, shortest)
        queue = (max(1.0, full / 5), max(12.0, 4 * full))
    else:
        delay, queue = (1e6, 3e8), (2.0, max(50.0, top * 0.5 / (8 * PACKET_BYTES)))
    most = min(0.6, max(0.003, 2.5 * losses[0])) if losses else 0.05
    limits: dict[Parameter, tuple[float, float]] = {
        RATE: (0.92 * top, 1.8 * top),
        DELAY: delay,
        QUEUE: queue,
        LOSS: (0.0, most),
    }
    return {parameter.name: _on_axis(parameter, *limits[parameter]) for parameter in BASIC}


def bounds(targets: Targets) -> tuple[dict[str, float], dict[str, float]]:
    """The smallest rate and the largest delay that the table allows.

    A scheme that carried far more than all others met another path, and does not count.
    """
    margins = {
        quantity: sorted(
            target.value * math.exp(sign * _ERRORS * noise)
            for target, noise in zip(targets.all, targets.noise, strict=True)
            if target.quantity == quantity and target.value > 0
        )
        for quantity, sign in ((THROUGHPUT, -1), (P95, 1))
    }
    carried, delays = margins[THROUGHPUT], margins[P95]
    alone = len(carried) > 3 and carried[-1] > _ALONE * carried[-2]
    least = {RATE.name: carried[-2 if alone else -1] * (1 - _OVERHEAD)}
    return least, {DELAY.name: delays[0]} if delays else {}


def _on_axis(parameter: Parameter, low: float, high: float) -> tuple[float, float]:
    low, high = max(low, parameter.least), min(max(high, parameter.least), parameter.most)
    low_place, high_place = parameter.axis(low), parameter.axis(high)
    return (low_place, high_place) if high_place - low_place > 0.05 else (low_place - 0.05, low_place + 0.05)


def _values(targets: Targets, quantity: str) -> list[float]:
    return sorted(_positive(target.value for target in targets.all if target.quantity == quantity))


def _positive(values: Iterable[float]) -> list[float]:
    return [value for value in values if value >= 0]
