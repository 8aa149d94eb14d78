"""Distribution of one-way delays: one rising line per scheme."""

from __future__ import annotations

from typing import TYPE_CHECKING

from narrows.report.data import Campaign
from narrows.report.drawing import Numbers, Options
from narrows.report.figures import _conditions, _delays, _shares

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Distribution of one-way delays"
ALSO = ("cdf",)
SCOPE = "campaign"
ORDER = 60
IN_REPORT = False
STATISTIC = "median over the valid runs, at each share"


def absent(data: Campaign) -> str | None:
    """The figure needs single packets."""
    return _delays.absent(data)


def numbers(data: Campaign) -> Numbers:
    """One row per point of a curve."""
    return _shares.numbers_of(data, _delays.of_schemes(data), "delay_ms")


def caption(data: Campaign) -> str:
    """The caption."""
    text = (
        "Share of the packets whose one-way delay was no longer than the value on the axis; further left is "
        "better. Medians over the valid runs of what a share of a run's packets did not exceed."
    )
    return (
        text
        + _shares.count_in_caption(_delays.of_schemes(data), "packet")
        + _conditions.says_conditions(data)
    )


def figure(data: Campaign, options: Options) -> Figure:
    """A rising line per scheme, a panel per condition."""
    return _shares.draw(data, options, _delays.of_schemes(data), ("one-way delay (ms)", "share of packets"))
