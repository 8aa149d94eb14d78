"""Measured and reproduced points: of each scheme the two, with a line between them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from narrows.report.drawing import (
    DOUBLE_MM,
    Numbers,
    Options,
    new_figure,
    paper_style,
    write_figure,
    write_numbers,
)
from narrows.report.figures._scatter import Mark, names
from narrows.report.style import MUTED, distinct

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NAME = "points"
FORMATS = ("svg", "png")
#: Up to so many schemes have their names beside the marks; more are numbered, with a legend.
_MOST_NAMES = 8
_HEIGHT_MM, _ROW_MM = 92.0, 4.2


@dataclass(frozen=True)
class Pair:
    """A scheme as it was measured and as the path reproduces it: delay in ms, throughput in Mbit/s."""

    scheme: str
    measured: tuple[float, float]
    reproduced: tuple[float, float]


def write(pairs: Sequence[Pair], folder: Path, title: str) -> list[Path]:
    """Writes the figure and its numbers; nothing where no scheme has both values on both sides."""
    if not pairs:
        return []
    options = Options()
    picture = figure(pairs, options)
    about = (f"{title}: measured and reproduced", "throughput against 95th percentile of one-way delay")
    written = write_figure(picture, folder / NAME, FORMATS, options, about)
    write_numbers(numbers(pairs), folder / f"{NAME}.csv")
    return [*written, folder / f"{NAME}.csv"]


def numbers(pairs: Sequence[Pair]) -> Numbers:
    """What the figure shows."""
    return {
        "scheme": [one.scheme for one in pairs],
        "measured_delay_p95_ms": [one.measured[0] for one in pairs],
        "measured_throughput_mbps": [one.measured[1] for one in pairs],
        "reproduced_delay_p95_ms": [one.reproduced[0] for one in pairs],
        "reproduced_throughput_mbps": [one.reproduced[1] for one in pairs],
    }


def figure(pairs: Sequence[Pair], options: Options) -> Figure:
    """Hollow marks are what was measured, full ones what the path gives."""
    styles = distinct([one.scheme for one in pairs])
    numbered = len(pairs) > _MOST_NAMES
    columns = 4 if options.width_mm >= DOUBLE_MM else 2
    legend_mm = _ROW_MM * math.ceil((len(pairs) if numbered else 0) / columns) + 6.0
    with paper_style(options):
        picture = new_figure(options, _HEIGHT_MM + legend_mm)
        width, height = options.width_mm, picture.get_figheight() * 25.4
        low = (legend_mm + 10.0) / height
        axes = picture.add_axes((14.0 / width, low, (width - 17.0) / width, 1 - low - 4.0 / height))
        _ends(axes, pairs)
        marks = []
        for number, one in enumerate(pairs, 1):
            style = styles[one.scheme]
            (x, y), (to_x, to_y) = one.measured, one.reproduced
            axes.plot([x, to_x], [y, to_y], color=style.color, linewidth=0.7, zorder=2)
            look: dict[str, Any] = {
                "marker": style.marker,
                "linestyle": "none",
                "markersize": 5.0,
                "color": style.color,
            }
            axes.plot([x], [y], **look, markerfacecolor="white", markeredgewidth=0.9, zorder=3)
            axes.plot([to_x], [to_y], **look, zorder=3)
            words = str(number) if numbered else one.scheme
            marks.append(Mark(one.scheme, style, x, y, [one.measured, one.reproduced], words))
        names(picture, axes, marks, 3.0, None)
        _legend(picture, marks if numbered else [], columns)
    return picture


def _ends(axes: Axes, pairs: Sequence[Pair]) -> None:
    from matplotlib.ticker import LogLocator, NullFormatter, ScalarFormatter

    delays = [point[0] for one in pairs for point in (one.measured, one.reproduced)]
    rates = [point[1] for one in pairs for point in (one.measured, one.reproduced)]
    axes.set_xlabel("95th percentile one-way delay (ms), smaller to the right")
    axes.set_ylabel("throughput (Mbit/s)")
    axes.set_ylim(0, 1.1 * max(rates))
    if min(delays) > 0 and max(delays) > 4 * min(delays):
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(LogLocator(10, (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0)))
        axes.xaxis.set_major_formatter(ScalarFormatter())
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.set_xlim(1.15 * max(delays), min(delays) / 1.15)
    else:
        pad = max(0.08 * (max(delays) - min(delays)), 0.02 * max(delays))
        axes.set_xlim(max(delays) + pad, max(0.0, min(delays) - pad))


def _legend(picture: Figure, marks: Sequence[Mark], columns: int) -> None:
    from matplotlib.lines import Line2D

    def handle(color: str, marker: str, face: str) -> Line2D:
        return Line2D(
            [], [], linestyle="none", color=color, marker=marker, markersize=4.5, markerfacecolor=face
        )

    sides = [handle(MUTED, "o", "white"), handle(MUTED, "o", MUTED)]
    where: dict[str, Any] = {"frameon": False, "handlelength": 1.0, "handletextpad": 0.4, "borderpad": 0.3}
    picture.legend(sides, ["measured", "reproduced"], loc="lower right", ncols=2, **where)
    if marks:
        order = [number for column in range(columns) for number in range(column, len(marks), columns)]
        picture.legend(
            [handle(marks[i].style.color, marks[i].style.marker, marks[i].style.color) for i in order],
            [f"{marks[i].words}  {marks[i].scheme}" for i in order],
            loc="lower left",
            bbox_to_anchor=(0.01, 5.0 / (picture.get_figheight() * 25.4)),
            ncols=columns,
            columnspacing=1.2,
            labelspacing=0.35,
            **where,
        )
