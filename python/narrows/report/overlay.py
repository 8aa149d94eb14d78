"""Several runs in one figure over time: colour and mark identify the scheme, dash the flow, and a panel the
condition of a matrix."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from narrows.report.charts import NumberChart
from narrows.report.data import Run
from narrows.report.drawing import (
    Numbers,
    Options,
    TimePlot,
    mark_times,
    over_time,
    paper_style,
    reach_in_time,
)
from narrows.report.figures import FigureKind
from narrows.report.panels import Block, Panels
from narrows.report.style import SHADE, Style, of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from narrows.campaign.conditions import Row

MOST_LINES = 60
"""More lines than this in one panel are indistinguishable."""
NEAR = 4.0
"""Panels whose highest values differ by no more than this factor share the upright axis."""
_TIME = "time since the start of the run (s)"
_DASHES: tuple[Any, ...] = (
    "-",
    (0, (5, 1.5)),
    (0, (1.5, 1.2)),
    (0, (6, 1.5, 1.5, 1.5)),
    (0, (3, 1, 1, 1, 1, 1)),
)
#: Fill styles of marks, one for each dash.
_FILLINGS = ("full", "none", "left", "top", "right")


@dataclass(frozen=True, slots=True)
class Line:
    """One series of one run, from its interactive chart."""

    run: Run
    row: Row
    #: The matrix values that not all rows share, in words; empty without a matrix.
    condition: str
    label: str
    axis: str
    kind: str
    times: Any
    values: Any
    style: Style
    dash: Any


def possible(kind: FigureKind) -> bool:
    """True if this figure can superimpose runs."""
    return hasattr(kind.module, "chart")


def lines(kind: FigureKind, runs: Sequence[Run], conditions: Mapping[str, Sequence[Row]]) -> list[Line]:
    """The series of the runs, panel by panel in the order of the scenario. If a series has two forms, such as
    sent and delivered, only the solid one is taken; a panel has the capacity of its first run.
    """
    from narrows.report.errors import ReportError

    drawn: list[Line] = []
    for condition, rows in conditions.items():
        own = {row.label: row for row in rows}
        in_panel = _lines_of(kind, [run for run in runs if run.scheme in own], own, condition)
        if len(in_panel) > MOST_LINES:
            raise ReportError(
                f"these are {len(in_panel)} lines, more than the {MOST_LINES} that can be told apart; choose"
                " some with --schemes, --runs or --flows"
            )
        drawn += in_panel
    if not drawn:
        raise ReportError(f"figure {kind.name} has no lines that could lie over each other")
    return drawn


def _lines_of(kind: FigureKind, runs: Sequence[Run], rows: Mapping[str, Row], condition: str) -> list[Line]:
    """The series of a panel, its capacity first."""
    drawn: list[Line] = []
    count: dict[str, int] = {}
    for run in runs:
        chart = kind.chart(run) or NumberChart("", ())
        row, style = rows[run.scheme], _look(run)
        solid = [series for series in chart.series if not series.dash]
        areas = [series for series in solid if series.kind == "area"]
        shown = [series for series in solid if series.kind != "area"]
        name = row.scheme
        if not runs_once(runs, run):
            name += f", run {run.number}"
        for series in [*(areas if run is runs[0] else []), *shown]:
            label, dash = series.label, "-"
            if series.kind != "area":
                place = count.get(run.scheme, 0)
                count[run.scheme] = place + 1
                label = f"{name}, {label.removesuffix(' delivered')}" if len(shown) > 1 else name
                dash = _DASHES[place % len(_DASHES)]
            times, values = chart.xs[series.x], series.y
            drawn.append(Line(run, row, condition, label, chart.y, series.kind, times, values, style, dash))
    return sorted(drawn, key=lambda line: line.kind != "area")


def _look(run: Run) -> Style:
    return run.looks.get(run.base) or of(run.base or run.scheme)


def runs_once(runs: Sequence[Run], run: Run) -> bool:
    """True if none of the other runs is of its scheme."""
    return sum(other.scheme == run.scheme for other in runs) == 1


def figure(drawn: Sequence[Line], options: Options) -> Figure:
    """All lines: in one picture, or in a panel per condition."""
    panels: dict[str, list[Line]] = {}
    for line in drawn:
        panels.setdefault(line.condition, []).append(line)
    if len(panels) > 1:
        return _small_multiples(panels, options)
    longest = max(line.run.duration_s for line in drawn)
    with over_time(options, 62.0, longest, _common_changes(drawn), drawn[0].axis) as plot:
        _draw(plot, drawn)
    return plot.figure


def _small_multiples(panels: Mapping[str, Sequence[Line]], options: Options) -> Figure:
    first = next(iter(panels.values()))[0]
    longest = max(line.run.duration_s for drawn in panels.values() for line in drawn)
    tops = [max(float(np.nanmax(line.values, initial=0.0)) for line in drawn) for drawn in panels.values()]
    together = max(tops) <= NEAR * min(tops)
    entries: dict[str, Any] = {}
    with paper_style(options):
        block = Block(list(panels), _TIME, first.axis, 26.0)
        page = Panels(options, [block], least_mm=32.0, narrowest_mm=22.0, shared=(True, together))
        ends: list[tuple[float, float]] = []
        for axes, drawn in zip(page.axes[0], panels.values(), strict=True):
            plot = TimePlot(page.figure, axes)
            _draw(plot, drawn)
            mark_times(axes, _common_changes(drawn))
            for label, handle in plot.entries:
                entries.setdefault(label, handle)
            ends.append(plot.ends or (0.0, 0.0))
        _reach(page.axes[0], ends, longest, together=together)
        page.finish(entries)
    return page.figure


def _reach(
    axes: Sequence[Axes], ends: Sequence[tuple[float, float]], longest: float, *, together: bool
) -> None:
    """Sets the limits of panels once all of them have their data."""
    if together:
        ends = [(min(low for low, _ in ends), max(high for _, high in ends))] * len(ends)
    spans = []
    for panel, (low, high) in zip(axes, ends, strict=True):
        pad = 0.12 * (high - low)
        panel.set_ylim(low - pad if low < 0 else 0, high + pad if high > low else 1)
        reach_in_time(panel, longest)
        spans.append(panel.get_xlim())
    axes[0].set_xlim(min(low for low, _ in spans), max(high for _, high in spans))


def _common_changes(drawn: Sequence[Line]) -> Sequence[float]:
    """The times of the timeline's changes, if all runs share them."""
    first = drawn[0].run.change_times_s
    return first if all(line.run.change_times_s == first for line in drawn) else []


