"""Places names beside marks so that they cover neither each other nor the marks.

The input is rectangles in points: each label tries places around its mark, near ones first; the cheapest one
wins. A few rounds let earlier labels make room for later ones. The result is deterministic.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

_DIRECTIONS = 16
_DISTANCES = (0.0, 5.0, 11.0, 18.0, 27.0, 38.0, 52.0)


@dataclass(frozen=True, slots=True)
class Box:
    """An upright rectangle."""

    left: float
    bottom: float
    right: float
    top: float

    def overlap(self, other: Box) -> float:
        """The area shared with another rectangle."""
        width = min(self.right, other.right) - max(self.left, other.left)
        height = min(self.top, other.top) - max(self.bottom, other.bottom)
        return width * height if width > 0 and height > 0 else 0.0

    def distance(self, x: float, y: float) -> float:
        """The distance from a point to the nearest point of the rectangle."""
        return math.hypot(max(self.left - x, 0.0, x - self.right), max(self.bottom - y, 0.0, y - self.top))

    def outside(self, frame: Box) -> float:
        """The distance by which it exceeds a frame."""
        return (
            max(0.0, frame.left - self.left)
            + max(0.0, self.right - frame.right)
            + max(0.0, frame.bottom - self.bottom)
            + max(0.0, self.top - frame.top)
        )


@dataclass(frozen=True, slots=True)
class Label:
    """A name to place: its point, the radius of the point's mark and the text size."""

    x: float
    y: float
    radius: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Placed:
    """The position of a name; `far` requests a line between mark and name."""

    box: Box
    far: bool


def _candidates(label: Label) -> list[Placed]:
    candidates = []
    for distance in _DISTANCES:
        for step in range(_DIRECTIONS):
            angle = 2 * math.pi * step / _DIRECTIONS
            dx, dy = math.cos(angle), math.sin(angle)
            reach = label.radius + 2.0 + distance
            x = label.x + reach * dx + (0.0 if dx > 0.3 else -label.width if dx < -0.3 else -label.width / 2)
            y = (
                label.y
                + reach * dy
                + (0.0 if dy > 0.6 else -label.height if dy < -0.6 else -label.height / 2)
            )
            box = Box(x, y, x + label.width, y + label.height)
            candidates.append(Placed(box, box.distance(label.x, label.y) > label.radius + 7.0))
    return candidates


def place(labels: Sequence[Label], obstacles: Sequence[Box], frame: Box, rounds: int = 4) -> list[Placed]:
    """A position for every label, without overlap with other labels or large marks if possible."""
    marks = [Box(a.x - a.radius, a.y - a.radius, a.x + a.radius, a.y + a.radius) for a in labels]
    options = [_candidates(label) for label in labels]
    base = []
    for own in options:
        costs = []
        for rank, option in enumerate(own):
            cost = rank // _DIRECTIONS * 6.0 + (rank % _DIRECTIONS) * 0.05
            cost += 400.0 * option.box.outside(frame)
            cost += 20.0 * sum(option.box.overlap(mark) for mark in marks)
            cost += 1.5 * sum(option.box.overlap(obstacle) for obstacle in obstacles)
            costs.append(cost)
        base.append(costs)
    chosen = [min(range(len(own)), key=costs.__getitem__) for own, costs in zip(options, base, strict=True)]
    for _ in range(rounds):
        moved = False
        for index, own in enumerate(options):
            others = [options[i][c].box for i, c in enumerate(chosen) if i != index]
            costs = base[index]
            best = min(
                range(len(own)),
                key=lambda k, own=own, costs=costs, others=others: (  # type: ignore[misc]
                    costs[k] + 50.0 * sum(own[k].box.overlap(o) for o in others)
                ),
            )
            moved |= best != chosen[index]
            chosen[index] = best
        if not moved:
            break
    return [own[index] for own, index in zip(options, chosen, strict=True)]
