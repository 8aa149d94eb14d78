"""Reports: a campaign's results as one HTML page, a PDF and figures for papers.

`build` reads only a campaign folder. Importing this package is cheap: drawing libraries are loaded when a
report is made, not when the command line shows its help.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from narrows.report.errors import ReportError, UnknownNameError
from narrows.report.parts import ReportPaths, Wanted

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    #: A folder, or a campaign loaded from one (`path`).
    Place = str | PathLike[str] | Any

__all__ = ["ReportError", "ReportPaths", "UnknownNameError", "Wanted", "build", "plot"]


def build(
    campaign_dir: Path, *, pdf: bool = True, html: bool = True, all_runs: bool = False, files: bool = False
) -> ReportPaths:
    """Write `report.html`, `report.pdf` and `figures/` into a campaign folder.

    The page has all runs. The PDF has, for each scheme, the run nearest to the medians, and all runs that are
    not `ok`; with `all_runs` every run. With `files` each figure is also written as SVG, PNG and CSV into
    `figures/`.
    """
    from narrows.report.assemble import build_report

    return build_report(Path(campaign_dir), Wanted(html, pdf, all_runs, files))


def plot(
    campaigns: Place | Sequence[Place],
    figure: str,
    *,
    schemes: Sequence[str] | None = None,
    runs: Sequence[str | int] | None = None,
    flows: Sequence[int] | None = None,
    only: Mapping[str, str | Sequence[str]] | None = None,
    x: tuple[float | None, float | None] = (None, None),
    y: tuple[float | None, float | None] = (None, None),
    width_mm: float = 180.0,
    height_mm: float | None = None,
    font_pt: float = 7.0,
) -> Figure:
    """A figure of the registry (`narrows plot --list`) over one or several campaigns, which can be shown,
    changed or saved like any Matplotlib figure.

    `runs` are numbers, or names of cells such as `cubic-r1`; by default a figure over time shows the run of
    each scheme that is nearest to its medians. `flows` are numbers of flows. `only` selects values of the
    matrix in the notation of the scenario, for example `{"droptail": "1 bdp"}`. `x` and `y` are the limits of
    the axes in their displayed units, `None` to derive them from the data. Raises `ReportError` if there is
    no such figure, scheme, value, run or flow, or nothing to draw.
    """
    from narrows.report.drawing import Options
    from narrows.report.plotting import Choice, compose

    values = [
        f"{name}={value}"
        for name, given in (only or {}).items()
        for value in ([given] if isinstance(given, str) else given)
    ]
    chosen = Choice(
        _list(campaigns), figure, _names(schemes), _names(runs), tuple(flows or ()), tuple(values)
    )
    return compose(chosen, Options(width_mm, height_mm, font_pt, x, y)).figure


def _list(given: Place | Sequence[Place]) -> tuple[Path, ...]:
    one = isinstance(given, str | PathLike) or hasattr(given, "path")
    several: Any = [given] if one else given
    return tuple(Path(getattr(place, "path", place)) for place in several)


def _names(given: Sequence[str | int] | None) -> tuple[str, ...]:
    return tuple(str(item) for item in given or ())
