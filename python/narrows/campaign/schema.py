"""The members of a campaign's files that have no definition yet, and their types.

The files are plain text; a manual change that does not fit is refused with the name of the member.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from narrows.documents.data import DamagedError
from narrows.documents.resolved import Resolved, read_resolved
from narrows.errors import DataError
from narrows.json_shapes import KINDS, ShapeError, read_shapes

_SHAPES = read_shapes(Path(__file__).with_name("members.toml"), KINDS)


def check_members(path: Path, document: dict[str, Any]) -> None:
    """Raises `DataError` if a member that we read of a document of a known format is invalid."""
    if problem := problem_of_members(document):
        raise DataError(f"{path}: is damaged: {problem}")


def problem_of_members(document: dict[str, Any]) -> str | None:
    """The problem of the members that Narrows reads; `None` if they fit, or if the format is unknown."""
    shape = _SHAPES.get(str(document.get("format")).rsplit("/", 1)[0])
    try:
        if shape is not None:
            shape(document, "the file")
    except ShapeError as error:
        return str(error)
    return None


def resolved_scenario(document: dict[str, Any]) -> dict[str, Any]:
    """The resolved scenario of a campaign; without one, a scenario without question and schemes."""
    return {"question": "", "schemes": [], **((document.get("scenario") or {}).get("resolved") or {})}


def read_scenario(folder: Path, document: dict[str, Any]) -> Resolved:
    """The resolved scenario of the campaign in a folder, with what an import or an earlier version has not
    written filled in."""
    try:
        return read_resolved(resolved_scenario(document))
    except DamagedError as error:
        raise DataError(f"{folder / 'campaign.json'}: is damaged: {error}") from None
