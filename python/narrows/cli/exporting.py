"""`narrows export`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from narrows.cli.app import command

#: Formats, with what they are.
FORMATS = {"pantheon": "a data folder of Pantheon: merged logs, stats files, metadata"}


@command(example="narrows export results/20261121T101500Z-first-look-3fa9c1 --format pantheon -o data")
def export(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of a campaign.")],
    form: Annotated[str, typer.Option("--format", help="pantheon: a data folder of Pantheon.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="The folder to write.")],
) -> None:
    """Write a campaign in the format of another laboratory."""
    from narrows.campaign.store import CampaignFolder
    from narrows.console import say
    from narrows.errors import UsageError
    from narrows.pantheon.exporting import export_campaign

    if form not in FORMATS:
        raise UsageError(f'unknown format "{form}"; known: {", ".join(FORMATS)}')
    written = export_campaign(CampaignFolder.read(folder), output, say)
    say(f"{output}: logs of {written} run{'' if written == 1 else 's'}")
