"""A metric against a parameter of the matrix: a line per scheme, small multiples for further parameters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from narrows.analysis.metrics import unit_of
from narrows.documents.results import Quantity
from narrows.report import units
from narrows.report.data import Campaign
from narrows.report.drawing import Numbers, Options, limit, paper_style
from narrows.report.legends import text_mm
from narrows.report.panels import Block, Panels
from narrows.report.ticks import make_logarithmic, reach_values
from narrows.statistics.runs import STATISTIC as OF_RUNS
from narrows.statistics.runs import median_over_runs, spread_of, summarise

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Metrics against the matrix"
ALSO = ("sensitivity",)
SCOPE = "campaign"
ORDER = 25
STATISTIC = OF_RUNS

METRICS = ("throughput_bps", "delay_p95_ns")
"""The metrics drawn, one below the other."""
SHOWN = {"rate": (1e-6, "Mbit/s"), "span": (1e-6, "ms"), "bytes": (1e-3, "kB"), "ratio": (100, "%")}


@dataclass(frozen=True, slots=True)
class Point:
    """The valid runs of a scheme in one cell of the matrix."""

    scheme: str
    values: dict[str, str]
    metric: str
    samples: tuple[float, ...]


def matrix_rows(data: Campaign) -> dict[str, tuple[str, dict[str, str]]]:
    """Scheme and values of every row of a matrix, by its label."""
    return {label: (row.scheme, dict(row.values)) for label, row in data.rows.items() if row.values}


def points(data: Campaign) -> list[Point]:
    """One point per scheme, cell of the matrix and metric with values."""
    return data.keep("parameter", lambda: _read(data))


def _read(data: Campaign) -> list[Point]:
    rows = matrix_rows(data)
    points = []
    for label in data.schemes:
        base, values = rows.get(label, ("", {}))
        if not values:
            continue
        for name in METRICS:
            metric = data.metric(name)
            values_of_runs = (run.value("all", name) for run in data.of_scheme(label) if run.valid)
            samples = [float(value) for value in values_of_runs if value is not None]
            if metric is not None and samples:
                scale = metric.show_scale
                points.append(Point(base, values, name, tuple(value * scale for value in samples)))
    return points


def _axis(points: list[Point]) -> str | None:
    """The parameter on the axis is the one with the most values; among equals the first."""
    keys = list(dict.fromkeys(key for point in points for key in point.values))
    counted = {key: len({point.values.get(key) for point in points}) for key in keys}
    best = max(keys, key=lambda key: counted[key], default=None)
    return best if best is not None and counted[best] > 1 else None


def numeric(texts: list[str]) -> tuple[list[float], str] | None:
    """The values as numbers in one unit; `None` if they are not all quantities of one kind."""
    from narrows.scenario.quantity import QuantityError, parse

    first = {text.split()[0] for text in texts}
    if len(first) == 1 and all(len(text.split()) > 2 for text in texts):  # `droptail 1 bdp`, `droptail 2 bdp`
        texts = [text.split(maxsplit=1)[1] for text in texts]
    quantities = []
    for text in texts:
        try:
            quantities.append(parse(text))
        except QuantityError:
            break
    if len(quantities) == len(texts) and len({quantity.kind for quantity in quantities}) == 1:
        factor, unit = SHOWN.get(quantities[0].kind, (1, quantities[0].kind))
        return [float(quantity.value) * factor for quantity in quantities], unit
    try:
        return [float(text) for text in texts], ""
    except ValueError:
        return None


def absent(data: Campaign) -> str | None:
    """The figure needs a matrix with valid runs in several cells."""
    if not matrix_rows(data):
        return "The scenario has no matrix."
    return None if _axis(points(data)) else "No parameter has valid runs at two of its values."


def numbers(data: Campaign) -> Numbers:
    """One row per scheme, cell of the matrix and metric, with the drawn interval."""
    result = points(data)
    keys = list(dict.fromkeys(key for point in result for key in point.values))
    spreads = [spread_of(summarise(point.samples)) for point in result]
    return {
        "scheme": [point.scheme for point in result],
        **{key: [point.values.get(key) for point in result] for key in keys},
        "metric": [point.metric for point in result],
        "unit": [unit_of(data.quantity(point.metric)) for point in result],
        "median": [median_over_runs(point.samples) for point in result],
        "low": [spread.low for spread in spreads],
        "high": [spread.high for spread in spreads],
        "runs": [len(point.samples) for point in result],
    }


def caption(data: Campaign) -> str:
    """The caption."""
    result = points(data)
    text = (
        f"Medians of the valid runs against {_axis(result)}; bars are 95 % intervals of the median, below 6 "
        "runs the smallest and largest."
    )
    others = [key for key in dict.fromkeys(k for p in result for k in p.values) if key != _axis(result)]
    return text + (f" A panel for each value of {' and '.join(others)}." if others else "")


def figure(data: Campaign, options: Options) -> Figure:
    """A block per metric, a panel per combination of the other parameters."""
    result = points(data)
    axis = _axis(result)
    assert axis is not None
    metrics = [name for name in METRICS if any(point.metric == name for point in result)]
    texts = list(dict.fromkeys(point.values[axis] for point in result if axis in point.values))
    placed = numeric(texts)
    at = dict(zip(texts, placed[0] if placed else range(len(texts)), strict=True))
    groups = list(dict.fromkeys(_others(point, axis) for point in result))
    titles = _titles(groups)
    label = f"{axis} ({placed[1]})" if placed and placed[1] else axis
    entries: dict[str, object] = {}
    with paper_style(options):
        high = 42.0 if len(groups) == 1 else 27.0
        blocks = []
        for metric in metrics:
            blocks.append(Block(titles, label, axis_name(data.quantity(metric)), high))
        panels = Panels(options, blocks, least_mm=20.0, narrowest_mm=17.0)
        for row, metric in zip(panels.axes, metrics, strict=True):
            for axes, group in zip(row, groups, strict=True):
                own = [p for p in result if p.metric == metric and _others(p, axis) == group]
                for scheme in dict.fromkeys(point.scheme for point in own):
                    mine = sorted((at[p.values[axis]], p.samples) for p in own if p.scheme == scheme)
                    entries.setdefault(scheme, _line(axes, mine, data.styles[scheme]))
            # Only once all panels have their data: data drawn later would be cut off.
            reach_values(row)
            _ticks(row[0], at, placed is not None, panels.panel_mm, options)
            limit(row[0], options)
        in_order = [scheme for scheme in data.styles if scheme in entries]
        panels.finish({scheme: entries[scheme] for scheme in in_order})
    return panels.figure


def axis_name(metric: Quantity) -> str:
    """A metric with its unit, as an axis label."""
    unit = unit_of(metric)
    return f"{metric.label} ({unit})" if unit else metric.label


def _titles(groups: list[tuple[tuple[str, str], ...]]) -> list[str]:
    """The combinations in words, without the values that all share."""
    shared = set(groups[0]).intersection(*groups)
    return [
        ", ".join(f"{key} {value}" for key, value in group if (key, value) not in shared) for group in groups
    ]


def _others(point: Point, axis: str) -> tuple[tuple[str, str], ...]:
    return tuple((key, value) for key, value in point.values.items() if key != axis)


def _line(axes: Any, rows: list[tuple[float, tuple[float, ...]]], style: Any) -> Any:
    middles = [median_over_runs(samples) for _, samples in rows]
    below, above = [], []
    for middle, (_, samples) in zip(middles, rows, strict=True):
        spread = spread_of(summarise(samples))
        below.append(0.0 if spread.low is None else max(0.0, middle - spread.low))
        above.append(0.0 if spread.high is None else max(0.0, spread.high - middle))
    bars = axes.errorbar(
        [x for x, _ in rows],
        middles,
        yerr=[below, above],
        color=style.color,
        marker=style.marker,
        linestyle=style.linestyle,
        markersize=3.6 * style.weight,
        markeredgecolor="white",
        markeredgewidth=0.4,
        elinewidth=0.7,
        capsize=1.5,
    )
    return bars.lines[0]


def _ticks(axes: Any, at: dict[str, float], is_numeric: bool, room_mm: float, options: Options) -> None:
    places = sorted(at.values())
    if is_numeric:
        if places[0] > 0 and places[-1] > 8 * places[0]:
            axes.set_xscale("log")
        if len(places) <= 8:
            axes.set_xticks(places, [units.trim(value) for value in places], minor=False)
            axes.xaxis.minorticks_off()
        elif axes.get_xscale() == "log":
            make_logarithmic(axes, "x")
        return
    size = options.font_pt - 0.5
    wide = max(text_mm(text, size) for text in at) > room_mm / len(at) - 0.8
    axes.set_xticks(list(at.values()), list(at), rotation=90 if wide else 0)
    axes.set_xlim(-0.4, len(at) - 0.6)
