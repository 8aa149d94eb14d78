"""Tick labels: numbers in readable form that do not collide."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from narrows.report import units

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

Label = tuple[float, str, Any]
"""The place of a tick on its axis, its text and the extent of that on the page (pixels)."""


def make_logarithmic(axes: Axes, which: str) -> None:
    """Makes an axis (`x` or `y`) logarithmic, with plain numbers, as many as fit; call it after the data are
    drawn.
    """
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator

    axis = axes.xaxis if which == "x" else axes.yaxis
    (axes.set_xscale if which == "x" else axes.set_yscale)("log")
    low, high = sorted(axes.get_xlim() if which == "x" else axes.get_ylim())
    axis.set_major_locator(LogLocator(10, (1.0,) if high > 300 * low else (1.0, 2.0, 5.0), numticks=50))
    axis.set_major_formatter(FuncFormatter(lambda value, _: units.trim(value)))
    axis.set_minor_locator(NullLocator())
    axis.set_minor_formatter(NullFormatter())


FAR = 30
"""Positive values whose largest is more than this many times the smallest have a logarithmic axis."""


def reach_values(row: Sequence[Axes]) -> None:
    """Extends the y axis that panels share slightly beyond the values of all of them, and to zero; it is
    logarithmic if small values would otherwise be unreadable.
    """
    low = min(float(axes.dataLim.y0) for axes in row)
    high = max(float(axes.dataLim.y1) for axes in row)
    if not low <= high < float("inf"):
        return
    if low > 0 and high > FAR * low:
        row[0].set_yscale("log")
        row[0].set_ylim(low / 1.2, high * 1.2)
        make_logarithmic(row[0], "y")
        return
    pad = 0.07 * (high - min(low, 0.0)) or 1.0
    row[0].set_ylim(low - pad if low < 0 else 0.0, high + pad if high > 0 else pad)


def _is_across(axis: Axis) -> bool:
    return axis is axis.axes.xaxis


def label_extents(axis: Axis) -> list[Label]:
    """The drawn labels of an axis, from its start on the page to its end."""
    low, high = sorted(axis.get_view_interval())
    slack = 1e-9 * (high - low)
    across = _is_across(axis)
    pairs: list[Label] = []
    for label in axis.get_majorticklabels():
        place = label.get_position()[0 if across else 1]
        if label.get_visible() and label.get_text() and low - slack <= place <= high + slack:
            pairs.append((place, label.get_text(), label.get_window_extent()))
    return sorted(pairs, key=lambda pair: pair[2].x0 if across else pair[2].y0)


def drop_crowded_labels(axis: Axis, room_mm: tuple[float, float] | None) -> None:
    """Keeps every second, third, ... label if two would touch, and none outside the available room."""
    from matplotlib.ticker import FixedFormatter, FixedLocator

    figure = axis.get_figure(root=True)
    assert figure is not None
    mm, across = 25.4 / figure.dpi, _is_across(axis)
    gap = 0.7 if across else 0.1
    room = room_mm or (0.2, (figure.get_figwidth() if across else figure.get_figheight()) * 25.4 - 0.2)
    shown = label_extents(axis)

    def ends(label: Label) -> tuple[float, float]:
        return (label[2].x0 * mm, label[2].x1 * mm) if across else (label[2].y0 * mm, label[2].y1 * mm)

    def fit(kept: Sequence[Label]) -> bool:
        return all(ends(pair)[1] + gap <= ends(other)[0] for pair, other in itertools.pairwise(kept))

    inside = [pair for pair in shown if room[0] <= ends(pair)[0] and ends(pair)[1] <= room[1]]
    if len(inside) == len(shown) and fit(shown):
        return
    kept: list[Label] = inside[:1]
    for step in range(1, len(inside) + 1):
        fitting = [some for first in range(step) if fit(some := inside[first::step])]
        if fitting:
            kept = max(fitting, key=len)
            break
    words = {pair[0]: pair[1] for pair in kept}
    places = [pair[0] for pair in shown]
    axis.set_major_locator(FixedLocator(places))
    axis.set_major_formatter(FixedFormatter([words.get(place, "") for place in places]))
