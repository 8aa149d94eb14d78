"""Campaigns of imported runs: the document, the folder, the results."""

from __future__ import annotations

import platform
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from narrows import __version__
from narrows.campaign import results as result_files
from narrows.campaign.entries import new_document, new_entry, now, problem_of_campaign
from narrows.campaign.json_files import read_run
from narrows.campaign.store import CampaignFolder
from narrows.documents.campaign import ScenarioSource, Session, Versions
from narrows.documents.data import to_data
from narrows.documents.results import Results
from narrows.errors import EXIT_OK, EXIT_SOME_INVALID, DataError
from narrows.filled import fill
from narrows.imported import WHERE
from narrows.scenario.slugs import free_slug, slug_of


@dataclass(frozen=True)
class Imported:
    """A campaign made from other tools' measurements."""

    folder: CampaignFolder
    results: Results

    @property
    def exit_code(self) -> int:
        """6 when a run is missing or does not count."""
        usable = all(cell.is_usable for cell in self.folder.cells)
        return EXIT_OK if usable else EXIT_SOME_INVALID


def default_folder(name: str) -> Path:
    """The default folder of a campaign: under results/, like all others."""
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    base = Path("results") / f"{stamp}-{name}"
    return base.with_name(free_slug(base.name, [path.name for path in base.parent.glob(f"{base.name}*")]))


def new_import_document(
    name: str,
    question: str,
    schemes: list[str],
    *,
    file: str,
    written: str,
    cells: list[dict[str, object]],
    argv: list[str],
) -> dict[str, object]:
    """The campaign.json of an import; settings that all cells share are added once they exist. `file` is the
    source of the measurements, `written` the text that described them, if any.
    """
    resolved = {
        "name": name,
        "question": question,
        "where": WHERE,
        "schemes": [{"label": scheme, "flows": []} for scheme in schemes],
        "expect": [],
    }
    scenario = ScenarioSource(file=file, written=written, resolved=resolved)
    versions = Versions(narrows=__version__, python=platform.python_version())
    session = Session(argv=argv, started_at=now())
    return new_document(name, WHERE, scenario, versions, cells) | {"sessions": [to_data(session)]}


def new_import_entry(
    scheme: str, run: int, taken: set[str], started_at: str | None = None, ended_at: str | None = None
) -> dict[str, object]:
    """The entry of a cell in campaign.json; `taken` has the ids in use, to which its id is added."""
    plain = scheme.rpartition(":")[2]
    cell = free_slug(f"{slug_of(plain) or 'scheme'}-r{run}", taken)
    taken.add(cell)
    return new_entry(cell, scheme, run, attempts=1, started_at=started_at, ended_at=ended_at)


def fill_campaign(
    target: Path, document: dict[str, object], read_all: Callable[[CampaignFolder], None]
) -> Imported:
    """Creates the folder of an import: `read_all` writes the records of its cells and notes how each ended.
    The folder appears when it is complete. Documents that could not be read back are refused.
    """
    if problem := problem_of_campaign(document):
        raise DataError(f"{target}: the campaign could not be read again: {problem}")
    with fill(target, last="campaign.json") as partial:
        (partial / "cells").mkdir()
        folder = CampaignFolder(partial, document)
        read_all(folder)
        folder.settle(_settings(folder))
        folder.end_session("done")
        results = result_files.compute(folder)
        result_files.write(folder, results)
    return Imported(CampaignFolder(target, document), results)


def _settings(folder: CampaignFolder) -> dict[str, object]:
    """The settings that the cells share, from the first existing cell, in the form of resolved scenarios."""
    first = next(entry for entry in folder.cells if entry.is_finished)
    cell = read_run(folder.cell_dir(first.id)).cell
    return {"duration_ns": cell["duration_ns"], "network": cell["network"]}
