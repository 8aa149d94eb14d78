"""The JSON files of campaigns: read with their format and their digest checked, written in one step."""

from __future__ import annotations

import json
import os
from collections.abc import Collection
from pathlib import Path
from typing import Any, TypeVar

from narrows import scratch
from narrows.campaign import sealing
from narrows.documents.data import DamagedError, find_unknown, from_data
from narrows.documents.run import FORMAT as RUN_FORMAT
from narrows.documents.run import RunRecord
from narrows.errors import DataError, NarrowsError, reason
from narrows.files import read_whole

Kind = TypeVar("Kind")
#: Results of 10,000 runs with a flow each have 90 MB.
_MOST_BYTES = 2_000_000_000


def write_atomically(path: Path, content: str | bytes) -> None:
    """Writes a file so that a reader sees either the old or the new one, even after a power cut."""
    try:
        handle, temporary = scratch.new_file(path)
        try:
            os.fchmod(handle, 0o644)
            with os.fdopen(handle, "wb") as stream:
                stream.write(content.encode() if isinstance(content, str) else content)
                stream.flush()
                os.fsync(stream.fileno())
                # Before the file is closed, because closing unlocks it.
                temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except FileNotFoundError:
        raise NarrowsError(
            f"{path}: can't be written: its folder was removed meanwhile; run the same command again"
        ) from None
    except OSError as error:
        raise NarrowsError(
            f"{path}: can't be written: {reason(error)}; what was finished"
            " before is kept, make room and run the same command again"
        ) from None


def read_json(path: Path, expected: str, older: Collection[str] = ()) -> dict[str, Any]:
    """Reads one of our JSON files and checks its format; refuses newer major versions, and older ones that
    are not in `older`."""
    try:
        content = read_whole(path, "file of a campaign", _MOST_BYTES)
        document = json.loads(content)
    except DataError as error:
        if not path.exists():
            raise DataError(f"{path}: does not exist, so this is not a folder of results") from None
        raise DataError(f"{path}: {error}") from None
    except RecursionError:
        raise DataError(f"{path}: is damaged: it nests too deeply") from None
    except ValueError as error:
        remedy = sealing.remedy(path, expected)
        told = f"{str(error).splitlines()[0]}{f'; {remedy}' if remedy else ''}"
        raise DataError(f"{path}: is damaged: {told}") from None
    stated = document.get("format") if isinstance(document, dict) else None
    # A minor version only adds members.
    if isinstance(stated, str) and stated.partition(".")[0] in (expected, *older):
        sealing.check_seal(path, content, document, stated.partition(".")[0])
        return dict(document)
    kind = expected.rsplit("/", 1)[0]
    if isinstance(stated, str) and stated.rsplit("/", 1)[0] == kind:
        raise DataError(
            f"{path}: is in the format {stated.partition('.')[0]}, this version of narrows reads {expected};"
            " update narrows"
        )
    raise DataError(f"{path}: is not a file of the format {expected}")


def read_run(cell: Path) -> RunRecord:
    """The run.json in the folder of a record. Raises `DataError` if it is missing, damaged or newer."""
    return as_run(cell, read_json(cell / "run.json", RUN_FORMAT))


def as_run(cell: Path, document: object) -> RunRecord:
    """The typed content of the run.json in a folder. Raises `DataError` if it does not fit."""
    return read_typed(cell / "run.json", document, RunRecord)


def read_rewritable(file: Path, file_format: str, kind: type[Kind]) -> Kind:
    """The typed content of a file that will be written again from it. Raises `DataError` if that would lose
    members that only a newer version knows."""
    document = read_json(file, file_format)
    value = read_typed(file, document, kind)
    for member in find_unknown(document, value):
        raise DataError(
            f"{file}: {member} was written by a newer version of narrows and would be lost; update narrows"
        )
    return value


def read_typed(file: Path, document: object, kind: type[Kind]) -> Kind:
    """The typed content of a file. Raises `DataError` if it does not fit."""
    try:
        return from_data(document, kind)
    except DamagedError as error:
        raise DataError(f"{file}: is damaged: {error}") from None
