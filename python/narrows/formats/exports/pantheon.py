"""A data folder of Pantheon (see `narrows.pantheon.exporting`)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from narrows.campaign.store import CampaignFolder
from narrows.formats.cells import ExportedCell


def export_campaign(
    folder: CampaignFolder, target: Path, say: Callable[[str], None], _version: str
) -> list[ExportedCell]:
    """Writes the logs of all finished runs."""
    from narrows.pantheon.exporting import export_campaign as write_logs

    write_logs(folder, target, say)
    return [ExportedCell(cell=entry.id) for entry in folder.cells if entry.is_finished]
