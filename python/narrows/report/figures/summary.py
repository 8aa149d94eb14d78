"""The summary: 95th percentile one-way delay against throughput, one mark per run and one per scheme."""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from narrows.report import real_path, units
from narrows.report.data import Campaign, Run
from narrows.report.drawing import DOUBLE_MM, SINGLE_MM, Numbers, Options, limit, new_figure, paper_style
from narrows.report.figures._scatter import (
    FEWEST_OF_ELLIPSE,
    Mark,
    better,
    break_below,
    broken,
    core,
    ellipse,
    names,
)
from narrows.report.figures.parameter import matrix_rows
from narrows.report.style import MUTED, Style, distinct, of_matrix
from narrows.statistics.runs import median_over_runs
from narrows.text import plural

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TITLE = "Throughput against delay"
ALSO = ("scatter", "throughput-delay")
SCOPE = "campaign"
ORDER = 20
OWN_LIMITS = True  # names are placed for the ends of the axes

MOST_NAMES = 8
"""Up to so many schemes have their names beside the marks; more are numbered, with a legend."""
WIDE_MM = 140.0
"""From this width on, a closer look stands beside the whole, and not below."""

_SMALL, _LARGE = 6.0, 40.0
_WEIGHT = {"*": 1.9, "P": 1.2, "X": 1.2, "D": 0.85}  # so that marks of all shapes look equally large


@dataclass(frozen=True, slots=True)
class Dot:
    """One valid run: its totals over all flows."""

    run: Run
    delay_ms: float
    throughput_mbps: float

    @property
    def degraded(self) -> bool:
        """True if the run counts with a warning."""
        return self.run.verdict == "degraded"


def dots(data: Campaign) -> list[Dot]:
    """The valid runs whose totals are defined."""
    found = []
    for run in data.runs:
        metrics = (run.rows.get("all") or {}).get("metrics") or {}
        throughput, delay = metrics.get("throughput_bps"), metrics.get("delay_p95_ns")
        if run.valid and throughput is not None and delay is not None:
            found.append(Dot(run, delay / 1e6, throughput / 1e6))
    return found


def medians(data: Campaign) -> dict[str, tuple[float, float, int]]:
    """Median delay, median throughput and number of runs of each scheme, over the runs drawn."""
    grouped: dict[str, list[Dot]] = {}
    for dot in dots(data):
        grouped.setdefault(dot.run.scheme, []).append(dot)
    return {
        scheme: (
            median_over_runs([d.delay_ms for d in own]),
            median_over_runs([d.throughput_mbps for d in own]),
            len(own),
        )
        for scheme in data.schemes
        if (own := grouped.get(scheme))
    }


def logarithmic(delays: list[float]) -> tuple[float, float] | None:
    """The limits of a logarithmic axis if the range asks for one.

    Rounded outwards to powers of two, the largest must be more than four times the smallest (the rule of
    Pantheon's reports). Delays that are not positive, as from clocks that disagree, have no logarithm.
    """
    if not delays or min(delays) <= 0:
        return None
    low = 2.0 ** math.floor(math.log2(min(delays)))
    high = 2.0 ** math.ceil(math.log2(max(delays)))
    return (low, high) if high > 4 * low else None


def absent(data: Campaign) -> str | None:
    """Without a valid run there is nothing to compare."""
    if real_path.only_ends(data):
        return real_path.NOT_SEEN
    return None if dots(data) else "No valid run with a throughput and a delay, so there is nothing to draw."


def numbers(data: Campaign) -> Numbers:
    """One row per run, then one per scheme (run `median`)."""
    found = dots(data)
    middle = medians(data)
    return {
        "scheme": [d.run.scheme for d in found] + list(middle),
        "run": [str(d.run.number) for d in found] + ["median"] * len(middle),
        "runs": [1] * len(found) + [n for _, _, n in middle.values()],
        "delay_p95_ms": [d.delay_ms for d in found] + [m[0] for m in middle.values()],
        "throughput_mbps": [d.throughput_mbps for d in found] + [m[1] for m in middle.values()],
        "verdict": [str(d.run.verdict) for d in found] + [""] * len(middle),
    }


