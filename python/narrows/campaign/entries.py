"""The cells in campaign.json, and the members of a new cell."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from narrows.documents.campaign import FORMAT, CellEntry
from narrows.documents.data import DamagedError, from_data
from narrows.documents.results import Skipped
from narrows.errors import DataError

if TYPE_CHECKING:
    # Reading a campaign imports neither scenarios nor plans.
    from narrows.campaign import plan
    from narrows.scenario import Cell


def now() -> str:
    """The time of day, in the format of files."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def new_document(
    name: str, where: str, scenario: dict[str, Any], versions: dict[str, Any], cells: list[dict[str, Any]]
) -> dict[str, Any]:
    """The campaign.json of a new campaign; `scenario` is in its stored form."""
    return {
        "format": FORMAT,
        "name": name,
        "hash": "",
        "where": where,
        "scenario": scenario,
        "created_at": now(),
        "ended_at": None,
        "sessions": [],
        "versions": versions,
        "host": None,
        "skipped": [],
        "cells": cells,
    }


def new_entry(cell: str, scheme: str, run: int, **more: Any) -> dict[str, Any]:
    """The entry of a cell that has not run."""
    return {
        "id": cell,
        "scheme": scheme,
        "run": run,
        "seed": None,
        "hash": None,
        "state": "pending",
        "verdict": None,
        "reasons": [],
        "error": None,
        "started_at": None,
        "ended_at": None,
        "attempts": 0,
        **more,
    }


def read_entries(file: Path, contents: list[dict[str, Any]]) -> list[CellEntry]:
    """The typed entries of cells. Raises `DataError` if they do not fit."""
    try:
        return from_data(contents, list[CellEntry], "the file.cells")
    except DamagedError as error:
        raise DataError(f"{file}: is damaged: {error}") from None


def read_skipped(document: dict[str, Any]) -> list[Skipped]:
    """The schemes that a campaign.json says could not run, each with the reason; the document has been
    checked."""
    return from_data(document.get("skipped") or [], list[Skipped])


def new_planned(cell: Cell) -> dict[str, Any]:
    """The entry of a planned cell."""
    return new_entry(cell.id, cell.scheme, cell.run, seed=cell.seed, hash=cell.hash)


def new_skipped(skipped: plan.Skipped) -> dict[str, str]:
    """A scheme that cannot run, with the reason."""
    return {"scheme": skipped.scheme, "reason": skipped.reason}
