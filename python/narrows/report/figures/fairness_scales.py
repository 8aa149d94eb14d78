"""Fairness and steadiness over time scales: Jain's index and the coefficient of variation by window."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING, Any

from narrows.report import units
from narrows.report.data import Campaign
from narrows.report.drawing import Numbers, Options, legend_over, limit, new_figure, paper_style
from narrows.report.style import distinct

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Fairness over time scales"
ALSO = ("fairness", "jain", "cov")
SCOPE = "campaign"
ORDER = 80
IN_REPORT = False

_KINDS = {"jain": "Jain's index", "cov": "coefficient of variation"}


def _scales(data: Campaign, kind: str) -> dict[str, float]:
    """The metrics of a kind by their windows in seconds: `jain_10s` has 10."""
    names = (str(metric["name"]) for metric in data.metrics)
    parts = ((name, name.rpartition("_")) for name in names)
    return {
        name: float(width[:-1])
        for name, (first, _, width) in parts
        if first == kind and width.endswith("s") and width[:-1].isdigit()
    }


def _found(data: Campaign) -> list[tuple[str, str, float, float, float, float, int]]:
    """Kind, scheme, window (s), median, smallest, largest and number of the valid runs."""
    found = []
    for kind in _KINDS:
        for name, window in _scales(data, kind).items():
            for scheme in data.schemes:
                rows = [
                    (run.rows.get("all") or {}).get("metrics") or {}
                    for run in data.of_scheme(scheme)
                    if run.valid
                ]
                values = [float(row[name]) for row in rows if row.get(name) is not None]
                if values:
                    found.append(
                        (kind, scheme, window, median(values), min(values), max(values), len(values))
                    )
    return found


def absent(data: Campaign) -> str | None:
    """Needs several flows and runs of several windows."""
    windows = {row[2] for row in _found(data)}
    return None if len(windows) > 1 else "No valid run is long enough for windows of two lengths."


def numbers(data: Campaign) -> Numbers:
    """One row per kind, scheme and window."""
    names = ("metric", "scheme", "window_s", "median", "min", "max", "runs")
    columns = list(zip(*_found(data), strict=True)) or [()] * len(names)
    return dict(zip(names, map(list, columns), strict=True))


def caption(data: Campaign) -> str:
    """The caption."""
    del data
    return (
        "Fairness between flows (Jain's index, 1 is equal shares) and unsteadiness of the throughput of all "
        "together (coefficient of variation, 0 is steady) in windows of a length: lines are medians of the "
        "valid runs, bars reach from the smallest to the largest run."
    )


def figure(data: Campaign, options: Options) -> Figure:
    """Two pictures side by side."""
    found = _found(data)
    kinds = [kind for kind in _KINDS if any(row[0] == kind for row in found)]
    styles = distinct(data.schemes)
    handles: dict[str, Any] = {}
    with paper_style(options):
        narrow = options.width_mm < 120 and len(kinds) > 1
        picture = new_figure(options, 62.0 * (len(kinds) if narrow else 1))
        grid = (
            picture.subplots(len(kinds), 1, squeeze=False)
            if narrow
            else picture.subplots(1, len(kinds), squeeze=False)
        )
        for axes, kind in zip(grid.flat, kinds, strict=True):
            for scheme in data.schemes:
                rows = sorted(row[2:6] for row in found if row[:2] == (kind, scheme))
                if not rows:
                    continue
                style = styles[scheme]
                windows, middles, lows, highs = (list(column) for column in zip(*rows, strict=True))
                below = [middle - low for middle, low in zip(middles, lows, strict=True)]
                above = [high - middle for middle, high in zip(middles, highs, strict=True)]
                handles[scheme] = axes.errorbar(
                    windows,
                    middles,
                    yerr=[below, above],
                    color=style.color,
                    marker=style.marker,
                    linestyle=style.linestyle,
                    markersize=3.6,
                    markeredgecolor="white",
                    markeredgewidth=0.4,
                    elinewidth=0.6,
                )
            axes.set_xscale("log")
            axes.set_xticks(
                windows_of(found, kind), [units.trimmed(w) for w in windows_of(found, kind)], minor=False
            )
            axes.xaxis.minorticks_off()
            axes.set_xlabel("window (s)")
            axes.set_ylabel(_KINDS[kind])
            if kind == "jain":
                axes.set_ylim(top=1.005)
            else:
                axes.set_ylim(bottom=0)
            limit(axes, options)
        legend_over(picture, handles, options, 2.0)
        picture.subplots_adjust(wspace=0.28, hspace=0.3)
    return picture


def windows_of(found: list[tuple[str, str, float, float, float, float, int]], kind: str) -> list[float]:
    """The windows that a kind has values of, in order."""
    return sorted({row[2] for row in found if row[0] == kind})
