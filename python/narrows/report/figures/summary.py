"""The summary: 95th percentile one-way delay against throughput, one mark per run and one per scheme."""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from narrows.report import real_path, units
from narrows.report.data import Campaign, Run
from narrows.report.drawing import DOUBLE_MM, SINGLE_MM, Numbers, Options, limit, new_figure, paper_style
from narrows.report.figures import _conditions
from narrows.report.figures._scatter import (
    FEWEST_OF_ELLIPSE,
    Mark,
    better,
    break_below,
    broken,
    core,
    ellipse,
    logarithmic,
    names,
    outline,
    set_delay_axis,
    upright,
)
from narrows.report.legends import legend, place_legend, size_in_mm
from narrows.report.panels import Block, Panels
from narrows.report.style import Style, with_condition
from narrows.report.ticks import drop_crowded_labels, label_extents
from narrows.statistics.runs import STATISTIC as OF_RUNS
from narrows.statistics.runs import median_over_runs
from narrows.text import plural

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TITLE = "Throughput against delay"
ALSO = ("scatter", "throughput-delay")
SCOPE = "campaign"
ORDER = 20
STATISTIC = OF_RUNS
OWN_LIMITS = True  # The placement of names depends on the limits of the axes.

MOST_NAMES = 8
"""Up to so many schemes have their names beside the marks; more are numbered, with a legend."""
WIDE_MM = 140.0
"""From this width on, the closer look is beside the whole and not below it."""

_USUAL_LEFT = 14.0
_SMALL, _LARGE = 6.0, 40.0
_WEIGHT = {"*": 1.9, "P": 1.2, "X": 1.2, "D": 0.85}  # So that marks of all shapes look equally large.


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
    return data.keep("summary", lambda: _read(data))


def _read(data: Campaign) -> list[Dot]:
    dots = []
    for run in data.runs:
        throughput, delay = run.value("all", "throughput_bps"), run.value("all", "delay_p95_ns")
        if run.valid and throughput is not None and delay is not None:
            dots.append(Dot(run, delay / 1e6, throughput / 1e6))
    return dots


def medians(data: Campaign) -> dict[str, tuple[float, float, int]]:
    """Median delay, median throughput and number of runs of each row, over the drawn runs."""
    grouped: dict[str, list[Dot]] = {}
    for dot in dots(data):
        grouped.setdefault(dot.run.scheme, []).append(dot)
    return {
        label: (
            median_over_runs([d.delay_ms for d in own]),
            median_over_runs([d.throughput_mbps for d in own]),
            len(own),
        )
        for label in data.schemes
        if (own := grouped.get(label))
    }


def absent(data: Campaign) -> str | None:
    """Without a valid run there is nothing to compare."""
    if real_path.only_ends(data):
        return real_path.NOT_SEEN
    return None if dots(data) else "No valid run with a throughput and a delay, so there is nothing to draw."


def numbers(data: Campaign) -> Numbers:
    """One row per run, then one per scheme and condition (run `median`)."""
    result, middle = dots(data), medians(data)
    shown = {
        "run": [str(d.run.number) for d in result] + ["median"] * len(middle),
        "runs": [1] * len(result) + [n for _, _, n in middle.values()],
        "delay_p95_ms": [d.delay_ms for d in result] + [m[0] for m in middle.values()],
        "throughput_mbps": [d.throughput_mbps for d in result] + [m[1] for m in middle.values()],
        "verdict": [str(d.run.verdict) for d in result] + [""] * len(middle),
    }
    return _conditions.columns(data, [*(d.run.scheme for d in result), *middle], shown)


def caption(data: Campaign) -> str:
    """The caption."""
    result = dots(data)
    marks = _marks(data, result, DOUBLE_MM)
    several = len(_conditions.groups(data, list(medians(data)))) > 1
    text = (
        "All flows of a run together: throughput against the 95th percentile of one-way delay. The delay "
        "axis is reversed, so better is up and to the right. Small marks are runs, the large mark is the "
        "median of a scheme's valid runs, in either direction."
    )
    if logarithmic([d.delay_ms for d in result]):
        text += " The delay axis is logarithmic."
    if not several and any(len(mark.runs) >= FEWEST_OF_ELLIPSE for mark in marks):
        text += " Ellipses are one standard deviation of the runs around their mean."
    if upright([d.throughput_mbps for d in result])[0] > 0:
        text += " The throughput axis doesn't start at zero."
    if not several and _near(result, marks):
        text += " The second picture is a closer look at the schemes in the rectangle."
    if any(d.degraded for d in result):
        text += " Hollow marks are runs judged degraded."
    shared = _common_parameters(list(_names_of(data, list(medians(data))).values()))
    if shared and not several and len(marks) <= MOST_NAMES:
        text += f" Names leave out {' '.join(shared)}, which most of the schemes have."
    if several:
        text += " Each panel has its own axis of delays."
    return text + _conditions.says_conditions(data)


