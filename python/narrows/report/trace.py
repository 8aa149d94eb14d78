"""Pictures of traces: a line of blocks for terminals, a figure for files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from narrows.errors import UsageError
from narrows.text import any_of
from narrows.traces.statistics import WINDOWS_NS, window_rates
from narrows.traces.trace import NS_PER_S, Trace

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS = ("png", "svg", "pdf")
_BLOCKS = " ▁▂▃▄▅▆▇█"


def line(trace: Trace, width: int) -> tuple[str, float]:
    """Mean rates over the length as blocks, and the rate (bit/s) of a full block."""
    rates = _over_length(trace, width)
    top = float(rates.max())
    # A rate above zero shows at least the lowest block.
    heights = np.ceil(rates / top * (len(_BLOCKS) - 1) - 1e-9).astype(int)
    return "".join(_BLOCKS[height] for height in heights.tolist()), top


def _over_length(trace: Trace, count: int) -> NDArray[np.float64]:
    """Mean rates in `count` equal parts of the trace (fewer if a part would be shorter than a
    millisecond).
    """
    count = max(1, min(count, trace.length_ns // 10**6))
    return window_rates(trace, -(-trace.length_ns // count))[:count]


def figure(trace: Trace, title: str) -> Figure:
    """Rate over time in short and long windows, with the mean."""
    from narrows.report.drawing import DOUBLE_MM, Options, new_figure, paper_style, settle, time_axes
    from narrows.report.style import MUTED, of_flow

    options = Options(width_mm=DOUBLE_MM)
    seconds = trace.length_ns / NS_PER_S
    with paper_style(options):
        picture = new_figure(options, 52.0)
        axes = time_axes(picture, options, seconds, "rate (Mbit/s)")
        axes.set_xlabel(f"time in {title} (s)", labelpad=1.5)
        entries: list[tuple[str, Any]] = []
        for index, (name, window_ns) in enumerate(WINDOWS_NS.items()):
            whole = trace.length_ns // window_ns
            if whole < 2:
                continue
            rates = window_rates(trace, window_ns)[:whole] / 1e6
            edges = np.arange(whole + 1) * (window_ns / NS_PER_S)
            colour = of_flow(index, name).color
            steps = axes.stairs(rates, edges, color=colour, linewidth=0.6 + 0.7 * index, baseline=None)
            entries.append((f"mean over {name}", steps))
        mean = trace.mean_bps / 1e6
        line = axes.axhline(mean, color=MUTED, linewidth=0.8, linestyle=(0, (4, 2)))
        entries.append((f"mean of the trace: {mean:.4g} Mbit/s", line))
        axes.set_ylim(bottom=0)
        settle(axes, entries, options, 52.0)
    return picture


def write(trace: Trace, title: str, path: Path) -> None:
    """Writes the figure, in the format of the file's suffix."""
    from narrows.report.drawing import Options, write_figure

    form = path.suffix.removeprefix(".").lower()
    if form not in FORMATS:
        raise UsageError(f"{path}: a picture ends in {any_of('.' + text for text in FORMATS)}")
    write_figure(figure(trace, title), path.with_suffix(""), [form], Options())
