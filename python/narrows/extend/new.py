"""Writes a crate to start from (`narrows extend new`): one of the examples, under other names."""

from __future__ import annotations

import os
import re
from pathlib import Path

from narrows.errors import DataError, UsageError, reason
from narrows.extend.crates import check_name
from narrows.extend.kinds import Kind
from narrows.extend.sources import folder_for_crates
from narrows.files import find_shipped_examples, read_text

#: Files of examples that belong to the source tree alone.
_NOT_COPIED = frozenset(("Cargo.lock", "rustfmt.toml", "target"))
#: Names of types that are not the entry's name with a capital letter.
_CAMEL = {"randomdrop": "RandomDrop", "biterrors": "BitErrors"}
_PATH = re.compile(r'path = "\.\./\.\./([^"]+)"')


def make(kind: Kind, name: str, folder: Path) -> list[str]:
    """Writes the crate `name` with an entry of that name, and returns the names of its files. Raises
    `UsageError` if the folder exists, `DataError` if nothing can have this name.
    """
    check_name(name)
    if folder.exists():
        raise UsageError(f"{folder} already exists; name another folder, or remove it")
    examples = find_shipped_examples()
    source = examples / kind.example if examples else None
    if source is None or not source.is_dir():
        raise DataError("the examples of extensions are missing; use a source tree or another wheel")
    sources = folder_for_crates()
    written: list[str] = []
    try:
        for path in _files_of(source):
            text = _PATH.sub(lambda found: f'path = "{sources}/{found[1]}"', read_text(source / path))
            target = _rename(path, kind, name)
            (folder / target).parent.mkdir(parents=True, exist_ok=True)
            (folder / target).write_text(_rename(text, kind, name), encoding="utf-8")
            written.append(target)
    except OSError as error:
        raise DataError(f"{folder}: can't be written: {reason(error)}") from None
    return written


def _files_of(folder: Path) -> list[str]:
    listed: list[str] = []
    for base, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in _NOT_COPIED)
        paths = (Path(base) / name for name in sorted(names) if name not in _NOT_COPIED)
        listed += [path.relative_to(folder).as_posix() for path in paths]
    return listed


def _rename(text: str, kind: Kind, name: str) -> str:
    """The names of the example and of its entry, replaced in all their forms."""
    crate, entry = kind.example, kind.entry
    for old, new in (
        (crate, name.replace("_", "-")),
        (crate.replace("-", "_"), name),
        (entry, name),
        (_CAMEL.get(entry, entry.capitalize()), "".join(part.capitalize() for part in name.split("_"))),
        (entry.upper(), name.upper()),
    ):
        text = re.sub(rf"(?<![a-z]){re.escape(old)}", new, text) if old.islower() else text.replace(old, new)
    return text
