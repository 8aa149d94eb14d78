"""Several runs over each other in one figure over time: colour tells the scheme, dash and mark the flow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from narrows.report.data import Run, floats
from narrows.report.drawing import Numbers, Options, over_time
from narrows.report.figures import FigureKind
from narrows.report.style import SHADE, Style, of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_LINES = 60
"""More lines than this in one figure can't be told apart."""
_DASHES: tuple[Any, ...] = (
    "-",
    (0, (5, 1.5)),
    (0, (1.5, 1.2)),
    (0, (6, 1.5, 1.5, 1.5)),
    (0, (3, 1, 1, 1, 1, 1)),
)


@dataclass(frozen=True, slots=True)
class Line:
    """One series of one run, as its interactive chart has it."""

    run: Run
    label: str
    axis: str
    kind: str
    times: Any
    values: Any
    style: Style
    dash: Any


def possible(kind: FigureKind) -> bool:
    """True if runs can lie over each other in this figure."""
    return hasattr(kind.module, "chart")


def lines(kind: FigureKind, runs: Sequence[Run]) -> list[Line]:
    """The series of the runs. Of what is drawn twice, as sent and delivered, only what is solid; the
    capacity of the first run stands for all."""
    from narrows.report import ReportError

    found: list[Line] = []
    seen: dict[str, int] = {}
    for run in runs:
        chart = kind.chart(run) or {"series": []}
        shown = [one for one in chart["series"] if not one.get("dash") and one.get("kind") != "area"]
        for one in shown:
            label = run.scheme if runs_once(runs, run) else f"{run.scheme}, run {run.number}"
            if len(shown) > 1:
                label += f", {str(one['label']).removesuffix(' delivered')}"
            place = seen.get(run.scheme, 0)
            seen[run.scheme] = place + 1
            times, values = floats(chart["xs"][one["x"]]), floats(one["y"])
            style = _look(run)
            found.append(
                Line(run, label, chart["y"], one["kind"], times, values, style, _DASHES[place % len(_DASHES)])
            )
        for one in chart["series"]:
            if one.get("kind") == "area" and run is runs[0]:
                found.insert(
                    0,
                    Line(
                        run,
                        one["label"],
                        chart["y"],
                        "area",
                        floats(chart["xs"][one["x"]]),
                        floats(one["y"]),
                        _look(run),
                        "-",
                    ),
                )
    if not found:
        raise ReportError(f"figure {kind.name} has no lines that could lie over each other")
    if len(found) > MOST_LINES:
        raise ReportError(
            f"these are {len(found)} lines, more than the {MOST_LINES} that can be told apart; choose some"
            " with --schemes, --runs or --flows"
        )
    return found


def _look(run: Run) -> Style:
    return run.looks.get(run.base) or of(run.base or run.scheme)


def runs_once(runs: Sequence[Run], run: Run) -> bool:
    """True if no other of these runs is of its scheme."""
    return sum(other.scheme == run.scheme for other in runs) == 1


def figure(found: Sequence[Line], runs: Sequence[Run], options: Options) -> Figure:
    """All lines in one picture."""
    longest = max(run.duration_s for run in runs)
    marks = (
        runs[0].change_times_s if all(run.change_times_s == runs[0].change_times_s for run in runs) else []
    )
    with over_time(options, 62.0, longest, marks, found[0].axis) as plot:
        for number, line in enumerate(found):
            style = line.style
            if line.kind == "area":
                shade = plot.axes.fill_between(
                    line.times, line.values, step="post", color=SHADE, linewidth=0, zorder=0.5
                )
                plot.show(shade, line.label, line.values)
                continue
            every = max(1, len(line.times) // 8)
            first = number * every // max(1, len(found))
            how: dict[str, Any] = {
                "color": style.color,
                "marker": style.marker,
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
                    color=style.color,
                    markeredgewidth=0,
                    rasterized=True,
                )
                hollow = (
                    {} if line.dash == "-" else {"markerfacecolor": "white", "markeredgecolor": style.color}
                )
                (key,) = plot.axes.plot(
                    line.times[first::every], line.values[first::every], linestyle="none", **(how | hollow)
                )
            else:
                step = "steps-post" if line.kind == "step" else "default"
                (key,) = plot.axes.plot(
                    line.times,
                    line.values,
                    drawstyle=step,
                    linestyle=line.dash,
                    linewidth=1.0,
                    markevery=(first, every),
                    **how,
                )
            plot.show(key, line.label, line.values)
    return plot.figure


def numbers(found: Sequence[Line]) -> Numbers:
    """One row per point of a line."""
    return {
        "cell": [line.run.cell for line in found for _ in line.times],
        "scheme": [line.run.scheme for line in found for _ in line.times],
        "run": [line.run.number for line in found for _ in line.times],
        "line": [line.label for line in found for _ in line.times],
        "time_s": np.concatenate([line.times for line in found]),
        "value": np.concatenate([line.values for line in found]),
    }
