"""The runs that a report draws on paper: for each scheme the middle one, and the runs that are not ok. With a
matrix it is the middle run of the middle row: the effect of the values is in other figures.
"""

from __future__ import annotations

from narrows.report.data import Campaign, Run
from narrows.scenario.derived import suffix
from narrows.statistics.runs import median_over_runs

#: The metrics that determine the middle run.
_METRICS = ("throughput_bps", "delay_p95_ns", "goodput_bps", "rtt_p95_ns")
#: Up to this many runs that are not ok are drawn beside the middle ones; all of them are listed.
MOST_ODD = 6


def representative(runs: list[Run]) -> Run | None:
    """The run whose numbers are nearest to the medians of its scheme's valid runs; among equal ones the
    first. Without a valid run, the first that left a record.
    """
    recorded = [run for run in runs if run.record is not None]
    valid = [run for run in recorded if run.valid]
    if not valid:
        return recorded[0] if recorded else None
    distance = dict.fromkeys((run.cell for run in valid), 0.0)
    for name in _METRICS:
        values = {run.cell: _value(run, name) for run in valid}
        known = [value for value in values.values() if value is not None]
        if len(known) < len(valid):
            continue
        middle, span = median_over_runs(known), max(known) - min(known)
        for cell, value in values.items():
            if value is not None and span > 0:
                distance[cell] += abs(value - middle) / span
    return min(valid, key=lambda run: (distance[run.cell], run.number))


def _value(run: Run, name: str) -> float | None:
    value = run.value("all", name)
    return None if value is None else float(value)


def _middle_rows(campaign: Campaign) -> list[str]:
    """One row of each scheme."""
    values = {row.label: row.values for row in campaign.resolved.schemes}
    result: dict[str, list[str]] = {}
    for label in campaign.schemes:
        own = values.get(label)
        result.setdefault(label.removesuffix(suffix(own)) if own else label, []).append(label)
    return [labels[len(labels) // 2] for labels in result.values()]


def choose_cells(campaign: Campaign) -> list[str]:
    """The cells of these runs, in the order of the schemes."""
    middle = [representative(campaign.of_scheme(row)) for row in _middle_rows(campaign)]
    cells = {run.cell for run in middle if run is not None}
    odd = [
        run.cell
        for run in campaign.runs
        if run.record is not None and run.outcome != "ok" and run.cell not in cells
    ]
    cells.update(odd[:MOST_ODD])
    return [
        run.cell for scheme in campaign.schemes for run in campaign.of_scheme(scheme) if run.cell in cells
    ]
