"""Campaigns as tables: their valid runs, and their flows and durations."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from narrows.calibrate.table import ALL, METRICS, QUANTITIES, Measured, Table
from narrows.errors import DataError

if TYPE_CHECKING:
    from narrows.documents.campaign import Header
    from narrows.documents.resolved import Resolved

#: The keys of Pantheon's metadata.
_PANTHEON = {"flows": "flows", "interval": "interval", "duration": "runtime"}


def read_campaign(path: Path) -> Table:
    """The table of a campaign's folder; raises `DataError` if it is not a campaign or has no valid run."""
    from narrows.campaign.results import read
    from narrows.campaign.store import CampaignFolder
    from narrows.documents.campaign import INVALID

    folder = CampaignFolder.read(path)
    results = read(path)
    rows, invalid = [], 0
    for row in results.rows:
        if row.verdict == INVALID:
            invalid += row.flow == ALL
            continue
        if row.background:
            continue
        values = {quantity: row.metrics.get(METRICS[quantity][0]) for quantity in QUANTITIES}
        rows.append(Measured(row.scheme, str(row.run), str(row.flow), values))
    if not rows:
        raise DataError(f"{path}: has no valid run")
    metrics = {quantity: METRICS[quantity][0] for quantity in QUANTITIES}
    notes = (f"{invalid} invalid runs are left out",) if invalid else ()
    return Table(str(path), tuple(rows), metrics, _facts(folder.resolved, folder.header), notes)


def _facts(scenario: Resolved, header: Header) -> dict[str, str]:
    """The number of flows, the interval between their starts, and the duration, if the campaign
    states them.
    """
    from narrows.scenario.quantity import show

    facts: dict[str, str] = {}
    tested = [flow for flow in scenario.flows if not flow.background]
    if tested:
        facts["flows"] = str(len(tested))
        starts = [flow.start_ns for flow in tested]
        facts["interval"] = show("span", starts[1] - starts[0] if len(starts) > 1 else 0)
    if scenario.duration_ns:
        facts["duration"] = show("span", scenario.duration_ns)
    metadata = _read_metadata(header.scenario.written)
    for name, key in _PANTHEON.items():
        if isinstance(value := metadata.get(key), int):
            facts[name] = str(value) + ("" if name == "flows" else " s")
    return facts


def _read_metadata(written: str) -> dict[str, object]:
    """Pantheon's metadata of an imported test: they describe the plan, whereas the logs have the outcome."""
    try:
        content = json.loads(written)
    except ValueError:
        return {}
    return content if isinstance(content, dict) else {}
