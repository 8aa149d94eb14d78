"""A figure for each line of a card: the measured feature on the trace that it was taken from.

Each feature belongs to one kind of picture, and every kind has the same parts: the trace (blue), the measured
feature (orange), and packets that were noticed lost. Periods and durations are brackets, values that have the
unit of the axis are levels over their seconds of the run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from narrows.documents.identify import Line
from narrows.identify import pauses, responses, rhythm, windows
from narrows.identify.figure_parts import (
    HEIGHT_MM,
    MEASURED,
    MOST_POINTS,
    TRACE,
    Interval,
    arrivals_of,
    draw_brackets,
    draw_curve,
    draw_falls,
    draw_flight,
    draw_levels,
    draw_rounds,
    levels_of,
    mark_time,
    spans_of,
)
from narrows.identify.trace import Trace
from narrows.report import style
from narrows.report.drawing import Options, TimePlot, new_figure, paper_style, settle, time_axes
from narrows.report.ticks import make_logarithmic

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Figures fit a column of a page, and a phone.
OPTIONS = Options(width_mm=88.0)
#: Figures of a rhythm show about this many of its samples.
_MOST_SAMPLES = 6
_TIME = "time since the start of the run (s)"

Draw = Callable[[TimePlot, Trace, Line, Interval], None]


@dataclass(frozen=True, slots=True)
class Picture:
    """A kind of picture: its axis, the part of the run that it shows, and what a reader should see."""

    y: str
    draw: Draw
    caption: str
    #: The number of samples that it shows; 0 for the whole run.
    samples: int = 0
    x: str = _TIME


def draw(line: Line, trace: Trace, options: Options) -> Figure:
    """The figure of a measured line on the trace of its first run."""
    picture = picture_of(line)
    span = _interval(line, trace, picture.samples)
    with time_panel(options, span, picture.y, picture.x) as plot:
        picture.draw(plot, trace, line, span)
    return plot.figure


def picture_of(line: Line) -> Picture:
    """The kind of picture of a line, whose name may end with a ratio of loss."""
    return PICTURES.get(line.name) or PICTURES[line.name.rpartition("-")[0]]


@contextmanager
def time_panel(options: Options, span: Interval, y: str, x: str = _TIME) -> Iterator[TimePlot]:
    """Axes over a part of the run, whose limits and legend come last."""
    with paper_style(options):
        figure = new_figure(options, HEIGHT_MM)
        plot = TimePlot(figure, time_axes(figure, options, span[1], y))
        plot.axes.set_xlabel(x, labelpad=1.5)
        yield plot
        if plot.ends is not None:
            low, high = plot.ends
            pad = 0.12 * (high - low) or 1.0
            plot.axes.set_ylim(low - pad if low < 0 else 0, high + pad)
            plot.axes.set_xlim(*span)
        settle(plot.axes, plot.entries, options, HEIGHT_MM)


def _interval(line: Line, trace: Trace, samples: int) -> Interval:
    """The part of the run around the first samples of a line."""
    if not samples or not line.spans:
        return 0.0, trace.duration_s
    if line.name == "oscillation":
        first = line.spans[0]
        length = (_MOST_SAMPLES + 1) * float(first.value) * trace.min_rtt_s
        return float(first.from_s), min(float(first.from_s) + length, trace.duration_s)
    spans = line.spans[:samples]
    start = min(float(span.from_s) for span in spans)
    end = max(float(span.to_s) for span in spans)
    pad = 0.15 * (end - start) + 4 * trace.min_rtt_s
    return max(0.0, start - pad), min(trace.duration_s, end + pad)


def _decrease(plot: TimePlot, trace: Trace, line: Line, span: Interval) -> None:
    draw_flight(plot, trace, span)
    measured = {round(start, 5) for start, _ in spans_of(line)}
    falls = [
        (episode.noticed_s, episode.before, episode.ended_s, episode.after)
        for episode in windows.list_episodes(trace)
        if round(episode.noticed_s, 5) in measured
    ]
    draw_falls(plot, falls, "measured decrease")


def _fall(plot: TimePlot, trace: Trace, line: Line, span: Interval) -> None:
    draw_rounds(plot, trace, span)
    falls = []
    for start, end, share in levels_of(line):
        before = float(trace.round_windows[np.searchsorted(trace.round_times, start - 1e-6)])
        if span[0] <= start and end <= span[1]:
            falls.append((start, before, end, share * before))
    draw_falls(plot, falls, "measured fall")


def _growth(plot: TimePlot, trace: Trace, _line: Line, span: Interval) -> None:
    draw_rounds(plot, trace, span)
    growths = windows.list_growths(trace)
    shown = None
    for times, values in windows.curves_of(growths) if growths else []:
        (shown,) = plot.axes.plot(times, values, color=MEASURED.color, linewidth=1.4, zorder=4)
        plot.reach(values)
    if shown is not None:
        plot.show(shown, "fitted law")


def _empty(plot: TimePlot, trace: Trace, line: Line, span: Interval) -> None:
    draw_rounds(plot, trace, span)
    lines = []
    for start, end, growth in levels_of(line):
        inside = np.flatnonzero((trace.round_times >= start) & (trace.round_times < end - 1e-6))
        middle = float(trace.round_windows[inside].mean())
        reach = growth * (len(inside) - 1) / 2
        lines.append((start, middle - reach, float(trace.round_times[inside[-1]]), middle + reach))
    draw_falls(plot, lines, "growth while the queue is empty")


def _start(plot: TimePlot, trace: Trace, line: Line, span: Interval) -> None:
    draw_rounds(plot, trace, span)
    first, last = windows.find_slow_start(trace)
    times, sizes = trace.round_times, trace.round_windows
    if line.name == "slow-start-growth":
        rounds = np.searchsorted(times, spans_of(line)[0][1] - 1e-6) - first
        powers = np.arange(max(1, int(rounds)))
        fitted = sizes[first] * float(line.spans[0].value) ** powers
        (shown,) = plot.axes.plot(
            times[first : first + len(powers)], fitted, "o-", color=MEASURED.color, markersize=2.4, zorder=4
        )
        plot.show(shown, "measured growth", fitted)
    elif line.name == "slow-start-window":
        peak = float(sizes[: last + 2].max())
        draw_levels(plot, [(span[0], span[1], peak)], span, "largest window")
    else:
        end = float(times[min(last + 1, len(times) - 1)])
        shown = plot.axes.axvline(end, color=MEASURED.color, linewidth=1.4, zorder=4)
        plot.show(shown, f"end: {line.spans[0].value}")


def _queue(plot: TimePlot, trace: Trace, line: Line, span: Interval) -> None:
    waiting = trace.queueing_s * trace.capacity_bps / 8 / trace.packet_bytes
    draw_curve(plot, trace.sent_s, waiting, span, "waiting")
    draw_levels(plot, levels_of(line), span, "mean")


def _utilization(plot: TimePlot, trace: Trace, line: Line, span: Interval) -> None:
    draw_curve(plot, *arrivals_of(trace, span), span, "delivered", "pre")
    draw_levels(plot, levels_of(line, trace.capacity_bps / 1e6), span, "measured share of the largest")


def _rate_kept(plot: TimePlot, trace: Trace, line: Line, span: Interval) -> None:
    draw_curve(plot, *arrivals_of(trace, span), span, "delivered", "pre")
    start = responses.find_steps(trace, "delay")[0][0]
    before = trace.arrival_rate_bps(start / 2, start) / 1e6
    draw_levels(plot, levels_of(line, before), span, "on the longer path")
    mark_time(plot, start, "longer path from here on")


def _lost(plot: TimePlot, trace: Trace, line: Line, span: Interval) -> None:
    edges = np.linspace(*span, 101)
    bounds = np.searchsorted(trace.sent_s, edges)
    sent = np.diff(bounds)
    lost = np.diff(np.concatenate([[0], np.cumsum(trace.lost)])[bounds])
    percent = np.divide(100.0 * lost, sent, out=np.full(len(sent), np.nan), where=sent > 0)
    draw_curve(plot, edges[1:], percent, span, "lost in each hundredth of the run", "pre")
    draw_levels(plot, levels_of(line, 100), span, "mean")


def _phases(plot: TimePlot, trace: Trace, line: Line, span: Interval) -> None:
    times, rate = rhythm.smooth_rate(trace)
    draw_curve(plot, times, rate / np.median(rate), span, "sending rate by the usual one")
    if line.name == "gain-period":
        draw_brackets(plot, spans_of(line), span, "period")
    else:
        draw_levels(plot, levels_of(line), span, "measured phases")


def _oscillation(plot: TimePlot, trace: Trace, line: Line, span: Interval) -> None:
    draw_flight(plot, trace, span)
    period = float(line.spans[0].value) * trace.min_rtt_s
    starts = np.arange(span[0], span[1] - period, period)
    draw_brackets(plot, [(float(t), float(t) + period) for t in starts], span, "measured period")


def _dips(plot: TimePlot, trace: Trace, line: Line, span: Interval) -> None:
    draw_flight(plot, trace, span)
    if line.name == "dip-floor":
        # Dips last a few round trips; their levels are extended, to be seen.
        least = (span[1] - span[0]) / 30
        draw_levels(plot, [(a, max(b, a + least), v) for a, b, v in levels_of(line)], span, "fewest packets")
    else:
        draw_brackets(
            plot, spans_of(line), span, "period" if line.name == "dip-period" else "length of a dip"
        )


def _loss_window(plot: TimePlot, trace: Trace, line: Line, span: Interval) -> None:
    draw_flight(plot, trace, span)
    draw_levels(plot, levels_of(line), span, "mean")


def _share(plot: TimePlot, trace: Trace, line: Line, span: Interval) -> None:
    _draw_share(plot, trace, span)
    draw_levels(plot, levels_of(line), span, "measured")


def _draw_share(plot: TimePlot, trace: Trace, span: Interval) -> None:
    edges = np.linspace(*span, 101)
    mine = np.diff(trace.bytes_until(edges))
    others = np.histogram(trace.others_s, edges, weights=trace.others_bytes)[0]
    both = mine + others
    share = np.divide(mine, both, out=np.full(len(both), np.nan), where=both > 0)
    draw_curve(plot, edges[1:], share, span, "share of the delivered data", "pre")


def _bias(plot: TimePlot, trace: Trace, line: Line, span: Interval) -> None:
    _draw_share(plot, trace, span)
    draw_levels(plot, responses.list_shares(trace, line.spans), span, "by the exponent")


def _pause(plot: TimePlot, trace: Trace, line: Line, span: Interval) -> None:
    draw_flight(plot, trace, span)
    measured = {round(start, 5) for start, _ in spans_of(line)}
    falls = [
        (pause.start_s, pause.before, pause.answered_s, pause.after)
        for pause in pauses.list_pauses(trace)
        if round(pause.start_s, 5) in measured and span[0] <= pause.start_s and pause.answered_s <= span[1]
    ]
    draw_falls(plot, falls, "window before and after")


def _harm(plot: TimePlot, trace: Trace, line: Line, span: Interval) -> None:
    edges = np.linspace(*span, 101)
    sizes = np.histogram(trace.others_s, edges, weights=trace.others_bytes)[0]
    draw_curve(plot, edges[1:], sizes * 8e-6 / np.diff(edges), span, "CUBIC", "pre")
    alone = responses.rate_alone(trace) / 1e6
    levels = [(start, end, alone * (1 - harm)) for start, end, harm in levels_of(line)]
    draw_levels(plot, levels, span, "mean of CUBIC")
    shown = plot.axes.axhline(alone, color=style.MUTED, linewidth=0.7, linestyle=(0, (1, 1.5)))
    plot.show(shown, "alone", [alone])


def _rise(plot: TimePlot, trace: Trace, line: Line, span: Interval) -> None:
    draw_curve(plot, *arrivals_of(trace, span), span, "delivered", "pre")
    spans = [(start, start + value) for start, _, value in levels_of(line)]
    draw_brackets(plot, spans, span, "from the rise to 90 %")


def _delay(plot: TimePlot, trace: Trace, line: Line, span: Interval) -> None:
    draw_curve(plot, trace.sent_s, 1e3 * trace.queueing_s, span, "queueing delay")
    if line.name == "peak":
        draw_levels(plot, levels_of(line, 1e3), span, "largest")
    else:
        draw_brackets(plot, spans_of(line), span, "until the queue is short")


def _answers(plot: TimePlot, trace: Trace, line: Line, span: Interval) -> None:
    edges = np.linspace(*span, 101)
    arrived = np.histogram(trace.arrived_s[np.isfinite(trace.arrived_s)], edges)[0]
    answers = np.histogram(trace.answered_s, edges)[0]
    ratio = np.divide(arrived, answers, out=np.full(len(arrived), np.nan), where=answers > 0)
    draw_curve(plot, edges[1:], ratio, span, "in each hundredth of the run", "pre")
    draw_levels(plot, levels_of(line), span, "measured")


def _bursts(plot: TimePlot, trace: Trace, line: Line, _span: Interval) -> None:
    """The distribution of gaps, whose axis is not the time."""
    service = trace.packet_bytes * 8 / trace.capacity_bps
    gaps = np.sort(np.diff(trace.sent_s[trace.first_after(rhythm.SETTLED * trace.duration_s) :])) / service
    # Gaps of zero have no place on a logarithmic axis.
    gaps = np.maximum(gaps, 1e-3)
    shares = np.arange(1, len(gaps) + 1) / len(gaps)
    chosen = np.unique(np.linspace(0, len(gaps) - 1, MOST_POINTS).astype(int))
    (shown,) = plot.axes.plot(gaps[chosen], shares[chosen], color=TRACE.color, linewidth=0.9)
    plot.axes.set_xlim(min(0.1, gaps[0]) / 1.2, max(2.0, gaps[-1]) * 1.2)
    plot.axes.set_ylim(0, 1.08)
    make_logarithmic(plot.axes, "x")
    plot.show(shown, "gaps up to this long")
    limit = plot.axes.axvline(rhythm.BURST, color=style.MUTED, linewidth=0.7, linestyle=(0, (1, 1.5)))
    plot.show(limit, "a fifth")
    value = 0.0 if line.value is None else float(line.value)
    (point,) = plot.axes.plot([rhythm.BURST], [value], "o", color=MEASURED.color, markersize=4)
    plot.show(point, "in bursts")
    plot.ends = None


_FLIGHT = "in flight (packets)"
_MBITS = "rate (Mbit/s)"
_DIP = "Packets in flight, and the dips that follow no loss."
_LAW = "The largest number of packets in flight in each round, and the law that fits best between losses."
PICTURES: dict[str, Picture] = {
    "slow-start-growth": Picture(
        _FLIGHT, _start, "The first rounds: packets in flight, and the mean growth per round.", 1
    ),
    "slow-start-end": Picture(_FLIGHT, _start, "The first rounds, and the end of slow start.", 1),
    "slow-start-window": Picture(_FLIGHT, _start, "The first rounds, and the most packets in flight.", 1),
    "decrease": Picture(_FLIGHT, _decrease, "Packets in flight before each loss and after its recovery."),
    **dict.fromkeys(
        ("law", "growth-linear", "growth-exponential", "growth-cubic"), Picture(_FLIGHT, _growth, _LAW)
    ),
    "growth-empty": Picture(
        _FLIGHT, _empty, "The largest number of packets in flight in each round, and its growth after losses."
    ),
    "queue": Picture(
        "queue (packets)", _queue, "Packets waiting at the bottleneck, by one-way delays, and means of parts."
    ),
    "utilization": Picture(_MBITS, _utilization, "The delivered rate, and means of parts of the run."),
    "loss": Picture("lost packets (%)", _lost, "Lost packets over the run, and their share."),
    "gain": Picture(
        "rate / usual rate", _phases, "The sending rate, and the phases in which it is above.", _MOST_SAMPLES
    ),
    "drain": Picture(
        "rate / usual rate", _phases, "The sending rate, and the phases in which it is below.", _MOST_SAMPLES
    ),
    "gain-period": Picture(
        "rate / usual rate",
        _phases,
        "The sending rate, from one phase of probing to the next.",
        _MOST_SAMPLES,
    ),
    "oscillation": Picture(
        _FLIGHT, _oscillation, "Packets in flight, and the period at which they repeat themselves.", 1
    ),
    "dip-period": Picture(_FLIGHT, _dips, _DIP),
    "dip-floor": Picture(_FLIGHT, _dips, _DIP, _MOST_SAMPLES),
    "dip-length": Picture(_FLIGHT, _dips, _DIP, 1),
    "loss-window": Picture(_FLIGHT, _loss_window, "Packets in flight, and means of parts of the run."),
    "share": Picture("share", _share, "The flow's share of the data that arrive, and means of parts."),
    "harm": Picture(_MBITS, _harm, "The rate of the CUBIC flow, and that which it would have alone."),
    "rise": Picture(_MBITS, _rise, "The delivered rate after the rise.", 1),
    "peak": Picture("delay (ms)", _delay, "The queueing delay after the fall of the rate.", 1),
    "clearing": Picture("delay (ms)", _delay, "The queueing delay after the fall of the rate.", 1),
    "after-delay": Picture(
        _MBITS, _rate_kept, "The delivered rate before and after the path becomes longer."
    ),
    "fall": Picture(_FLIGHT, _fall, "Falls of the window without a loss before.", _MOST_SAMPLES),
    "bursts": Picture(
        "share of the gaps",
        _bursts,
        "Gaps between packets by the time that the bottleneck needs for a packet.",
        x="gap / time of a packet at the bottleneck",
    ),
    "per-answer": Picture("packets", _answers, "Data packets that arrive per packet of the receiver."),
    "rtt-bias": Picture(
        "share", _bias, "The share of the flow with the short round trip, and those that the exponents mean."
    ),
    **dict.fromkeys(
        ("pause", "pause-window"),
        Picture(_FLIGHT, _pause, "Packets in flight before a pause, and in the round trip after it.", 2),
    ),
}
