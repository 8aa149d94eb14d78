"""The cells in campaign.json, and the members of a new cell."""

from __future__ import annotations

import platform
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from narrows import __version__
from narrows.campaign import integrity
from narrows.documents.campaign import (
    FORMAT,
    AgentVersion,
    Campaign,
    CellEntry,
    Header,
    Override,
    ScenarioSource,
    Versions,
)
from narrows.documents.data import DamagedError, from_data, to_data
from narrows.errors import DataError

if TYPE_CHECKING:
    # Reading a campaign needs neither scenarios nor what plans are made of.
    from narrows.agent.location import Location
    from narrows.scenario import Cell, Loaded


def now() -> str:
    """The time of day, in the format of files."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def new_document(
    name: str, where: str, scenario: ScenarioSource, versions: Versions, cells: list[dict[str, object]]
) -> dict[str, object]:
    """The campaign.json of a new campaign."""
    header = Header(
        format=FORMAT, name=name, where=where, scenario=scenario, created_at=now(), versions=versions
    )
    return {**to_data(header), "cells": cells}


def new_versions(agent: Location) -> Versions:
    """The versions of the programs here. Raises `UnavailableError` if the agent does not answer."""
    version = from_data(to_data(agent.version()), AgentVersion)
    return Versions(narrows=__version__, agent=version, python=platform.python_version())


def new_overrides(loaded: Loaded) -> list[Override]:
    """The options that changed a scenario."""
    return [Override(option=item.option, path=item.path, value=item.text) for item in loaded.overrides]


def new_entry(cell: str, scheme: str, run: int, **more: Any) -> dict[str, object]:
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


def problem_of_campaign(document: dict[str, object]) -> str | None:
    """Why a campaign.json could not be read; None if it can be."""
    try:
        cells = Campaign.from_members(document).cells
    except DamagedError as error:
        return str(error)
    return integrity.problem_of_cells(cells)


def read_entries(file: Path, contents: list[dict[str, object]]) -> list[CellEntry]:
    """The typed entries of cells. Raises `DataError` if they do not fit."""
    try:
        return from_data(contents, list[CellEntry], "the file.cells")
    except DamagedError as error:
        raise DataError(f"{file}: is damaged: {error}") from None


def new_planned(cell: Cell) -> dict[str, object]:
    """The entry of a planned cell."""
    return new_entry(cell.id, cell.scheme, cell.run, seed=cell.seed, hash=cell.hash)
