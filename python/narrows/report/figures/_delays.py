"""Packet delays of rows, run by run."""

from __future__ import annotations

from typing import Any

import numpy as np

from narrows.report import real_path
from narrows.report.data import Campaign, Run


def of_run(run: Run) -> Any:
    """One-way delays (ms) of all data packets under test that arrived, sorted; empty without packets."""
    packets = run.read_packets()
    if packets is None:
        return np.zeros(0)
    arrived = packets.arrived_ns >= 0
    own = np.zeros(len(arrived), dtype=bool)
    for flow in run.tested:
        own |= packets.of_flow(flow.number, flow.direction)
    own &= arrived
    return np.sort(packets.arrived_ns[own] - packets.sent_ns[own]) / 1e6


def of_schemes(data: Campaign) -> dict[str, list[Any]]:
    """For each row, the sorted delays (ms) of each of its valid runs."""
    return data.keep("delays", lambda: _of_schemes(data))


def _of_schemes(data: Campaign) -> dict[str, list[Any]]:
    result = {}
    for scheme in data.schemes:
        runs = [run for run in data.of_scheme(scheme) if run.valid and run.record is not None]
        delays = [own for run in runs if len(own := of_run(run))]
        if delays:
            result[scheme] = delays
    return result


def absent(data: Campaign) -> str | None:
    """The figure needs single packets of a valid run."""
    if real_path.only_ends(data):
        return real_path.NOT_SEEN
    runs = [run for run in data.runs if run.valid and run.record is not None]
    if not runs:
        return "No valid run left a record."
    if all(run.settings.record == "bins" for run in runs):
        return "The runs were recorded in bins (record: bins), which keep no delays of single packets."
    return None
