"""Runs of a cell without a campaign: `narrows run CELL.json`, such as the cell of an episode of
`narrows.gym`.
"""

from __future__ import annotations

import contextlib
import hashlib
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from narrows.errors import DataError, UsageError
from narrows.files import read_whole
from narrows.scenario.files import name_in_store

FORMAT = "narrows/cell/1"
_MOST_BYTES = 50_000_000


class _Head(msgspec.Struct, frozen=True):
    """The member by which a cell is recognised."""

    format: str


class _NamedFile(msgspec.Struct, frozen=True):
    """A file that a cell names."""

    name: str
    sha256: str


def is_cell(name: str) -> bool:
    """True if `name` is a file of JSON with the format of cells."""
    path = Path(name)
    if path.suffix != ".json" or not path.is_file():
        return False
    try:
        head = msgspec.json.decode(read_whole(path, "cell", _MOST_BYTES), type=_Head)
    except (msgspec.DecodeError, DataError):
        return False
    return head.format == FORMAT


def run_cell(path: Path, output: Path | None) -> Path:
    """Simulates the cell in `path`; returns the folder of its record: `output`, or the name without its
    suffix.

    Files that the cell names are those beside it, installed models and traces, if their content is the same.
    Raises `DataError` if one is missing or the cell is invalid, `UsageError` if the folder exists.
    """
    from narrows import _native

    folder = output or path.with_suffix("")
    if folder.exists():
        raise UsageError(f"{folder} exists already; name another folder with -o")
    text = read_whole(path, "cell", _MOST_BYTES).decode()
    with tempfile.TemporaryDirectory(prefix="narrows-") as files:
        for file in set(_files_in(msgspec.json.decode(text))):
            stored = Path(files) / name_in_store(file.name, file.sha256)
            stored.write_bytes(_content(path, file.name, file.sha256))
        try:
            _native.simulate(text, folder, files)
        except ValueError as error:
            raise DataError(f"{path}: {error}") from None
    return folder


def _files_in(value: Any) -> Iterator[_NamedFile]:
    """The files that a cell names."""
    if isinstance(value, dict):
        with contextlib.suppress(msgspec.ValidationError):
            yield msgspec.convert(value, _NamedFile)
        for member in value.values():
            yield from _files_in(member)
    elif isinstance(value, list):
        for member in value:
            yield from _files_in(member)


def _content(cell: Path, name: str, sha256: str) -> bytes:
    for path in _candidates(cell, name, sha256):
        if path.is_file():
            content = read_whole(path, "file")
            if hashlib.sha256(content).hexdigest() == sha256:
                return content
    raise DataError(
        f"{cell}: names the file {name} (SHA-256 {sha256[:12]}...), which is neither beside it nor installed;"
        f" put it into {cell.parent}"
    )


def _candidates(cell: Path, name: str, sha256: str) -> Iterator[Path]:
    """Where the file may be: beside the cell or in its campaign, among models, among traces."""
    from narrows.models.store import find_shipped_folder, user_folder
    from narrows.traces.store import find

    base = Path(name).name
    stored = name_in_store(base, sha256)
    yield from (cell.parent / base, cell.parent / "files" / stored, cell.parent / stored)
    yield from (folder / base for folder in (user_folder(), find_shipped_folder()))
    try:
        yield find(base, cell.parent)
    except DataError:
        return
