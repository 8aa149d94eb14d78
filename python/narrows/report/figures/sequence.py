"""Time-sequence: the number of bytes that each sender has put into the network, over time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from narrows.report import real_path
from narrows.report.charts import NumberChart
from narrows.report.data import Run, thin
from narrows.report.drawing import Numbers, Options, over_time

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Time-sequence"
ALSO = ("time-sequence", "tcptrace")
SCOPE = "run"
ORDER = 80
IN_REPORT = False
OVERLAID = " Losses are not drawn."

POINTS = 6_000


def _lines(run: Run) -> dict[int, tuple[Any, Any, Any, Any]]:
    """For each flow under test: the times (s) at which its data packets entered, the cumulative megabytes,
    and the same for those that never arrived.
    """
    lines: dict[int, tuple[Any, Any, Any, Any]] = run.keep("sequence", lambda: _read_lines(run))
    return lines


def _read_lines(run: Run) -> dict[int, tuple[Any, Any, Any, Any]]:
    packets = run.read_packets()
    lines = {}
    for flow in run.tested if packets is not None else []:
        assert packets is not None
        own = packets.of_flow(flow.number, flow.direction)
        time = packets.sent_ns[own] / 1e9
        total = np.cumsum(packets.size_bytes[own], dtype=np.float64) / 1e6
        lost = packets.arrived_ns[own] < 0
        if len(time):
            lines[flow.number] = (time, total, time[lost], total[lost])
    return lines


def absent(run: Run) -> str | None:
    """The figure needs every packet."""
    if real_path.has_only_ends(run):
        return real_path.NOT_SEEN
    return None if _lines(run) else "The record keeps no single packets, or no packet entered the network."


def numbers(run: Run) -> Numbers:
    """One row per packet: its position in the flow and whether it arrived."""
    rows = [
        (np.full(len(time), number), time, total, np.isin(time, lost).astype(int))
        for number, (time, total, lost, _) in _lines(run).items()
    ]
    names = ("flow", "time_s", "sent_MB", "lost")
    return {name: np.concatenate([row[place] for row in rows]) for place, name in enumerate(names)}


def caption(run: Run) -> str:
    """The caption."""
    del run
    return (
        "Bytes of IP packets that each flow has put into the network, repeated data included: the slope is "
        "the sending rate. Crosses are packets that never arrived."
    )


def figure(run: Run, options: Options) -> Figure:
    """A rising line per flow, with its losses."""
    lines = _lines(run)
    flows = [flow for flow in run.tested if flow.number in lines]
    with over_time(options, 62.0, run.duration_s, run.change_times_s, "sent (MB)") as plot:
        for flow, style in zip(flows, run.styles_of(flows), strict=True):
            time, total, lost, at = lines[flow.number]
            x, y = thin(time, total, POINTS)
            (line,) = plot.axes.plot(
                x,
                y,
                color=style.color,
                linestyle=style.linestyle,
                linewidth=0.9,
                marker=style.marker,
                markersize=3.4,
                markevery=max(1, len(x) // 10),
            )
            plot.axes.plot(
                lost,
                at,
                linestyle="none",
                marker="x",
                color=style.color,
                markersize=3.5,
                markeredgewidth=0.7,
                zorder=3,
                rasterized=True,
            )
            plot.show(line, f"{flow.label} ({len(lost)} of {len(time)} lost)", total)
    return plot.figure


def chart(run: Run) -> NumberChart:
    """The interactive form, without the losses."""
    made = NumberChart("sent (MB)", run.change_times_s)
    lines = _lines(run)
    flows = [flow for flow in run.tested if flow.number in lines]
    for flow, style in zip(flows, run.styles_of(flows), strict=True):
        x, y = thin(*lines[flow.number][:2], 2_000)
        made.xs.append(x)
        made.add(style.label, "line", y, style)
    return made
