"""One-way delay of single packets over the time of their arrival."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from narrows.report import real_path, units
from narrows.report.charts import NumberChart
from narrows.report.data import Flow, Run
from narrows.report.drawing import Numbers, Options, over_time
from narrows.report.style import Style, of_background

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "One-way delay"
ALSO = ("owd", "latency")
SCOPE = "run"
ORDER = 20
PAPER_NOTE = "Large dots only distinguish the flows."

DOTS_ON_PAPER = 20_000
DOTS_ON_PAGE = 3_000


def absent(run: Run) -> str | None:
    """Runs recorded in bins keep no packets, and without a tunnel none are observed; flows may have delivered
    none.
    """
    if real_path.has_only_ends(run):
        return real_path.NOT_SEEN
    points = run.delays(int(run.detail * DOTS_ON_PAGE))
    if points is None:
        return "This run was recorded in bins (record: bins), which keep no delays of single packets."
    if not any(len(p.time_s) for p in points.values()):
        return "No packet of any flow arrived."
    return None


def numbers(run: Run) -> Numbers:
    """One row per dot."""
    points = run.delays(DOTS_ON_PAPER) or {}
    flow = np.concatenate([np.full(len(p.time_s), n) for n, p in points.items()] or [np.zeros(0)])
    time = np.concatenate([p.time_s for p in points.values()] or [np.zeros(0)])
    delay = np.concatenate([p.delay_ms for p in points.values()] or [np.zeros(0)])
    return {"flow": flow, "time_s": time, "delay_ms": delay}


def _styles(run: Run) -> list[tuple[Flow, Style]]:
    """The flows with their styles; background flows come first, so that they are drawn below."""
    tested = run.tested
    own = run.styles_of(tested)
    behind = [(f, of_background("background")) for f in run.background]
    return [*behind, *zip(tested, own, strict=True)]


def _label(run: Run, number: int, label: str) -> str:
    value = run.value(str(number), "delay_p95_ns")
    return label if value is None else f"{label} (95th percentile {units.number(value / 1e6)} ms)"


def caption(_run: Run) -> str:
    """The caption."""
    return (
        "One-way delay of single packets, at the time of their arrival. Where there are more packets than "
        "dots, the smallest and largest delay of every column are kept."
    )


def figure(run: Run, options: Options) -> Figure:
    """Dots, as pixels inside the vector file: tens of thousands of outlines would overwhelm a viewer."""
    from matplotlib.colors import to_rgba_array
    from matplotlib.lines import Line2D

    points = run.delays(DOTS_ON_PAPER) or {}
    with over_time(options, 46.0, run.duration_s, run.change_times_s, "one-way delay (ms)") as plot:
        axes = plot.axes
        pairs = _styles(run)
        styles = [style for _, style in pairs]
        drawn = []
        for index, (flow, style) in enumerate(pairs):
            result = points.get(flow.number)
            if result is None or not len(result.time_s):
                continue
            time, delay = result.time_s, result.delay_ms
            drawn.append((time, delay, np.full(len(time), index)))
            if flow.background:
                if style.label not in plot.labels:
                    key = Line2D([], [], linestyle="none", marker="o", markersize=2.0, color=style.color)
                    plot.show(key, style.label)
                continue
            every = max(1, len(time) // 14)
            axes.plot(
                time[index * every // 5 :: every],
                delay[index * every // 5 :: every],
                linestyle="none",
                marker=style.marker,
                markersize=3.6,
                color=style.color,
                markeredgecolor="white",
                markeredgewidth=0.4,
                zorder=3,
            )
            key = Line2D([], [], linestyle="none", marker=style.marker, markersize=3.6, color=style.color)
            plot.show(key, _label(run, flow.number, style.label))
        time, delay, owner = (np.concatenate([part[i] for part in drawn] or [np.zeros(0)]) for i in range(3))
        # In order of time; otherwise the last flow would hide the others.
        order = np.argsort(time, kind="stable")
        colours = to_rgba_array([s.color for s in styles])[owner[order].astype(int)]
        axes.scatter(
            time[order],
            delay[order],
            s=0.8 if len(time) > 6000 else 2.0,
            c=colours,
            linewidths=0,
            alpha=0.7,
            rasterized=True,
            zorder=2,
        )
        low, high = float(np.min(delay, initial=np.inf)), float(np.max(delay, initial=-np.inf))
        bottom = min(0.0, low) if low < 0.5 * high else low - 0.15 * (high - low + 0.01 * high)
        axes.set_ylim(bottom, high + 0.06 * (high - bottom) if high > bottom else bottom + 1)
        plot.ends = None
    return plot.figure


def chart(run: Run) -> NumberChart | None:
    """The interactive form, with fewer dots."""
    points = run.delays(int(run.detail * DOTS_ON_PAGE))
    if points is None:
        return None
    made = NumberChart("one-way delay (ms)", run.change_times_s)
    for flow, style in _styles(run):
        result = points.get(flow.number)
        if result is None or not len(result.time_s):
            continue
        made.xs.append(result.time_s)
        label = f"{flow.label} (background)" if flow.background else flow.label
        made.add(label, "points", result.delay_ms, style)
    return made
