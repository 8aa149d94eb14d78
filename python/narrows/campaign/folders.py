"""Folders in which campaigns are created or searched."""

from __future__ import annotations

from fnmatch import fnmatch
from pathlib import Path

from narrows.errors import DataError, NarrowsError, UsageError, reason


def no_folder(path: Path) -> DataError:
    """The error for a path that is not the folder of a campaign."""
    if not path.is_file():
        return DataError(f"{path}: does not exist")
    hint = f"; 'narrows run {path} --dry-run' checks a scenario" if path.suffix in (".yaml", ".yml") else ""
    return DataError(f"{path}: is a file, and what is wanted is the folder of a campaign{hint}")


def make_folder(path: Path) -> None:
    """Creates the folder of a new campaign, if it does not exist."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        check_vacant(path)
    except OSError as error:
        raise NarrowsError(
            f"{path}: can't be created: {reason(error)}; choose another folder with -o"
        ) from None


def check_vacant(path: Path) -> None:
    """Refuses a folder with more than the leftovers of a killed `create`: an empty folder of cells, the files
    that they name, and a half-written campaign.json."""
    cells = path / "cells"
    ours = {"cells", "files"} if cells.is_dir() and not any(cells.iterdir()) else set()
    for entry in path.iterdir():
        if entry.name not in ours and not (ours and fnmatch(entry.name, ".campaign.json.*.tmp")):
            raise UsageError(f"{path} is not empty and holds no campaign; choose another folder with -o")