def _draw(plot: TimePlot, drawn: Sequence[Line]) -> None:
    """Draws lines into axes, each with an entry of the legend."""
    for number, line in enumerate(drawn):
        if line.kind == "area":
            shade = plot.axes.fill_between(
                line.times, line.values, step="post", color=SHADE, linewidth=0, zorder=0.5
            )
            plot.show(shade, line.label, line.values)
            continue
        every = max(1, len(line.times) // 8)
        first = number * every // max(1, len(drawn))
        how: dict[str, Any] = {
            "color": line.style.color,
            "marker": line.style.marker,
            "markersize": 3.4,
            "markeredgecolor": "white",
            "markeredgewidth": 0.4,
        }
        if line.kind == "points":
            plot.axes.plot(
                line.times,
                line.values,
                linestyle="none",
                marker=".",
                markersize=1.2,
                color=line.style.color,
                markeredgewidth=0,
                rasterized=True,
            )
            if line.dash != "-":
                how |= {
                    "fillstyle": _FILLINGS[_DASHES.index(line.dash)],
                    "markeredgecolor": line.style.color,
                    "markerfacecoloralt": "white",
                }
            (key,) = plot.axes.plot(
                line.times[first::every], line.values[first::every], linestyle="none", **how
            )
        else:
            (key,) = plot.axes.plot(
                line.times,
                line.values,
                drawstyle="steps-post" if line.kind == "step" else "default",
                linestyle=line.dash,
                linewidth=1.0,
                markevery=(first, every),
                **how,
            )
        plot.show(key, line.label, line.values)


def numbers(drawn: Sequence[Line]) -> Numbers:
    """One row per point of a line, with the scheme and each value of the matrix in separate columns."""
    points = [line for line in drawn for _ in line.times]
    names = dict.fromkeys(name for line in drawn for name, _ in line.row.values)
    others = {"cell", "scheme", "run", "line", "time_s", "value"}
    return {
        "cell": [line.run.cell for line in points],
        "scheme": [line.row.scheme for line in points],
        **{
            f"value of {name}" if name in others else name: [
                dict(line.row.values).get(name) for line in points
            ]
            for name in names
        },
        "run": [line.run.number for line in points],
        "line": [line.label for line in points],
        "time_s": np.concatenate([line.times for line in drawn]),
        "value": np.concatenate([line.values for line in drawn]),
    }
