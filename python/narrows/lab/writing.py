"""Writes the report of a laboratory beside its campaigns: report.html, report.txt and comparison.json."""

from __future__ import annotations

import io
import json
from pathlib import Path

from msgspec.structs import replace
from rich.console import Console

from narrows.campaign.json_files import write_atomically
from narrows.documents.data import to_data
from narrows.documents.laboratory import LabReport
from narrows.lab.comparing import compare
from narrows.lab.figures import draw_all
from narrows.lab.page import page
from narrows.lab.running import open_run
from narrows.lab.text import print_report


def write(folder: Path) -> tuple[LabReport, list[Path]]:
    """Compares the runs in a folder with the published values, draws the figures and writes the report;
    returns the report and the files, the page first.
    """
    run = open_run(folder)
    report = compare(run)
    report = replace(report, figures=draw_all(run, report))
    text = io.StringIO()
    print_report(Console(file=text, no_color=True, width=200), report, cells=True)
    texts = {
        "report.html": page(report, folder),
        "report.txt": text.getvalue(),
        "comparison.json": json.dumps(to_data(report), indent=1, ensure_ascii=False, allow_nan=False) + "\n",
    }
    for name, content in texts.items():
        write_atomically(folder / name, content)
    return report, [folder / name for name in texts]
