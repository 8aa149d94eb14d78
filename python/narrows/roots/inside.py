"""Paths below a root: absolute paths, and links on the way, start there and never leave it."""

from __future__ import annotations

import stat
from collections.abc import Iterable
from pathlib import Path

#: As many links as Linux follows in one path (path_resolution(7)).
_MOST_LINKS = 40


def follow(root: Path, path: str) -> Path | None:
    """The file or folder below `root` to which an absolute path leads, without links; None if there is
    none.
    """
    parts = path.split("/")
    for _ in range(_MOST_LINKS):
        folder = find_folder(root, parts[:-1])
        if folder is None:
            return None
        if parts[-1] in ("", ".", ".."):
            return find_folder(root, parts)
        last = folder / parts[-1]
        try:
            mode = last.lstat().st_mode
        except OSError:
            return None
        if not stat.S_ISLNK(mode):
            return last
        target = str(last.readlink())
        before = [] if target.startswith("/") else list(folder.relative_to(root).parts)
        parts = [*before, *target.split("/")]
    return None


def make_folder(path: Path) -> None:
    """Makes a folder that everybody can read."""
    path.mkdir()
    path.chmod(0o755)


def find_folder(root: Path, parts: Iterable[str], *, create: bool = False) -> Path | None:
    """The folder below `root` to which these parts of a path lead; None if it does not exist. With `create`,
    missing folders are made, and None means a file in the way, or links without an end.
    """
    at: list[str] = []
    left = list(parts)[::-1]
    links = 0
    while left:
        part = left.pop()
        if part in ("", "."):
            continue
        if part == "..":
            at = at[:-1]
            continue
        path = root.joinpath(*at, part)
        try:
            mode = path.lstat().st_mode
        except FileNotFoundError:
            if not create:
                return None
            make_folder(path)
            mode = stat.S_IFDIR
        except OSError:
            return None
        if stat.S_ISLNK(mode):
            links += 1
            if links > _MOST_LINKS:
                return None
            target = str(path.readlink())
            at = [] if target.startswith("/") else at
            left += target.split("/")[::-1]
        elif stat.S_ISDIR(mode):
            at.append(part)
        else:
            return None
    return root.joinpath(*at)
