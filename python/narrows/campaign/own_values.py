"""The values of user-defined metrics in the results of a campaign."""

from __future__ import annotations

from msgspec.structs import replace

from narrows.campaign import measurement, own_metrics
from narrows.campaign.record import Run
from narrows.campaign.store import CampaignFolder
from narrows.documents.results import Results, Row
from narrows.progress import progress

#: Progress is shown after this many seconds.
_PATIENCE_S = 1.0


def add_own_values(results: Results, campaign: CampaignFolder) -> Results:
    """Results with the values of these metrics; the same object if nothing changes.

    Each function is called once per finished run.
    """
    wanted = own_metrics.missing(results)
    if not wanted:
        return results
    of_cell: dict[str, list[Row]] = {}
    for row in results.rows:
        of_cell.setdefault(row.cell, []).append(with_own_values(row))
    entries = {entry.id: entry for entry in campaign.cells}
    with progress("metrics of your own", after_s=_PATIENCE_S) as bar:
        for done, (cell, rows) in enumerate(of_cell.items(), 1):
            run = Run(campaign.record_dir(cell), entries.get(cell), rows)
            for own_metric in wanted:
                own_metrics.add_values(own_metric, run, rows)
            bar.count(done, len(of_cell), "runs")
    rows = [row for listed in of_cell.values() for row in listed]
    described = [own_metric.description for own_metric in wanted]
    new = {own_metric.name for own_metric in wanted}
    kept = [metric for metric in results.metrics if metric.name not in new]
    groups: dict[tuple[str, int | str], list[Row]] = {}
    for row in rows:
        if not row.background:
            groups.setdefault((row.scheme, row.flow), []).append(row)
    summary = []
    for line in results.summary:
        known_values = {name: value for name, value in line.metrics.items() if name not in new}
        own = measurement.over_runs(groups.get((line.scheme, line.flow), []), described)
        summary.append(replace(line, metrics=known_values | own))
    return replace(results, metrics=[*kept, *described], rows=rows, summary=summary)


def with_own_values(row: Row) -> Row:
    """A copy of a row whose values can be extended."""
    return replace(row, metrics=dict(row.metrics), absent=dict(row.absent))
