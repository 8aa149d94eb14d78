"""Reports: what a campaign measured, as one HTML page, a PDF and figures for papers.

`build` reads nothing but a campaign folder. Importing this package is cheap: drawing libraries are
loaded when a report is made, not when the command line shows its help.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from narrows.errors import DataError

__all__ = ["ReportError", "ReportPaths", "Wanted", "build", "plot"]


class ReportError(DataError):
    """A campaign folder that no report can be made of; the message is one sentence with a remedy."""


@dataclass(frozen=True, slots=True)
class ReportPaths:
    """Where the parts of a report were written; a part that was not asked for is `None`."""

    html: Path | None
    pdf: Path | None
    figures: Path


@dataclass(frozen=True, slots=True)
class Wanted:
    """The parts of a report that are asked for."""

    html: bool = True
    pdf: bool = True
    #: The PDF shows every run, and not only those in the middle of their scheme.
    all_runs: bool = False
    #: Every figure is also written as SVG, PNG and CSV.
    files: bool = False


def build(
    campaign_dir: Path, *, pdf: bool = True, html: bool = True, all_runs: bool = False, files: bool = False
) -> ReportPaths:
    """Write `report.html`, `report.pdf` and `figures/` into a campaign folder.

    The page has all runs. The PDF has of each scheme the run nearest to the medians, and what is not `ok`;
    with `all_runs` every one. With `files` each figure is also written as SVG, PNG and CSV into `figures/`.
    """
    from narrows.report.assemble import build_report

    return build_report(Path(campaign_dir), Wanted(html, pdf, all_runs, files))


def plot(
    campaign_dir: Path,
    figure: str,
    *,
    cell: str | None = None,
    width_mm: float = 180.0,
    out: Path | None = None,
    formats: tuple[str, ...] = ("svg", "png", "pdf"),
) -> list[Path]:
    """Draw one figure of the registry at the given paper width; returns the files written.

    `cell` names the run for figures that show one run. Files go to `out` (default: `figures/` of the
    campaign).
    """
    from narrows.report.assemble import plot_figure

    return plot_figure(Path(campaign_dir), figure, cell=cell, width_mm=width_mm, out=out, formats=formats)
