"""Bytes waiting in every queue over time, with the queue's limit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from narrows.report import units
from narrows.report.data import Run, floats, thin
from narrows.report.drawing import (
    MOST_MARKS,
    Numbers,
    Options,
    legend_above,
    mark_times,
    new_figure,
    paper_style,
    time_axes,
)
from narrows.report.style import MUTED, of_flow

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Queue"
SCOPE = "run"
ORDER = 30

POINTS_ON_PAPER = 3_000
POINTS_ON_PAGE = 2_000


def _limits(run: Run) -> dict[str, float]:
    found = {}
    for element in run.elements("bottleneck"):
        limit = (element.get("queue") or {}).get("bytes")
        if isinstance(limit, int | float) and limit > 0:
            found[str(element.get("name"))] = float(limit)
    return found


def _queues(run: Run) -> list[tuple[str, Any, Any]]:
    series = run.queues
    return [
        (n, floats(s["time_s"]), floats(s["backlog_bytes"]) / 1e3)
        for n, s in series.items()
        if len(s["time_s"])
    ]


def absent(run: Run) -> str | None:
    """A path without a bottleneck has no queue."""
    return None if _queues(run) else "No queue was sampled in this run."


def numbers(run: Run) -> Numbers:
    """One row per sample."""
    found = _queues(run)
    return {
        "element": [name for name, time, _ in found for _ in range(len(time))],
        "time_s": np.concatenate([t for _, t, _ in found] or [np.zeros(0)]),
        "backlog_kB": np.concatenate([v for _, _, v in found] or [np.zeros(0)]),
    }


def caption(run: Run) -> str:
    """How to read it."""
    sample = run.settings.get("sample_ns")
    every = f", sampled every {units.span(float(sample))}" if sample else ""
    limits = _limits(run)
    line = " Dashed: the queue's limit." if limits else ""
    return f"Bytes waiting in the queue (without the packet in service){every}.{line}"


def figure(run: Run, options: Options) -> Figure:
    """A line per queue, filled if it is the only one."""
    limits = _limits(run)
    with paper_style(options):
        picture = new_figure(options, 38.0)
        axes = time_axes(picture, options, run.duration_s, "waiting (kB)")
        mark_times(axes, run.change_times_s)
        handles: list[Any] = []
        labels: list[str] = []
        highest = 0.0
        for index, (name, times, values) in enumerate(_queues(run)):
            style = of_flow(4 - index if index < 5 else index, name)
            time, value = thin(times, values, POINTS_ON_PAPER)
            (line,) = axes.plot(time, value, color=style.color, linewidth=0.8)
            if len(_queues(run)) == 1:
                axes.fill_between(time, value, color=style.color, alpha=0.15, linewidth=0)
            handles.append(line)
            labels.append(name)
            highest = max(highest, float(np.nanmax(value, initial=0.0)))
            if name in limits:
                limit = limits[name] / 1e3
                if limit < 8 * highest or highest == 0:
                    axes.axhline(limit, color=MUTED, linewidth=0.8, linestyle=(0, (4, 2)))
                    highest = max(highest, limit)
                handles.append(_dashed())
                labels.append(f"limit of {name}: {units.size(limits[name])}")
        axes.set_ylim(0, highest * 1.12 if highest > 0 else 1)
        legend_above(axes, handles, labels)
    return picture


def _dashed() -> Any:
    from matplotlib.lines import Line2D

    return Line2D([], [], color=MUTED, linewidth=0.8, linestyle=(0, (4, 2)))


def chart(run: Run) -> dict[str, Any]:
    """The interactive form."""
    xs: list[Any] = []
    series: list[dict[str, Any]] = []
    limits = _limits(run)
    for index, (name, times, values) in enumerate(_queues(run)):
        style = of_flow(4 - index if index < 5 else index, name)
        time, value = thin(times, values, POINTS_ON_PAGE)
        series.append(
            {
                "label": name,
                "kind": "line",
                "x": len(xs),
                "y": value,
                "color": style.color,
                "dark": style.dark,
                "fill": index == 0,
            }
        )
        xs.append(time)
        if name in limits and limits[name] / 1e3 < 8 * max(float(np.nanmax(value, initial=0.0)), 1e-9):
            series.append(
                {
                    "label": f"limit of {name}",
                    "kind": "line",
                    "dash": [6, 4],
                    "x": len(xs) - 1,
                    "y": np.full(len(time), limits[name] / 1e3),
                    "color": "#5b6470",
                    "dark": "#a9b4c0",
                }
            )
    return {"y": "waiting (kB)", "xs": xs, "series": series, "marks": run.change_times_s[:MOST_MARKS]}
