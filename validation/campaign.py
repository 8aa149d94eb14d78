"""Cells of arbitrary scenarios as one campaign: run by the ordinary executor, stored, and not run again."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from msgspec.structs import replace
from rich.console import Console

from narrows import __version__
from narrows.agent.location import Location
from narrows.campaign.entries import new_versions
from narrows.campaign.execute import Executor
from narrows.campaign.plan import Plan
from narrows.campaign.planes import Plane
from narrows.campaign.progress import ProgressView
from narrows.campaign.store import CampaignFolder, read_document
from narrows.documents.campaign import CellEntry
from narrows.errors import DataError
from narrows.hashes import content_hash
from narrows.scenario import Loaded, cells_of, loads
from narrows.scenario.model import Cell

#: The scenario named in campaign.json; each cell has a separate one.
_FRAME = """\
schema: narrows/scenario/1
question: Is the laboratory what it claims to be?
where: {where}
path: {{forward: [{{delay: 1 ms}}], backward: [{{delay: 1 ms}}]}}
schemes: [reno]
duration: 1 s
"""


def slug(name: str) -> str:
    """A scheme's name as part of the name of a file."""
    return name.replace(":", "-").replace("+", "p")


def cell_of(text: str, circumstances: Any = None) -> Cell:
    """The only cell of a scenario. Its name changes with its content and with the circumstances."""
    (cell,) = cells_of(loads(text))
    identity = content_hash([cell.to_json(), circumstances])
    name = f"{slug(cell.scheme).split(' ', maxsplit=1)[0]}-{identity}"
    return replace(cell, id=name)


def kept(path: Path) -> CampaignFolder | None:
    """The campaign in a folder, if this version made it."""
    if not (path / "campaign.json").exists():
        return None
    try:
        document = read_document(path)
    except DataError as error:
        raise DataError(f"{error}; remove the folder, or use --again") from None
    return CampaignFolder(path, document) if document["versions"]["narrows"] == __version__ else None


def finished(folder: CampaignFolder | None) -> dict[str, CellEntry]:
    """The entries of all finished cells with existing records, by name."""
    if folder is None:
        return {}
    there = (one for one in folder.cells if one.is_finished)
    return {one.id: one for one in there if folder.cell_dir(one.id).is_dir()}


def run_cells(
    path: Path,
    cells: Iterable[Cell],
    plane: Plane,
    agent: Location,
    console: Console,
    each_s: float | None = None,
) -> CampaignFolder:
    """Runs the missing cells of a campaign folder; each takes about `each_s`."""
    wanted = {cell.id: cell for cell in cells}
    where = next(iter(wanted.values())).where
    frame = loads(_FRAME.format(where="simulate" if where == "simulate" else "emulate"), name="validation")
    plan = Plan(frame, list(wanted.values()), [])
    if kept(path):
        folder = CampaignFolder.resume(path, plan, sys.argv)
    else:
        shutil.rmtree(path, ignore_errors=True)
        versions = new_versions(agent)
        loaded = Loaded(frame, Path("validation"), "", [])
        folder = CampaignFolder.create(path, loaded, plan, agent.doctor(), versions, sys.argv)
    try:
        missing = [cell for cell in plan.cells if not folder.entry(cell.id).is_finished]
        workers = plane.workers(len(missing))
        if missing:
            with ProgressView(console, 0, len(missing), workers, each_s) as view:
                Executor(folder, plane, view).run(missing)
        folder.end_session("done")
    finally:
        folder.close()
    return folder
