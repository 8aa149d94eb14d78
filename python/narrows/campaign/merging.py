"""`narrows merge`: runs of one experiment from several campaigns, combined into one.

The network, the flows, the duration and the plane must be the same; the schemes, the number of runs and the
seed may differ. Equal runs are kept once. A run whose number is taken by another one gets the next free
number, the same for all schemes of its campaign, so that run k of every scheme still shares its seed. The
source campaigns remain unchanged, and are named in the member `merged` of the new `campaign.json`.
"""

from __future__ import annotations

import copy
import json
import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from narrows.campaign import integrity
from narrows.campaign import results as result_files
from narrows.campaign.entries import now
from narrows.campaign.gathering import is_busy, record_problem
from narrows.campaign.json_files import read_json, write_atomically
from narrows.campaign.schema import scenario_dict
from narrows.campaign.store import CampaignFolder
from narrows.documents.campaign import FORMAT, CellEntry, Session
from narrows.documents.data import to_data
from narrows.documents.run import FORMAT as RUN_FORMAT
from narrows.errors import DataError, NarrowsError, UsageError, reason
from narrows.hashes import content_hash
from narrows.scenario.model import FOR_PEOPLE, hash_of
from narrows.text import any_of

#: Members of a resolved scenario that may differ between campaigns.
_MAY_DIFFER = (*FOR_PEOPLE, "format", "schemes", "runs", "seed", "drawn")


@dataclass
class Merged:
    """The new campaign, and remarks for its readers."""

    folder: CampaignFolder
    remarks: list[str] = field(default_factory=list)


@dataclass
class _Copy:
    """A cell of the new campaign: its source entry and record, and its new entry."""

    source: CellEntry
    record: Path
    #: The entry as written, with members of newer versions.
    content: dict[str, Any]
    renumbered: bool

    @property
    def digest(self) -> str | None:
        """The digest of its record, which a new number changes."""
        return None if self.renumbered else self.source.digest


def merge(paths: list[Path], output: Path, argv: list[str], step: Callable[[int, int], None]) -> Merged:
    """Merges campaigns into a new folder, and measures it. `step` receives the number of copied runs and the
    total.

    Raises `UsageError` or `DataError` with one sentence, and then leaves no folder.
    """
    if len(paths) < 2:
        raise UsageError("merge takes two campaigns or more")
    if output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise UsageError(f"{output} already exists; choose another folder with -o")
    folders = [CampaignFolder.read(path) for path in paths]
    for folder in folders:
        if is_busy(folder):
            raise DataError(f"{folder.path}: is being written at the moment; merge it when it is done")
        if problem := record_problem(folder):
            raise DataError(problem)
        folder.check_records()
        _check_same(folders[0], folder)
    document, copies = _plan_cells(folders, argv)
    partial = output.parent / f".{output.name}.partial"
    try:
        shutil.rmtree(partial, ignore_errors=True)
        (partial / "cells").mkdir(parents=True)
        for number, copied in enumerate(copies, 1):
            _copy(copied, partial)
            step(number, len(copies))
        for folder in folders:
            _copy_files(folder, partial)
        merged = CampaignFolder(partial, document)
        merged.save()
        result_files.write(merged, result_files.compute(merged))
        if output.is_dir():
            output.rmdir()
        partial.replace(output)
    except OSError as error:
        shutil.rmtree(partial, ignore_errors=True)
        raise NarrowsError(f"{output}: can't be written: {reason(error)}") from None
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    merged.path = output
    return Merged(merged, _remarks(folders))


def _check_same(first: CampaignFolder, other: CampaignFolder) -> None:
    """Raises `DataError` if two campaigns are not runs of one experiment."""
    one, two = scenario_dict(first.header), scenario_dict(other.header)
    keys = [key for key in {**one, **two} if key not in _MAY_DIFFER and one.get(key) != two.get(key)]
    where = f"{first.path} and {other.path}"
    if "where" in keys:
        planes = f"{one.get('where')} and {two.get('where')}"
        raise DataError(f"{where}: ran on different planes ({planes}); show them side by side: narrows show")
    if keys:
        names = any_of(key.removesuffix("_ns") for key in keys).replace(" or ", " and ")
        differ = "differs" if len(keys) == 1 else "differ"
        raise DataError(
            f"{where}: are different experiments ({names} {differ}); only runs of one can be merged"
        )
    rows = {row["label"]: row for row in one["schemes"]}
    for row in two["schemes"]:
        mine = rows.get(row["label"])
        if mine is not None and mine != row:
            raise DataError(
                f"{where}: {row['label']} is set up differently in them; only equal schemes can be merged"
            )


# -- what is put where ---------------------------------------------------------------------------


