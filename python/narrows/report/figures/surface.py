"""Heat maps of metrics over the two parameters of a sweep or a matrix that matter most."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from narrows.analysis.metrics import head_of, unit_of
from narrows.report import units
from narrows.report.data import Campaign
from narrows.report.drawing import Numbers, Options, new_figure, paper_style
from narrows.report.figures._space import spaces
from narrows.report.style import INK, PAPER
from narrows.sweep.effects import Points, classes, effects

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Metrics over two parameters"
ALSO = ("heatmap",)
SCOPE = "campaign"
ORDER = 26
IN_REPORT = False
OWN_LIMITS = True

#: Classes of a parameter with many values.
MOST = 8


def absent(data: Campaign) -> str | None:
    """Needs two parameters that vary."""
    if not any(_axes(points) for _, points in spaces(data)):
        return "Fewer than two parameters vary over the valid runs."
    return None


def _axes(points: list[Points]) -> tuple[str, str] | None:
    """The two parameters that explain most of the metric, over all schemes; across is the first."""
    shares: dict[str, float] = {}
    for one in points:
        for name, share in effects(one).main.items():
            shares[name] = shares.get(name, 0.0) + share
    if len(shares) < 2:
        return None
    first, second = sorted(shares, key=lambda name: -shares[name])[:2]
    return first, second


def _grid(one: Points, axes: tuple[str, str]) -> tuple[Any, list[str], list[str]]:
    """Medians of the metric by classes (rows from below), with the middles of the classes as shown."""
    across, up = (classes(one.values[name], MOST) for name in axes)
    table = np.full((int(up.max()) + 1, int(across.max()) + 1), np.nan)
    for row in range(table.shape[0]):
        for column in range(table.shape[1]):
            inside = (up == row) & (across == column)
            if inside.any():
                table[row, column] = np.median(one.metric[inside])
    return table, _middles(one.values[axes[0]], across), _middles(one.values[axes[1]], up)


def _middles(values: list[Any], of: Any) -> list[str]:
    found = []
    for number in range(int(of.max()) + 1):
        inside = sorted(values[at] for at in np.flatnonzero(of == number))
        middle = inside[len(inside) // 2]
        found.append(units.trimmed(middle, 3) if isinstance(middle, int | float) else str(middle))
    return found


def numbers(data: Campaign) -> Numbers:
    """One row per scheme, metric and field of the map."""
    rows: list[tuple[Any, ...]] = []
    for metric, points in spaces(data):
        axes = _axes(points)
        for one in points if axes else ():
            assert axes is not None
            table, across, up = _grid(one, axes)
            for (row, column), value in np.ndenumerate(table):
                if np.isfinite(value):
                    rows.append(
                        (
                            one.scheme,
                            metric["name"],
                            unit_of(metric),
                            axes[0],
                            across[column],
                            axes[1],
                            up[row],
                            value,
                        )
                    )
    names = ("scheme", "metric", "unit", "x", "x_value", "y", "y_value", "median")
    return {name: [row[at] for row in rows] for at, name in enumerate(names)}


def caption(data: Campaign) -> str:
    """The caption."""
    named = [
        f"{head_of(metric)} over {axes[0]} and {axes[1]}"
        for metric, points in spaces(data)
        if (axes := _axes(points))
    ]
    return (
        f"{'; '.join(named)}: the two parameters that explain most of each. Fields are medians"
        " over the points, each of which is the median over its valid runs; a parameter with more than"
        f" {MOST} values is cut into classes of as many points each."
    )


def figure(data: Campaign, options: Options) -> Figure:
    """A row per metric, a column per scheme."""
    from matplotlib.colors import LinearSegmentedColormap

    shades = LinearSegmentedColormap.from_list("surface", ["#f4f1ec", "#c78200", "#5b2a86"])
    drawn = [(metric, points, axes) for metric, points in spaces(data) if (axes := _axes(points))]
    schemes = list(dict.fromkeys(one.scheme for _, points, _ in drawn for one in points))
    with paper_style(options):
        picture = new_figure(options, 52.0 * len(drawn))
        grid = picture.subplots(len(drawn), len(schemes), squeeze=False)
        for row, (metric, points, axes) in enumerate(drawn):
            low, high = min(one.metric.min() for one in points), max(one.metric.max() for one in points)
            for column, scheme in enumerate(schemes):
                place = grid[row][column]
                one = next((each for each in points if each.scheme == scheme), None)
                if one is None:
                    place.set_axis_off()
                    continue
                _map(place, _grid(one, axes), (low, high), shades, len(schemes))
                place.set_title(f"{scheme}: {head_of(metric)} ({unit_of(metric)})", loc="left")
                place.set_xlabel(axes[0])
                if column == 0:
                    place.set_ylabel(axes[1])
        picture.subplots_adjust(wspace=0.18, hspace=0.5)
    return picture


def _map(
    place: Any, grid: tuple[Any, list[str], list[str]], ends: tuple[float, float], shades: Any, beside: int
) -> None:
    table, across, up = grid
    low, high = ends
    place.imshow(table, cmap=shades, vmin=low, vmax=high, aspect="auto", origin="lower")
    if table.shape[1] * beside <= 2 * MOST:
        for (row, column), value in np.ndenumerate(table):
            if np.isfinite(value):
                dark = value > low + 0.55 * (high - low)
                text = units.trimmed(value, 3)
                place.text(column, row, text, ha="center", va="center", color=PAPER if dark else INK)
    place.set_xticks(range(len(across)), across)
    place.set_yticks(range(len(up)), up)
    place.grid(visible=False)
    place.tick_params(length=0)
