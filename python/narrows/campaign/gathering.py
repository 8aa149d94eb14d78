"""Folders of campaigns: their contents, and the problems of each.

A campaign that is damaged, of a newer version or being written at the moment yields one sentence and hides no
other campaign.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from narrows.campaign import integrity
from narrows.campaign.folders import no_folder
from narrows.campaign.store import CampaignFolder
from narrows.documents.campaign import CellEntry
from narrows.documents.results import Results
from narrows.errors import DataError, NarrowsError, reason
from narrows.files import open_regular

#: The start of a run.json, which contains its format, and the newest major version that can be read.
_FORMAT = re.compile(rb'"format"\s*:\s*"narrows/run/([0-9]+)')
_HEAD = 4096
_RUN = 1


@dataclass(frozen=True)
class Gathered:
    """One campaign folder, opened or not."""

    path: Path
    #: The campaign; None if it can't be read.
    folder: CampaignFolder | None
    #: Its problem, as one sentence that starts with the folder.
    problem: str | None = None
    #: True if a process is working on it.
    busy: bool = False

    @property
    def note(self) -> str | None:
        """A sentence that readers of its numbers should see."""
        if self.folder is None or not self.busy:
            return self.problem
        done = sum(cell.is_finished for cell in self.folder.cells)
        all_of = len(self.folder.cells)
        text = f"{self.path}: is being written at the moment; {done} of {all_of} runs are finished"
        return f"{text}, and {self.problem.removeprefix(f'{self.path}: ')}" if self.problem else text


def gather(places: Iterable[Path]) -> list[Gathered]:
    """All campaigns at and below these folders, the oldest first; unreadable ones come last.

    Raises `DataError` if one of the folders does not exist.
    """
    result: dict[Path, Gathered] = {}
    for place in places:
        if not place.is_dir():
            raise no_folder(place)
        for path in _folders(place):
            result.setdefault(path, open_campaign(path))
    return sorted(
        result.values(), key=lambda item: (item.folder is None, _creation_time(item), str(item.path))
    )


def readable(paths: Iterable[Path], say: Callable[[str], None]) -> list[tuple[CampaignFolder, Results]]:
    """Campaigns with their results. Problems are reported, and unreadable campaigns are omitted.

    Raises `DataError` if none is left.
    """
    from narrows.campaign.results import read

    pairs, problems = [], []
    for path in paths:
        opened = open_campaign(path)
        if opened.folder is None:
            problems.append(str(opened.problem))
            continue
        try:
            results = read(path, opened.folder)
        except NarrowsError as error:
            problems.append(str(error))
            continue
        if opened.note:
            say(opened.note)
        pairs.append((opened.folder, results))
    if not pairs:
        raise DataError("\n".join(problems))
    for problem in problems:
        say(problem)
    return pairs


def open_campaign(path: Path) -> Gathered:
    """Opens the campaign in a folder, and lists those problems of its records that are visible without
    reading them whole.
    """
    try:
        folder = CampaignFolder.read(path)
    except NarrowsError as error:
        return Gathered(path, None, str(error))
    return Gathered(path, folder, record_problem(folder) or _results_problem(folder), is_busy(folder))


def _folders(place: Path) -> Iterator[Path]:
    """Folders with a campaign.json; folders below them are not searched."""
    for root, names, files in os.walk(place):
        if "campaign.json" in files:
            names.clear()
            yield Path(root)
        names[:] = sorted(name for name in names if not name.startswith("."))


def _creation_time(gathered: Gathered) -> str:
    return (gathered.folder.header.created_at or "") if gathered.folder else ""


def is_busy(folder: CampaignFolder) -> bool:
    """True if a process has locked the campaign for writing and has not ended its session."""
    if not folder.header.is_open:
        return False
    try:
        number = folder.path.stat().st_ino
        # Trying to lock it could make a process fail that is just starting.
        lines = Path("/proc/locks").read_text(encoding="ascii").splitlines()
    except OSError:
        return False
    return any("FLOCK" in line and line.split()[-3].endswith(f":{number}") for line in lines)


def record_problem(folder: CampaignFolder) -> str | None:
    """The first problem with the records of finished runs, and the number of runs with problems; None if
    there is none.

    Only the ends of files are read. `narrows check` compares whole files with their digests.
    """
    problems = []
    for cell in folder.cells:
        if cell.is_finished and (problem := _cell_problem(folder.cell_dir(cell.id))):
            problems.append(problem)
    if not problems:
        return None
    more = len(problems) - 1
    others = f", and {more} more run{'s have' if more > 1 else ' has'} such a problem" if more else ""
    return f"{folder.path}: {problems[0]}{others}"


def _results_problem(folder: CampaignFolder) -> str | None:
    if not folder.header.is_complete or os.path.lexists(folder.path / "results.json"):
        return None
    return (
        f"{folder.path}: results.json is missing, so its numbers are measured anew; narrows report"
        f" {folder.path} writes it again"
    )


def _cell_problem(cell: Path) -> str | None:
    name = f"cells/{cell.name}"
    try:
        with os.scandir(cell) as entries:
            files = sorted(entry.name for entry in entries)
    except FileNotFoundError:
        return f"{name} is missing although the run is finished; run the same command again to make it anew"
    except OSError as error:
        return f"{name} can't be read: {reason(error)}"
    if "run.json" not in files:
        return f"{name}/run.json is missing"
    try:
        with open_regular(cell / "run.json") as file:
            version = _FORMAT.search(file.read(_HEAD))
    except OSError as error:
        return f"{name}/run.json can't be read: {reason(error)}"
    if version is None:
        return f"{name}/run.json is damaged: it does not name its format"
    if int(version[1]) > _RUN:
        return (
            f"{name}/run.json is in the format narrows/run/{int(version[1])}, this version of narrows reads"
            f" narrows/run/{_RUN}; update narrows"
        )
    for file_name in files:
        if file_name.endswith(".parquet") and (problem := integrity.parquet_problem(cell / file_name)):
            return f"{name}/{file_name} {problem}"
    return None


def count_verdicts(cells: Iterable[CellEntry]) -> str:
    """The verdicts of runs in words: `9 ok, 1 degraded`; unfinished runs are counted by state."""
    words = [cell.verdict if cell.is_finished else cell.state for cell in cells]
    order = ("ok", "degraded", "invalid", "failed", "pending")
    known = [
        *(word for word in order if word in words),
        *(word for word in dict.fromkeys(words) if word not in order),
    ]
    return ", ".join(f"{words.count(word)} {word or 'unjudged'}" for word in known)


def entry_of(cell: Path) -> CellEntry | None:
    """The entry of a cell's folder in the campaign that contains it; None if no campaign does. Raises
    `DataError` if the campaign can't be read.
    """
    place = cell.resolve()
    if place.parent.name != "cells" or not os.path.lexists(place.parent.parent / "campaign.json"):
        return None
    entries = CampaignFolder.read(place.parent.parent).cells
    return next((entry for entry in entries if entry.id == place.name), None)
