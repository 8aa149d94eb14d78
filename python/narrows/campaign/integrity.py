"""Integrity of a campaign's folder: does it match its campaign.json?

Folders of results travel: they are mailed, shared and unpacked. So no path in such a file leads out of its
folder, and each finished cell has a digest over all its files, which reveals exchanged or edited ones. The
digests detect accidents and mix-ups, not fraud: a forger can recompute them in campaign.json.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from narrows.documents.campaign import CellEntry, ScenarioSource
from narrows.documents.run import RunRecord
from narrows.errors import DataError, reason
from narrows.files import open_regular, read_whole
from narrows.hashes import content_hash

_PARQUET = b"PAR1"
#: Shortest file that has a footer between two magic numbers.
_SHORTEST = 12
#: Folders of a campaign in which commands write files and remove leftovers.
_PARTS = ("cells", "files", "logs", "figures")
#: Names of cells: slugs (narrows.scenario.slugs) and the number of the run, without separators and without a
#: leading dot.
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+_-]{0,127}")
_STATES = ("pending", "finished", "failed", "skipped")


def check_cells(path: Path, cells: list[CellEntry]) -> None:
    """Refuses a campaign.json (at `path`) whose cell names are not valid folder names, or whose parts lead
    elsewhere.
    """
    for part in _PARTS:
        if (path.parent / part).is_symlink():
            raise DataError(
                f"{path.parent / part}: is a link to another place, where results would be read and leftovers"
                " removed; put the folder itself there"
            )
    if problem := problem_of_cells(cells):
        raise DataError(f"{path}: is damaged or was tampered with: {problem}")


def problem_of_cells(cells: list[CellEntry]) -> str | None:
    """The problem of the entries of cells, such as duplicate ids; None if there is none."""
    seen: set[str] = set()
    for number, entry in enumerate(cells, 1):
        if problem := _problem(entry, seen):
            return f"cell {number} {problem}"
        seen.add(entry.id)
    return None


def _problem(entry: CellEntry, seen: set[str]) -> str | None:
    name, state = entry.id, entry.state
    if not _ID.fullmatch(name):
        return f"has the id {name[:60]!r}, which is not a valid name of a folder"
    if name in seen:
        return f"has the same id as an earlier one, {name}"
    if state not in _STATES:
        return f"({name}) has the state {state[:60]!r}; there are {', '.join(_STATES)}"
    return None


def digest(cell: Path) -> str:
    """One SHA-256 over the names, sizes and contents of all files of a cell's folder, in the order of names.

    The hash covers a line `SHA-256  SIZE  NAME` for each file, where NAME is its path inside the folder: the
    output of `sha256sum` and `stat` suffices to compute it by hand.
    """
    whole = hashlib.sha256()
    for path in sorted(_files(cell), key=lambda file: file.relative_to(cell).as_posix()):
        try:
            # A file could have been replaced by a pipe since it was listed; opening must not block.
            handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            with os.fdopen(handle, "rb") as file:
                one = hashlib.file_digest(file, "sha256").hexdigest()
                size = file.tell()
        except OSError as error:
            raise DataError(f"{path}: can't be read: {reason(error)}") from None
        name = path.relative_to(cell).as_posix()
        whole.update(f"{one}  {size}  {name}\n".encode("utf-8", "surrogateescape"))
    return f"sha256:{whole.hexdigest()}"


def _files(folder: Path) -> Iterator[Path]:
    """All files below a folder; raises if one is not a plain file."""
    try:
        with os.scandir(folder) as entries:
            dir_entries = list(entries)
    except OSError as error:
        raise DataError(f"{folder}: can't be read: {reason(error)}") from None
    for entry in dir_entries:
        mode = entry.stat(follow_symlinks=False).st_mode
        if stat.S_ISDIR(mode):
            yield from _files(Path(entry.path))
        elif stat.S_ISREG(mode):
            yield Path(entry.path)
        else:
            raise DataError(
                f"{entry.path}: is not a plain file, and records hold nothing else; remove the cell's folder"
            )


def difference(cell: Path, entry: CellEntry, run: RunRecord) -> str | None:
    """The difference between a cell's run.json and its entry in campaign.json; None if they fit."""
    if not entry.is_finished:
        return None
    wrong = None
    if entry.hash and content_hash(run.cell) != entry.hash:
        wrong = "belongs to another cell"
    elif (run.verdict, run.reasons) != (entry.verdict, entry.reasons):
        wrong = "has another verdict, or other reasons, than campaign.json"
    return wrong and (
        f"{cell / 'run.json'}: {wrong}; put the right one back, or remove the folder"
        " and run the campaign again"
    )