def caption(data: Campaign) -> str:
    """The caption."""
    found = dots(data)
    marks = _marks(data, found, DOUBLE_MM)
    text = (
        "All flows of a run together: throughput against the 95th percentile of one-way delay. The delay "
        "axis is reversed, so better is up and to the right. Small marks are runs, the large mark with the "
        f"{'number' if len(marks) > MOST_NAMES else 'name'} is the median of a scheme's valid runs."
    )
    if logarithmic([d.delay_ms for d in found]):
        text += " The delay axis is logarithmic."
    if any(len(mark.runs) >= FEWEST_OF_ELLIPSE for mark in marks):
        text += " Ellipses are one standard deviation of the runs around their mean."
    if upright([d.throughput_mbps for d in found])[0] > 0:
        text += " The throughput axis doesn't start at zero."
    if _near(found, marks):
        text += " The second picture is a closer look at the schemes in the rectangle."
    if any(d.degraded for d in found):
        text += " Hollow marks are runs judged degraded."
    shared = _shared(list(medians(data)))
    if shared and len(marks) <= MOST_NAMES:
        text += f" Names leave out {' '.join(shared)}, which most of the schemes have."
    left_out = sum(1 for run in data.runs if run.state == "finished" and not run.valid)
    if left_out:
        text += f" {plural(left_out, 'invalid run')} not drawn."
    return text


def _shared(schemes: list[str]) -> list[str]:
    """Parameters that most of many schemes have: words that names can do without."""
    counted = Counter(part for scheme in schemes for part in _parts(scheme)[1:])
    shared = [part for part, count in counted.items() if 2 * count > len(schemes) > 2]
    brief = {_without(scheme, shared) for scheme in schemes}
    return shared if len(brief) == len(schemes) else []


def _parts(scheme: str) -> list[str]:
    """The words of a scheme's name; what is in parentheses is one of them."""
    return re.findall(r"\([^)]*\)|\S+", scheme)


def _without(scheme: str, left_out: list[str]) -> str:
    """The name of a scheme without some parameters; a model that is named like the scheme stands alone."""
    name, *parts = [part for part in _parts(scheme) if part not in left_out]
    if parts and parts[0].startswith(f"model={name}"):
        name, parts = parts[0].removeprefix("model="), parts[1:]
    return " ".join([name, *parts])


def tips(data: Campaign) -> dict[str, str]:
    """The numbers of each mark."""

    def numbers_of(throughput: float, delay: float) -> str:
        return f"{units.number(throughput)} Mbit/s, {units.number(delay)} ms"

    found = {
        f"run-{i}": f"{d.run.scheme}, run {d.run.number}: {numbers_of(d.throughput_mbps, d.delay_ms)}"
        for i, d in enumerate(dots(data))
    }
    for i, (scheme, (delay, throughput, count)) in enumerate(medians(data).items()):
        of_runs = f"median of {plural(count, 'run')}"
        found[f"median-{i}"] = f"{scheme}, {of_runs}: {numbers_of(throughput, delay)}"
    return found | {f"near-{mark}": tip for mark, tip in found.items()}


def figure(data: Campaign, options: Options) -> Figure:
    """The scatter, with a closer look beside it where most schemes lie close together; names beside the marks
    of a few schemes, numbers and a legend for more."""
    found = dots(data)
    marks = _marks(data, found, options.width_mm)
    numbered = len(marks) > MOST_NAMES
    near = _near(found, marks) if options.x == options.y == (None, None) else None
    across = near is not None and options.width_mm >= WIDE_MM
    panels = [marks] if near is None else [marks, [m for m in marks if m.scheme in near]]
    with paper_style(options):
        rows = 1 if across else len(panels)
        frame = _Frame(options.width_mm, (70.0 if options.width_mm <= SINGLE_MM + 20 else 84.0) * rows)
        legend_mm = _legend_height(marks, options) if numbered else 0.0
        picture = new_figure(options, frame.height + legend_mm)
        frame.height = picture.get_figheight() * 25.4 - legend_mm
        for number, shown in enumerate(panels):
            column, row = (number, 0) if across else (0, number)
            axes = frame.axes(picture, (column, row), (2 if across else 1, rows), legend_mm)
            own = [dot for dot in found if any(dot.run.scheme == mark.scheme for mark in shown)]
            _axes(axes, own, options)
            if number == 0 and near is not None:
                _outline(axes, [dot for dot in own if dot.run.scheme in near])
            if len(panels) > 1:
                axes.set_title(
                    ("all schemes", f"the {len(shown)} in the rectangle, closer")[number], loc="left"
                )
            _points(axes, data, shown, own, number)
            corner = better(axes, shown) if number == 0 else None
            named = (
                shown
                if number == len(panels) - 1 or near is None
                else [m for m in shown if m.scheme not in near]
            )
            names(picture, axes, named, math.sqrt(_LARGE) / 2, corner)
        if numbered:
            _legend(picture, marks, options)
    return picture


