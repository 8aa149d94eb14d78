"""A small family to start from (`narrows lab new`)."""

from __future__ import annotations

import shutil
from importlib.resources import files
from pathlib import Path

from narrows.errors import DataError, UsageError, reason
from narrows.lab.keys import schema_text
from narrows.lab.reading import FILE, Lab, read

_FILES = (FILE, "scenario.yaml", "published.csv", "page.md")


def make(folder: Path, lesson: bool) -> list[str]:
    """Makes the folder with its files, and returns their names. Raises `UsageError` if it exists."""
    if folder.exists():
        raise UsageError(f"{folder} already exists; name another folder, or remove it")
    source = files("narrows.lab").joinpath("templates", "new")
    texts = {name: source.joinpath(name).read_text(encoding="utf-8") for name in _FILES}
    texts["lab.schema.json"] = schema_text()
    if lesson:
        texts[FILE] += source.joinpath("lesson.yaml").read_text(encoding="utf-8")
        texts["solution.yaml"] = source.joinpath("solution.yaml").read_text(encoding="utf-8")
    try:
        folder.mkdir(parents=True)
        for name, text in texts.items():
            (folder / name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise DataError(f"{folder}: can't be written: {reason(error)}") from None
    read(folder)
    return list(texts)


def copy_family(lab: Lab, folder: Path) -> list[str]:
    """Copies the files of a family without the right answers of a lesson, and returns their names. Raises
    `UsageError` if the folder exists.
    """
    if folder.exists():
        raise UsageError(f"{folder} exists already; name another folder, or remove it")
    solution = lab.lesson.solution if lab.lesson else None
    names = sorted(path.name for path in lab.folder.iterdir() if path.is_file() and path.name != solution)
    try:
        folder.mkdir(parents=True)
        for name in names:
            shutil.copyfile(lab.folder / name, folder / name)
    except OSError as error:
        raise DataError(f"{folder}: can't be written: {reason(error)}") from None
    return names
