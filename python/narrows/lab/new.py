"""A small family to start from (`narrows lab new`)."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from narrows.errors import DataError, UsageError, reason
from narrows.lab.reading import FILE, read
from narrows.lab.schema import schema_text

_FILES = (FILE, "scenario.yaml", "published.csv", "page.md")


def make(folder: Path, lesson: bool) -> list[str]:
    """Makes the folder with its files, and gives their names. Raises `UsageError` if it is there already."""
    if folder.exists():
        raise UsageError(f"{folder} is there already; name another folder, or remove it")
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
