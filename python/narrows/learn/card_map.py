"""The map of a model card as a picture: where a model works, and where it was trained."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from narrows.learn.recipe import Recipe

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Bits of a packet in the objective of rule tables.
_PACKET_BITS = 10_000
WIDTH_MM = 110.0

Range = tuple[float, float]


class _Law(msgspec.Struct):
    rate_bps: Range
    one_way_ms: Range


class _Listed(msgspec.Struct):
    rate_bps: float
    one_way_ms: float


class _Networks(msgspec.Struct):
    packets_per_ms: Range
    one_way_ms: float = 75.0


class _Training(msgspec.Struct):
    """The parts of a recipe that say on which paths it trains."""

    law: _Law | None = None
    paths: list[_Listed] = []
    objective: list[_Networks] = []


class Box(msgspec.Struct, frozen=True):
    """Rates (Mbit/s) and one-way delays (ms) of paths of a training."""

    rates: Range
    delays: Range


def list_boxes(recipe: Recipe) -> list[Box]:
    """The paths on which `recipe` trains: those of its law, or else of its list, or of its objective."""
    training = msgspec.json.decode(recipe.to_json(), type=_Training)
    if law := training.law:
        return [Box((law.rate_bps[0] / 1e6, law.rate_bps[1] / 1e6), law.one_way_ms)]
    if training.paths:
        rates = [path.rate_bps / 1e6 for path in training.paths]
        delays = [path.one_way_ms for path in training.paths]
        return [Box((min(rates), max(rates)), (min(delays), max(delays)))]
    by_delay: dict[float, list[float]] = {}
    for networks in training.objective:
        ends = (rate * 1e3 * _PACKET_BITS / 1e6 for rate in networks.packets_per_ms)
        by_delay.setdefault(networks.one_way_ms, []).extend(ends)
    return [Box((min(rates), max(rates)), (delay, delay)) for delay, rates in by_delay.items()]


def draw_map(
    shares: Sequence[Sequence[float]], rates: Sequence[float], delays: Sequence[float], boxes: Sequence[Box]
) -> Figure:
    """A field for each rate (from below) and delay with its share of the power that the path allows; boxes
    surround the fields nearest to the paths of the training.
    """
    import numpy as np
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import LinearSegmentedColormap, Normalize
    from matplotlib.patches import Rectangle

    from narrows.report.drawing import Options, paper_style
    from narrows.report.figures.surface import write_values
    from narrows.report.panels import Block, Panels
    from narrows.report.style import INK

    # Lightness is monotonic, so that the map can be read in grey.
    shades = LinearSegmentedColormap.from_list("surface", ["#f4f1ec", "#c78200", "#5b2a86"])
    scale = Normalize(0.0, 1.0)
    options = Options(width_mm=WIDTH_MM)
    table = np.clip(np.asarray(shares, dtype=float), 0.0, 1.0)

    def nearest(value: float, values: Sequence[float]) -> int:
        return int(np.argmin(np.abs(np.log(values) - np.log(value))))

    with paper_style(options):
        heading = "power as a share of what the path allows"
        key = ScalarMappable(scale, shades)
        block = Block(
            [""], "one-way delay (ms)", "rate (Mbit/s)", 5.0 * len(rates), heading=heading, shades=key
        )
        panels = Panels(options, [block])
        axes = panels.axes[0][0]
        axes.imshow(table, cmap=shades, norm=scale, aspect="auto", origin="lower")
        axes.grid(visible=False)
        axes.tick_params(length=0)
        axes.set_xticks(range(len(delays)), [f"{delay:g}" for delay in delays])
        axes.set_yticks(range(len(rates)), [f"{rate:g}" for rate in rates])
        for box in boxes:
            left, right = (nearest(delay, delays) for delay in box.delays)
            low, high = (nearest(rate, rates) for rate in box.rates)
            corner, size = (left - 0.47, low - 0.47), (right - left + 0.94, high - low + 0.94)
            axes.add_patch(Rectangle(corner, *size, fill=False, edgecolor=INK, linewidth=1.2, linestyle="--"))
        panels.finish({})
        write_values(axes, table, 0.0, 1.0, options, lambda value, _digits: f"{value:.2f}")
    return panels.figure


def write_map(figure: Figure, stem: Path, name: str) -> Path:
    """Writes the picture as PNG."""
    from narrows.report.drawing import Options, write_figure

    about = (f"Map of {name}", "Power of one flow by the rate and the delay of its path")
    return write_figure(figure, stem, ["png"], Options(width_mm=WIDTH_MM), about)[0]
