"""Boxes of one-way delays, one per scheme."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from narrows.report import units
from narrows.report.data import Campaign
from narrows.report.drawing import Numbers, Options, paper_style
from narrows.report.figures import _delays
from narrows.report.figures._rows import axes_of_rows
from narrows.report.style import PAPER, distinct

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "One-way delay by scheme"
ALSO = ("box", "boxplot")
SCOPE = "campaign"
ORDER = 70
IN_REPORT = False

_QUANTILES = {"p5_ms": 5, "p25_ms": 25, "median_ms": 50, "p75_ms": 75, "p95_ms": 95, "p99_ms": 99}


def absent(data: Campaign) -> str | None:
    """Needs single packets."""
    return _delays.absent(data)


def numbers(data: Campaign) -> Numbers:
    """One row per scheme."""
    found = _delays.of_schemes(data)
    columns: dict[str, Any] = {"scheme": list(found), "packets": [len(delays) for delays in found.values()]}
    for name, percent in _QUANTILES.items():
        columns[name] = [float(np.percentile(delays, percent)) for delays in found.values()]
    return columns


def caption(data: Campaign) -> str:
    """The caption."""
    del data
    return (
        "One-way delays of all packets of a scheme's valid runs: the box spans the middle half, the line in "
        "it is the median, whiskers end at the 5th and 95th percentile, the mark is the 99th."
    )


def figure(data: Campaign, options: Options) -> Figure:
    """A box per scheme, one below the other."""
    columns = numbers(data)
    schemes = list(columns["scheme"])
    styles = distinct(data.schemes)
    with paper_style(options):
        picture, axes = axes_of_rows(options, schemes)
        for row, scheme in enumerate(schemes):
            low, first, middle, third, high, far = (float(columns[name][row]) for name in _QUANTILES)
            style = styles[scheme]
            axes.plot(
                [low, high], [row, row], color=style.color, linewidth=0.9, zorder=2, solid_capstyle="butt"
            )
            for end in (low, high):
                axes.plot([end, end], [row - 0.15, row + 0.15], color=style.color, linewidth=0.9, zorder=2)
            axes.barh(row, third - first, left=first, height=0.56, color=style.color, zorder=2.5)
            axes.plot([middle, middle], [row - 0.28, row + 0.28], color=PAPER, linewidth=1.2, zorder=3)
            axes.plot(
                [far],
                [row],
                marker=style.marker,
                color=style.color,
                markersize=3.2,
                linestyle="none",
                zorder=3,
            )
        smallest, largest = min(columns["p5_ms"]), max(columns["p99_ms"])
        if smallest > 0 and largest > 20 * smallest:
            axes.set_xscale("log")
            axes.xaxis.set_major_formatter(lambda value, _: units.trimmed(value))
        else:
            axes.set_xlim(0, largest * 1.05 if largest > 0 else 1)
        axes.set_xlabel("one-way delay (ms)", labelpad=1.5)
    return picture
