"""The checks of a campaign as a whole, besides those of its records: does everything in its folder belong
together, and are its results those of its records?
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from msgspec import UNSET, structs

from narrows.campaign import integrity, own_metrics, results, results_file, sealing
from narrows.campaign.json_files import read_run
from narrows.campaign.schema import scenario_dict
from narrows.campaign.store import CampaignFolder
from narrows.csv_text import neutralise
from narrows.documents.campaign import Header
from narrows.documents.data import DamagedError, to_data
from narrows.documents.extensions import labels
from narrows.documents.resolved import Cell, Flow, Resolved, SchemeRow, lay_over, read_cell
from narrows.documents.results import FORMAT, LinkRow, Results, Row
from narrows.documents.run import Check
from narrows.errors import DataError, NarrowsError, reason
from narrows.files import read_bytes
from narrows.hashes import content_hash
from narrows.imported import WHERE as IMPORTED
from narrows.scenario import registry

#: Members of a resolved scenario that cells repeat.
_REPEATED = (
    "network", "duration_ns", "record", "bin_ns", "sample_ns", "transport", "timeline", "measure",
    "transfers",
)  # fmt: skip
#: Members of results that follow from the records, independently of the version that described the metrics.
_MEASURED = ("scenario", "hash", "rows", "digests", "summary", "skipped", "links", "link_summary", "expect")
#: Tolerance (relative) for numbers that another machine may compute.
_TOLERANCE = 1e-9


def check_campaign(folder: CampaignFolder) -> list[Check]:
    """All checks of a campaign, ordered so that later ones rely on earlier ones."""
    return [
        _check_seal(folder),
        _check(
            "scenario",
            _scenario_problems(folder),
            "its hash and the cells are those of the resolved scenario",
        ),
        _check("files", _file_problems(folder), "every file is of the campaign, and has its content"),
        *_results(folder),
    ]


def _check(name: str, problems: Iterator[str], fine: str) -> Check:
    """The outcome of a check: its first problem, and the number of problems."""
    texts = list(problems)
    more = f", and {len(texts) - 1} more" if len(texts) > 1 else ""
    return Check(name=name, ok=not texts, detail=f"{texts[0]}{more}" if texts else fine)


def _skip(name: str, why: str) -> Check:
    return Check(name=name, ok=True, skipped=True, detail=why)


def _check_seal(folder: CampaignFolder) -> Check:
    # Results that do not fit could not be read.
    if sealing.is_sealed(folder.path / "campaign.json"):
        return _check("campaign", iter(()), "campaign.json is as it was written")
    return _skip("campaign", "campaign.json is of a version that noted no digest of it")


# -- the scenario ----------------------------------------------------------------------------------


def _scenario_problems(folder: CampaignFolder) -> Iterator[str]:
    header = folder.header
    file = folder.path / "campaign.json"
    try:
        scenario = folder.resolved
    except DataError as error:
        yield str(error)
        return
    if header.hash and header.hash not in _hashes(header):
        yield f"{file}: its resolved scenario is not the one of its hash, {header.hash}"
    # Early versions did not write all members.
    stated = set(header.scenario.resolved)
    for entry in folder.cells:
        if not entry.is_finished:
            continue
        cell = folder.cell_dir(entry.id)
        try:
            run = read_run(cell)
        except DataError as error:
            yield str(error)
            continue
        if problem := integrity.difference(cell, entry, run):
            yield problem
        row = scenario.row(entry.scheme)
        if header.where == IMPORTED or row is None:
            continue
        try:
            ran = read_cell(run.cell)
        except DamagedError as error:
            yield f"{cell / 'run.json'}: is damaged: {error}"
            continue
        for key in _find_changed_keys(scenario, row, ran, stated, set(run.cell)):
            yield f"{cell / 'run.json'}: ran with another {key} than {file} says"


def _hashes(header: Header) -> Iterator[str]:
    """The possible hashes of a campaign with this resolved scenario."""
    from narrows.scenario.model import hash_of

    scenario = scenario_dict(header)
    own = hash_of(scenario)
    yield own
    if header.where == IMPORTED:
        yield content_hash(scenario)
    if merged := header.merged:
        yield content_hash({"scenario": own, "merged": [[item.hash, item.runs] for item in merged]})


def _find_changed_keys(
    scenario: Resolved, row: SchemeRow, ran: Cell, stated: set[str], recorded: set[str]
) -> Iterator[str]:
    """The members of a cell that differ from the resolved scenario, of those that both files have."""
    drawn = scenario.drawn[ran.run - 1 : ran.run]
    planned = lay_over(lay_over(scenario, row.overlay), drawn[0].overlay if drawn else UNSET)
    for key in _REPEATED:
        value = getattr(planned, key)
        has_both = key in recorded and (key in stated or value is not getattr(scenario, key))
        if has_both and value != getattr(ran, key):
            yield key.removesuffix("_ns")
    if row.flows and list(map(_timeless, row.flows)) != list(map(_timeless, ran.flows)):
        yield "set of flows"


def _timeless(flow: Flow) -> Flow:
    """A flow without its start time, which may be random."""
    return structs.replace(flow, start_ns=0, start_spread_ns=0)


# -- files -----------------------------------------------------------------------------------------


def _file_problems(folder: CampaignFolder) -> Iterator[str]:
    try:
        yield from integrity.find_changed_files(folder.files_dir, folder.header.scenario)
        known = {entry.id for entry in folder.cells}
        for path in sorted((folder.path / "cells").iterdir()):
            if path.name not in known and not path.name.startswith("."):
                yield f"{path}: is not a cell of the campaign; remove it"
    except OSError as error:
        yield f"{error.filename}: can't be read: {reason(error)}"


# -- results ---------------------------------------------------------------------------------------


def _absent_extensions(header: Header) -> str:
    """The extensions of a campaign without which its records can't be measured as they were."""
    agent = header.versions.agent if header.versions else None
    known = registry.load().extensions
    return labels([item for item in agent.extensions if item not in known]) if agent else ""


