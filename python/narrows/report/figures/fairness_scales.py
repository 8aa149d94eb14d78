"""Fairness and stability over time scales: Jain's index and the coefficient of variation by window."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from narrows.report import units
from narrows.report.data import Campaign
from narrows.report.drawing import Numbers, Options, limit, paper_style
from narrows.report.figures import _conditions
from narrows.report.panels import Block, Panels
from narrows.report.style import Style
from narrows.report.ticks import reach_values
from narrows.statistics.runs import STATISTIC as OF_RUNS
from narrows.statistics.runs import median_over_runs

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Fairness over time scales"
ALSO = ("fairness", "jain", "cov")
SCOPE = "campaign"
ORDER = 80
IN_REPORT = False
STATISTIC = OF_RUNS

_KINDS = {"jain": "Jain's index", "cov": "coefficient of variation"}


def _scales(data: Campaign, kind: str) -> dict[str, float]:
    """The metrics of a kind by their windows in seconds: 10 for `jain_10s`."""
    names = (metric.name for metric in data.metrics)
    parts = ((name, name.rpartition("_")) for name in names)
    return {
        name: float(width[:-1])
        for name, (first, _, width) in parts
        if first == kind and width.endswith("s") and width[:-1].isdigit()
    }


def _rows(data: Campaign) -> list[tuple[str, str, float, float, float, float, int]]:
    """Kind, scheme, window (s), median, smallest, largest and number of the valid runs."""
    return data.keep("fairness_scales", lambda: _read(data))


def _read(data: Campaign) -> list[tuple[str, str, float, float, float, float, int]]:
    pairs = []
    for kind in _KINDS:
        for name, window in _scales(data, kind).items():
            for scheme in data.schemes:
                of_runs = (run.value("all", name) for run in data.of_scheme(scheme) if run.valid)
                values = [float(value) for value in of_runs if value is not None]
                if values:
                    pairs.append(
                        (
                            kind,
                            scheme,
                            window,
                            median_over_runs(values),
                            min(values),
                            max(values),
                            len(values),
                        )
                    )
    return pairs


def absent(data: Campaign) -> str | None:
    """The figure needs several flows and runs of several windows."""
    windows = {row[2] for row in _rows(data)}
    return None if len(windows) > 1 else "No valid run is long enough for windows of two lengths."


def numbers(data: Campaign) -> Numbers:
    """One row per kind, scheme and window."""
    pairs = _rows(data)
    names = ("window_s", "median", "min", "max", "runs")
    shown: dict[str, list[Any]] = {"metric": [row[0] for row in pairs]}
    shown |= {name: [row[place] for row in pairs] for place, name in enumerate(names, 2)}
    return _conditions.columns(data, [row[1] for row in pairs], shown)


def caption(data: Campaign) -> str:
    """The caption."""
    return (
        "Fairness between flows (Jain's index, 1 is equal shares) and unsteadiness of the throughput of all "
        "together (coefficient of variation, 0 is steady) in windows of a length: lines are medians of the "
        "valid runs, bars reach from the smallest to the largest run."
    ) + _conditions.says_conditions(data)


def figure(data: Campaign, options: Options) -> Figure:
    """A block for each of the two metrics, a panel per condition."""
    pairs = _rows(data)
    kinds = [kind for kind in _KINDS if any(row[0] == kind for row in pairs)]
    groups = _conditions.groups(data, list(dict.fromkeys(row[1] for row in pairs)))
    entries: dict[str, object] = {}
    with paper_style(options):
        high = 42.0 if len(groups) == 1 else 24.0
        blocks = [Block(list(groups), "window (s)", _KINDS[kind], high) for kind in kinds]
        panels = Panels(options, blocks, least_mm=20.0, narrowest_mm=17.0)
        for row, kind in zip(panels.axes, kinds, strict=True):
            for axes, labels in zip(row, groups.values(), strict=True):
                for label in labels:
                    own = sorted(pair[2:6] for pair in pairs if pair[:2] == (kind, label))
                    if own:
                        line = _line(axes, own, _conditions.look(data, label))
                        entries.setdefault(_conditions.scheme_of(data, label), line)
            windows = windows_of(pairs, kind)
            row[0].set_xscale("log")
            row[0].set_xticks(windows, [units.trim(w) for w in windows], minor=False)
            row[0].xaxis.minorticks_off()
            # Only once all panels have their data: data drawn later would be cut off.
            if kind == "jain":
                low = float(row[0].get_ylim()[0])
                row[0].set_ylim(low, 1.0 + max(0.05 * (1.0 - low), 0.005))
            else:
                reach_values(row)
            limit(row[0], options)
        panels.finish(entries)
    return panels.figure


def _line(axes: Any, rows: list[tuple[float, float, float, float]], style: Style) -> Any:
    windows, middles, lows, highs = (list(column) for column in zip(*rows, strict=True))
    below = [middle - low for middle, low in zip(middles, lows, strict=True)]
    above = [high - middle for middle, high in zip(middles, highs, strict=True)]
    bars = axes.errorbar(
        windows,
        middles,
        yerr=[below, above],
        color=style.color,
        marker=style.marker,
        linestyle=style.linestyle,
        markersize=3.6 * style.weight,
        markeredgecolor="white",
        markeredgewidth=0.4,
        elinewidth=0.6,
    )
    return bars.lines[0]


def windows_of(pairs: list[tuple[str, str, float, float, float, float, int]], kind: str) -> list[float]:
    """The windows for which a kind has values, sorted."""
    return sorted({row[2] for row in pairs if row[0] == kind})
