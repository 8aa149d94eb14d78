"""Results: every metric of every finished cell, and the summary over runs.

They are written as results.json, results.csv and results.parquet (narrows.campaign.results_file), which are
functions of the records alone (no time of day, no machine), so the same records give the same bytes.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from narrows.campaign import own_metrics, results_file, sealing
from narrows.campaign.columns import Columns
from narrows.campaign.results_file import FORMAT
from narrows.campaign.schema import resolved as resolved_scenario
from narrows.campaign.store import CampaignFolder, read_json, write_atomically
from narrows.errors import DataError
from narrows.statistics.runs import summarise, summarise_happened
from narrows.threads import in_threads

#: Runs with this verdict are counted and shown, but enter no statistic.
INVALID = "invalid"


def measure_cell(path: Path) -> dict[str, Any]:
    """All metrics of one cell's record."""
    from narrows import _native

    try:
        return dict(json.loads(_native.measure(str(path))))
    except (ValueError, OSError) as error:
        raise DataError(f"{path}: can't be measured: {error}") from None


def ask_states(path: Path, asked: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Answers of one cell's record to the questions of expectations."""
    from narrows import _native

    questions = [{"flow": one["flow"], **one["question"]} for one in asked]
    try:
        return list(json.loads(_native.states(str(path), json.dumps(questions))))
    except (ValueError, OSError) as error:
        raise DataError(f"{path}: can't be measured: {error}") from None


def metric_list() -> list[dict[str, Any]]:
    """The metrics that there are, with unit and definition."""
    from narrows import _native

    return list(json.loads(_native.metrics()))


def compute(folder: CampaignFolder) -> dict[str, Any]:
    """The results of all finished cells of a campaign, metrics of the user's own included."""
    return own_metrics.apply(measure(folder), folder)


def measure(folder: CampaignFolder) -> dict[str, Any]:
    """The same without metrics of the user's own."""
    document = folder.document
    order = _scheme_order(document)
    place = {scheme: number for number, scheme in enumerate(order)}
    cells = sorted(folder.cells, key=lambda cell: (place[cell["scheme"]], cell["run"]))
    finished = [cell for cell in cells if cell["state"] == "finished"]
    # The core measures without holding Python's lock, so threads use all cores.
    measured = in_threads(lambda cell: measure_cell(folder.record_dir(cell["id"])), finished)
    metrics = metric_list() + _reported(document, folder, finished, measured)
    columns = Columns(document, [metric["name"] for metric in metrics])
    labels = _flow_labels(document)
    of_cells = [
        _rows(cell, result, document, columns, labels.get(cell["scheme"], {}))
        for cell, result in zip(finished, measured, strict=True)
    ]
    rows = [row for cell_rows in of_cells for row in cell_rows]
    of_links = [
        _link_rows(cell, result, document, columns) for cell, result in zip(finished, measured, strict=True)
    ]
    links = [row for cell_rows in of_links for row in cell_rows]
    resolved = resolved_scenario(document)
    expect = resolved.get("expect", [])
    expected = _expected(folder, expect, finished, of_cells, metrics) if expect else []
    return {
        "format": FORMAT,
        "scenario": document["name"],
        "hash": document["hash"],
        "metrics": metrics,
        **({"columns": [column.to_json() for column in columns.listed]} if columns.listed else {}),
        "rows": rows,
        "digests": {cell["id"]: cell["digest"] for cell in finished if cell.get("digest")},
        "summary": _summaries(order, cells, rows, metrics, columns),
        "skipped": document["skipped"],
        **({"links": links, "link_summary": _link_summary(order, links, metrics, columns)} if links else {}),
        **({"expect": expected} if expected else {}),
    }


def _reported(
    document: dict[str, Any],
    folder: CampaignFolder,
    finished: list[dict[str, Any]],
    measured: list[dict[str, Any]],
) -> list[dict[str, Any]]:
    """The metrics that programs report themselves, whose values are added to what was measured."""
    rows = resolved_scenario(document)["schemes"]
    told = {key for row in rows for flow in row.get("flows", ()) for key in flow.get("program") or ()}
    paths = [folder.record_dir(cell["id"]) for cell in finished]
    described = []
    if "reports" in told:
        # Not before: what manifests are read with takes longer to import than most results take to make.
        from narrows.campaign import program_reports

        described += program_reports.add(zip(paths, measured, strict=True))
    if "segments" in told:
        from narrows.campaign import players

        described += players.add(zip(paths, measured, strict=True))
    return described


def _expected(
    folder: CampaignFolder,
    expect: list[dict[str, Any]],
    finished: list[dict[str, Any]],
    of_cells: list[list[dict[str, Any]]],
    metrics: list[dict[str, Any]],
) -> list[dict[str, Any]]:
    """The findings about the expectations. Answers are for them alone; rows of the results stay as they
    are."""
    from narrows.campaign import expectations

    asked = expectations.questions(expect)
    if asked:
        of_cells = [
            [{**row, "metrics": dict(row["metrics"]), "absent": dict(row["absent"])} for row in cell_rows]
            for cell_rows in of_cells
        ]
        for cell, cell_rows in zip(finished, of_cells, strict=True):
            answers = ask_states(folder.record_dir(cell["id"]), asked)
            expectations.add_answers(cell_rows, asked, answers)
    judged = [row for cell_rows in of_cells for row in cell_rows]
    order = _scheme_order(folder.document)
    return expectations.judge(expect, order, judged, folder.document["skipped"], metrics)


def _scheme_order(document: dict[str, Any]) -> list[str]:
    """Schemes as the scenario lists them."""
    listed = [row["label"] for row in resolved_scenario(document)["schemes"]]
    return list(dict.fromkeys([*listed, *(cell["scheme"] for cell in document["cells"])]))


def _run_of(cell: dict[str, Any], document: dict[str, Any], columns: Columns) -> dict[str, Any]:
    """The columns that all rows of a run share."""
    return {
        "scenario": document["name"],
        "plane": document.get("where"),
        "scheme": cell["scheme"],
        "base": columns.base(cell["scheme"]),
        "run": cell["run"],
        "seed": cell.get("seed"),
        "duration_ns": columns.duration_ns(cell["scheme"]),
    }


def _valued(columns: Columns, label: str, flow: int | None = None) -> dict[str, Any]:
    return {"values": columns.values(label, flow)} if columns.listed else {}


def _rows(
    cell: dict[str, Any],
    measured: dict[str, Any],
    document: dict[str, Any],
    columns: Columns,
    labels: dict[str, str],
) -> list[dict[str, Any]]:
    """The rows of a cell, whose flows have these labels."""
    absent = measured.get("absent", {})
    return [
        {
            **_run_of(cell, document, columns),
            "flow": flow["flow"] if flow["flow"] == "all" else int(flow["flow"]),
            "flow_scheme": flow.get("scheme"),
            "verdict": cell["verdict"],
            "cell": cell["id"],
            **_valued(columns, cell["scheme"], None if flow["flow"] == "all" else int(flow["flow"])),
            "metrics": flow["metrics"],
            "absent": _absent(absent, str(flow["flow"]), flow["metrics"]),
            **({"label": labels[str(flow["flow"])]} if str(flow["flow"]) in labels else {}),
            **({"background": True} if flow.get("background") else {}),
        }
        for flow in measured["flows"]
    ]


def _link_rows(
    cell: dict[str, Any], measured: dict[str, Any], document: dict[str, Any], columns: Columns
) -> list[dict[str, Any]]:
    """One row per link that the scenario asks for."""
    return [
        {
            **_run_of(cell, document, columns),
            "link": link["link"],
            "verdict": cell["verdict"],
            "cell": cell["id"],
            **_valued(columns, cell["scheme"]),
            "metrics": link["metrics"],
            "absent": link["absent"],
        }
        for link in measured.get("links", [])
    ]


def _link_summary(
    order: list[str], links: list[dict[str, Any]], metrics: list[dict[str, Any]], columns: Columns
) -> list[dict[str, Any]]:
    names = list(dict.fromkeys(row["link"] for row in links))
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in links:
        groups.setdefault((row["scheme"], row["link"]), []).append(row)
    lines = []
    for scheme in order:
        for name in names:
            if own := groups.get((scheme, name)):
                named = {"scheme": scheme, "base": columns.base(scheme), "link": name}
                lines.append({**named, **_valued(columns, scheme), "metrics": over_runs(own, metrics)})
    return lines


def over_runs(rows: list[dict[str, Any]], metrics: list[dict[str, Any]]) -> dict[str, Any]:
    """The statistics of each metric over the valid ones of these rows."""
    valid = [row["metrics"] for row in rows if row["verdict"] != INVALID]
    found: dict[str, Any] = {}
    for metric in metrics:
        name, happened = metric["name"], metric.get("happened")
        values = [one[name] for one in valid if one.get(name) is not None]
        if happened:
            outcomes = [one[happened] for one in valid if one.get(happened) is not None]
            if outcomes:
                found[name] = summarise_happened(values, outcomes)
        elif values:
            found[name] = summarise(values)
    return found


def _flow_labels(document: dict[str, Any]) -> dict[str, dict[str, str]]:
    """The labels of flows in the scenario, by the schemes of cells and their numbers."""
    found: dict[str, dict[str, str]] = {}
    for row in resolved_scenario(document)["schemes"]:
        labels = {str(flow["flow"]): flow["label"] for flow in row["flows"] if flow.get("label")}
        found.setdefault(row["label"], labels)
    return found


def _absent(absent: dict[str, Any], flow: str, metrics: dict[str, Any]) -> dict[str, str]:
    reasons = dict(absent.get(flow) or {})
    return {name: reasons[name] for name in metrics if name in reasons}


def _summaries(
    order: list[str],
    cells: list[dict[str, Any]],
    rows: list[dict[str, Any]],
    metrics: list[dict[str, Any]],
    columns: Columns,
) -> list[dict[str, Any]]:
    # Grouped once: a campaign may have thousands of schemes.
    mine: dict[str, list[dict[str, Any]]] = {}
    for cell in cells:
        mine.setdefault(cell["scheme"], []).append(cell)
    # Background is recorded and measured, but it is not what the experiment is about.
    own: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        if not row.get("background"):
            own.setdefault(row["scheme"], []).append(row)
    lines = []
    for scheme in order:
        if scheme in mine:
            lines += _summary(scheme, mine[scheme], own.get(scheme, []), metrics, columns)
    return lines


def _summary(
    scheme: str,
    mine: list[dict[str, Any]],
    own: list[dict[str, Any]],
    metrics: list[dict[str, Any]],
    columns: Columns,
) -> list[dict[str, Any]]:
    """The lines of a scheme with these cells and rows."""
    counts = {
        "started": sum(cell["state"] != "pending" for cell in mine),
        "finished": sum(cell["state"] == "finished" for cell in mine),
        "valid": sum(cell["state"] == "finished" and cell["verdict"] != INVALID for cell in mine),
    }
    # Grouped once: a run may have thousands of flows.
    of_flow: dict[Any, list[dict[str, Any]]] = {} if own else {"all": []}
    for row in own:
        of_flow.setdefault(row["flow"], []).append(row)
    lines = []
    for flow, rows_of_flow in of_flow.items():
        found = over_runs(rows_of_flow, metrics)
        label = next((row["label"] for row in rows_of_flow if "label" in row), None)
        named = {"label": label} if label else {}
        values = _valued(columns, scheme, None if flow == "all" else flow)
        head = {"scheme": scheme, "base": columns.base(scheme), "flow": flow}
        lines.append({**head, **named, **values, **counts, "metrics": found})
    return lines


def as_json(results: dict[str, Any]) -> dict[str, Any]:
    """Results as results.json has them."""
    return results_file.to_file(results)


def write(folder: CampaignFolder, results: dict[str, Any]) -> None:
    """Writes results.json, results.csv and results.parquet."""
    text = sealing.seal(as_json(results), FORMAT, allow_nan=False)
    write_atomically(folder.path / "results.csv", results_file.csv_text(results))
    write_atomically(folder.path / "results.parquet", results_file.parquet_bytes(results))
    # The last one: whoever finds it finds the others as well.
    write_atomically(folder.path / "results.json", text)


def stored(path: Path) -> dict[str, Any] | None:
    """The results beside the records of a campaign, as they were written; None if there are none, or they are
    of an older version and have to be made again. Raises `DataError` if they were changed since."""
    file = path / "results.json"
    if not os.path.lexists(file):
        return None
    document = read_json(file, FORMAT, results_file.OLDER)
    older = str(document["format"]).partition(".")[0] in results_file.OLDER
    return None if older else results_file.from_file(document)


def current(folder: CampaignFolder) -> dict[str, Any] | None:
    """The results beside the records, if they are of all that are finished. Raises `DataError` for results of
    other records."""
    results = stored(folder.path)
    return results if results is not None and _covers(results, folder) else None


def read(path: Path, folder: CampaignFolder | None = None) -> dict[str, Any]:
    """The results of a campaign (which may be open already); of an interrupted one, those of its finished
    cells. Raises `DataError` for results of other records: they are never taken for those of these."""
    folder = folder or CampaignFolder.read(path)
    results = current(folder)
    return compute(folder) if results is None else own_metrics.apply(results, folder)


def remade(folder: CampaignFolder) -> dict[str, Any]:
    """The results for writing: the stored ones, or measured anew where those do not match the records."""
    try:
        return read(folder.path, folder)
    except DataError:
        return compute(folder)


def _covers(results: dict[str, Any], folder: CampaignFolder) -> bool:
    """True if they are of all finished cells, False if they are older than some. Raises `DataError` if they
    are of others."""
    finished = {cell["id"]: cell.get("digest") for cell in folder.cells if cell["state"] == "finished"}
    there, digests = {row["cell"] for row in results["rows"]}, results.get("digests", {})
    others = [
        cell
        for cell in sorted(there)
        if finished.get(cell) and digests.get(cell, finished[cell]) != finished[cell]
    ]
    file = folder.path / "results.json"
    if results.get("hash") != folder.document.get("hash"):
        raise DataError(f"{file}: is of another campaign; {sealing.remedy(file, FORMAT)}")
    if others:
        raise DataError(f"{file}: is of another record of {others[0]}; {sealing.remedy(file, FORMAT)}")
    return finished.keys() == there and all(cell in digests for cell, digest in finished.items() if digest)