def _results(folder: CampaignFolder) -> Iterator[Check]:
    file = folder.path / "results.json"
    remedy = sealing.remedy(file, FORMAT)
    try:
        there = results.current(folder)
    except DataError as error:
        yield _check("results", iter([str(error)]), "")
        return
    if there is None:
        if not folder.header.is_complete:
            yield _skip("results", "the campaign is not complete, so its results are measured when needed")
        elif file.exists() and results.read_stored(folder.path) is None:
            yield _skip("results", "results.json is of an older version; its numbers are measured anew")
        else:
            lacking = "lacks records of the campaign" if file.exists() else "does not exist"
            yield _check("results", iter([f"{file}: {lacking}; {remedy}"]), "")
        return
    if absent := _absent_extensions(folder.header):
        why = f"the campaign was made with extensions that are not in use here: {absent}"
        yield _skip("results", why)
        return
    try:
        measured = results.measure(folder)
    except NarrowsError as error:
        yield _check("results", iter([f"{file}: can't be compared with the records: {error}"]), "")
        return
    problem = _first_difference(there, measured)
    problems = [f"{file}: {problem}; {remedy}"] if problem else []
    own = own_metrics.names(there.metrics)
    more = f"; not measured again: {', '.join(own)}" if own else ""
    yield _check(
        "results", iter(problems), f"measured again, the records have the numbers of results.json{more}"
    )
    sealed = sealing.is_sealed(file)
    yield _check("tables", _table_problems(folder.path, there, sealed), "results.csv and results.parquet fit")


