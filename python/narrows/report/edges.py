"""Points outside of axes with requested limits: counted, and marked at the edge."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Maximum number of marks of one line or cloud at one edge; more would merge into a bar.
_MOST = 40


def mark_outside(figure: Figure) -> tuple[int, int]:
    """Marks the points outside of their axes with triangles at the edge; returns their number, and the total.
    Points of lines that lie only before or after the time axis are counted and not marked.
    """
    out = total = 0
    for axes in figure.axes:
        (left, right), (low, high) = sorted(axes.get_xlim()), sorted(axes.get_ylim())
        for points, colour, is_cloud in list(_list_points(axes)):
            x, y = points[:, 0], points[:, 1]
            beside, over = (x < left) | (x > right), (y < low) | (y > high)
            out += int((beside | over).sum())
            total += len(points)
            _mark(
                axes, x[over & ~beside], np.clip(y, low, high)[over & ~beside], colour, (low, high), "v^", 1
            )
            if is_cloud:
                at = np.clip(x, left, right)[beside], np.clip(y, low, high)[beside]
                reverse = axes.get_xlim()[0] > axes.get_xlim()[1]
                _mark(axes, *at, colour, (left, right), "><" if reverse else "<>", 0)
    return out, total


def _list_points(axes: Axes) -> Iterator[tuple[Any, Any, bool]]:
    """Points in the coordinates of axes, their colour, and whether they form a cloud instead of a line."""
    for line in axes.lines:
        if line.get_transform() == axes.transData and line.get_xydata() is not None:
            yield _finite(line.get_xydata()), line.get_color(), line.get_linestyle() == "None"
    for collection in axes.collections:
        if collection.get_offset_transform() == axes.transData and np.size(collection.get_offsets()):
            colours = (
                collection.get_facecolor()
                if np.size(collection.get_facecolor())
                else collection.get_edgecolor()
            )
            yield _finite(np.ma.filled(collection.get_offsets(), np.nan)), np.atleast_2d(colours)[0], True


def _finite(points: Any) -> Any:
    table = np.asarray(points, dtype=float).reshape(-1, 2)
    return table[np.isfinite(table).all(axis=1)]


def _mark(axes: Axes, x: Any, y: Any, colour: Any, ends: tuple[float, float], marks: str, place: int) -> None:
    for end, mark in zip(ends, marks, strict=True):
        here = (y if place else x) == end
        some = np.flatnonzero(here)
        some = some[:: max(1, -(-len(some) // _MOST))]
        if len(some):
            axes.plot(
                x[some],
                y[some],
                linestyle="none",
                marker=mark,
                markersize=3.0,
                color=colour,
                clip_on=False,
                zorder=6,
            )


def sentence(out: int, total: int) -> str:
    """A sentence for a caption; empty if no point lies outside."""
    if not out:
        return ""
    verb = "lies" if out == 1 else "lie"
    return (
        f" The ends of the axes were chosen: {out:,} of {total:,} points {verb} outside; triangles mark them."
    )
