"""Completion times of transfers: their distribution, one curve per scheme."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from narrows.report import units
from narrows.report.data import Campaign, floats
from narrows.report.drawing import Numbers, Options
from narrows.report.figures._shares import curve, draw

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Completion times"
SCOPE = "campaign"
ORDER = 40


def _times(data: Campaign) -> dict[str, tuple[Any, int, int]]:
    """Per scheme over its valid runs: completion times in ms in order, incomplete transfers, runs.

    Transfers of background flows are not among them.
    """
    found = {}
    for scheme in data.schemes:
        times: list[Any] = []
        incomplete = runs = 0
        for run in data.of_scheme(scheme):
            if not run.valid or run.record is None or not has_transfers(run.rows):
                continue
            tested = [flow.number for flow in run.tested]
            columns = run.transfers
            own = np.isin(floats(columns["flow"]), tested)
            taken = floats(columns["ended_s"])[own] - floats(columns["started_s"])[own]
            incomplete += int(np.sum(np.isnan(taken)))
            times.append(taken[np.isfinite(taken)] * 1e3)
            runs += 1
            run.forget()
        if runs:
            found[scheme] = (np.sort(np.concatenate(times)), incomplete, runs)
    return {scheme: one for scheme, one in found.items() if len(one[0])}


def has_transfers(rows: dict[str, Any]) -> bool:
    """Whether the measured rows of a run tell of transfers under test."""
    return ((rows.get("all") or {}).get("metrics") or {}).get("transfers") is not None


def absent(data: Campaign) -> str | None:
    """Most scenarios have bulk transfers that never end."""
    if not any(has_transfers(run.rows) for run in data.runs):
        return "Applications made no transfers of a size of their own, so none was completed."
    kept = {run.settings.get("transfers", "all") for run in data.runs}
    if "all" not in kept:
        return "The record keeps no single transfers (key transfers of the scenario)."
    return None if _times(data) else "No transfer was completed in a valid run."


def numbers(data: Campaign) -> Numbers:
    """One row per point of a curve."""
    curves = {scheme: curve(times) for scheme, (times, _, _) in _times(data).items()}
    return {
        "scheme": [scheme for scheme, (times, _) in curves.items() for _ in times],
        "completion_ms": np.concatenate([times for times, _ in curves.values()] or [np.zeros(0)]),
        "share": np.concatenate([shares for _, shares in curves.values()] or [np.zeros(0)]),
    }


def caption(data: Campaign) -> str:
    """How to read it."""
    text = (
        "Share of the transfers that took no longer than the time on the axis, from the application's "
        "request until the last byte arrived; further left is better. All transfers of a scheme's valid runs "
        "together."
    )
    missing = [f"{s} {n}" for s, (_, n, _) in _times(data).items() if n]
    if missing:
        text += f" Transfers that were not complete at the end are not shown: {', '.join(missing)}."
    return text


def figure(data: Campaign, options: Options) -> Figure:
    """A rising line per scheme, on a logarithmic axis if the times differ much."""
    found = {
        scheme: (times, units.plural(len(times), "transfer"))
        for scheme, (times, _, _) in _times(data).items()
    }
    return draw(options, found, ("completion time (ms)", "share of transfers"))
