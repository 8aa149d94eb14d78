"""Published values against ours: a point on the diagonal matches, one above it is larger here."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from narrows.analysis.metrics import unit_of
from narrows.documents.laboratory import COMPARED, LabColumn
from narrows.lab.answer import CLOSE
from narrows.report.drawing import Options, new_figure, paper_style, write_figure, write_numbers
from narrows.report.style import MUTED, SHADE, of

if TYPE_CHECKING:
    from matplotlib.lines import Line2D
    from matplotlib.typing import FillStyleType

_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "h")
#: The axes are logarithmic if the largest value is this many times the smallest.
_WIDE = 20.0
_SIDE_MM, _LEFT_MM, _BOTTOM_MM, _TOP_MM = 78.0, 15.0, 11.0, 4.0
_LINE_MM = 3.6


def draw_agreement(column: LabColumn, schemes: Mapping[str, str], stem: Path, options: Options) -> str:
    """Draws the compared cells of a column as PNG and CSV, and returns the caption. Colours are those of the
    `schemes` (by published names); markers are conditions."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    cells = [cell for cell in column.cells if cell.state == COMPARED]
    metric = column.metric
    scale = metric.show_scale
    points = [(cell, (cell.theirs or 0) * scale, (cell.ours or 0) * scale) for cell in cells]
    values = [value for _, theirs, ours in points for value in (theirs, ours)]
    low, high = min(values), max(values)
    is_wide = low > 0 and high / low > _WIDE
    cases = list(dict.fromkeys(cell.case for cell in cells))
    tested = list(dict.fromkeys(cell.scheme for cell in cells))
    named_cases = cases if 1 < len(cases) <= len(_MARKERS) else []
    marker = {
        case: _MARKERS[number] if named_cases else "o" for number, case in enumerate(cases[: len(_MARKERS)])
    }
    lines = len(tested) + len(named_cases) + bool(named_cases)
    with paper_style(options):
        height = max(_SIDE_MM + _BOTTOM_MM + _TOP_MM, lines * _LINE_MM + 2 * _TOP_MM)
        figure = new_figure(options, height)
        axes = figure.add_axes(
            (
                _LEFT_MM / options.width_mm,
                1 - (_SIDE_MM + _TOP_MM) / height,
                _SIDE_MM / options.width_mm,
                _SIDE_MM / height,
            )
        )
        if is_wide:
            axes.set_xscale("log")
            axes.set_yscale("log")
            for axis in (axes.xaxis, axes.yaxis):
                axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
                axis.set_major_formatter(FuncFormatter(_plain_number))
                axis.set_minor_formatter(NullFormatter())
            ends = (low / 1.3, high * 1.3)
        else:
            margin = 0.06 * (high - low) or abs(high) * 0.1 or 1.0
            ends = (min(low, low - margin), high + margin)
        axes.fill_between(
            ends,
            [end * (1 - CLOSE) for end in ends],
            [end * (1 + CLOSE) for end in ends],
            color=SHADE,
            linewidth=0,
        )
        axes.plot(ends, ends, color=MUTED, linewidth=0.7)
        for cell, theirs, ours in points:
            axes.plot(
                theirs,
                ours,
                marker.get(cell.case, "o"),
                color=of(schemes[cell.scheme]).color,
                markersize=4.2,
                markeredgecolor="white",
                markeredgewidth=0.4,
            )
        axes.set_xlim(ends)
        axes.set_ylim(ends)
        unit = unit_of(metric)
        label = f" ({unit})" if unit else ""
        axes.set_xlabel(f"published{label}")
        axes.set_ylabel(f"ours{label}")
        handles = [_handle("o", of(schemes[name]).color, name) for name in tested]
        if named_cases:
            handles.append(_handle("", MUTED, ""))
        handles += [_handle(marker[case], MUTED, case, fillstyle="none") for case in named_cases]
        figure.legend(
            handles=handles,
            loc="upper left",
            bbox_to_anchor=((_LEFT_MM + _SIDE_MM + 4) / options.width_mm, 1 - 2 / height),
            frameon=False,
            labelspacing=0.3,
        )
    write_figure(figure, stem, ["png"], options, (f"{column.label}: published and ours", column.statistic))
    write_numbers(
        {
            "experiment": [cell.experiment for cell in cells],
            "condition": [cell.case for cell in cells],
            "scheme": [cell.scheme for cell in cells],
            "published": [cell.theirs for cell in cells],
            "ours": [cell.ours for cell in cells],
        },
        stem.with_suffix(".csv"),
    )
    return (
        f"{len(cells)} values of {column.label}: on the line ours equals the published value, within the"
        f" band it differs by at most {CLOSE * 100:.0f} %."
        + (" Both axes are logarithmic." if is_wide else "")
        + (" Markers are conditions." if named_cases else "")
    )


def _plain_number(value: float, _place: int) -> str:
    return f"{value:g}"


def _handle(marker: str, colour: str, label: str, fillstyle: FillStyleType = "full") -> Line2D:
    from matplotlib.lines import Line2D

    return Line2D(
        [],
        [],
        linestyle="none",
        marker=marker,
        color=colour,
        markersize=4.2,
        label=label,
        fillstyle=fillstyle,
    )
