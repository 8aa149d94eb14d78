"""Distributions of times: which share took no longer, one rising line per scheme."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from narrows.report import drawing, units
from narrows.report.drawing import Options, legend_above, new_figure, paper_style
from narrows.report.style import of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

POINTS = 400
"""Points of a curve: more than a page can show."""


def curve(times: Any) -> tuple[Any, Any]:
    """Times in order, and the shares that took no longer, thinned out evenly by share."""
    shares = np.arange(1, len(times) + 1) / len(times)
    keep = np.unique(np.linspace(0, len(times) - 1, POINTS).round().astype(int))
    return times[keep], shares[keep]


def draw(options: Options, found: dict[str, tuple[Any, str]], axis_labels: tuple[str, str]) -> Figure:
    """The picture of times (ms, in order) by scheme, each with a word about how many they are.

    The axis of times is logarithmic if they differ much.
    """
    with paper_style(options):
        picture = new_figure(options, 62.0)
        axes = picture.add_axes((0.1, 0.1, 0.8, 0.8))
        handles: list[Any] = []
        labels: list[str] = []
        for scheme, (times, counted) in found.items():
            style = of(scheme)
            x, y = curve(times)
            (line,) = axes.step(
                np.append(x[:1], x),
                np.append([0.0], y),
                where="post",
                color=style.color,
                linestyle=style.linestyle,
                marker=style.marker,
                markersize=3.6,
                markeredgecolor="white",
                markeredgewidth=0.4,
                markevery=max(1, len(x) // 8),
            )
            handles.append(line)
            labels.append(f"{scheme} ({counted})")
        low = min(float(times[0]) for times, _ in found.values())
        high = max(float(times[-1]) for times, _ in found.values())
        if low > 0 and high > 20 * low:
            axes.set_xscale("log")
            axes.xaxis.set_major_formatter(lambda value, _: units.trimmed(value))
        else:
            axes.set_xlim(left=0)
        axes.set_ylim(0, 1.02)
        axes.set_xlabel(axis_labels[0], labelpad=1.5)
        axes.set_ylabel(axis_labels[1])
        # Places the axes, and makes the figure higher if the legend needs more rows.
        _place(axes)
        legend_above(axes, handles, labels)
    return picture


def _place(axes: Any) -> None:
    figure = axes.get_figure(root=True)
    width, height = figure.get_figwidth() * 25.4, figure.get_figheight() * 25.4
    left, bottom = drawing.LEFT_MM / width, drawing.BOTTOM_MM / height
    across = (width - drawing.LEFT_MM - drawing.RIGHT_MM) / width
    axes.set_position((left, bottom, across, (height - drawing.BOTTOM_MM - drawing.TOP_MM) / height))
