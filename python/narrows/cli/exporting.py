"""`narrows export`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from narrows.cli.app import command
from narrows.cli.common import Json
from narrows.cli.parameters import argument, option
from narrows.formats import EXPORTS

if TYPE_CHECKING:
    from narrows.formats.cells import ExportedCell


@command(example="narrows export results/20261121T101500Z-first-look-3fa9c1 --format pcapng -o captures")
def export(
    folder: Annotated[Path, argument(metavar="DIR", help="Folder of a campaign.")],
    form: Annotated[
        str,
        option("--format", help="; ".join(f"{name}: {what}" for name, what in EXPORTS.items()) + "."),
    ],
    output: Annotated[Path, option("-o", "--output", help="The folder to write; it must be new or empty.")],
    as_json: Json = False,
) -> None:
    """Write a campaign for other tools.

    Every finished run is written; the folder appears once all are. Records of bins (record: bins) contain no
    packets and can be written as csv and flent only.

    Exit codes: 0 done, 2 unknown format, 3 a record is damaged or holds no packets.
    """
    from narrows.cli.common import print_json
    from narrows.console import say
    from narrows.documents.data import to_data
    from narrows.formats import export as write

    cells = write(folder, form, output, say)
    if as_json:
        print_json({"format": form, "folder": str(output), "cells": to_data(cells)})
        return
    say(f"{output}: {len(cells)} run{'' if len(cells) == 1 else 's'} as {form}{_remarks(form, cells)}")


def _remarks(form: str, cells: list[ExportedCell]) -> str:
    """The user's next step with the files."""
    files = [name for cell in cells for name in cell.files or ()]
    if form == "pcapng":
        repeated = sum(cell.retransmissions or 0 for cell in cells)
        return (
            f"; {repeated} retransmissions in all; count those of a run with:"
            f" tshark -r {files[0]} -Y tcp.analysis.retransmission"
        )
    if form == "flent":
        return f"; plot one with: flent -i {files[0]} -p totals -o plot.png"
    return ""