def _common_parameters(schemes: list[str]) -> list[str]:
    """Parameters that most of many schemes share: names can omit them."""
    counted = Counter(part for scheme in schemes for part in _parts(scheme)[1:])
    shared = [part for part, count in counted.items() if 2 * count > len(schemes) > 2]
    brief = {_without(scheme, shared) for scheme in schemes}
    return shared if len(brief) == len(schemes) else []


def _parts(scheme: str) -> list[str]:
    """The words of a scheme's name; a parenthesis counts as one word."""
    return re.findall(r"\([^)]*\)|\S+", scheme)


def _without(scheme: str, left_out: list[str]) -> str:
    """The name of a scheme without some parameters; for a model named like the scheme only the scheme."""
    name, *parts = [part for part in _parts(scheme) if part not in left_out]
    if parts and parts[0].startswith(f"model={name}"):
        name, parts = parts[0].removeprefix("model="), parts[1:]
    return " ".join([name, *parts])


def tips(data: Campaign) -> dict[str, str]:
    """The numbers of each mark."""

    def numbers_of(throughput: float, delay: float) -> str:
        return f"{units.number(throughput)} Mbit/s, {units.number(delay)} ms"

    result = {
        f"run-{i}": f"{d.run.scheme}, run {d.run.number}: {numbers_of(d.throughput_mbps, d.delay_ms)}"
        for i, d in enumerate(dots(data))
    }
    for i, (scheme, (delay, throughput, count)) in enumerate(medians(data).items()):
        of_runs = f"median of {plural(count, 'run')}"
        result[f"median-{i}"] = f"{scheme}, {of_runs}: {numbers_of(throughput, delay)}"
    return result | {f"near-{mark}": tip for mark, tip in result.items()}


def figure(data: Campaign, options: Options) -> Figure:
    """The scatter, with an enlarged view beside it if most schemes lie close together; names beside the marks
    of a few schemes, numbers and a legend for more. With a matrix, a panel for each combination.
    """
    groups = _conditions.groups(data, list(medians(data)))
    if len(groups) > 1:
        return _multiples(data, groups, options)
    named = _single(data, options, numbered=False) if len(medians(data)) <= MOST_NAMES else None
    return named or _single(data, options, numbered=True) or new_figure(options, 70.0)


def _single(data: Campaign, options: Options, *, numbered: bool) -> Figure | None:
    """A single picture of all; `None` if it has no room for the names."""
    result = dots(data)
    marks = _marks(data, result, options.width_mm, numbered=numbered)
    near = _near(result, marks) if options.x == options.y == (None, None) else None
    across = near is not None and options.width_mm >= WIDE_MM
    panels = [marks] if near is None else [marks, [m for m in marks if m.scheme in near]]
    with paper_style(options):
        rows = 1 if across else len(panels)
        frame = _Frame(options.width_mm, (70.0 if options.width_mm <= SINGLE_MM + 20 else 84.0) * rows)
        picture = new_figure(options, frame.height)
        shown = legend(picture, _entries(data, marks), options, options.width_mm - 3.0) if numbered else None
        legend_mm = size_in_mm(picture, shown)[1] + 2.0 if shown is not None else 0.0
        wanted = options.height_mm or frame.height + legend_mm
        frame.height = max(wanted - legend_mm, min(frame.height, 55.0 * rows))
        picture.set_size_inches(options.width_mm / 25.4, (frame.height + legend_mm) / 25.4)
        without: list[Mark] = []
        for number, some in enumerate(panels):
            column, row = (number, 0) if across else (0, number)
            own = [dot for dot in result if any(dot.run.scheme == mark.scheme for mark in some)]
            left = _USUAL_LEFT
            axes = frame.axes(picture, (column, row), (2 if across else 1, rows), legend_mm)
            for _ in range(3):
                axes.set_position(frame.box((column, row), (2 if across else 1, rows), legend_mm, left))
                _axes(axes, own, some, options)
                left = max(left, room_at_left(axes))
            if number == 0 and near is not None:
                outline(axes, [(d.delay_ms, d.throughput_mbps) for d in own if d.run.scheme in near])
            if len(panels) > 1:
                axes.set_title(
                    ("all schemes", f"the {len(some)} in the rectangle, closer")[number], loc="left"
                )
            _points(axes, data, some, own, ("", "near-")[number])
            corner = better(axes, some) if number == 0 else None
            named = (
                some
                if number == len(panels) - 1 or near is None
                else [m for m in some if m.scheme not in near]
            )
            without += names(picture, axes, named, math.sqrt(_LARGE) / 2, corner)
        if shown is not None:
            place_legend(picture, shown, 1.5, frame.height + 0.5)
    return None if without and not numbered else picture


