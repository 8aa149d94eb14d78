"""Throughput over time: what each flow sent (dashed) and what arrived (solid), over the capacity (shaded)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from narrows.report import real_path, units
from narrows.report.charts import NumberChart
from narrows.report.data import Flow, Run, floats
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


def _columns(run: Run) -> dict[str, Any]:
    series = run.throughput
    planned = {int(f["flow"]): f for f in run.settings.get("flows") or []}
    columns: dict[str, Any] = {"time_s": floats(series["time_s"])}
    if series.get("capacity_bps") is not None:
        columns["capacity_mbps"] = floats(series["capacity_bps"]) / 1e6
    for flow in run.flows:
        result = series["flows"].get(flow.number)
        if result is not None and not flow.background:
            away = _outside(columns["time_s"], planned.get(flow.number, {}), run.bin_ns)
            for ours, theirs in (("sent", "sent_bps"), ("delivered", "arrived_bps")):
                values = floats(result[theirs]) / 1e6
                columns[f"flow_{flow.number}_{ours}_mbps"] = np.where(away & (values == 0), np.nan, values)
    columns |= _background(run)
    return columns


def _background(run: Run) -> dict[str, Any]:
    """Delivered rate of all flows that are not under test, together."""
    series = run.throughput["flows"]
    columns = [floats(series[f.number]["arrived_bps"]) for f in run.background if f.number in series]
    return {"background_delivered_mbps": np.sum(columns, axis=0) / 1e6} if columns else {}


def _background_label(run: Run) -> str:
    return f"background ({plural(len(run.background), 'flow')}, delivered)"


def _outside(start: Any, planned: dict[str, Any], bin_ns: int) -> Any:
    """Bins in which the flow was not meant to run: there a rate of zero says nothing."""
    begin, end = planned.get("start_ns", 0) / 1e9, planned.get("stop_ns", np.inf) / 1e9
    return (start + bin_ns / 1e9 <= begin) | (start >= end)


def absent(run: Run) -> str | None:
    """Nothing to draw where no flow sent a packet, or none was observed."""
    if real_path.has_only_ends(run):
        return real_path.NOT_SEEN
    columns = _columns(run)
    sent = [v for k, v in columns.items() if k.endswith("_sent_mbps")]
    return None if any(np.nansum(v) > 0 for v in sent) else "No packet of any flow entered the network."


def numbers(run: Run) -> Numbers:
    """One row per bin."""
    return _columns(run)


def caption(run: Run) -> str:
    """The caption."""
    shaded = (
        ", over the capacity of the bottleneck (shaded)"
        if run.throughput.get("capacity_bps") is not None
        else ""
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
    """A flow with its means: what it sent, over the bins in which it was to run, and its throughput."""
    own = sent[np.isfinite(sent)]
    listed: list[dict[str, Any]] = run.settings.get("flows") or []
    planned: dict[str, Any] = next((f for f in listed if int(f["flow"]) == flow.number), {})
    active = np.flatnonzero(own)
    if (planned.get("traffic") or {}).get("kind", "bulk") != "bulk" and len(active):
        own = own[active[0] : active[-1] + 1]  # an application may have nothing to send long before the end
    parts = [f"sent {units.number(float(np.mean(own)))}"] if len(own) else []
    value = run.value(str(flow.number), "throughput_bps")
    if value is not None:
        parts.append(f"delivered {units.number(value / 1e6)}")
    return f"{flow.label} ({', '.join(parts)} Mbit/s)" if parts else flow.label


def figure(run: Run, options: Options) -> Figure:
    """Steps per bin, so that a bin reads as the average it is."""
    columns = _columns(run)
    start = columns["time_s"]
    width = run.bin_ns / 1e9
    edges = np.append(start, start[-1] + width) if len(start) else np.array([0.0, width])
    dashed = (0, (2.5, 1.2))
    duration_s = run.duration_s or float(edges[-1])
    with over_time(options, 46.0, duration_s, run.change_times_s, "throughput (Mbit/s)") as plot:
        axes = plot.axes
        if "capacity_mbps" in columns:
            capacity = columns["capacity_mbps"]
            shade = axes.stairs(capacity, edges, fill=True, color=SHADE, zorder=0.5)
            mean = float(np.nanmean(capacity)) if len(capacity) else 0.0
            plot.show(shade, f"capacity (mean {units.trim(mean)} Mbit/s)", capacity)
        if "background_delivered_mbps" in columns:
            style = of_background(_background_label(run))
            values = columns["background_delivered_mbps"]
            axes.step(edges, _to_the_end(values), where="post", color=style.color, linewidth=0.8, zorder=1.8)
            plot.show(_key(style, linewidth=0.8), style.label, values)
        for flow, style in _flow_styles(run, columns):
            sent = columns[f"flow_{flow.number}_sent_mbps"]
            arrived = columns[f"flow_{flow.number}_delivered_mbps"]
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


def _flow_styles(run: Run, columns: dict[str, Any]) -> list[tuple[Flow, Style]]:
    """The flows that are drawn, with their styles."""
    flows = [f for f in run.flows if f"flow_{f.number}_sent_mbps" in columns]
    return list(zip(flows, run.styles_of(flows), strict=True))


def _marker(style: Style) -> dict[str, Any]:
    return {"marker": style.marker, "markersize": 3.4, "markeredgecolor": "white", "markeredgewidth": 0.4}


def _to_the_end(values: Any) -> Any:
    """The last bin once more, at its end: without it a step would stop where the last bin starts."""
    return np.append(values, values[-1:])


def _key(style: Style, **how: Any) -> Any:
    from matplotlib.lines import Line2D

    return Line2D([], [], color=style.color, **how)


def chart(run: Run) -> NumberChart:
    """The interactive form."""
    columns = {name: _to_the_end(v) for name, v in _columns(run).items()}
    if len(columns["time_s"]):
        columns["time_s"][-1] += run.bin_ns / 1e9  # the right edge of the last step
    made = NumberChart("throughput (Mbit/s)", run.change_times_s)
    made.xs.append(columns["time_s"])
    if "capacity_mbps" in columns:
        made.add("capacity", "area", columns["capacity_mbps"])
    if "background_delivered_mbps" in columns:
        style = of_background(_background_label(run))
        made.add(style.label, "step", columns["background_delivered_mbps"], style)
    for flow, style in _flow_styles(run, columns):
        for what, dash in (("sent", (5, 3)), ("delivered", ())):
            values = columns[f"flow_{flow.number}_{what}_mbps"]
            made.add(f"{flow.label} {what}", "step", values, style, dash)
    return made
