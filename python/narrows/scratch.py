"""Files and folders with temporary names that are removed however the process ends.

They are locked while they have such a name, and the system unlocks them when the process ends. Creating one
therefore removes unlocked ones of the same kind: leftovers of `kill -9`.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

SUFFIX = ".tmp"


def new_file(path: Path) -> tuple[int, Path]:
    """A new file that will replace `path`: open for writing, locked, and with a name that starts
    with a dot.
    """
    prefix = f".{path.name}."
    remove_left(path.parent, prefix)
    while True:
        handle, name = tempfile.mkstemp(prefix=prefix, suffix=SUFFIX, dir=path.parent)
        if _is_kept(handle):
            return handle, Path(name)
        os.close(handle)


@contextlib.contextmanager
def working_folder(kind: str, parent: Path | None = None) -> Iterator[Path]:
    """A new folder in `parent` (by default in the system's folder for temporary files), which is removed at
    the end.
    """
    place = parent or Path(tempfile.gettempdir())
    remove_left(place, f".{kind}.")
    while True:
        path = Path(tempfile.mkdtemp(prefix=f".{kind}.", suffix=SUFFIX, dir=place))
        try:
            handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except FileNotFoundError:
            continue
        if _is_kept(handle):
            break
        os.close(handle)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
        os.close(handle)


def remove_left(folder: Path, prefix: str = ".") -> None:
    """Removes temporary files and folders with this prefix that no process has locked."""
    try:
        with os.scandir(folder) as entries:
            names = [
                entry.name
                for entry in entries
                if entry.name.startswith(prefix) and entry.name.endswith(SUFFIX)
            ]
    except OSError:
        return
    for name in names:
        with contextlib.suppress(OSError):
            _remove_unlocked(folder / name)


def _remove_unlocked(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        # Folders for temporary files are shared with other users.
        if os.fstat(handle).st_uid != os.geteuid():
            return
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
    finally:
        os.close(handle)


def _is_kept(handle: int) -> bool:
    """Locks a new file or folder; False if another process has already removed it as a leftover."""
    fcntl.flock(handle, fcntl.LOCK_EX)
    return os.fstat(handle).st_nlink > 0
