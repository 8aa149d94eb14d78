"""The parts of a report, and their files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class ReportPaths:
    """The files of a report; a part that was not requested is `None`."""

    html: Path | None
    pdf: Path | None
    figures: Path


@dataclass(frozen=True, slots=True)
class Wanted:
    """The requested parts of a report."""

    html: bool = True
    pdf: bool = True
    #: The PDF shows every run, not only the middle run of each scheme.
    all_runs: bool = False
    #: Every figure is also written as SVG, PNG and CSV.
    files: bool = False
