"""Captures of both ends of every run: `CELL-sender.pcapng` and `CELL-receiver.pcapng`.

Packets have the times and sizes of the record; their headers are synthesised so that Wireshark and tshark can
analyse them, and identify the retransmissions that the senders counted:

```sh
tshark -r CELL-sender.pcapng -Y tcp.analysis.retransmission
```
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from narrows.campaign.store import CampaignFolder
from narrows.documents.data import Count, Part, from_data
from narrows.formats.cells import CellToExport, ExportedCell, export_cells


class _End(Part, frozen=True, kw_only=True):
    packets: Count
    repeated: Count = 0


class _Counts(Part, frozen=True, kw_only=True):
    sender: _End
    receiver: _End


def export_campaign(
    folder: CampaignFolder, target: Path, _say: Callable[[str], None], _version: str
) -> list[ExportedCell]:
    """Writes two captures of each finished run; returns numbers of packets."""
    from narrows import _native

    def write(cell: CellToExport, partial: Path) -> ExportedCell:
        names = [f"{cell.id}-{end}.pcapng" for end in ("sender", "receiver")]
        comment = f"{cell.title}. {cell.description}"
        paths = [partial / name for name in names]
        text = _native.export_pcapng(cell.path, cell.base_ns, comment, *paths)
        counts = from_data(json.loads(text), _Counts)
        return ExportedCell(
            files=names,
            packets={"sender": counts.sender.packets, "receiver": counts.receiver.packets},
            retransmissions=counts.sender.repeated,
        )

    return export_cells(folder, target, write)