def _multiples(data: Campaign, groups: dict[str, list[str]], options: Options) -> Figure:
    """A panel per condition, each with a separate delay axis; the legend explains the marks."""
    result = dots(data)
    marks = {mark.scheme: mark for mark in _marks(data, result, options.width_mm)}
    entries: dict[str, object] = {}
    with paper_style(options):
        block = Block(list(groups), _X_NARROW, "throughput (Mbit/s)", 27.0)
        # Delays of different networks have separate axes; otherwise each panel would be a cluster in one
        # place.
        panels = Panels(options, [block], least_mm=20.0, narrowest_mm=17.0, shared=(False, True))
        panels.axes[0][0].set_ylim(*upright([d.throughput_mbps for d in result]))
        for axes, labels in zip(panels.axes[0], groups.values(), strict=True):
            some = [marks[label] for label in labels]
            set_delay_axis(axes, [d.delay_ms for d in result if d.run.scheme in labels])
            limit(axes, options)
            _points(
                axes, data, some, [d for d in result if d.run.scheme in labels], "", scale=0.45, spread=False
            )
            for mark in some:
                entries.setdefault(_conditions.scheme_of(data, mark.scheme), _handle(mark))
        panels.finish(entries)
    return panels.figure


@dataclass
class _Frame:
    """Axes in rows and columns between fixed margins, above the legend (mm)."""

    width: float
    height: float

    def axes(self, picture: Figure, at: tuple[int, int], of: tuple[int, int], below: float) -> Axes:
        """The axes of a column and row, counted from the upper left."""
        return picture.add_axes(self.box(at, of, below, _USUAL_LEFT))

    def box(
        self, at: tuple[int, int], of: tuple[int, int], below: float, left: float
    ) -> tuple[float, float, float, float]:
        """Its position in shares of the page, to the right of `left` mm for labels."""
        right, bottom, top = 3.0, 11.0, 5.0
        wide, high = self.width / of[0], self.height / of[1]
        whole = self.height + below
        x, y = at[0] * wide + left, below + (of[1] - 1 - at[1]) * high + bottom
        return (x / self.width, y / whole, (wide - left - right) / self.width, (high - bottom - top) / whole)


def _marks(data: Campaign, dots: list[Dot], width_mm: float, *, numbered: bool = True) -> list[Mark]:
    """One mark per row with valid runs, numbered if names have no room."""
    middle = medians(data)
    shared = _common_parameters(list(_names_of(data, list(middle)).values()))
    runs: dict[str, list[tuple[float, float]]] = {}
    for dot in dots:
        runs.setdefault(dot.run.scheme, []).append((dot.delay_ms, dot.throughput_mbps))
    marks = []
    names_of = _names_of(data, list(middle))
    for number, (label, (delay, throughput, _)) in enumerate(middle.items(), 1):
        words = str(number) if numbered else broken(_without(names_of[label], shared), width_mm)
        marks.append(Mark(label, _conditions.look(data, label), delay, throughput, runs[label], words))
    return marks


def styles_of(data: Campaign) -> dict[str, Style]:
    """Styles of the rows: the colour identifies the scheme, and the marker the condition of a matrix."""
    places = {row.label: n for n, rows in enumerate(data.conditions.values()) for row in rows}
    return {
        label: with_condition(_conditions.look(data, label), places[label], label)
        if len(data.conditions) > 1
        else _conditions.look(data, label)
        for label in data.schemes
    }


