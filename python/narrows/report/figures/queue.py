"""Bytes waiting in every queue over time, with the queue's limit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from narrows.documents.components import BOTTLENECK
from narrows.report import units
from narrows.report.charts import NumberChart
from narrows.report.data import Run, thin
from narrows.report.drawing import Numbers, Options, over_time
from narrows.report.style import MUTED, of_part

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Queue"
ALSO = ("backlog",)
SCOPE = "run"
ORDER = 30
OVERLAID = " Limits are not drawn."

POINTS_ON_PAPER = 3_000
FAR = 8
"""A limit this many times above all samples would leave them no room."""
POINTS_ON_PAGE = 2_000


def _limits(run: Run) -> dict[str, float]:
    limits = {}
    for element in run.elements(BOTTLENECK):
        if element.queue and (limit := element.queue.number("bytes")):
            limits[element.name] = float(limit)
    return limits


def _queues(run: Run) -> list[tuple[str, Any, Any]]:
    return [
        (name, samples.time_s, samples.backlog_bytes / 1e3)
        for name, samples in run.queues.items()
        if len(samples.time_s)
    ]


def absent(run: Run) -> str | None:
    """A path without a bottleneck has no queue."""
    return None if _queues(run) else "No queue was sampled in this run."


def numbers(run: Run) -> Numbers:
    """One row per sample."""
    pairs = _queues(run)
    return {
        "element": [name for name, time, _ in pairs for _ in range(len(time))],
        "time_s": np.concatenate([t for _, t, _ in pairs] or [np.zeros(0)]),
        "backlog_kB": np.concatenate([v for _, _, v in pairs] or [np.zeros(0)]),
    }


def caption(run: Run) -> str:
    """The caption."""
    sample = run.settings.sample_ns
    every = f", sampled every {units.span(sample)}" if sample else ""
    limits = _limits(run)
    line = " Dashed: the queue's limit." if limits else ""
    return f"Bytes waiting in the queue (without the packet in service){every}.{line}"


def figure(run: Run, options: Options) -> Figure:
    """A line per queue, filled if it is the only one."""
    limits, queues = _limits(run), _queues(run)
    with over_time(options, 38.0, run.duration_s, run.change_times_s, "waiting (kB)") as plot:
        for index, (name, times, values) in enumerate(queues):
            style = of_part(index, name)
            time, value = thin(times, values, POINTS_ON_PAPER)
            (line,) = plot.axes.plot(time, value, color=style.color, linestyle=style.linestyle, linewidth=0.8)
            if len(queues) == 1:
                plot.axes.fill_between(time, value, color=style.color, alpha=0.15, linewidth=0)
            plot.show(line, name, value)
        highest = max(float(np.nanmax(values, initial=0.0)) for _, _, values in queues)
        for name in (name for name, _, _ in queues if name in limits):
            limit = limits[name] / 1e3
            label = f"limit of {name}: {units.size(limits[name])}"
            if highest and limit >= FAR * highest:
                plot.show(_dash(), f"{label}, above the axis")
                continue
            plot.axes.axhline(limit, color=MUTED, linewidth=0.8, linestyle=(0, (4, 2)))
            plot.show(_dash(), label, [limit])
    return plot.figure


def _dash() -> Any:
    from matplotlib.lines import Line2D

    return Line2D([], [], color=MUTED, linewidth=0.8, linestyle=(0, (4, 2)))


def chart(run: Run) -> NumberChart:
    """The interactive form."""
    made = NumberChart("waiting (kB)", run.change_times_s)
    limits = _limits(run)
    for index, (name, times, values) in enumerate(_queues(run)):
        style = of_part(index, name)
        time, value = thin(times, values, int(run.detail * POINTS_ON_PAGE))
        made.xs.append(time)
        made.add(name, "line", value, style, fill=index == 0)
        if name in limits and limits[name] / 1e3 < FAR * max(float(np.nanmax(value, initial=0.0)), 1e-9):
            line = np.full(len(time), limits[name] / 1e3)
            made.add(f"limit of {name}", "line", line, of_part(0, ""), (6, 4))
    return made
