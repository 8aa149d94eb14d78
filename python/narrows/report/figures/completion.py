"""Completion times of transfers: their distribution, one curve per scheme."""

from __future__ import annotations

from typing import TYPE_CHECKING

from narrows.report.data import Campaign
from narrows.report.drawing import Numbers, Options
from narrows.report.figures._shares import Times

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Completion times"
ALSO = ("fct",)
SCOPE = "campaign"
ORDER = 40

TRANSFERS = Times("transfers", "transfers", ("started_s", "ended_s"), "completion_ms")


def absent(data: Campaign) -> str | None:
    """Most scenarios have bulk transfers that never end."""
    if not any(map(TRANSFERS.has, data.runs)):
        return "Applications made no transfers of a size of their own, so none was completed."
    kept = {run.settings.get("transfers", "all") for run in data.runs}
    if "all" not in kept:
        return "The record keeps no single transfers (key transfers of the scenario)."
    return None if TRANSFERS.found(data) else "No transfer was completed in a valid run."


def numbers(data: Campaign) -> Numbers:
    """One row per point of a curve."""
    return TRANSFERS.numbers(data)


def caption(data: Campaign) -> str:
    """The caption."""
    text = (
        "Share of the transfers that took no longer than the time on the axis, from the application's "
        "request until the last byte arrived; further left is better. All transfers of a scheme's valid runs "
        "together."
    )
    if missing := TRANSFERS.without_end(data):
        text += f" Transfers that were not complete at the end are not shown: {missing}."
    return text


def figure(data: Campaign, options: Options) -> Figure:
    """A rising line per scheme, on a logarithmic axis if the times differ much."""
    return TRANSFERS.figure(data, options, "transfer", "completion time")