def _near(dots: list[Dot], marks: list[Mark]) -> list[str] | None:
    """The schemes of an enlarged view: those close together in the axes that show all."""
    delays, rates = [d.delay_ms for d in dots], [d.throughput_mbps for d in dots]
    across = math.log if logarithmic(delays) else float
    (left, right), (low, high) = (across(min(delays)), across(max(delays))), upright(rates)
    if left == right:
        return None
    return core(
        {m.scheme: ((across(m.x) - left) / (right - left), (m.y - low) / (high - low)) for m in marks}
    )


_X_NARROW = "95th percentile one-way delay (ms), reversed"


def room_at_left(axes: Axes) -> float:
    """The width (mm) that labels on the left of axes need on the page."""
    figure = axes.get_figure(root=True)
    assert figure is not None
    ticks = max(
        (axes.get_window_extent().x0 - item.x0 for _, _, item in label_extents(axes.yaxis)), default=0.0
    )
    return ticks / figure.dpi * 25.4 + float(axes.yaxis.label.get_fontsize()) * 0.3528 * 1.2 + 3.0


def _axes(axes: Axes, dots: list[Dot], marks: list[Mark], options: Options) -> None:
    """Labels and limits of axes for some runs and the ellipses of their spread."""
    narrow = axes.get_position().width * options.width_mm <= SINGLE_MM + 10
    axes.set_xlabel(_X_NARROW if narrow else "95th percentile one-way delay (ms), smaller to the right")
    axes.set_ylabel("throughput (Mbit/s)")
    delays, rates = [d.delay_ms for d in dots], [d.throughput_mbps for d in dots]
    spreads = [
        one for mark in marks if (one := ellipse(mark.runs, logarithmic(delays) is not None)) is not None
    ]
    low, high = upright(rates)
    tops, feet = [float(y.max()) for _, y in spreads], [float(y.min()) for _, y in spreads]
    axes.set_ylim(min([low, *feet]), max([high, *tops]))
    set_delay_axis(axes, delays, [float(v) for x, _ in spreads for v in (x.min(), x.max())])
    limit(axes, options)
    drop_crowded_labels(axes.xaxis, None)
    drop_crowded_labels(axes.yaxis, None)
    if axes.get_ylim()[0] > 0 and not any(line.get_label() == "_break" for line in axes.lines):
        break_below(axes)


def _points(
    axes: Axes,
    data: Campaign,
    marks: list[Mark],
    result: list[Dot],
    gid: str,
    *,
    scale: float = 1.0,
    spread: bool = True,
) -> None:
    """Ellipses, runs and medians, drawn in this order."""
    order = {dot.run.cell: number for number, dot in enumerate(dots(data))}
    places = {scheme: number for number, scheme in enumerate(medians(data))}
    styles = {mark.scheme: mark.style for mark in marks}
    for mark in marks if spread else []:
        shape = ellipse(mark.runs, axes.get_xscale() == "log")
        if shape is not None:
            if len(marks) <= MOST_NAMES:  # More of them would only darken the middle.
                axes.fill(*shape, facecolor=mark.style.color, alpha=0.13, linewidth=0, zorder=2)
            axes.plot(*shape, color=mark.style.color, linewidth=0.6, zorder=2.1, solid_joinstyle="round")
    for dot in result:
        style = styles[dot.run.scheme]
        axes.scatter(
            [dot.delay_ms],
            [dot.throughput_mbps],
            s=scale * _SMALL * _WEIGHT.get(style.marker, 1.0),
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
            s=scale * _LARGE * _WEIGHT.get(mark.style.marker, 1.0),
            marker=mark.style.marker,
            linewidths=0.7 * scale,
            zorder=4,
            facecolors=mark.style.color,
            edgecolors="white",
            gid=f"{gid}median-{places[mark.scheme]}",
        )


def _handle(mark: Mark) -> Any:
    from matplotlib.lines import Line2D

    return Line2D([], [], linestyle="none", color=mark.style.color, marker=mark.style.marker, markersize=4.5)


def _entries(data: Campaign, marks: list[Mark]) -> list[tuple[str, Any]]:
    called = _names_of(data, [mark.scheme for mark in marks])
    return [(f"{mark.words}  {called[mark.scheme]}", _handle(mark)) for mark in marks]


def _names_of(data: Campaign, labels: list[str]) -> dict[str, str]:
    """The names of rows: those of their schemes, unless a scheme has several rows."""
    schemes = [_conditions.scheme_of(data, label) for label in labels]
    return {
        label: scheme if schemes.count(scheme) == 1 else label
        for label, scheme in zip(labels, schemes, strict=True)
    }
