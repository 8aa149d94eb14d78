"""The resolved scenario of a campaign."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from narrows.documents.campaign import Header
from narrows.documents.data import DamagedError
from narrows.documents.resolved import Resolved, read_resolved
from narrows.errors import DataError


def scenario_dict(header: Header) -> dict[str, Any]:
    """The resolved scenario of a campaign; without one, a scenario without question and schemes."""
    return {"question": "", "schemes": [], **header.scenario.resolved}


def read_scenario(folder: Path, header: Header) -> Resolved:
    """The resolved scenario of the campaign in a folder, with what an import or an earlier version has not
    written filled in."""
    try:
        return read_resolved(header.scenario.resolved)
    except DamagedError as error:
        raise DataError(f"{folder / 'campaign.json'}: is damaged: {error}") from None
