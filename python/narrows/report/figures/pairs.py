"""Heat map of pairs: the share that a scheme gets beside another one, and the harm that it suffers."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from narrows.report.data import Campaign, Run
from narrows.report.drawing import Numbers, Options, paper_style
from narrows.report.figures import _conditions
from narrows.report.figures._rows import rows_of_names, width_of
from narrows.report.figures.surface import write_values
from narrows.report.panels import Block, Panels
from narrows.statistics.runs import STATISTIC as OF_RUNS
from narrows.statistics.runs import median_over_runs

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Shares of pairs"
ALSO = ("harm", "starvation")
SCOPE = "campaign"
ORDER = 30
STATISTIC = OF_RUNS
OWN_LIMITS = True

Pair = tuple[str, str]


def _names(data: Campaign) -> dict[str, list[str]]:
    """The labels of the schemes of the flows, by rows of scenarios of pairs."""
    return {row.label: row.pair for row in data.resolved.schemes if row.pair}


def _rates(run: Run, names: dict[str, list[str]]) -> dict[str, list[float]] | None:
    """Throughputs of the flows (bit/s) by scheme in a run of one scheme or two."""
    result: dict[str, list[float]] = {}
    called = names.get(run.scheme) or [flow.scheme for flow in run.tested]
    for flow, scheme in zip(run.tested, called, strict=False):
        value = run.value(str(flow.number), "throughput_bps")
        if value is None:
            return None
        result.setdefault(scheme, []).append(float(value))
    return result if len(result) < 3 else None


def _valid(data: Campaign) -> dict[str, list[dict[str, list[float]]]]:
    """The throughputs of the valid runs, by condition."""
    names, result = _names(data), {}
    for title, labels in _conditions.groups(data, data.schemes).items():
        runs = [run for label in labels for run in data.of_scheme(label) if run.valid]
        result[title] = [rates for run in runs if (rates := _rates(run, names))]
    return result


def _collect(runs: list[dict[str, list[float]]]) -> dict[Pair, list[float]]:
    """For each pair (row, column), the share that a flow of the row's scheme gets beside one of the column's,
    in every run.
    """
    result: dict[Pair, list[float]] = {}
    for rates in runs:
        means = {scheme: sum(values) / len(values) for scheme, values in rates.items()}
        if len(means) < 2 or sum(means.values()) <= 0:
            continue
        one, other = means
        for row, column in ((one, other), (other, one)):
            result.setdefault((row, column), []).append(means[row] / sum(means.values()))
    return result


def _harm(runs: list[dict[str, list[float]]]) -> dict[Pair, float]:
    """For each pair, the share of its throughput alone that the row's scheme loses beside a flow of the
    column's, from medians of runs (Ware et al., HotNets 2019), if schemes also ran alone. On the diagonal it
    is the harm between two flows of one scheme: the reference for the others (RFC 9743, section 5.2).
    """
    alone: dict[str, list[float]] = {}
    beside: dict[Pair, list[float]] = {}
    for rates in runs:
        schemes = list(rates)
        flows = sum(map(len, rates.values()))
        if flows == 1:
            alone.setdefault(schemes[0], []).append(rates[schemes[0]][0])
        elif flows == 2:
            for row, column in ((schemes[0], schemes[-1]), (schemes[-1], schemes[0])):
                beside.setdefault((row, column), []).append(sum(rates[row]) / len(rates[row]))
    return {
        pair: 1 - median_over_runs(values) / median_over_runs(alone[pair[0]])
        for pair, values in beside.items()
        if median_over_runs(alone.get(pair[0], [0.0])) > 0
    }


def _shares_by_condition(data: Campaign) -> dict[str, tuple[dict[Pair, list[float]], dict[Pair, float]]]:
    """Shares and harm by condition, if there are pairs."""
    result = {title: (_collect(runs), _harm(runs)) for title, runs in _valid(data).items()}
    return {
        title: (shares, harm)
        for title, (shares, harm) in result.items()
        if len(shares) > 2 or (shares and any(pair in harm for pair in shares))
    }


def absent(data: Campaign) -> str | None:
    """The figure needs runs that mix two schemes: of two pairs, or of one whose schemes also ran alone."""
    return (
        None if _shares_by_condition(data) else "Fewer than two pairs of schemes share a path in valid runs."
    )


def numbers(data: Campaign) -> Numbers:
    """One row per condition and pair in either order; share and harm may each be missing for some pairs."""
    columns: dict[str, list[Any]] = {
        name: [] for name in ("condition", "scheme", "beside", "share", "min", "max", "harm", "runs")
    }
    for title, (result, harm) in _shares_by_condition(data).items():
        for pair in dict.fromkeys([*result, *harm]):
            shares = result.get(pair) or [np.nan]
            row = (title, *pair, median_over_runs(shares), min(shares), max(shares), harm.get(pair, np.nan))
            for name, value in zip(columns, (*row, len(result.get(pair, ()))), strict=True):
                columns[name].append(value)
    if len(data.conditions) < 2:
        del columns["condition"]
    return columns


def caption(data: Campaign) -> str:
    """The caption."""
    text = (
        "Share in per cent that a flow of the scheme in the row gets beside one of the scheme in the column: "
        "50 is an equal share, and more is taken from the other. Medians of the valid runs."
    )
    if any(harm for _, harm in _shares_by_condition(data).values()):
        text += (
            " Harm in per cent is the part of its throughput alone that the scheme in the row loses beside"
            " the one in the column; beside itself it is what two of its flows do to each other."
        )
    return text + _conditions.says_conditions(data)


def figure(data: Campaign, options: Options) -> Figure:
    """A square per pair, a panel per condition; a second block for harm if schemes also ran alone."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import LinearSegmentedColormap, Normalize

    shown = _shares_by_condition(data)
    present = {name for result, harm in shown.values() for pair in (*result, *harm) for name in pair}
    schemes = [s for s in _in_order(data) if s in present]
    # Lightness is monotonic, so that the maps can be read in grey.
    ends = LinearSegmentedColormap.from_list("shares", ["#4a2373", "#a5799f", "#e8b86a", "#fff3d9"])
    worse = LinearSegmentedColormap.from_list("harm", ["#f4f1ec", "#b98bb8", "#4a2373"])
    scale = Normalize(0, 100)
    shares = {
        title: {pair: median_over_runs(values) for pair, values in result.items()}
        for title, (result, _) in shown.items()
    }
    maps = [("share of (%)", shares, ends, False)]
    if any(harm for _, harm in shown.values()):
        maps.append(("harm to (%)", {title: harm for title, (_, harm) in shown.items()}, worse, True))
    with paper_style(options):
        names, _ = rows_of_names(schemes, options, 0.25)
        blocks = [
            Block(list(shown), "beside", label, 30.0, heading=label, shades=ScalarMappable(scale, shades))
            for label, _, shades, _ in maps
        ]
        count = len(schemes)
        panels = Panels(
            options,
            [replace(block, y_label="") for block in blocks],
            least_mm=max(18.0, 3.1 * count),
            narrowest_mm=2.2 * count,
            widest_mm=max(14.0 * count, 20.0),
            left_mm=width_of(names, options),
        )
        cell = panels.panel_mm / count
        panels.blocks = [
            replace(block, height_mm=cell * count, least_mm=min(cell, 2.2) * count) for block in panels.blocks
        ]
        size = min(options.font_pt - 0.5, cell / 0.42)
        for row, (_, values, shades, _) in zip(panels.axes, maps, strict=True):
            for axes, own in zip(row, values.values(), strict=True):
                axes.imshow(_table(schemes, own), cmap=shades, norm=scale, aspect="auto")
                axes.grid(visible=False)
                axes.tick_params(length=0, labelsize=size)
            row[0].set_xticks(range(count), names, rotation=90)
            row[0].set_yticks(range(count), names)
        panels.finish({})
        for row, (_, values, _, light) in zip(panels.axes, maps, strict=True):
            for axes, own in zip(row, values.values(), strict=True):
                table = _table(schemes, own)
                write_values(axes, table, 0, 100, options, lambda value, _: f"{value:.0f}", light_above=light)
    return panels.figure


def _table(schemes: list[str], values: dict[Pair, float]) -> Any:
    """Percentages in rows and columns."""
    table: Any = np.full((len(schemes), len(schemes)), np.nan)
    for (row, column), value in values.items():
        table[schemes.index(row), schemes.index(column)] = value * 100
    return table


def _in_order(data: Campaign) -> list[str]:
    """The schemes of all flows, in the order in which runs name them."""
    names = _names(data)
    return list(
        dict.fromkeys(
            scheme
            for name in data.schemes
            for run in data.of_scheme(name)
            for scheme in names.get(name) or [flow.scheme for flow in run.tested]
        )
    )
