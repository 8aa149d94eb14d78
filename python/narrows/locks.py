"""Folders that only one process at a time may write."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from narrows.errors import NarrowsError


class FolderLock:
    """The right to write to a folder, until it is closed or the process ends."""

    def __init__(self, path: Path, what: str) -> None:
        """Raises `NarrowsError` if another process has the lock; `what` names the folder's content
        in a word.
        """
        self._path, self._what = path, what
        self._handle: int | None = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self.close()
            raise NarrowsError(
                f"{path}: another narrows is working on this {what}; wait for it or choose another folder"
            ) from None

    def check(self) -> None:
        """Raises `NarrowsError` if the folder was removed or replaced in the meantime."""
        try:
            same = self._handle is None or os.path.samestat(self._path.stat(), os.fstat(self._handle))
        except FileNotFoundError:
            same = False
        if not same:
            raise NarrowsError(
                f"{self._path}: was removed, or replaced by another folder, while narrows was working on this"
                f" {self._what}; run the same command again to make it anew"
            )

    def close(self) -> None:
        """Releases the lock."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None
