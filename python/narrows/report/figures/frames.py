"""Delays of frames of video: their distribution, one curve per scheme."""

from __future__ import annotations

from typing import TYPE_CHECKING

from narrows.report.data import Campaign
from narrows.report.drawing import Numbers, Options
from narrows.report.figures import _conditions, _shares
from narrows.report.figures._shares import Times

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Frame delays"
SCOPE = "campaign"
ORDER = 45
STATISTIC = "median over the valid runs, at each share"

FRAMES = Times(
    "freezes", lambda run: (run.frames.flow, run.frames.captured_s, run.frames.arrived_s), "delay_ms"
)


def absent(data: Campaign) -> str | None:
    """Most schemes carry bytes, not frames."""
    if not any(map(FRAMES.has, data.runs)):
        return "No scheme of this campaign sent frames of video."
    return None if FRAMES.collect(data) else "No frame arrived whole in a valid run."


def numbers(data: Campaign) -> Numbers:
    """One row per point of a curve."""
    return FRAMES.numbers(data)


def caption(data: Campaign) -> str:
    """The caption."""
    text = (
        "Share of the frames of video that were whole at the receiver no later than the time on the axis "
        "after their capture; further left is better. Medians over the valid runs of what a share "
        "of a run's frames took."
    )
    if lost := FRAMES.without_end(data):
        text += f" Frames that were never whole are not shown: {lost}."
    return text + _shares.count_in_caption(FRAMES.times(data), "frame") + _conditions.says_conditions(data)


def figure(data: Campaign, options: Options) -> Figure:
    """A rising line per scheme, a panel per condition."""
    return _shares.draw(data, options, FRAMES.times(data), ("frame delay (ms)", "share of frames"))
