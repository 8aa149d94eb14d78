"""The members of a new campaign.json."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    # Reading a campaign needs neither scenarios nor what plans are made of.
    from narrows.campaign.plan import Plan
    from narrows.scenario import Cell

FORMAT = "narrows/campaign/1"


def now() -> str:
    """The time of day, as it is written to files."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def new_document(
    name: str, where: str, scenario: dict[str, Any], versions: dict[str, Any], cells: list[dict[str, Any]]
) -> dict[str, Any]:
    """The campaign.json of a new campaign; `scenario` as it is stored."""
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


def planned(cell: Cell) -> dict[str, Any]:
    """The entry of a cell of a plan."""
    return new_entry(cell.id, cell.scheme, cell.run, seed=cell.seed, hash=cell.hash)


def skipped(plan: Plan) -> list[dict[str, Any]]:
    """The schemes that cannot run, each with the reason."""
    return [{"scheme": one.scheme, "reason": one.reason} for one in plan.skipped]
