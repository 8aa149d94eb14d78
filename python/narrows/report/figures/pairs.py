"""Heat map of pairs: the share that a scheme gets beside another one, and the harm that it takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from narrows.report.data import Campaign, Run
from narrows.report.drawing import Numbers, Options, new_figure, paper_style
from narrows.report.style import INK, MUTED, PAPER
from narrows.statistics.runs import median_over_runs

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Shares of pairs"
ALSO = ("harm", "starvation")
SCOPE = "campaign"
ORDER = 30

Pair = tuple[str, str]


def _names(data: Campaign) -> dict[str, list[str]]:
    """The labels of the schemes of the flows, by rows of scenarios of pairs."""
    rows = data.resolved.get("schemes") or []
    return {str(row["label"]): list(row["pair"]) for row in rows if isinstance(row, dict) and row.get("pair")}


def _rates(run: Run, names: dict[str, list[str]]) -> dict[str, list[float]] | None:
    """Throughputs of the flows (bit/s) by scheme in a run of one scheme or two."""
    found: dict[str, list[float]] = {}
    called = names.get(run.scheme) or [flow.scheme for flow in run.tested]
    for flow, scheme in zip(run.tested, called, strict=False):
        value = ((run.rows.get(str(flow.number)) or {}).get("metrics") or {}).get("throughput_bps")
        if value is None:
            return None
        found.setdefault(scheme, []).append(float(value))
    return found if len(found) < 3 else None


def _valid(data: Campaign) -> Iterator[dict[str, list[float]]]:
    names = _names(data)
    return (rates for run in data.runs if run.valid and (rates := _rates(run, names)))


def _found(data: Campaign) -> dict[Pair, list[float]]:
    """Per pair (row, column) the share that a flow of the row's scheme has of one of each, in every run."""
    found: dict[Pair, list[float]] = {}
    for rates in _valid(data):
        means = {scheme: sum(values) / len(values) for scheme, values in rates.items()}
        if len(means) < 2 or sum(means.values()) <= 0:
            continue
        one, other = means
        for row, column in ((one, other), (other, one)):
            found.setdefault((row, column), []).append(means[row] / sum(means.values()))
    return found


def _harm(data: Campaign) -> dict[Pair, float]:
    """Per pair the share of its throughput alone that the row's scheme loses beside a flow of the column's,
    from medians of runs (Ware et al., HotNets 2019); of schemes that ran alone too. Beside itself it is what
    two flows of a scheme do to each other: the measure for the others (RFC 9743, section 5.2)."""
    alone: dict[str, list[float]] = {}
    beside: dict[Pair, list[float]] = {}
    for rates in _valid(data):
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


def absent(data: Campaign) -> str | None:
    """Needs runs that mix two schemes: those of two pairs, or of one whose schemes ran alone too."""
    found, harm = _found(data), _harm(data)
    return (
        None
        if len(found) > 2 or (found and any(pair in harm for pair in found))
        else "Fewer than two pairs of schemes share a path in valid runs."
    )


def numbers(data: Campaign) -> Numbers:
    """One row per pair in either order; share and harm are each known of some pairs."""
    found, harm = _found(data), _harm(data)
    pairs = list(dict.fromkeys([*found, *harm]))
    shares = [found.get(pair) or [np.nan] for pair in pairs]
    return {
        "scheme": [row for row, _ in pairs],
        "beside": [column for _, column in pairs],
        "share": [median_over_runs(values) for values in shares],
        "min": [min(values) for values in shares],
        "max": [max(values) for values in shares],
        "harm": [harm.get(pair, np.nan) for pair in pairs],
        "runs": [len(found.get(pair, ())) for pair in pairs],
    }


def caption(data: Campaign) -> str:
    """The caption."""
    text = (
        "Share in per cent that a flow of the scheme in the row gets beside one of the scheme in the column: "
        "50 is an equal share, and more is taken from the other. Medians of the valid runs."
    )
    if _harm(data):
        text += (
            " Harm in per cent is the part of its throughput alone that the scheme in the row loses beside"
            " the one in the column; beside itself it is what two of its flows do to each other."
        )
    return text


def figure(data: Campaign, options: Options) -> Figure:
    """A square per pair, with its number; a second map of harm where schemes ran alone too."""
    from matplotlib.colors import LinearSegmentedColormap

    found, harm = _found(data), _harm(data)
    present = {name for pair in (*found, *harm) for name in pair}
    schemes = [s for s in _in_order(data) if s in present]
    # Light in the middle; in grey, where both ends are alike, the numbers tell.
    ends = LinearSegmentedColormap.from_list("shares", ["#8d4f9f", "#f4f1ec", "#c78200"])
    worse = LinearSegmentedColormap.from_list("harm", ["#f4f1ec", "#8d4f9f"])
    shares = {pair: median_over_runs(values) for pair, values in found.items()}
    # Numbers are written light where the map is dark.
    maps = [("share of (%)", shares, ends, lambda value: value < 18)]
    if harm:
        maps.append(("harm to (%)", harm, worse, lambda value: value > 60))
    with paper_style(options):
        margin = max(map(len, schemes)) * 0.2 * options.font_pt + 8
        room = options.width_mm / len(maps)
        size = min((room - margin - 3) / len(schemes), 14.0)
        picture = new_figure(options, size * len(schemes) + margin + 3)
        height = picture.get_figheight() * 25.4
        wide = size * len(schemes)
        for number, (label, values, shades, dark) in enumerate(maps):
            left = number * (margin + wide + 6) + margin
            axes = picture.add_axes(
                (left / options.width_mm, margin / height, wide / options.width_mm, wide / height)
            )
            _map(axes, schemes, values, shades, dark)
            axes.set_xlabel("beside", color=MUTED)
            axes.set_ylabel(label, color=MUTED)
    return picture


def _map(
    axes: Any, schemes: list[str], values: dict[Pair, float], shades: Any, is_dark: Callable[[float], bool]
) -> None:
    """A map of per cents."""
    table: Any = np.full((len(schemes), len(schemes)), np.nan)
    for (row, column), value in values.items():
        table[schemes.index(row), schemes.index(column)] = value * 100
    axes.imshow(table, cmap=shades, vmin=0, vmax=100, aspect="auto")
    for (row, column), value in np.ndenumerate(table):
        if np.isfinite(value):
            colour = PAPER if is_dark(value) else INK
            axes.text(column, row, f"{value:.0f}", ha="center", va="center", color=colour)
    axes.set_xticks(range(len(schemes)), schemes, rotation=90)
    axes.set_yticks(range(len(schemes)), schemes)
    axes.grid(visible=False)
    axes.tick_params(length=0)


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
