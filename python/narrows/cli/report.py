"""`narrows report`."""

from __future__ import annotations

import os
from dataclasses import fields, is_dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

from narrows.cli.app import command
from narrows.cli.common import Json, Metrics, Parts, print_done, read_metrics
from narrows.cli.parameters import argument, option


class Runs(StrEnum):
    """The runs that the PDF shows."""

    MIDDLE = "middle"
    ALL = "all"


@command(example="narrows report results/20261121T101500Z-first-look-3fa9c1")
def report(
    folder: Annotated[Path, argument(metavar="DIR", help="Folder of a campaign.")],
    parts: Annotated[
        Parts, option("--report", help="Write report.html, report.pdf, or all of it.")
    ] = Parts.ALL,
    pdf: Annotated[bool, option("--pdf/--no-pdf", help="--no-pdf is short for --report html.")] = True,
    runs: Annotated[
        Runs,
        option(
            "--runs",
            help="Runs in the PDF: of each scheme the one nearest to the medians and those that are not ok,"
            " or all with all their figures. The page has all in any case.",
        ),
    ] = Runs.MIDDLE,
    files: Annotated[
        bool, option("--figures", help="Write each figure as SVG, PNG and CSV into figures/ too.")
    ] = False,
    metrics: Metrics = None,
    as_json: Json = False,
) -> None:
    """Write report.html and report.pdf of a campaign again."""
    from narrows.campaign import results
    from narrows.campaign.store import CampaignFolder

    read_metrics(metrics)
    opened = CampaignFolder.read(folder)
    opened.check_records()
    results.write(opened, results.remade(opened))
    parts = parts if pdf else Parts.HTML
    written = [str(file) for file in build_report(folder, parts, all_runs=runs is Runs.ALL, files=files)]
    print_done("\n".join(f"report: {file}" for file in written), as_json, "report", files=written)


def build_report(folder: Path, parts: Parts, *, all_runs: bool = False, files: bool = False) -> list[Path]:
    """Builds the report; returns the files that a reader would open."""
    from narrows.errors import NarrowsError, UnavailableError
    from narrows.extras import missing_library

    html, pdf = parts in (Parts.HTML, Parts.ALL), parts in (Parts.PDF, Parts.ALL)
    if not (html or pdf or files):
        return []
    try:
        from narrows.report import build

        paths = build(folder, pdf=pdf, html=html, all_runs=all_runs, files=files)
    except NarrowsError:
        raise
    except Exception as error:
        if os.environ.get("NARROWS_TRACEBACK"):
            raise
        if (missing := missing_library(error)) is not None:
            raise UnavailableError(f"the results are complete; for a report {missing}") from None
        raise NarrowsError(
            f"the report can't be written: {type(error).__name__}: {error}; the results are complete,"
            " write it"
            f" later with: narrows report {folder}"
        ) from None
    values = [getattr(paths, field.name) for field in fields(paths)] if is_dataclass(paths) else list(paths)
    return [value for value in values if isinstance(value, Path) and value.suffix in (".html", ".pdf")]
