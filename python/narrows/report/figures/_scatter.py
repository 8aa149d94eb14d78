"""Parts of a scatter of schemes: the spread of their runs, names or numbers beside marks, the inset."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from narrows.report import labels as placing
from narrows.report.style import MUTED, PAPER, Style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FEWEST_OF_ELLIPSE = 3
"""The fewest runs with a spread in two directions."""
CORE = 0.4
"""A closer look shows at least this share of the schemes."""
CLOSE = 0.3
"""A closer look is worth its room if these schemes fill no more than this share of either axis."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A scheme in a scatter: the median of its runs, the runs themselves and its text."""

    scheme: str
    style: Style
    x: float
    y: float
    runs: Sequence[tuple[float, float]]
    words: str


def ellipse(runs: Sequence[tuple[float, float]], logarithmic: bool) -> tuple[Any, Any] | None:
    """The outline of one standard deviation of a normal distribution of the runs, as drawn by Remy and
    Pantheon; on a logarithmic x axis the distribution of logarithms. `None` for too few runs, and for runs
    without a spread.
    """
    points = np.asarray(runs, dtype=float)
    if len(points) < FEWEST_OF_ELLIPSE:
        return None
    if logarithmic:
        points[:, 0] = np.log(points[:, 0])
    centre, spread = points.mean(axis=0), np.cov(points.T, bias=True)
    values, vectors = np.linalg.eigh(spread)
    if values[-1] <= 0:
        return None
    angle = np.linspace(0, 2 * np.pi, 73)
    circle = np.stack([np.cos(angle), np.sin(angle)])
    outline = centre[:, None] + vectors @ (np.sqrt(np.maximum(values, 0.0))[:, None] * circle)
    return (np.exp(outline[0]) if logarithmic else outline[0]), outline[1]


def core(places: Mapping[str, tuple[float, float]]) -> list[str] | None:
    """The schemes that lie so close together, in shares of the axes, that they need an enlarged view; `None`
    if all are distinguishable.
    """
    if len(places) < 4:
        return None
    table = np.asarray(list(places.values()), dtype=float)
    centre = np.median(table, axis=0)
    away = np.abs(table - centre).max(axis=1)
    order = np.argsort(away, kind="stable")
    count = max(3, math.ceil(CORE * len(places)))
    reach = float(away[order[count - 1]])
    within = away <= max(1.5 * reach, CLOSE / 3)
    extent = np.ptp(table[within], axis=0).max()
    if within.all() or extent > CLOSE:
        return None
    return [scheme for scheme, inside in zip(places, within, strict=True) if inside]


def broken(name: str, width_mm: float) -> str:
    """A very long name in lines that fit beside a mark."""
    parts = re.findall(r"[^-:_/ ]+[-:_/ ]?|[-:_/ ]", name)
    lines = [""]
    for part in parts:
        if lines[-1] and len(lines[-1]) + len(part) > width_mm / 4.5:
            lines.append("")
        lines[-1] += part
    return "\n".join(line.strip() for line in lines)


def break_below(axes: Axes) -> None:
    """Two slanted strokes at the foot of the y axis: it doesn't start at zero."""
    for lift in (0.0, 0.012):
        axes.plot(
            [-0.008, 0.008],
            [0.018 + lift, 0.03 + lift],
            transform=axes.transAxes,
            color=MUTED,
            linewidth=0.7,
            clip_on=False,
            label="_break",
        )


def names(
    picture: Figure, axes: Axes, marks: Sequence[Mark], radius: float, corner: tuple[float, float] | None
) -> list[Mark]:
    """Texts beside the marks, placed in points of the page; `corner` is the place of the word "better".
    Returns the marks for which there was no room.
    """
    from matplotlib.lines import Line2D
    from matplotlib.patheffects import withStroke

    halo = [withStroke(linewidth=1.4, foreground=PAPER)]
    point = picture.dpi / 72
    (left, right), (low, high) = sorted(axes.get_xlim()), sorted(axes.get_ylim())
    marks = [mark for mark in marks if left <= mark.x <= right and low <= mark.y <= high]
    texts: list[Any] = []
    wanted = []
    for mark in marks:
        text = picture.text(
            0,
            0,
            mark.words,
            color=mark.style.color,
            fontweight="bold",
            va="bottom",
            ha="left",
            zorder=5,
            path_effects=halo,
        )
        size = text.get_window_extent()
        x, y = axes.transData.transform((mark.x, mark.y)) / point
        wanted.append(
            placing.Label(float(x), float(y), radius, size.width / point + 1.5, size.height / point)
        )
        texts.append(text)
    obstacles = []
    for mark in marks:
        for run in mark.runs:
            x, y = axes.transData.transform(run) / point
            obstacles.append(placing.Box(float(x) - 2, float(y) - 2, float(x) + 2, float(y) + 2))
    inside = axes.get_window_extent()
    frame = placing.Box(*(v / point for v in (inside.x0 + 2, inside.y0 + 2, inside.x1 - 2, inside.y1 - 2)))
    taken: list[placing.Box] = []
    if corner is not None:
        wide, tall = frame.right - frame.left, frame.top - frame.bottom
        word_x, word_y = frame.left + corner[0] * wide, frame.bottom + corner[1] * tall
        taken = [placing.Box(word_x - 15, word_y - 8, word_x + 15, word_y + 8)]
        obstacles += [placing.Box(word_x - 28, word_y - 14, word_x + 28, word_y + 14)] * 10
    across, upright_pt = picture.get_figwidth() * 72, picture.get_figheight() * 72
    without = []
    for mark, text, label, spot in zip(
        marks, texts, wanted, placing.place(wanted, obstacles, frame), strict=True
    ):
        if spot.box.outside(frame) > 1.0 or any(spot.box.overlap(box) > 0 for box in taken):
            text.remove()
            without.append(mark)
            continue
        taken.append(spot.box)
        text.set_position((spot.box.left / across, spot.box.bottom / upright_pt))
        if not spot.far:
            continue
        near_x = min(max(label.x, spot.box.left), spot.box.right)
        near_y = min(max(label.y, spot.box.bottom), spot.box.top)
        reach = math.hypot(near_x - label.x, near_y - label.y)
        if reach <= radius:
            continue
        share = radius / reach
        start = (label.x + share * (near_x - label.x), label.y + share * (near_y - label.y))
        line = Line2D(
            [start[0] / across, near_x / across],
            [start[1] / upright_pt, near_y / upright_pt],
            transform=picture.transFigure,
            color=MUTED,
            linewidth=0.5,
            zorder=3.5,
        )
        picture.add_artist(line)
    return without


