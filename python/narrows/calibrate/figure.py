"""Measured and reproduced points: two for each scheme, connected by a line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from narrows.report.drawing import (
    Numbers,
    Options,
    new_figure,
    paper_style,
    write_figure,
    write_numbers,
)
from narrows.report.figures._scatter import Mark, names
from narrows.report.legends import legend, place_legend, size_in_mm
from narrows.report.style import MUTED, Style, distinct
from narrows.report.ticks import drop_crowded_labels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NAME = "points"
FORMATS = ("svg", "png")
#: With up to this many schemes, names appear beside the marks; more schemes are numbered, with a legend.
_MOST_NAMES = 8
_HEIGHT_MM = 92.0


@dataclass(frozen=True)
class Pair:
    """A scheme as it was measured and as the path reproduces it: delay in ms, throughput in Mbit/s."""

    scheme: str
    measured: tuple[float, float]
    reproduced: tuple[float, float]


def write(pairs: Sequence[Pair], folder: Path, title: str) -> list[Path]:
    """Writes the figure and its numbers; writes nothing if no scheme has both values on both sides."""
    if not pairs:
        return []
    options = Options()
    picture = figure(pairs, options)
    about = (f"{title}: measured and reproduced", "throughput against 95th percentile of one-way delay")
    written = write_figure(picture, folder / NAME, FORMATS, options, about)
    write_numbers(numbers(pairs), folder / f"{NAME}.csv")
    return [*written, folder / f"{NAME}.csv"]


def numbers(pairs: Sequence[Pair]) -> Numbers:
    """The points of the figure."""
    return {
        "scheme": [pair.scheme for pair in pairs],
        "measured_delay_p95_ms": [pair.measured[0] for pair in pairs],
        "measured_throughput_mbps": [pair.measured[1] for pair in pairs],
        "reproduced_delay_p95_ms": [pair.reproduced[0] for pair in pairs],
        "reproduced_throughput_mbps": [pair.reproduced[1] for pair in pairs],
    }


def figure(pairs: Sequence[Pair], options: Options) -> Figure:
    """The figure; hollow marks are measurements, filled ones results of the path."""
    named = _draw(pairs, options, numbered=False) if len(pairs) <= _MOST_NAMES else None
    return named or _draw(pairs, options, numbered=True) or new_figure(options, _HEIGHT_MM)


def _draw(pairs: Sequence[Pair], options: Options, *, numbered: bool) -> Figure | None:
    """Draws the picture; returns `None` if it has no room for the names."""
    styles = distinct([pair.scheme for pair in pairs])
    with paper_style(options):
        picture = new_figure(options, _HEIGHT_MM)
        shown = legend(picture, _entries(pairs, styles, numbered), options, options.width_mm - 3.0)
        legend_mm = size_in_mm(picture, shown)[1] + 2.0 if shown is not None else 0.0
        total = max(options.height_mm or 0.0, _HEIGHT_MM + legend_mm)
        picture.set_size_inches(options.width_mm / 25.4, total / 25.4)
        width, low = options.width_mm, (legend_mm + 10.0) / total
        axes = picture.add_axes((14.0 / width, low, (width - 17.0) / width, 1 - low - 4.0 / total))
        _ends(axes, pairs)
        marks = []
        for number, pair in enumerate(pairs, 1):
            style = styles[pair.scheme]
            (x, y), (to_x, to_y) = pair.measured, pair.reproduced
            axes.plot([x, to_x], [y, to_y], color=style.color, linewidth=0.7, zorder=2)
            look: dict[str, Any] = {
                "marker": style.marker,
                "linestyle": "none",
                "markersize": 5.0,
                "color": style.color,
            }
            axes.plot([x], [y], **look, markerfacecolor="white", markeredgewidth=0.9, zorder=3)
            axes.plot([to_x], [to_y], **look, zorder=3)
            words = str(number) if numbered else pair.scheme
            marks.append(Mark(pair.scheme, style, x, y, [pair.measured, pair.reproduced], words))
        drop_crowded_labels(axes.xaxis, None)
        without = names(picture, axes, marks, 3.0, None)
        if shown is not None:
            place_legend(picture, shown, 1.5, total - legend_mm + 1.0)
    return None if without and not numbered else picture


def _ends(axes: Axes, pairs: Sequence[Pair]) -> None:
    from matplotlib.ticker import LogLocator, NullFormatter, ScalarFormatter

    delays = [point[0] for pair in pairs for point in (pair.measured, pair.reproduced)]
    rates = [point[1] for pair in pairs for point in (pair.measured, pair.reproduced)]
    figure = axes.get_figure(root=True)
    wide = figure is not None and figure.get_figwidth() * 25.4 > 110
    axes.set_xlabel(f"95th percentile one-way delay (ms), {'smaller to the right' if wide else 'reversed'}")
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


def _entries(pairs: Sequence[Pair], styles: Mapping[str, Style], numbered: bool) -> list[tuple[str, Any]]:
    from matplotlib.lines import Line2D

    def handle(color: str, marker: str, face: str) -> Line2D:
        return Line2D(
            [], [], linestyle="none", color=color, marker=marker, markersize=4.5, markerfacecolor=face
        )

    entries = [("measured", handle(MUTED, "o", "white")), ("reproduced", handle(MUTED, "o", MUTED))]
    for number, pair in enumerate(pairs if numbered else [], 1):
        style = styles[pair.scheme]
        entries.append((f"{number}  {pair.scheme}", handle(style.color, style.marker, style.color)))
    return entries
