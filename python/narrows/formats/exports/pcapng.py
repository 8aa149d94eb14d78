"""Captures of both ends of every run: `CELL-sender.pcapng` and `CELL-receiver.pcapng`.

Packets have the times and sizes of the record; their headers are synthesised so that Wireshark and tshark can
analyse them, and identify the retransmissions that the senders counted:

```sh
tshark -r CELL-sender.pcapng -Y tcp.analysis.retransmission
```
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from narrows.campaign.store import CampaignFolder
from narrows.formats.cells import CellToExport, export_cells, load_json


def export_campaign(
    folder: CampaignFolder, target: Path, _say: Callable[[str], None], _version: str
) -> list[dict[str, Any]]:
    """Writes two captures of each finished run; returns numbers of packets."""
    from narrows import _native

    def write(cell: CellToExport, partial: Path) -> dict[str, Any]:
        names = [f"{cell.id}-{end}.pcapng" for end in ("sender", "receiver")]
        comment = f"{cell.title}. {cell.description}"
        paths = [partial / name for name in names]
        counts = load_json(_native.export_pcapng(cell.path, cell.base_ns, comment, *paths))
        return {
            "files": names,
            "packets": {end: count["packets"] for end, count in counts.items()},
            "retransmissions": counts["sender"]["repeated"],
        }

    return export_cells(folder, target, write)
