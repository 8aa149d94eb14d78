"""Completion times of transfers: their distribution, one curve per scheme."""

from __future__ import annotations

from typing import TYPE_CHECKING

from narrows.documents.resolved import ALL_TRANSFERS
from narrows.report.data import Campaign
from narrows.report.drawing import Numbers, Options
from narrows.report.figures import _conditions, _shares
from narrows.report.figures._shares import Times

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Completion times"
ALSO = ("fct",)
SCOPE = "campaign"
ORDER = 40
STATISTIC = "median over the valid runs, at each share"

TRANSFERS = Times(
    "transfers",
    lambda run: (run.transfers.flow, run.transfers.started_s, run.transfers.ended_s),
    "completion_ms",
)


def absent(data: Campaign) -> str | None:
    """Most scenarios have bulk transfers that never end."""
    if not any(map(TRANSFERS.has, data.runs)):
        return "No measured flow made transfers of a fixed size; those of background traffic do not count."
    if all(run.settings.transfers != ALL_TRANSFERS for run in data.runs):
        return "The record keeps no single transfers (key transfers of the scenario)."
    return None if TRANSFERS.collect(data) else "No transfer was completed in a valid run."


def numbers(data: Campaign) -> Numbers:
    """One row per point of a curve."""
    return TRANSFERS.numbers(data)


def caption(data: Campaign) -> str:
    """The caption."""
    text = (
        "Share of the transfers that took no longer than the time on the axis, from the application's "
        "request until the last byte arrived; further left is better. Medians over the valid "
        "runs of what a share of a run's transfers took."
    )
    if missing := TRANSFERS.without_end(data):
        text += f" Transfers that were not complete at the end are not shown: {missing}."
    return (
        text + _shares.count_in_caption(TRANSFERS.times(data), "transfer") + _conditions.says_conditions(data)
    )


def figure(data: Campaign, options: Options) -> Figure:
    """A rising line per scheme, a panel per condition."""
    axes = ("completion time (ms)", "share of transfers")
    return _shares.draw(data, options, TRANSFERS.times(data), axes)
