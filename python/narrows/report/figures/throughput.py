"""Throughput over time: the rate that each flow sent (dashed) and received (solid), over the capacity
(shaded).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from narrows.documents.resolved import BULK
from narrows.documents.resolved import Flow as PlannedFlow
from narrows.report import real_path, units
from narrows.report.charts import NumberChart
from narrows.report.data import Floats, Flow, Run
from narrows.report.drawing import Numbers, Options, over_time
from narrows.report.style import SHADE, Style, of_background
from narrows.text import plural

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Throughput"
ALSO = ("rate",)
SCOPE = "run"
ORDER = 10
OVERLAID = " Rates are those at which packets arrived; the capacity (shaded) is that of the first run."
PAPER_NOTE = "The legend has the means. Markers only distinguish the flows."


@dataclass(frozen=True, slots=True)
class Rates:
    """The curves of the figure in Mbit/s, by the starts of their bins."""

    time_s: Floats
    capacity: Floats | None
    #: Delivered of all flows that are not under test, together.
    background: Floats | None
    #: Sent and delivered of each flow under test; no number where the flow was not meant to run.
    flows: list[tuple[Flow, Floats, Floats]]


def _rates(run: Run) -> Rates:
    series = run.throughput
    planned = {flow.number: flow for flow in run.settings.flows}
    flows = []
    for flow in run.tested:
        if (own := series.flows.get(flow.number)) is not None:
            away = _outside(series.time_s, planned[flow.number], run.bin_ns)
            sent, delivered = (
                np.where(away & (rate == 0), np.nan, rate / 1e6) for rate in (own.sent_bps, own.arrived_bps)
            )
            flows.append((flow, sent, delivered))
    behind = [series.flows[f.number].arrived_bps for f in run.background if f.number in series.flows]
    return Rates(
        series.time_s,
        None if series.capacity_bps is None else series.capacity_bps / 1e6,
        np.sum(behind, axis=0) / 1e6 if behind else None,
        flows,
    )


def _background_style(run: Run) -> Style:
    return of_background(f"background ({plural(len(run.background), 'flow')}, delivered)")


def _outside(start: Any, planned: PlannedFlow, bin_ns: int) -> Any:
    """Bins in which the flow was not meant to run: a rate of zero has no meaning there."""
    begin, end = planned.start_ns / 1e9, np.inf if planned.stop_ns is None else planned.stop_ns / 1e9
    return (start + bin_ns / 1e9 <= begin) | (start >= end)


def absent(run: Run) -> str | None:
    """Nothing can be drawn if no flow sent a packet, or none was observed."""
    if real_path.has_only_ends(run):
        return real_path.NOT_SEEN
    if any(np.nansum(sent) > 0 for _, sent, _ in _rates(run).flows):
        return None
    return "No packet of any flow entered the network."


def numbers(run: Run) -> Numbers:
    """One row per bin."""
    rates = _rates(run)
    columns = {"time_s": rates.time_s}
    if rates.capacity is not None:
        columns["capacity_mbps"] = rates.capacity
    for flow, sent, delivered in rates.flows:
        columns |= {f"flow_{flow.number}_sent_mbps": sent, f"flow_{flow.number}_delivered_mbps": delivered}
    if rates.background is not None:
        columns["background_delivered_mbps"] = rates.background
    return columns


def caption(run: Run) -> str:
    """The caption."""
    shaded = (
        ", over the capacity of the bottleneck (shaded)" if run.throughput.capacity_bps is not None else ""
    )
    text = (
        f"Rate at which each flow's packets entered the network (dashed) and arrived (solid){shaded}, "
        f"in bins of {run.bin_ns / 1e6:g} ms."
    )
    if run.background:
        text += " Grey: what arrived of the background flows together."
    if run.change_times_s:
        text += " Dotted upright lines: the timeline changes something."
    return text


def _label(run: Run, flow: Flow, sent: Any) -> str:
    """A flow with its means: its sending rate over the bins in which it was to run, and its throughput."""
    own = sent[np.isfinite(sent)]
    planned = next(planned for planned in run.settings.flows if planned.number == flow.number)
    active = np.flatnonzero(own)
    if planned.traffic_kind != BULK and len(active):
        own = own[active[0] : active[-1] + 1]  # An application may run out of data long before the end.
    parts = [f"sent {units.number(float(np.mean(own)))}"] if len(own) else []
    value = run.value(str(flow.number), "throughput_bps")
    if value is not None:
        parts.append(f"delivered {units.number(value / 1e6)}")
    return f"{flow.label} ({', '.join(parts)} Mbit/s)" if parts else flow.label


def figure(run: Run, options: Options) -> Figure:
    """Steps per bin, because a bin is an average."""
    rates = _rates(run)
    start = rates.time_s
    width = run.bin_ns / 1e9
    edges = np.append(start, start[-1] + width) if len(start) else np.array([0.0, width])
    dashed = (0, (2.5, 1.2))
    duration_s = run.duration_s or float(edges[-1])
    with over_time(options, 46.0, duration_s, run.change_times_s, "throughput (Mbit/s)") as plot:
        axes = plot.axes
        if (capacity := rates.capacity) is not None:
            shade = axes.stairs(capacity, edges, fill=True, color=SHADE, zorder=0.5)
            mean = float(np.nanmean(capacity)) if len(capacity) else 0.0
            plot.show(shade, f"capacity (mean {units.trim(mean)} Mbit/s)", capacity)
        if (behind := rates.background) is not None:
            style = _background_style(run)
            axes.step(edges, _to_the_end(behind), where="post", color=style.color, linewidth=0.8, zorder=1.8)
            plot.show(_key(style, linewidth=0.8), style.label, behind)
        for (flow, sent, arrived), style in _with_styles(run, rates):
            axes.step(
                edges, _to_the_end(sent), where="post", color=style.color, linestyle=dashed, linewidth=0.75
            )
            every = max(1, len(start) // 12)
            offset = (list(run.flows).index(flow) * every // max(1, len(run.flows))) % every
            axes.step(edges, _to_the_end(arrived), where="post", color=style.color, linewidth=1.1)
            axes.plot(
                start[offset::every] + width / 2,
                arrived[offset::every],
                linestyle="none",
                markerfacecolor=style.color,
                **_marker(style),
            )
            plot.show(_key(style, linewidth=1.1, **_marker(style)), _label(run, flow, sent), sent, arrived)
    return plot.figure


def _with_styles(run: Run, rates: Rates) -> Iterator[tuple[tuple[Flow, Floats, Floats], Style]]:
    """The curves of flows with their styles."""
    return zip(rates.flows, run.styles_of([flow for flow, _, _ in rates.flows]), strict=True)


def _marker(style: Style) -> dict[str, Any]:
    return {"marker": style.marker, "markersize": 3.4, "markeredgecolor": "white", "markeredgewidth": 0.4}


def _to_the_end(values: Any) -> Any:
    """Repeats the last bin at its end: otherwise a step would stop where the last bin starts."""
    return np.append(values, values[-1:])


def _key(style: Style, **how: Any) -> Any:
    from matplotlib.lines import Line2D

    return Line2D([], [], color=style.color, **how)


def chart(run: Run) -> NumberChart:
    """The interactive form."""
    rates = _rates(run)
    times = _to_the_end(rates.time_s)
    if len(times):
        times[-1] += run.bin_ns / 1e9  # the right edge of the last step
    made = NumberChart("throughput (Mbit/s)", run.change_times_s)
    made.xs.append(times)
    if rates.capacity is not None:
        made.add("capacity", "area", _to_the_end(rates.capacity))
    if rates.background is not None:
        style = _background_style(run)
        made.add(style.label, "step", _to_the_end(rates.background), style)
    for (flow, sent, delivered), style in _with_styles(run, rates):
        made.add(f"{flow.label} sent", "step", _to_the_end(sent), style, (5, 3))
        made.add(f"{flow.label} delivered", "step", _to_the_end(delivered), style)
    return made