def _plan_cells(folders: list[CampaignFolder], argv: list[str]) -> tuple[dict[str, Any], list[_Copy]]:
    first = folders[0].document
    rows: dict[str, dict[str, Any]] = {}
    taken: dict[tuple[str, int], _Copy] = {}
    seeds: dict[int, int | None] = {}
    copies: list[_Copy] = []
    merged: list[dict[str, Any]] = []
    drawn: list[Any] = []
    for folder in folders:
        document = folder.document
        resolved = scenario_dict(folder.header)
        for row in resolved["schemes"]:
            rows.setdefault(row["label"], row)
        numbers = _numbers(folder.cells, taken, seeds)
        for entry in folder.cells:
            number = numbers[entry.run]
            before = taken.get((entry.scheme, number))
            if before is not None and before.source.is_finished:
                continue
            if before is not None:
                copies = [copied for copied in copies if copied is not before]
            copied = taken[entry.scheme, number] = _renumber(folder, entry, number)
            seeds.setdefault(number, entry.seed)
            copies.append(copied)
        for run, item in enumerate(resolved.get("drawn") or (), 1):
            number = numbers.get(run, run)
            drawn += [None] * (number - len(drawn))
            drawn[number - 1] = drawn[number - 1] or item
        merged.append(
            {
                "folder": folder.path.resolve().name,
                "hash": folder.header.hash,
                "created_at": folder.header.created_at,
                "versions": document.get("versions"),
                "host": document.get("host"),
                "runs": {str(before): after for before, after in numbers.items()},
            }
        )
    resolved = copy.deepcopy(scenario_dict(folders[0].header))
    resolved.update(schemes=list(rows.values()), runs=max(seeds, default=0))
    if drawn:
        resolved["drawn"] = drawn
    measured = {scheme for scheme, _ in taken}
    skipped = {row.scheme: row for folder in folders for row in folder.header.skipped}
    time = now()
    own = hash_of(resolved)
    if any(copied.renumbered for copied in copies):
        # No scenario describes these runs, so a campaign in this folder can't be resumed.
        own = content_hash({"scenario": own, "merged": [[item["hash"], item["runs"]] for item in merged]})
    document = {
        **{key: first.get(key) for key in ("name", "where", "versions", "host") if key in first},
        "format": FORMAT,
        "hash": own,
        "scenario": {**(first.get("scenario") or {}), "resolved": resolved},
        "created_at": time,
        "ended_at": time,
        "sessions": to_data([Session(argv=argv, started_at=time, ended_at=time, outcome="merged")]),
        "skipped": to_data([row for name, row in skipped.items() if name not in measured]),
        "cells": [copied.content for copied in copies],
        "merged": merged,
    }
    return document, copies


def _numbers(
    cells: list[CellEntry], taken: dict[tuple[str, int], _Copy], seeds: dict[int, int | None]
) -> dict[int, int]:
    """The new numbers of a campaign's runs."""
    runs: dict[int, list[CellEntry]] = {}
    for entry in cells:
        runs.setdefault(entry.run, []).append(entry)
    numbers: dict[int, int] = {}
    used = {number for _, number in taken}
    for run, entries in sorted(runs.items()):
        fits = all(seeds.get(run, entry.seed) == entry.seed for entry in entries) and all(
            _agree(taken.get((entry.scheme, run)), entry) for entry in entries
        )
        numbers[run] = run if fits and run not in numbers.values() else max([*used, *numbers.values(), 0]) + 1
    return numbers


def _agree(mine: _Copy | None, other: CellEntry) -> bool:
    """True if at most one of two entries of a run has a record, or both have the same record."""
    if mine is None or not (mine.source.is_finished and other.is_finished):
        return True
    return mine.digest is not None and mine.digest == other.digest


def _renumber(folder: CampaignFolder, entry: CellEntry, number: int) -> _Copy:
    content = copy.deepcopy(folder.content_of(entry.id))
    if number != entry.run:
        stem = entry.id.removesuffix(f"-r{entry.run}")
        content.update(id=f"{stem}-r{number}", run=number)
        content.pop("digest", None)
        content.pop("hash", None)
    content["origin"] = {"campaign": folder.path.resolve().name, "cell": entry.id}
    return _Copy(entry, folder.cell_dir(entry.id), content, number != entry.run)


# -- copying -------------------------------------------------------------------------------------


def _copy(copied: _Copy, target: Path) -> None:
    if not copied.source.is_finished:
        return
    content = copied.content
    cell = target / "cells" / content["id"]
    shutil.copytree(copied.record, cell)
    if copied.renumbered:
        file = cell / "run.json"
        run = read_json(file, RUN_FORMAT)
        run["cell"].update(id=content["id"], run=content["run"])
        write_atomically(file, json.dumps(run, indent=2, ensure_ascii=False) + "\n")
        content["hash"] = content_hash(run["cell"])
    content["digest"] = integrity.digest(cell)


def _copy_files(folder: CampaignFolder, target: Path) -> None:
    """Copies the files that cells name, by the hash of their content, so that equal names are equal files."""
    if folder.files_dir.is_dir():
        for path in sorted(folder.files_dir.iterdir()):
            if path.is_file() and not path.is_symlink():
                (target / "files").mkdir(exist_ok=True)
                shutil.copyfile(path, target / "files" / path.name)


def _remarks(folders: Iterable[CampaignFolder]) -> list[str]:
    """Differences between the machines, for readers of the merged numbers."""
    remarks = []
    headers = [folder.header for folder in folders]
    for words, values in (
        ("versions of narrows", [header.versions and header.versions.narrows for header in headers]),
        ("kernels", [header.host and header.host.kernel for header in headers if header.where != "simulate"]),
    ):
        listed = list(dict.fromkeys(str(value) for value in values if value))
        if len(listed) > 1:
            remarks.append(
                f"the campaigns were made with different {words}: {any_of(listed).replace(' or ', ' and ')}"
            )
    return remarks
