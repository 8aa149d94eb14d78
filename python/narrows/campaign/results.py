"""Results: every metric of every finished cell, and the summary over runs.

They are written as results.json, results.csv and results.parquet (narrows.campaign.results_file), which
depend on the records alone (not on the time of day or the machine), so the same records yield the same bytes.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from narrows.campaign import measurement, results_file, sealing
from narrows.campaign.columns import Columns
from narrows.campaign.json_files import read_json, write_atomically
from narrows.campaign.own_values import add_own_values, with_own_values
from narrows.campaign.store import CampaignFolder
from narrows.documents.campaign import PENDING, CellEntry, Header
from narrows.documents.data import DamagedError, Value, to_data
from narrows.documents.resolved import Resolved
from narrows.documents.results import (
    ALL,
    FORMAT,
    LinkRow,
    LinkSummary,
    Measured,
    Metric,
    Outcome,
    Results,
    Row,
    SummaryLine,
    read_results,
)
from narrows.errors import DataError
from narrows.threads import in_threads


def compute(folder: CampaignFolder) -> Results:
    """The results of all finished cells of a campaign, including user-defined metrics."""
    return add_own_values(measure(folder), folder)


def measure(folder: CampaignFolder) -> Results:
    """The results without user-defined metrics."""
    scenario = folder.resolved
    order = _scheme_order(scenario, folder.cells)
    place = {scheme: number for number, scheme in enumerate(order)}
    cells = sorted(folder.cells, key=lambda cell: (place[cell.scheme], cell.run))
    finished = [cell for cell in cells if cell.is_finished]
    # The core releases Python's lock while measuring, so threads use all cores.
    measured = in_threads(lambda cell: measurement.measure_cell(folder.record_dir(cell.id)), finished)
    metrics = measurement.list_metrics() + _add_reports(scenario, folder, finished, measured)
    columns = Columns(scenario, [metric.name for metric in metrics])
    labels = _flow_labels(scenario)
    of_cells = [
        _rows(cell, result, folder.header, columns, labels.get(cell.scheme, {}))
        for cell, result in zip(finished, measured, strict=True)
    ]
    rows = [row for cell_rows in of_cells for row in cell_rows]
    links = [
        row
        for cell, result in zip(finished, measured, strict=True)
        for row in _link_rows(cell, result, folder.header, columns)
    ]
    return Results(
        format=FORMAT,
        scenario=folder.header.name,
        hash=folder.header.hash,
        metrics=metrics,
        columns=[column.to_document() for column in columns.listed],
        rows=rows,
        digests={cell.id: cell.digest for cell in finished if cell.digest},
        summary=_summaries(order, cells, rows, metrics, columns),
        skipped=folder.header.skipped,
        links=links,
        link_summary=_link_summary(order, links, metrics, columns),
        expect=_judge_expectations(folder, scenario, finished, of_cells, metrics) if scenario.expect else [],
    )


def _add_reports(
    scenario: Resolved,
    folder: CampaignFolder,
    finished: list[CellEntry],
    measured: list[Measured],
) -> list[Metric]:
    """Adds the values of metrics that programs report themselves to the measurements; returns the metrics."""
    plans = [flow.program for row in scenario.schemes for flow in row.flows if flow.program]
    paths = [folder.record_dir(cell.id) for cell in finished]
    described: list[Metric] = []
    if any(plan.reports for plan in plans):
        # Imported late: the readers of manifests take longer to import than most results take to compute.
        from narrows.campaign import program_reports

        described += program_reports.add(zip(paths, measured, strict=True))
    if any(plan.segments for plan in plans):
        from narrows.campaign import players

        described += players.add(zip(paths, measured, strict=True))
    return described


def _judge_expectations(
    folder: CampaignFolder,
    scenario: Resolved,
    finished: list[CellEntry],
    of_cells: list[list[Row]],
    metrics: list[Metric],
) -> list[Outcome]:
    """The findings about the expectations. The answers serve them alone; rows of the results stay
    unchanged.
    """
    from narrows.campaign import expectations

    asked = expectations.questions(scenario.expect)
    if asked:
        of_cells = [[with_own_values(row) for row in cell_rows] for cell_rows in of_cells]
        for cell, cell_rows in zip(finished, of_cells, strict=True):
            answers = measurement.ask_states(folder.record_dir(cell.id), asked)
            expectations.add_answers(cell_rows, asked, answers)
    judged = [row for cell_rows in of_cells for row in cell_rows]
    order = _scheme_order(scenario, folder.cells)
    skipped = {row.scheme: row.reason for row in folder.header.skipped}
    return expectations.judge(scenario.expect, order, judged, skipped, metrics)


def _scheme_order(scenario: Resolved, cells: list[CellEntry]) -> list[str]:
    """Schemes as the scenario lists them."""
    return list(dict.fromkeys([row.label for row in scenario.schemes] + [cell.scheme for cell in cells]))


def _rows(
    cell: CellEntry,
    measured: Measured,
    header: Header,
    columns: Columns,
    labels: dict[str, str],
) -> list[Row]:
    """The rows of a cell, whose flows have these labels."""
    numbers = {flow.flow: None if flow.flow == ALL else int(flow.flow) for flow in measured.flows}
    return [
        Row(
            scenario=header.name,
            plane=header.where,
            base=columns.base(cell.scheme),
            scheme=cell.scheme,
            run=cell.run,
            seed=cell.seed,
            duration_ns=columns.duration_ns(cell.scheme),
            number=numbers[flow.flow],
            flow_scheme=flow.scheme,
            verdict=cell.verdict,
            cell=cell.id,
            values=_values(columns, cell.scheme, numbers[flow.flow]),
            metrics=flow.metrics,
            absent=_absent(measured.absent.get(flow.flow, {}), flow.metrics),
            label=labels.get(flow.flow),
            background=flow.background,
        )
        for flow in measured.flows
    ]


def _values(columns: Columns, label: str, flow: int | None = None) -> dict[str, Value] | None:
    return columns.values(label, flow) if columns.listed else None


def _link_rows(cell: CellEntry, measured: Measured, header: Header, columns: Columns) -> list[LinkRow]:
    """One row per link that the scenario measures."""
    return [
        LinkRow(
            scenario=header.name,
            plane=header.where,
            base=columns.base(cell.scheme),
            scheme=cell.scheme,
            run=cell.run,
            seed=cell.seed,
            duration_ns=columns.duration_ns(cell.scheme),
            link=link.link,
            verdict=cell.verdict,
            cell=cell.id,
            values=_values(columns, cell.scheme),
            metrics=link.metrics,
            absent=link.absent,
        )
        for link in measured.links
    ]


def _link_summary(
    order: list[str], links: list[LinkRow], metrics: list[Metric], columns: Columns
) -> list[LinkSummary]:
    names = list(dict.fromkeys(row.link for row in links))
    groups: dict[tuple[str, str], list[LinkRow]] = {}
    for row in links:
        groups.setdefault((row.scheme, row.link), []).append(row)
    return [
        LinkSummary(
            base=columns.base(scheme),
            scheme=scheme,
            link=name,
            values=_values(columns, scheme),
            metrics=measurement.over_runs(groups[scheme, name], metrics),
        )
        for scheme in order
        for name in names
        if (scheme, name) in groups
    ]


def _flow_labels(scenario: Resolved) -> dict[str, dict[str, str]]:
    """The labels of flows in the scenario, by the schemes of cells and their numbers."""
    flow_labels: dict[str, dict[str, str]] = {}
    for row in scenario.schemes:
        labels = {str(flow.number): flow.label for flow in row.flows if flow.label}
        flow_labels.setdefault(row.label, labels)
    return flow_labels


def _absent(reasons: dict[str, str], metrics: Iterable[str]) -> dict[str, str]:
    return {name: reasons[name] for name in metrics if name in reasons}


def _summaries(
    order: list[str],
    cells: list[CellEntry],
    rows: list[Row],
    metrics: list[Metric],
    columns: Columns,
) -> list[SummaryLine]:
    # Grouped once, because a campaign may have thousands of schemes.
    mine: dict[str, list[CellEntry]] = {}
    for cell in cells:
        mine.setdefault(cell.scheme, []).append(cell)
    # Background is recorded and measured, but is not the subject of the experiment.
    own: dict[str, list[Row]] = {}
    for row in rows:
        if not row.background:
            own.setdefault(row.scheme, []).append(row)
    lines = []
    for scheme in order:
        if scheme in mine:
            lines += _summary(scheme, mine[scheme], own.get(scheme, []), metrics, columns)
    return lines


def _summary(
    scheme: str,
    mine: list[CellEntry],
    own: list[Row],
    metrics: list[Metric],
    columns: Columns,
) -> list[SummaryLine]:
    """The summary lines of a scheme with these cells and rows."""
    # Grouped once, because a run may have thousands of flows.
    of_flow: dict[int | None, list[Row]] = {} if own else {None: []}
    for row in own:
        of_flow.setdefault(row.number, []).append(row)
    return [
        SummaryLine(
            base=columns.base(scheme),
            scheme=scheme,
            number=number,
            label=next((row.label for row in rows if row.label), None),
            values=_values(columns, scheme, number),
            started=sum(cell.state != PENDING for cell in mine),
            finished=sum(cell.is_finished for cell in mine),
            valid=sum(cell.is_usable for cell in mine),
            metrics=measurement.over_runs(rows, metrics),
        )
        for number, rows in of_flow.items()
    ]


def write(folder: CampaignFolder, results: Results) -> None:
    """Writes results.json, results.csv and results.parquet."""
    text = sealing.seal(to_data(results), FORMAT, allow_nan=False)
    write_atomically(folder.path / "results.csv", results_file.csv_text(results))
    write_atomically(folder.path / "results.parquet", results_file.parquet_bytes(results))
    # Written last: when it exists, the others do as well.
    write_atomically(folder.path / "results.json", text)


def read_stored(path: Path) -> Results | None:
    """The stored results beside the records of a campaign; None if there are none, or if they have an older
    version and must be computed again. Raises `DataError` if they were modified.
    """
    file = path / "results.json"
    if not os.path.lexists(file):
        return None
    document = read_json(file, FORMAT, results_file.OLDER)
    if str(document["format"]).partition(".")[0] in results_file.OLDER:
        return None
    try:
        return read_results(document)
    except DamagedError as error:
        raise DataError(f"{file}: is damaged: {error}") from None


def current(folder: CampaignFolder) -> Results | None:
    """The stored results, if they cover all finished cells. Raises `DataError` if they belong to other
    records.
    """
    results = read_stored(folder.path)
    return results if results is not None and _covers(results, folder) else None


def read(path: Path, folder: CampaignFolder | None = None) -> Results:
    """The results of a campaign (which may be open already); for an interrupted one, those of its finished
    cells. Raises `DataError` if stored results belong to other records: they are never attributed to these.
    """
    folder = folder or CampaignFolder.read(path)
    results = current(folder)
    return compute(folder) if results is None else add_own_values(results, folder)


def remade(folder: CampaignFolder) -> Results:
    """The results to be written: the stored ones, or new measurements if those do not match the records."""
    try:
        return read(folder.path, folder)
    except DataError:
        return compute(folder)


def _covers(results: Results, folder: CampaignFolder) -> bool:
    """True if the results cover all finished cells, False if they are older than some of them. Raises
    `DataError` if they belong to other cells.
    """
    finished = {cell.id: cell.digest for cell in folder.cells if cell.is_finished}
    there, digests = {row.cell for row in results.rows}, results.digests
    others = [
        cell
        for cell in sorted(there)
        if finished.get(cell) and digests.get(cell, finished[cell]) != finished[cell]
    ]
    file = folder.path / "results.json"
    if results.hash != folder.header.hash:
        raise DataError(f"{file}: is of another campaign; {sealing.remedy(file, FORMAT)}")
    if others:
        raise DataError(f"{file}: is of another record of {others[0]}; {sealing.remedy(file, FORMAT)}")
    return finished.keys() == there and all(cell in digests for cell, digest in finished.items() if digest)
