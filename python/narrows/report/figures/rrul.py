"""Download, upload and the times of small exchanges, one below the other, coloured by DSCP class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from narrows.documents.resolved import BULK, FORWARD, REQUESTS
from narrows.documents.resolved import Flow as PlannedFlow
from narrows.report import real_path
from narrows.report.data import Run
from narrows.report.drawing import Numbers, Options, mark_times
from narrows.report.panels import Block, Panels
from narrows.report.style import PAIRS
from narrows.scenario.dscp import NAMES

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

TITLE = "Load and exchanges"
ALSO = ("all-scaled", "ping")
SCOPE = "run"
ORDER = 90
IN_REPORT = False

_DASHES: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (1.5, 1.2)), (0, (6, 1.5, 1.5, 1.5)))
_PANELS = {"download": "download (Mbit/s)", "upload": "upload (Mbit/s)", "exchanges": "exchange (ms)"}


@dataclass(frozen=True, slots=True)
class Line:
    """One flow in one panel."""

    panel: str
    flow: int
    dscp: int
    label: str
    time_s: Any
    value: Any


def _lines(run: Run) -> list[Line]:
    """The lines of all flows under test, panel by panel."""
    lines: list[Line] = run.keep("rrul", lambda: _read_lines(run))
    return lines


def _read_lines(run: Run) -> list[Line]:
    planned = {flow.number: flow for flow in run.settings.flows}
    order = list(_PANELS)
    lines = [
        line for flow in run.tested if (line := _line(run, planned[flow.number], flow.label)) is not None
    ]
    return sorted(lines, key=lambda line: order.index(line.panel))


def _line(run: Run, flow: PlannedFlow, label: str) -> Line | None:
    if flow.traffic_kind == REQUESTS:
        own = run.transfers.flow == flow.number
        start, end = run.transfers.started_s[own], run.transfers.ended_s[own]
        return (
            Line("exchanges", flow.number, flow.dscp, label, start, (end - start) * 1e3)
            if own.any()
            else None
        )
    series = run.throughput.flows.get(flow.number)
    if flow.traffic_kind != BULK or series is None:
        return None
    panel = "upload" if flow.direction == FORWARD else "download"
    time = run.throughput.time_s
    value = np.where(time + run.bin_ns / 1e9 <= flow.start_ns / 1e9, np.nan, series.arrived_bps / 1e6)
    return Line(panel, flow.number, flow.dscp, label, time, value)


def absent(run: Run) -> str | None:
    """The figure needs bulk flows or exchanges."""
    if real_path.has_only_ends(run):
        return real_path.NOT_SEEN
    return None if _lines(run) else "No flow of this run is a bulk flow or exchanges requests and answers."


def numbers(run: Run) -> Numbers:
    """One row per bin of a bulk flow (Mbit/s) and per exchange (ms)."""
    lines = _lines(run)
    return {
        "panel": [line.panel for line in lines for _ in line.time_s],
        "flow": [line.flow for line in lines for _ in line.time_s],
        "dscp": [line.dscp for line in lines for _ in line.time_s],
        "time_s": np.concatenate([line.time_s for line in lines]),
        "value": np.concatenate([line.value for line in lines]),
    }


def caption(run: Run) -> str:
    """The caption."""
    return (
        f"Rates at which the packets of each bulk flow arrived, in bins of {run.bin_ns / 1e6:g} ms, in either"
        " direction; below, the time of each exchange of a request and an answer, at its start. Colours are"
        " the classes (DSCP) of the packets; an exchange that was not complete at the end is not shown."
    )


def class_name(dscp: int) -> str:
    """The name of a class: `EF`; its number where it has none."""
    names = [name for name, number in NAMES.items() if number == dscp]
    return "best effort" if dscp == 0 else names[0] if names else f"DSCP {dscp}"


def figure(run: Run, options: Options) -> Figure:
    """A panel for each kind of traffic that the run has."""
    from narrows.report.drawing import paper_style

    lines = _lines(run)
    exchanges = len({line.dscp for line in lines if line.panel == "exchanges"})
    colours = dict(zip(sorted({line.dscp for line in lines}), _spread_colours(), strict=False))
    panels = [panel for panel in _PANELS if any(line.panel == panel for line in lines)]
    time = "time since the start of the run (s)"
    entries: dict[str, Line2D] = {}
    with paper_style(options):
        blocks = [Block([""], time if panel == panels[-1] else "", _PANELS[panel], 30.0) for panel in panels]
        page = Panels(options, blocks, least_mm=60.0, narrowest_mm=40.0)
        for (axes,), panel in zip(page.axes, panels, strict=True):
            seen: dict[int, int] = {}
            top = 0.0
            for line in (line for line in lines if line.panel == panel):
                place = seen[line.dscp] = seen.get(line.dscp, -1) + 1
                step = panel != "exchanges"
                times, values = line.time_s, line.value
                if step:  # The last bin reaches to its end.
                    times = np.append(times, times[-1:] + run.bin_ns / 1e9)
                    values = np.append(values, values[-1:])
                (drawn,) = axes.plot(
                    times,
                    values,
                    drawstyle="steps-post" if step else "default",
                    color=colours[line.dscp],
                    linestyle=_DASHES[place % len(_DASHES)],
                    # Exchanges often coincide: those that come first are wider.
                    linewidth=1.0 if step else 1.1 + 1.3 * (exchanges - len(seen)),
                    marker="" if step else ".",
                    markersize=2.5,
                )
                entries.setdefault(class_name(line.dscp), drawn)
                top = max(top, float(np.nanmax(line.value, initial=0.0)))
            axes.set_xlim(0, run.duration_s or 1)
            axes.set_ylim(0, 1.12 * top or 1)
            mark_times(axes, run.change_times_s)
        page.finish(entries)
    return page.figure


def _spread_colours() -> list[str]:
    """The colours of schemes, neighbours far apart."""
    colours = list(PAIRS)
    return [*colours[::2], *colours[1::2]] * 6
