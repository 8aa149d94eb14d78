"""Every table of every run as comma-separated values, and the results.

```text
results.csv, results.json   as in the campaign: one row per run and flow
CELL/packets.csv            one row per packet
CELL/states.csv ...         and so on, a file for each table of the record
```

Columns are those of the Parquet files; absent values are empty.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from narrows.campaign.store import CampaignFolder
from narrows.formats.cells import CellToExport, ExportedCell, export_cells


def export_campaign(
    folder: CampaignFolder, target: Path, _say: Callable[[str], None], _version: str
) -> list[ExportedCell]:
    """Writes the tables of all finished runs; returns the number of rows per file."""
    from narrows import _native
    from narrows.campaign import results

    def write(cell: CellToExport, partial: Path) -> ExportedCell:
        own = partial / cell.id
        own.mkdir()
        rows = json.loads(_native.export_csv(cell.path, own))
        return ExportedCell(files=[f"{cell.id}/{name}" for name in rows], rows=rows)

    def finish(_cells: list[CellToExport], partial: Path) -> None:
        results.write(CampaignFolder(partial, folder.document), results.read(folder.path))

    return export_cells(folder, target, write, finish)
