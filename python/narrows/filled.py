"""The output folder of an import or an export: unchanged until everything is complete."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from narrows.errors import NarrowsError, UsageError, reason

#: The incomplete folder, inside a folder that existed before. A killed command may leave it.
_PARTIAL = ".narrows.partial"


@contextmanager
def fill(target: Path, last: str) -> Iterator[Path]:
    """A folder to write into, whose content appears in `target` when the block has succeeded.

    A folder that does not exist appears complete. An empty one is kept, since it may be a link, a mount or
    the current folder: everything is moved into it, with `last` as the last item.
    """
    partial = None
    try:
        place = Path(os.path.realpath(target))
        _check(target, place)
        there = place.is_dir()
        partial = place / _PARTIAL if there else place.with_name(f".{place.name}.partial")
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        yield partial
        if there:
            _check(target, place)
            _move(partial, place, last)
        else:
            partial.rename(place)
    except OSError as error:
        raise NarrowsError(f"{target}: can't be written: {reason(error)}") from None
    finally:
        if partial is not None:
            shutil.rmtree(partial, ignore_errors=True)


def _check(target: Path, place: Path) -> None:
    # A fully resolved path is a link only if links form a cycle.
    if place.is_symlink() or (place.exists() and not place.is_dir()):
        raise UsageError(f"{target} exists and is not a folder; choose another name with -o")
    if place.exists() and any(path.name != _PARTIAL for path in place.iterdir()):
        raise UsageError(f"{target} exists and is not empty; choose another folder with -o")


def _move(partial: Path, place: Path, last: str) -> None:
    """Moves all or nothing, unless the command is killed meanwhile: `last` is then missing."""
    moved: list[Path] = []
    try:
        for name in sorted((path.name for path in partial.iterdir()), key=lambda name: (name == last, name)):
            moved.append(place / name)
            (partial / name).rename(place / name)
    except BaseException:
        for path in moved:
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)
        raise
