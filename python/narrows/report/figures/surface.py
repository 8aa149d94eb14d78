"""Heat maps of metrics over the two parameters of a sweep or a matrix that matter most."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from narrows.analysis.metrics import unit_of
from narrows.report import units
from narrows.report.data import Campaign
from narrows.report.drawing import Numbers, Options, paper_style
from narrows.report.figures._space import spaces
from narrows.report.figures.parameter import axis_name
from narrows.report.legends import text_mm
from narrows.report.panels import Block, Panels
from narrows.report.style import INK, PAPER
from narrows.sweep.effects import Points, classes, effects

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TITLE = "Metrics over two parameters"
ALSO = ("heatmap",)
SCOPE = "campaign"
ORDER = 26
IN_REPORT = False
OWN_LIMITS = True
STATISTIC = "median over points, each the median over its valid runs"

#: Maximum number of classes of a parameter with many values.
MOST = 8


def absent(data: Campaign) -> str | None:
    """The figure needs two parameters that vary."""
    if not any(_axes(points) for _, points in spaces(data)):
        return "Fewer than two parameters vary over the valid runs."
    return None


def _axes(points: list[Points]) -> tuple[str, str] | None:
    """The two parameters that explain most of the metric, over all schemes, in the order of the scenario, so
    that the maps of all metrics over the same parameters have the same axes.
    """
    shares: dict[str, float] = {}
    for point in points:
        for name, share in effects(point).main.items():
            shares[name] = shares.get(name, 0.0) + share
    if len(shares) < 2:
        return None
    strongest = sorted(shares, key=lambda name: -shares[name])[:2]
    across, up = (name for name in points[0].values if name in strongest)
    return across, up


def _grids(points: list[Points], axes: tuple[str, str]) -> tuple[list[Any], list[str], list[str]]:
    """For each scheme, the medians of the metric by class (rows from below); all schemes share the classes,
    which are returned with their displayed midpoints.
    """
    every = [[value for point in points for value in point.values[name]] for name in axes]
    across, up = (classes(values, MOST) for values in every)
    tables, begin = [], 0
    for point in points:
        own = slice(begin, begin + len(point.metric))
        begin = own.stop
        table = np.full((int(up.max()) + 1, int(across.max()) + 1), np.nan)
        for row, column in {*zip(up[own].tolist(), across[own].tolist(), strict=True)}:
            table[row, column] = np.median(point.metric[(up[own] == row) & (across[own] == column)])
        tables.append(table)
    return tables, _middles(every[0], across), _middles(every[1], up)


def _middles(values: list[Any], of: Any) -> list[str]:
    middles = []
    for number in range(int(of.max()) + 1):
        inside = sorted(values[at] for at in np.flatnonzero(of == number))
        middle = inside[len(inside) // 2]
        middles.append(units.trim(middle, 3) if isinstance(middle, int | float) else str(middle))
    return middles


def numbers(data: Campaign) -> Numbers:
    """One row per scheme, metric and field of the map."""
    rows: list[tuple[Any, ...]] = []
    for metric, points in spaces(data):
        axes = _axes(points)
        if axes is None:
            continue
        tables, across, up = _grids(points, axes)
        for point, table in zip(points, tables, strict=True):
            for (row, column), value in np.ndenumerate(table):
                if np.isfinite(value):
                    where = (axes[0], across[column], axes[1], up[row])
                    rows.append((point.scheme, metric.name, unit_of(metric), *where, value))
    names = ("scheme", "metric", "unit", "x", "x_value", "y", "y_value", "median")
    return {name: [row[at] for row in rows] for at, name in enumerate(names)}


def caption(data: Campaign) -> str:
    """The caption."""
    named = [
        f"{metric.label} over {axes[0]} and {axes[1]}"
        for metric, points in spaces(data)
        if (axes := _axes(points))
    ]
    return (
        f"{'; '.join(named)}: the two parameters that explain most of each. Fields are medians"
        " over the points, each of which is the median over its valid runs; a parameter with more than"
        f" {MOST} values is cut into classes of as many points each."
    )


def figure(data: Campaign, options: Options) -> Figure:
    """A block per metric, a panel per scheme."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import LinearSegmentedColormap, Normalize

    # Lightness is monotonic, so that the map can be read in grey.
    shades = LinearSegmentedColormap.from_list("surface", ["#f4f1ec", "#c78200", "#5b2a86"])
    drawn = [(metric, points, axes) for metric, points in spaces(data) if (axes := _axes(points))]
    with paper_style(options):
        blocks, maps = [], []
        for metric, points, axes in drawn:
            tables, across, up = _grids(points, axes)
            low = min(float(np.nanmin(table)) for table in tables)
            high = max(float(np.nanmax(table)) for table in tables)
            maps.append((tables, across, up, Normalize(low, high if high > low else low + 1)))
            heading = axis_name(metric)
            tall = max(2.9 * len(up), 26.0 if len(points) <= 2 else 14.0 if len(points) <= 8 else 11.0)
            key = ScalarMappable(maps[-1][3], shades)
            names = [point.scheme for point in points]
            blocks.append(Block(names, axes[0], axes[1], tall, 2.9 * len(up), heading, key))
        panels = Panels(options, blocks, least_mm=22.0, narrowest_mm=13.0)
        for row, (tables, across, up, scale) in zip(panels.axes, maps, strict=True):
            for place, table in zip(row, tables, strict=True):
                place.imshow(table, cmap=shades, norm=scale, aspect="auto", origin="lower")
                place.grid(visible=False)
                place.tick_params(length=0)
            size = options.font_pt - 0.5
            crowded = max(text_mm(text, size) for text in across) > panels.panel_mm / len(across) - 0.7
            turned = crowded and not all(text.replace(".", "").isdigit() for text in across)
            row[0].set_xticks(range(len(across)), across, rotation=90 if turned else 0)
            row[0].set_yticks(range(len(up)), up)
        panels.finish({})
        for row, (tables, _, _, scale) in zip(panels.axes, maps, strict=True):
            for place, table in zip(row, tables, strict=True):
                write_values(
                    place, table, float(scale.vmin or 0), float(scale.vmax or 0), options, units.trim
                )
    return panels.figure


def write_values(
    place: Axes,
    table: Any,
    low: float,
    high: float,
    options: Options,
    form: Callable[[float, int], str],
    light_above: bool = True,
) -> None:
    """Writes the numbers of a map into its fields, if all fit; otherwise the colour bar shows them."""
    figure = place.get_figure(root=True)
    assert figure is not None
    frame = place.get_position()
    size = options.font_pt - 1.5
    texts = {spot: form(value, 3) for spot, value in np.ndenumerate(table) if np.isfinite(value)}
    wide = frame.width * options.width_mm / table.shape[1]
    tall = frame.height * figure.get_figheight() * 25.4 / table.shape[0]
    if not texts or max(text_mm(text, size) for text in texts.values()) > wide - 0.8 or tall < size * 0.42:
        return
    for (row, column), text in texts.items():
        dark = (table[row, column] > low + 0.55 * (high - low)) == light_above
        colour = PAPER if dark else INK
        place.text(column, row, text, ha="center", va="center", color=colour, fontsize=size)