def find_changed_files(folder: Path, scenario: ScenarioSource) -> Iterator[str]:
    """Problems of the files that the cells of a campaign name, such as traces; the resolved scenario
    identifies each by its SHA-256.
    """
    # The readers of scenarios take long to import.
    from narrows.scenario.files import name_in_store

    named = {name_in_store(name, sha256): sha256 for name, sha256 in _list_files(scenario.resolved)}
    for name, sha256 in named.items():
        try:
            with open_regular(folder / name) as file:
                text = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            yield f"{folder / name}: can't be read: {reason(error)}; put the file back"
            continue
        if text != sha256:
            yield (
                f"{folder / name}: is not the file that the campaign ran with (SHA-256 {text[:12]},"
                f" campaign.json has {sha256[:12]}); put the right one back"
            )
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        if path.name not in named and not path.name.startswith("."):
            yield f"{path}: belongs to no cell of the campaign; remove it"


def _list_files(content: Any) -> Iterator[tuple[str, str]]:
    """All files named in plain data: objects with a name and a SHA-256."""
    if isinstance(content, dict):
        name, sha256 = content.get("name"), content.get("sha256")
        if isinstance(name, str) and isinstance(sha256, str):
            yield name, sha256
            return
        content = list(content.values())
    if isinstance(content, list):
        for inner in content:
            yield from _list_files(inner)


def check_plain(cell: Path) -> None:
    """Refuses a cell folder that is a link or contains anything but plain files."""
    if cell.is_symlink():
        raise DataError(f"{cell}: is a link to another place; put the record itself there")
    if cell.is_dir():
        for _ in _files(cell):
            pass


def describe_change(cell: Path, entry: CellEntry | None) -> str | None:
    """The difference between the files of a finished cell and its noted digest; None if there is none, or if
    an older version noted no digests.
    """
    noted = entry.digest if entry else None
    if not noted:
        check_plain(cell)
        return None
    if cell.is_symlink():
        return f"{cell}: is a link to another place; put the record itself there"
    text = digest(cell)
    if text == noted:
        return None
    return (
        f"{cell}: its files are not those that the run left (digest {_short(text)}, campaign.json has"
        f" {_short(noted)}); put the right ones back, or remove the folder and run the campaign again"
    )


def _short(text: str) -> str:
    return text.removeprefix("sha256:")[:12]


def parquet_problem(path: Path) -> str | None:
    """The problem of a Parquet file that its ends reveal, as the end of a sentence; `None` if there
    is none.
    """
    try:
        with open_regular(path) as file:
            start = file.read(len(_PARQUET))
            size = file.seek(0, os.SEEK_END)
            if size < _SHORTEST:
                return "is cut off"
            file.seek(-8, os.SEEK_END)
            end = file.read(8)
    except OSError as error:
        return f"can't be read: {reason(error)}"
    length = int.from_bytes(end[:4], "little")
    if start != _PARQUET or end[4:] != _PARQUET or length + _SHORTEST > size:
        return "is damaged or cut off: it does not end as a Parquet file does"
    return None


def is_torn(cell: Path) -> bool:
    """True if the record of a cell that campaign.json does not list yet has truncated files: a power cut
    takes the end of recently written files.
    """
    check_plain(cell)
    try:
        json.loads(read_whole(cell / "run.json", "record of a run"))
    except (DataError, ValueError, RecursionError):
        return True
    files = {file.name: file for file in cell.glob("*.parquet")}
    # Each record has one of these files.
    whole = "packets.parquet" in files or "bins.parquet" in files
    return not whole or any(parquet_problem(file) for file in files.values())