def better(axes: Axes, marks: Sequence[Mark]) -> tuple[float, float]:
    """An arrow in the direction of better values, in the corner that is farthest from all marks."""
    figure = axes.get_figure(root=True)
    wide = axes.get_position().width * (figure.get_figwidth() * 25.4 if figure is not None else 100.0)
    side = max(0.06, min(0.3, 7.5 / wide))  # Half of the word, and of its arrow.
    corners = [(1 - side, 0.92), (side, 0.08), (1 - side, 0.08), (side, 0.92)]
    to_axes = axes.transData + axes.transAxes.inverted()
    spots = [to_axes.transform(run) for mark in marks for run in mark.runs]

    def clearance(corner: tuple[float, float]) -> float:
        return min((max(abs(x - corner[0]), 0.6 * abs(y - corner[1])) for x, y in spots), default=1.0)

    x, y = max(corners, key=lambda corner: (min(clearance(corner), 0.25), -corners.index(corner)))
    axes.annotate(
        "better",
        xy=(x + 0.035, y + 0.05),
        xytext=(x, y - 0.01),
        xycoords="axes fraction",
        textcoords="axes fraction",
        ha="center",
        va="center",
        color=MUTED,
        arrowprops={"arrowstyle": "->", "color": MUTED, "linewidth": 0.8, "shrinkA": 1, "shrinkB": 0},
    )
    return x, y


def logarithmic(delays: Sequence[float]) -> tuple[float, float] | None:
    """The limits of a logarithmic axis if the range requires one.

    They are rounded outwards to powers of two; the largest must be more than four times the smallest (the
    rule of Pantheon's reports). Delays that are not positive, as with unsynchronised clocks, have no
    logarithm.
    """
    if not delays or min(delays) <= 0:
        return None
    low = 2.0 ** math.floor(math.log2(min(delays)))
    high = 2.0 ** math.ceil(math.log2(max(delays)))
    return (low, high) if high > 4 * low else None


def upright(rates: Sequence[float]) -> tuple[float, float]:
    """The limits of the throughput axis: from zero, unless that would leave the lower half empty."""
    low, high = min(rates), max(rates)
    if high <= 0:
        return 0.0, 1.0
    pad = max(0.09 * (high - low), 0.01 * high)
    return (low - pad, high + pad) if low > 0.5 * high else (0.0, high * 1.12)


def outline(axes: Axes, dots: Sequence[tuple[float, float]]) -> None:
    """A thin rectangle around the enlarged region."""
    from matplotlib.patches import Rectangle

    delays, rates = zip(*dots, strict=True)
    to_axes = axes.transData + axes.transAxes.inverted()
    (right, low), (left, high) = (
        to_axes.transform(p) for p in ((min(delays), min(rates)), (max(delays), max(rates)))
    )
    pad = 0.025
    box = Rectangle(
        (left - pad, low - pad),
        right - left + 2 * pad,
        high - low + 2 * pad,
        transform=axes.transAxes,
        fill=False,
        edgecolor=MUTED,
        linewidth=0.6,
        linestyle=(0, (3, 2)),
    )
    axes.add_patch(box)


def set_delay_axis(axes: Axes, delays: Sequence[float], spreads: Sequence[float] = ()) -> None:
    """Sets the limits of the reversed delay axis, and its ticks; logarithmic if the range requires it."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter

    limits = logarithmic(delays)
    if limits is None:
        low, high = min(delays), max(delays)
        pad = max(0.12 * (high - low), 0.04 * abs(high), 0.05)
        ends = (high + pad, max(0.0, low - pad) if low > 0 else low - pad)
        axes.set_xlim(max([ends[0], *spreads]), min([ends[1], *spreads]))
        return
    low, high = limits
    axes.set_xscale("log", base=2)
    inner_low, inner_high = min([*delays, *spreads]) / 1.12, max([*delays, *spreads]) * 1.12
    axes.set_xlim(max(high if high < inner_high else inner_high, inner_high), min(low, inner_low))
    first, last = math.floor(math.log2(low)), math.ceil(math.log2(high))
    axes.xaxis.set_major_locator(FixedLocator([2.0**k for k in range(first, last + 1)]))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