@dataclass
class _Frame:
    """Axes in rows and columns between fixed margins, above the legend (mm)."""

    width: float
    height: float

    def axes(self, picture: Figure, at: tuple[int, int], of: tuple[int, int], below: float) -> Axes:
        """The axes of a column and row, counted from the upper left."""
        left, right, bottom, top = 14.0, 3.0, 11.0, 5.0
        wide, high = self.width / of[0], self.height / of[1]
        whole = self.height + below
        x, y = at[0] * wide + left, below + (of[1] - 1 - at[1]) * high + bottom
        return picture.add_axes(
            (x / self.width, y / whole, (wide - left - right) / self.width, (high - bottom - top) / whole)
        )


def _marks(data: Campaign, found: list[Dot], width_mm: float) -> list[Mark]:
    """One per scheme with valid runs, numbered if they are too many for names."""
    middle, styles = medians(data), styles_of(data)
    shared = _shared(list(middle))
    marks = []
    for number, (scheme, (delay, throughput, _)) in enumerate(middle.items(), 1):
        runs = [(dot.delay_ms, dot.throughput_mbps) for dot in found if dot.run.scheme == scheme]
        words = str(number) if len(middle) > MOST_NAMES else broken(_without(scheme, shared), width_mm)
        marks.append(Mark(scheme, styles[scheme], delay, throughput, runs, words))
    return marks


def styles_of(data: Campaign) -> dict[str, Style]:
    """Where a matrix made all rows, the colour is the scheme's and the shape tells the values."""
    rows = matrix_rows(data)
    if data.schemes and all(scheme in rows for scheme in data.schemes):
        told = {label: (rows[label][0], str(rows[label][1])) for label in data.schemes}
        if (styles := of_matrix(told)) is not None:
            return styles
    return distinct(data.schemes)


def _near(found: list[Dot], marks: list[Mark]) -> list[str] | None:
    """The schemes of a closer look: those near each other in the axes that show all."""
    delays, rates = [d.delay_ms for d in found], [d.throughput_mbps for d in found]
    across = math.log if logarithmic(delays) else float
    (left, right), (low, high) = (across(min(delays)), across(max(delays))), upright(rates)
    if left == right:
        return None
    return core(
        {m.scheme: ((across(m.x) - left) / (right - left), (m.y - low) / (high - low)) for m in marks}
    )


def upright(rates: list[float]) -> tuple[float, float]:
    """The ends of the throughput axis: from zero, unless that would leave the lower half empty."""
    low, high = min(rates), max(rates)
    if high <= 0:
        return 0.0, 1.0
    pad = max(0.09 * (high - low), 0.01 * high)
    return (low - pad, high + pad) if low > 0.5 * high else (0.0, high * 1.12)


def _axes(axes: Axes, found: list[Dot], options: Options) -> None:
    """Labels and ends of axes for some runs."""
    narrow = axes.get_position().width * options.width_mm <= SINGLE_MM + 10
    axes.set_xlabel(
        "95th percentile one-way delay (ms), reversed"
        if narrow
        else "95th percentile one-way delay (ms), smaller to the right"
    )
    axes.set_ylabel("throughput (Mbit/s)")
    axes.set_ylim(*upright([d.throughput_mbps for d in found]))
    _delay_axis(axes, [d.delay_ms for d in found])
    limit(axes, options)
    if axes.get_ylim()[0] > 0:
        break_below(axes)


