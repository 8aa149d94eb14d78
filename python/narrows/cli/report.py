"""`narrows report`."""

from __future__ import annotations

import os
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Annotated

import typer

from narrows.cli.app import command
from narrows.cli.common import Metrics, read_metrics


@command(example="narrows report results/20261121T101500Z-first-look-3fa9c1")
def report(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of a campaign.")],
    pdf: Annotated[bool, typer.Option("--pdf/--no-pdf", help="Write report.pdf too.")] = True,
    metrics: Metrics = None,
) -> None:
    """Write report.html and report.pdf of a campaign anew."""
    from narrows.campaign import results
    from narrows.campaign.store import CampaignFolder

    read_metrics(metrics)
    opened = CampaignFolder.read(folder)
    opened.check_records()
    results.write(opened, results.read(folder))
    for file in build_report(folder, pdf=pdf):
        print(f"report: {file}")


def build_report(folder: Path, *, pdf: bool) -> list[Path]:
    """Builds the report; gives the files a reader would open."""
    from narrows.errors import NarrowsError
    from narrows.report import build

    try:
        paths = build(folder, pdf=pdf)
    except NarrowsError:
        raise
    except Exception as error:
        if os.environ.get("NARROWS_TRACEBACK"):
            raise
        raise NarrowsError(
            f"the report can't be written: {type(error).__name__}: {error}; the results are complete,"
            " write it"
            f" later with: narrows report {folder}"
        ) from None
    values = [getattr(paths, one.name) for one in fields(paths)] if is_dataclass(paths) else list(paths)
    return [value for value in values if isinstance(value, Path) and value.suffix in (".html", ".pdf")]
