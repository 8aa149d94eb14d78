"""Writes folders whose files a compiler watches."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from narrows.errors import NarrowsError, reason


def write_files(place: Path, files: Mapping[str, bytes]) -> None:
    """Makes the folder consist of these files. Those that have not changed keep their times, by which
    Cargo decides what to compile.
    """
    try:
        for base, folders, names in os.walk(place):
            folders[:] = [name for name in folders if name != "target"]
            for name in names:
                path = Path(base) / name
                relative = path.relative_to(place).as_posix()
                if relative not in files and relative != "Cargo.lock":
                    path.unlink()
        for relative, content in files.items():
            target = place / relative
            if target.is_file() and target.read_bytes() == content:
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
            if content.startswith(b"#!"):
                target.chmod(0o755)
    except OSError as error:
        raise NarrowsError(f"{place}: can't be written: {reason(error)}") from None
