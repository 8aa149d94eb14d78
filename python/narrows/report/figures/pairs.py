"""Heat map of pairs: the share that a scheme gets beside another one."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

from narrows.report.data import Campaign, Run
from narrows.report.drawing import Numbers, Options, new_figure, paper_style
from narrows.report.style import INK, MUTED, PAPER

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Shares of pairs"
SCOPE = "campaign"
ORDER = 30

Pair = tuple[str, str]


def _rates(run: Run) -> dict[str, float] | None:
    """Throughput (bit/s) by scheme in a run of exactly two schemes, or of two flows of one scheme; a flow
    rate is the mean of the scheme's flows."""
    by_scheme: dict[str, list[float]] = {}
    for flow in run.tested:
        value = ((run.rows.get(str(flow.number)) or {}).get("metrics") or {}).get("throughput_bps")
        if value is None:
            return None
        by_scheme.setdefault(flow.scheme, []).append(float(value))
    if len(by_scheme) == 2:
        return {scheme: sum(rates) / len(rates) for scheme, rates in by_scheme.items()}
    return None


def _found(data: Campaign) -> dict[Pair, list[float]]:
    """Per pair (row, column) the row's share of the rate of a flow of each, in every valid run."""
    found: dict[Pair, list[float]] = {}
    for run in data.runs:
        rates = _rates(run) if run.valid else None
        if rates is None or sum(rates.values()) <= 0:
            continue
        one, other = rates
        for row, column in ((one, other), (other, one)):
            found.setdefault((row, column), []).append(rates[row] / sum(rates.values()))
    return found


def absent(data: Campaign) -> str | None:
    """Needs runs that mix two schemes."""
    return None if len(_found(data)) > 2 else "Fewer than two pairs of schemes share a path in valid runs."


def numbers(data: Campaign) -> Numbers:
    """One row per pair in either order."""
    found = _found(data)
    return {
        "scheme": [row for row, _ in found],
        "beside": [column for _, column in found],
        "share": [median(shares) for shares in found.values()],
        "min": [min(shares) for shares in found.values()],
        "max": [max(shares) for shares in found.values()],
        "runs": [len(shares) for shares in found.values()],
    }


def caption(data: Campaign) -> str:
    """The caption."""
    del data
    return (
        "Share in per cent that a flow of the scheme in the row gets beside one of the scheme in the column: "
        "50 is an equal share, and more is taken from the other. Medians of the valid runs."
    )


def figure(data: Campaign, options: Options) -> Figure:
    """A square per pair, with its number."""
    from matplotlib.colors import LinearSegmentedColormap

    found = _found(data)
    present = {name for pair in found for name in pair}
    schemes = [s for s in _in_order(data) if s in present]
    table: Any = np.full((len(schemes), len(schemes)), np.nan)
    for (row, column), shares in found.items():
        table[schemes.index(row), schemes.index(column)] = median(shares) * 100
    # Light in the middle; in grey, where both ends are alike, the numbers tell.
    shades = LinearSegmentedColormap.from_list("shares", ["#8d4f9f", "#f4f1ec", "#c78200"])
    with paper_style(options):
        longest = max(map(len, schemes)) * 0.2 * options.font_pt
        left, below = longest + 8, longest + 8
        size = min((options.width_mm - left - 3) / len(schemes), 14.0)
        picture = new_figure(options, size * len(schemes) + below + 3)
        height = picture.get_figheight() * 25.4
        wide = size * len(schemes)
        axes = picture.add_axes(
            (left / options.width_mm, below / height, wide / options.width_mm, wide / height)
        )
        axes.imshow(table, cmap=shades, vmin=0, vmax=100, aspect="auto")
        for (row, column), value in np.ndenumerate(table):
            if np.isfinite(value):
                colour = PAPER if value < 18 else INK
                axes.text(column, row, f"{value:.0f}", ha="center", va="center", color=colour)
        axes.set_xticks(range(len(schemes)), schemes, rotation=90)
        axes.set_yticks(range(len(schemes)), schemes)
        axes.grid(visible=False)
        axes.tick_params(length=0)
        axes.set_xlabel("beside", color=MUTED)
        axes.set_ylabel("share of (%)", color=MUTED)
    return picture


def _in_order(data: Campaign) -> list[str]:
    """The schemes of all flows, in the order in which runs name them."""
    return list(
        dict.fromkeys(
            flow.scheme for name in data.schemes for run in data.of_scheme(name) for flow in run.tested
        )
    )
