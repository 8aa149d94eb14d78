"""Paths of round values near another path.

Paths are usually configured with round values. A table of such a path without randomness is reproduced
exactly at these values and nowhere else: once a window-based flow loses a different packet, it takes another
course, so results jump by percents between paths that are nearly equal, and no process trained on them finds
the exact match.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from narrows.calibrate.paths import BASIC, LOSS, QUEUE, Path


@dataclass(frozen=True)
class Values:
    """The round values of a parameter: how far from a given value they are searched, as a share of it (about
    the error of fits that missed the true value), and how many there are up to each unit of the first digit.
    """

    reach: float
    steps: int


VALUES = {
    "rate": Values(0.03, 10),
    "delay": Values(0.2, 10),
    "queue": Values(0.2, 10),
    "loss": Values(0.4, 2),
}
#: Below this loss, a path without loss is tried too.
NO_LOSS = 2e-3


def near(path: Path) -> list[Path]:
    """Paths near another one whose rate and delay have two digits, and whose loss has one or one and a half,
    with and without its features. The path itself is not included.
    """
    choices = [round_values(path[parameter], VALUES[parameter.name]) for parameter in BASIC]
    # Queues of one BDP may have any length.
    at = BASIC.index(QUEUE)
    choices[at] = sorted({*(float(round(value)) for value in choices[at]), path[QUEUE]})
    if 0 < path[LOSS] < NO_LOSS:
        choices[BASIC.index(LOSS)].append(0.0)
    paths = []
    for values in itertools.product(*choices):
        basic = {parameter.name: value for parameter, value in zip(BASIC, values, strict=True)}
        paths.append(replace(path, values={**path.values, **basic}))
        if path.features:
            paths.append(replace(path, values=basic))
    return [round_path for round_path in paths if round_path.words() != path.words()]


def likeliest(paths: Sequence[Path], path: Path, count: int) -> list[Path]:
    """The most promising paths: `count` each of those with the best expectation, those nearest to a path, and
    those with the fewest digits.
    """
    places, left = list(paths[:count]), list(paths[count:])
    orders: tuple[Callable[[Path], float], ...] = (lambda place: _distance(place, path), _digits)
    for order in orders:
        left.sort(key=order)
        places, left = places + left[:count], left[count:]
    return places


def round_values(value: float, wanted: Values) -> list[float]:
    """The round values within reach of a value; only the nearest one if there are none."""
    if value <= 0:
        return [0.0]
    low, high = value * (1 - wanted.reach), value * (1 + wanted.reach)
    values = set()
    for power in {math.floor(math.log10(amount)) for amount in (low, value, high)}:
        unit = 10.0**power / wanted.steps
        values |= {float(f"{count * unit:.2g}") for count in range(wanted.steps, 10 * wanted.steps)}
    within = sorted(amount for amount in values if low <= amount <= high)
    return within or [min(values, key=lambda amount: abs(amount - value))]


def _distance(path: Path, other: Path) -> float:
    away = 0.0
    for parameter in BASIC:
        theirs = other[parameter]
        if theirs > 0:
            away += ((path[parameter] / theirs - 1) / VALUES[parameter.name].reach) ** 2
    return away


def _digits(path: Path) -> int:
    """The number of digits of its basic values, without trailing zeros."""
    return sum(
        len(f"{path[parameter]:.3e}".partition("e")[0].replace(".", "").strip("0")) for parameter in BASIC
    )