def _first_difference(there: Results, measured: Results) -> str | None:
    """The first number of results.json that differs from the records, in words."""
    own = set(own_metrics.names(there.metrics))
    known = {metric.name for metric in there.metrics} - own
    plain, again = (
        {name: _of_metrics(part[name], known) for name in _MEASURED if name in part}
        for part in (to_data(there), to_data(measured))
    )
    rows: dict[str, Sequence[Row | LinkRow]] = {"rows": there.rows, "links": there.links}
    for path, ours, theirs in _differences(plain, again, ()):
        named = " ".join(str(part) for part in path)
        if path[0] in rows and len(path) > 1 and isinstance(path[1], int):
            row = rows[str(path[0])][path[1]]
            of = f"flow {row.flow}" if isinstance(row, Row) else f"link {row.link}"
            named = f"{path[-1]} of {row.cell}, {of}"
        return f"{named} is {_short(ours)}, and {_short(theirs)} by the records"
    return None


def _of_metrics(part: Any, known: set[str]) -> Any:
    """A part of the results with these metrics only."""
    if isinstance(part, list):
        return [_of_metrics(item, known) for item in part]
    if isinstance(part, dict) and isinstance(part.get("metrics"), dict):
        kept = {name: value for name, value in part["metrics"].items() if name in known}
        # Versions give the reason why a metric has no value in different words.
        absent = sorted(known.intersection(part.get("absent") or ()))
        return {**part, "metrics": kept, **({"absent": absent} if "absent" in part else {})}
    return part


def _differences(ours: Any, theirs: Any, path: tuple[str | int, ...]) -> Iterator[tuple[Any, Any, Any]]:
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for key in dict.fromkeys((*ours, *theirs)):
            yield from _differences(ours.get(key), theirs.get(key), (*path, key))
    elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        for index, (item, two) in enumerate(zip(ours, theirs, strict=True)):
            yield from _differences(item, two, (*path, index))
    elif not _equal(ours, theirs):
        yield path, ours, theirs


def _equal(ours: Any, theirs: Any) -> bool:
    numbers = (int, float)
    if isinstance(ours, bool) or isinstance(theirs, bool):
        return ours is theirs
    if isinstance(ours, numbers) and isinstance(theirs, numbers):
        return math.isclose(ours, theirs, rel_tol=_TOLERANCE)
    return bool(ours == theirs)


def _short(value: Any) -> str:
    if isinstance(value, list | dict):
        return f"{len(value)} entries"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 40 else f"{text[:40]}..."


def _table_problems(folder: Path, there: Results, sealed: bool) -> Iterator[str]:
    """Problems of results.csv and results.parquet, which follow from results.json."""
    for name, fits in (("results.csv", _csv_fits), ("results.parquet", _parquet_fits)):
        file = folder / name
        remedy = sealing.remedy(file, FORMAT)
        try:
            if not fits(read_bytes(file), there, sealed):
                yield f"{file}: is not the table of results.json; {remedy}"
        except OSError as error:
            yield f"{file}: can't be read: {reason(error)}; {remedy}"


def _csv_fits(content: bytes, there: Results, sealed: bool) -> bool:
    text = results_file.csv_text(there)
    if content == text.encode():
        return True
    # Tables of earlier versions contain unescaped formulas.
    return not sealed and _neutral(content.decode(errors="replace")) == _neutral(text)


def _neutral(text: str) -> list[list[object]]:
    import csv
    import io

    return [[neutralise(value) for value in row] for row in csv.reader(io.StringIO(text))]


def _parquet_fits(content: bytes, there: Results, sealed: bool) -> bool:
    import pyarrow as pa
    import pyarrow.parquet as pq

    made = results_file.parquet_bytes(there)
    if content == made:
        return True
    try:
        result = pq.ParquetFile(pa.BufferReader(content))
        if sealed and result.metadata.created_by == pq.ParquetFile(pa.BufferReader(made)).metadata.created_by:
            return False
        # Another version of the library encodes the same rows differently.
        names = [column.name for column in there.columns]
        read = results_file.with_common_types(result.read(), names)
        return bool(read.equals(results_file.table(there), check_metadata=True))
    except (OSError, pa.ArrowException, ValueError):
        return False
