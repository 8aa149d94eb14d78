"""Boxes of one-way delays, one per scheme."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from narrows.report.data import Campaign
from narrows.report.drawing import Numbers, Options, paper_style
from narrows.report.figures import _conditions, _delays
from narrows.report.figures._rows import rows_of_names, width_of
from narrows.report.panels import Block, Panels
from narrows.report.style import PAPER, Style
from narrows.report.ticks import make_logarithmic
from narrows.statistics.runs import quantiles_over_runs

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TITLE = "One-way delay by scheme"
ALSO = ("box", "boxplot")
SCOPE = "campaign"
ORDER = 70
IN_REPORT = False
STATISTIC = "median over the valid runs, of each percentile"

_QUANTILES = {"p5_ms": 5, "p25_ms": 25, "median_ms": 50, "p75_ms": 75, "p95_ms": 95, "p99_ms": 99}


def absent(data: Campaign) -> str | None:
    """The figure needs single packets."""
    return _delays.absent(data)


def numbers(data: Campaign) -> Numbers:
    """One row per scheme and condition."""
    result = _delays.of_schemes(data)
    shown: dict[str, Any] = {"packets": [sum(map(len, runs)) for runs in result.values()]}
    tables = [_quantiles(runs) for runs in result.values()]
    shown |= {name: [float(table[place]) for table in tables] for place, name in enumerate(_QUANTILES)}
    return _conditions.columns(data, list(result), shown)


def caption(data: Campaign) -> str:
    """The caption."""
    own = " Each panel has its own axis of delays." if len(data.conditions) > 1 else ""
    return (
        (
            "One-way delays of packets: the box spans the middle half, the line in "
            "it is the median, whiskers end at the 5th and 95th percentile, the mark is the 99th; each the "
            "median over the valid runs."
        )
        + _conditions.says_conditions(data)
        + own
    )


def figure(data: Campaign, options: Options) -> Figure:
    """A box per scheme, one below the other, a panel per condition."""
    result = _delays.of_schemes(data)
    groups = _conditions.groups(data, list(result))
    schemes = list(dict.fromkeys(_conditions.scheme_of(data, label) for label in result))
    with paper_style(options):
        names, row_mm = rows_of_names(schemes, options, 0.4 if len(groups) == 1 else 0.25)
        high = max(row_mm * len(schemes), 8.0)
        block = Block(list(groups), "one-way delay (ms)", "", high, high)
        # Delays of different networks have separate axes; otherwise most boxes would be too small to read.
        panels = Panels(
            options,
            [block],
            least_mm=20.0,
            narrowest_mm=9.0,
            shared=(False, True),
            left_mm=width_of(names, options),
        )
        for axes, labels in zip(panels.axes[0], groups.values(), strict=True):
            for label in labels:
                _box(
                    axes,
                    schemes.index(_conditions.scheme_of(data, label)),
                    result[label],
                    _conditions.look(data, label),
                )
            axes.grid(visible=False, axis="y")
            _set_ends(axes, [result[label] for label in labels])
        first = panels.axes[0][0]
        first.set_yticks(range(len(schemes)), names)
        first.set_ylim(len(schemes) - 0.5, -0.5)
        panels.finish({})
    return panels.figure


def _quantiles(runs: Sequence[Any]) -> Any:
    """The percentiles of a box, from the sorted delays of each run."""
    return quantiles_over_runs(runs, [percent / 100 for percent in _QUANTILES.values()])


def _set_ends(axes: Axes, rows: list[list[Any]]) -> None:
    """Sets the delay axis of a panel: from zero, or logarithmic if the delays differ widely."""
    tables = [_quantiles(runs) for runs in rows]
    smallest, largest = min(float(table[0]) for table in tables), max(float(table[-1]) for table in tables)
    if smallest > 0 and largest > 20 * smallest:
        make_logarithmic(axes, "x")
    elif smallest >= 0:
        axes.set_xlim(0, largest * 1.06 if largest > 0 else 1)


def _box(axes: Axes, row: int, runs: Sequence[Any], style: Style) -> None:
    low, start, middle, end, high, far = map(float, _quantiles(runs))
    line: dict[str, Any] = {"color": style.color, "linewidth": 0.9, "zorder": 2}
    axes.plot([low, high], [row, row], solid_capstyle="butt", **line)
    for stop in (low, high):
        axes.plot([stop, stop], [row - 0.15, row + 0.15], **line)
    axes.barh(row, end - start, left=start, height=0.56, color=style.color, zorder=2.5)
    axes.plot([middle, middle], [row - 0.28, row + 0.28], color=PAPER, linewidth=1.2, zorder=3)
    axes.plot(
        [far], [row], marker=style.marker, color=style.color, markersize=2.8, linestyle="none", zorder=3
    )
