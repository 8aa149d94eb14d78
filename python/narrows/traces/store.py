"""The location of traces, and the file for a name in a scenario."""

from __future__ import annotations

import re
from pathlib import Path

from narrows.errors import DataError
from narrows.files import data_folder, resolve_path
from narrows.files import find_shipped_folder as shipped_scenarios
from narrows.text import did_you_mean, shorten

#: Suffixes of trace files; the content decides the format.
SUFFIXES = (".trace", ".csv", ".parquet", ".txt")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,99}")


def find_shipped_folder() -> Path | None:
    """The folder of the shipped traces."""
    root = shipped_scenarios()
    path = root / "traces" if root else None
    return path if path and path.is_dir() else None


def user_folder() -> Path:
    """The folder of the user's imported traces (it need not exist)."""
    return data_folder() / "traces"


def list_traces(folder: Path | None) -> list[Path]:
    """The traces in a folder, by name."""
    if folder is None or not folder.is_dir():
        return []
    return sorted(path for path in folder.iterdir() if path.suffix in SUFFIXES and path.is_file())


def find(name: str, base: Path) -> Path:
    """The trace file for `name` in a scenario of the folder `base`.

    A path is relative to `base`. A bare name is searched there, among the user's imported traces, and among
    the shipped ones, in this order; the suffix (`.trace`, `.csv`) of an imported or shipped one is optional.
    """
    path = resolve_path(name, base)
    if path.is_file():
        return path
    if path.is_dir():
        raise DataError(f'the trace "{shorten(name)}" is a folder; name a file')
    if not _NAME.fullmatch(name):
        raise DataError(f'file "{shorten(name)}" does not exist (looked for at {path})')
    folders = (list_traces(user_folder()), list_traces(find_shipped_folder()))
    for files in folders:
        same = [file for file in files if name in (file.name, file.stem)]
        exact = [file for file in same if file.name == name]
        if len(same) > 1 and not exact:
            names = " and ".join(file.name for file in same)
            raise DataError(f'the trace "{name}" could be {names}; write the whole name')
        if same:
            return (exact or same)[0]
    known = [file.name for files in folders for file in files]
    hint = did_you_mean(name, known) or "; narrows trace list shows the imported and shipped ones"
    raise DataError(f'no file, no imported and no shipped trace is named "{name}"{hint}')


def import_target(source: Path, name: str | None) -> Path:
    """The file of an imported trace; raises for names that a scenario could not use."""
    wanted = name or source.name
    if not _NAME.fullmatch(wanted):
        raise DataError(
            f'"{shorten(wanted)}" can\'t be the name of a trace;'
            " use letters, digits and . _ + -, beginning with a letter or digit"
        )
    if Path(wanted).suffix not in SUFFIXES:
        wanted += source.suffix if source.suffix in SUFFIXES else ".trace"
    return user_folder() / wanted