def _outline(axes: Axes, found: list[Dot]) -> None:
    """A thin rectangle around what the closer look shows."""
    from matplotlib.patches import Rectangle

    delays = [d.delay_ms for d in found]
    rates = [d.throughput_mbps for d in found]
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


def _points(axes: Axes, data: Campaign, marks: list[Mark], found: list[Dot], panel: int) -> None:
    """Ellipses, runs and medians, in this order from the ground up."""
    order = {dot.run.cell: number for number, dot in enumerate(dots(data))}
    places = {scheme: number for number, scheme in enumerate(medians(data))}
    gid = ("", "near-")[panel]
    styles = {mark.scheme: mark.style for mark in marks}
    for mark in marks:
        outline = ellipse(mark.runs, axes.get_xscale() == "log")
        if outline is not None:
            if len(marks) <= MOST_NAMES:  # more of them would only make the middle dark
                axes.fill(*outline, facecolor=mark.style.color, alpha=0.13, linewidth=0, zorder=2)
            axes.plot(*outline, color=mark.style.color, linewidth=0.6, zorder=2.1, solid_joinstyle="round")
    for dot in found:
        style = styles[dot.run.scheme]
        axes.scatter(
            [dot.delay_ms],
            [dot.throughput_mbps],
            s=_SMALL * _WEIGHT.get(style.marker, 1.0),
            marker=style.marker,
            linewidths=0.6,
            zorder=3,
            facecolors="none" if dot.degraded else style.color,
            edgecolors=style.color,
            gid=f"{gid}run-{order[dot.run.cell]}",
        )
    for mark in marks:
        axes.scatter(
            [mark.x],
            [mark.y],
            s=_LARGE * _WEIGHT.get(mark.style.marker, 1.0),
            marker=mark.style.marker,
            linewidths=0.7,
            zorder=4,
            facecolors=mark.style.color,
            edgecolors="white",
            gid=f"{gid}median-{places[mark.scheme]}",
        )


def _columns(marks: list[Mark], options: Options) -> int:
    """Columns of the legend: as many as find room, each as wide as its longest name."""
    widths = [len(mark.scheme) * 0.172 * options.font_pt + 10 for mark in marks]
    for columns in range(min(len(marks), 8), 1, -1):
        if sum(max(widths[column::columns]) for column in range(columns)) <= options.width_mm - 3:
            return columns
    return 1


def _legend_height(marks: list[Mark], options: Options) -> float:
    return -(-len(marks) // _columns(marks, options)) * options.font_pt * 0.48 + 1.5


def _legend(picture: Figure, marks: list[Mark], options: Options) -> None:
    """Numbers, marks and names below the axes, to be read row by row."""
    from matplotlib.lines import Line2D

    columns = _columns(marks, options)
    # Matplotlib fills columns one after the other; of them the first ones are longer.
    order = [number for column in range(columns) for number in range(column, len(marks), columns)]
    handles = [
        Line2D([], [], linestyle="none", color=mark.style.color, marker=mark.style.marker, markersize=4.5)
        for mark in marks
    ]
    picture.legend(
        [handles[i] for i in order],
        [f"{marks[i].words}  {marks[i].scheme}" for i in order],
        loc="lower left",
        bbox_to_anchor=(0.01, 0.0),
        ncols=columns,
        frameon=False,
        handlelength=1.0,
        handletextpad=0.4,
        columnspacing=1.2,
        labelspacing=0.35,
        borderpad=0.3,
    )


def _delay_axis(axes: Axes, delays: list[float]) -> None:
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter

    limits = logarithmic(delays)
    if limits is None:
        low, high = min(delays), max(delays)
        pad = max(0.12 * (high - low), 0.04 * abs(high), 0.05)
        axes.set_xlim(high + pad, max(0.0, low - pad) if low > 0 else low - pad)
        return
    low, high = limits
    axes.set_xscale("log", base=2)
    inner_low, inner_high = min(delays) / 1.12, max(delays) * 1.12
    axes.set_xlim(max(high if high < inner_high else inner_high, inner_high), min(low, inner_low))
    first, last = math.floor(math.log2(low)), math.ceil(math.log2(high))
    axes.xaxis.set_major_locator(FixedLocator([2.0**k for k in range(first, last + 1)]))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
