"""Congestion window of every sender over time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from narrows.report import units
from narrows.report.data import Run, floats, thin
from narrows.report.drawing import Chart, Numbers, Options, over_time
from narrows.report.style import Style, of_flows

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Congestion window"
SCOPE = "run"
ORDER = 40

POINTS_ON_PAPER = 3_000
POINTS_ON_PAGE = 2_000


def _windows(run: Run) -> list[tuple[Style, int, Any, Any]]:
    states = run.states
    styles = of_flows([f.scheme for f in run.tested], [f.label for f in run.tested])
    found = []
    for flow, style in zip(run.tested, styles, strict=True):
        series = states.get(flow.number)
        if series is None or "cwnd_bytes" not in series:
            continue
        time, value = floats(series["time_s"]), floats(series["cwnd_bytes"]) / 1e3
        if np.any(np.isfinite(value)):
            found.append((style, flow.number, time, value))
    return found


def absent(run: Run) -> str | None:
    """Schemes without a window report none."""
    return None if _windows(run) else "No sender of this run reported a congestion window."


def numbers(run: Run) -> Numbers:
    """One row per sample."""
    found = _windows(run)
    return {
        "flow": [number for _, number, time, _ in found for _ in range(len(time))],
        "time_s": np.concatenate([t for _, _, t, _ in found] or [np.zeros(0)]),
        "cwnd_kB": np.concatenate([v for _, _, _, v in found] or [np.zeros(0)]),
    }


def caption(run: Run) -> str:
    """The caption."""
    sample = run.settings.get("sample_ns")
    every = f", sampled every {units.span(float(sample))}" if sample else ""
    return (
        f"Congestion window of each sender{every}: from the kernel for its schemes, from the scheme for ours."
    )


def figure(run: Run, options: Options) -> Figure:
    """One line per flow, with markers against confusion."""
    windows = _windows(run)
    with over_time(options, 38.0, run.duration_s, run.change_times_s, "window (kB)") as plot:
        for index, (style, _, times, values) in enumerate(windows):
            time, value = thin(times, values, POINTS_ON_PAPER)
            every = max(1, len(time) // 12)
            (line,) = plot.axes.plot(
                time,
                value,
                color=style.color,
                linewidth=0.9,
                marker=style.marker,
                markersize=3.4,
                markeredgecolor="white",
                markeredgewidth=0.4,
                markevery=(index * every // max(1, len(windows)), every),
            )
            plot.show(line, style.label, value)
    return plot.figure


def chart(run: Run) -> dict[str, Any]:
    """The interactive form."""
    made = Chart("window (kB)", run.change_times_s)
    for style, _, times, values in _windows(run):
        time, value = thin(times, values, int(run.detail * POINTS_ON_PAGE))
        made.xs.append(time)
        made.add(style.label, "line", value, style)
    return made.document()
