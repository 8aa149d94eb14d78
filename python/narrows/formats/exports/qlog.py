"""One qlog file per flow of every run, from its sender's view: `CELL-flowN.sqlog`.

The format is version 0.4 of the drafts (draft-ietf-quic-qlog-main-schema), as JSON text sequences.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from narrows.campaign.store import CampaignFolder
from narrows.formats.cells import CellToExport, ExportedCell, export_cells

NEWEST = "0.4"


def export_campaign(
    folder: CampaignFolder, target: Path, _say: Callable[[str], None], version: str
) -> list[ExportedCell]:
    """Writes a log of each flow of each finished run; returns numbers of events."""
    from narrows import _native

    def write(cell: CellToExport, partial: Path) -> ExportedCell:
        prefix = str(partial / f"{cell.id}-flow")
        text = _native.export_qlog(
            cell.path, cell.base_ns, version or NEWEST, cell.title, cell.description, prefix, ".sqlog"
        )
        flows = json.loads(text)
        return ExportedCell(files=[f"{cell.id}-flow{flow}.sqlog" for flow in flows], flows=flows)

    return export_cells(folder, target, write)
