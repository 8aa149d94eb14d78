"""The qualities that video players fetched over time, and their stalls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from narrows.campaign.players import Playback, of_run
from narrows.report.charts import NumberChart
from narrows.report.data import Flow, Run
from narrows.report.drawing import Numbers, Options, over_time
from narrows.report.style import Style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Playback"
ALSO = ("video", "bitrate")
SCOPE = "run"
ORDER = 70


def _players(run: Run) -> list[tuple[Flow, Style, float, Playback]]:
    """Each flow under test that is a player, with its start in s."""
    played = of_run(run.folder, run.settings)
    styles = run.styles_of(run.tested)
    starts = {flow.number: flow.start_ns / 1e9 for flow in run.settings.flows}
    return [
        (flow, style, starts[flow.number], one)
        for flow, style in zip(run.tested, styles, strict=True)
        if isinstance(one := played.get(flow.number), Playback) and one.segments
    ]


def _steps(begin_s: float, playback: Playback) -> tuple[Any, Any]:
    """The arrival times of segments, and their bitrates; the last one lasts until the end."""
    times = [begin_s + at / 1e9 for at, *_ in playback.segments]
    rates = [bitrate / 1e6 for _, _, bitrate, _ in playback.segments]
    return np.array([*times, begin_s + playback.end_ns / 1e9]), np.array([*rates, rates[-1]])


def _stands(begin_s: float, playback: Playback) -> list[tuple[float, float]]:
    """The times without a moving picture: before it first moved, and in each stall."""
    spans = [(0, playback.end_ns if playback.moved_ns is None else playback.moved_ns), *playback.stalls]
    return [(begin_s + begin / 1e9, begin_s + end / 1e9) for begin, end in spans]


def concerns(run: Run) -> bool:
    """Most flows are not players."""
    return any(flow.segments_file for flow in run.settings.flows)


def absent(run: Run) -> str | None:
    """Why there is nothing to draw."""
    if not concerns(run):
        return "No flow of this run is a player of video."
    return None if _players(run) else "No segment of a film arrived."


def numbers(run: Run) -> Numbers:
    """A row per segment, with its bitrate, and per stall, with its length."""
    rows: list[tuple[int, float, float, float]] = []
    for flow, _, begin_s, playback in _players(run):
        times, rates = _steps(begin_s, playback)
        rows += [(flow.number, at, rate, np.nan) for at, rate in zip(times[:-1], rates[:-1], strict=True)]
        rows += [(flow.number, at, np.nan, end - at) for at, end in _stands(begin_s, playback)]
    names = ("flow", "time_s", "bitrate_mbps", "stood_s")
    return {name: [row[place] for row in rows] for place, name in enumerate(names)}


def caption(_run: Run) -> str:
    """The caption."""
    return (
        "Bitrate of the segments of a film that each player fetched, from the arrival of one (dot) to "
        "that of the next. Bars at the foot: the picture stood, for want of data or before playback began."
    )


def figure(run: Run, options: Options) -> Figure:
    """A step line per player, and its stalls as bars at the foot."""
    pairs = _players(run)
    with over_time(options, 42.0, run.duration_s, run.change_times_s, "bitrate (Mbit/s)") as plot:
        most = max(float(np.max(_steps(begin_s, playback)[1])) for _, _, begin_s, playback in pairs)
        for place, (_, style, begin_s, playback) in enumerate(pairs):
            times, rates = _steps(begin_s, playback)
            (line,) = plot.axes.step(times, rates, where="post", color=style.color, linewidth=1.0)
            plot.axes.plot(times[:-1], rates[:-1], ".", color=style.color, markersize=3.0)
            spans = [(begin, end - begin) for begin, end in _stands(begin_s, playback)]
            plot.axes.broken_barh(
                spans, (0.035 * most * place, 0.03 * most), facecolors=style.color, linewidth=0
            )
            plot.show(line, style.label, rates)
    return plot.figure


def chart(run: Run) -> NumberChart:
    """The interactive form, in which the bars are lines at zero."""
    made = NumberChart("bitrate (Mbit/s)", run.change_times_s)
    for _, style, begin_s, playback in _players(run):
        times, rates = _steps(begin_s, playback)
        made.xs.append(times)
        made.add(style.label, "step", rates, style)
        # A point without a value separates two spans.
        spans = _stands(begin_s, playback)
        made.xs.append(np.array([time for begin, end in spans for time in (begin, end, end + 1e-6)]))
        zeros = np.array([0.0, 0.0, np.nan] * len(spans))
        made.add(f"{style.label}: stands", "line", zeros, style, (4, 3))
    return made
