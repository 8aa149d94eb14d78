"""The parts of a card's figures: the trace, and the measured feature on it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from narrows.documents.identify import Line
from narrows.identify.trace import Floats, Trace
from narrows.report import style
from narrows.report.drawing import TimePlot

#: Seconds of a run, from and to.
Interval = tuple[float, float]
HEIGHT_MM = 50.0
#: More points than this are thinned, without loss of extremes.
MOST_POINTS = 500
TRACE = style.of_flow(0, "trace")
MEASURED = style.of_flow(1, "measured")
_LOST = style.of_flow(5, "lost")


def draw_curve(
    plot: TimePlot, times: Floats, values: Floats, span: Interval, label: str, steps: str = ""
) -> None:
    """A part of the trace, as a line or in steps (`pre`: values hold until their times; `post`: after)."""
    times, values = _thin(*_inside(times, values, span))
    if not len(times):
        return
    if steps == "post":
        times, values = np.append(times, span[1]), np.append(values, values[-1])
    how = f"steps-{steps}" if steps else "default"
    (shown,) = plot.axes.plot(times, values, color=TRACE.color, linewidth=0.7, drawstyle=how, zorder=2)
    plot.show(shown, label, values)


def _inside(times: Floats, values: Floats, span: Interval) -> tuple[Floats, Floats]:
    chosen = (times >= span[0]) & (times <= span[1]) & np.isfinite(values)
    return times[chosen], values[chosen]


def _thin(times: Floats, values: Floats) -> tuple[Floats, Floats]:
    """At most about as many points as a figure can show: the least and the largest of each part."""
    if len(times) <= MOST_POINTS:
        return times, values
    kept: list[int] = []
    for part in np.array_split(np.arange(len(times)), MOST_POINTS // 2):
        kept += sorted({int(part[values[part].argmin()]), int(part[values[part].argmax()])})
    return times[kept], values[kept]


def draw_losses(plot: TimePlot, trace: Trace, span: Interval) -> None:
    """Marks where losses were noticed, one for all that are noticed together."""
    noticed = np.unique(np.round(trace.resolved_s[trace.lost] / trace.min_rtt_s)) * trace.min_rtt_s
    noticed = noticed[(noticed >= span[0]) & (noticed <= span[1])]
    if len(noticed):
        (shown,) = plot.axes.plot(
            noticed,
            np.zeros(len(noticed)),
            "|",
            color=_LOST.color,
            markersize=5,
            markeredgewidth=0.8,
            zorder=3,
        )
        plot.show(shown, "loss noticed")


def draw_levels(
    plot: TimePlot, levels: Sequence[tuple[float, float, float]], span: Interval, label: str
) -> None:
    """Horizontal lines from a time to another at a value."""
    shown = None
    for start, end, value in levels:
        seconds = [max(start, span[0]), min(end, span[1])]
        if seconds[1] > seconds[0]:
            (shown,) = plot.axes.plot(seconds, [value, value], color=MEASURED.color, linewidth=1.4, zorder=4)
            plot.reach([value])
    if shown is not None:
        plot.show(shown, label)


def draw_brackets(plot: TimePlot, spans: Sequence[Interval], span: Interval, label: str) -> None:
    """Durations above the trace, alternately at two heights, so that neighbours can be distinguished."""
    top = (plot.ends or (0.0, 1.0))[1] or 1.0
    shown = None
    for number, (start, end) in enumerate(spans):
        if start >= span[0] and end <= span[1]:
            height = top * (1.08 + 0.06 * (number % 2))
            (shown,) = plot.axes.plot(
                [start, end], [height, height], "|-", color=MEASURED.color, linewidth=1.2, markersize=4
            )
            plot.reach([height])
    if shown is not None:
        plot.show(shown, label)


def draw_falls(plot: TimePlot, falls: Sequence[tuple[float, float, float, float]], label: str) -> None:
    """Lines from a time and a value to later ones."""
    shown = None
    for start, before, end, after in falls:
        (shown,) = plot.axes.plot(
            [start, end], [before, after], "o-", color=MEASURED.color, linewidth=1.3, markersize=2.4, zorder=4
        )
        plot.reach([before, after])
    if shown is not None:
        plot.show(shown, label)


def levels_of(line: Line, factor: float = 1.0) -> list[tuple[float, float, float]]:
    """The samples of a line as levels."""
    return [(float(s.from_s), float(s.to_s), float(s.value) * factor) for s in line.spans]


def spans_of(line: Line) -> list[Interval]:
    """The seconds of the samples of a line."""
    return [(float(span.from_s), float(span.to_s)) for span in line.spans]


def draw_flight(plot: TimePlot, trace: Trace, span: Interval) -> None:
    """Packets in flight, and losses."""
    draw_curve(plot, trace.sent_s, trace.in_flight, span, "in flight")
    draw_losses(plot, trace, span)


def draw_rounds(plot: TimePlot, trace: Trace, span: Interval) -> None:
    """The most packets in flight in each round, and losses."""
    draw_curve(plot, trace.round_times, trace.round_windows, span, "largest of each round", "post")
    draw_losses(plot, trace, span)


def arrivals_of(trace: Trace, span: Interval) -> tuple[Floats, Floats]:
    """Times, and the delivered rate in Mbit/s around each."""
    edges = np.linspace(*span, 201)
    return edges[1:], np.diff(trace.bytes_until(edges)) * 8e-6 / np.diff(edges)


def mark_time(plot: TimePlot, time: float, label: str) -> None:
    """A thin line at a change of the path."""
    shown = plot.axes.axvline(time, color=style.MUTED, linewidth=0.7, linestyle=(0, (1, 1.5)), zorder=1.5)
    plot.show(shown, label)
