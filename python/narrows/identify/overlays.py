"""A sender beside its nearest reference: both series of the library on one probe, as figures."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from narrows.documents.identify import Card
from narrows.identify.features import LONG
from narrows.identify.figure_parts import MEASURED, draw_curve
from narrows.identify.figures import OPTIONS, time_panel
from narrows.identify.logs import read_any
from narrows.identify.reference_library import FLIGHT, QUEUE, make_series, read_library
from narrows.identify.running import record_of
from narrows.identify.trace import Floats, Trace

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: The probe whose traces are compared: its buffer is deep, and its round trip long enough to see each phase.
PROBE = LONG
#: By series its axis, and what a figure of it shows.
_SERIES = {
    FLIGHT: ("in flight (BDP)", "Packets in flight, in bandwidth-delay products"),
    QUEUE: ("queueing delay (RTT)", "Queueing delay, in smallest round trips"),
}


def draw_overlays(card: Card) -> Iterator[tuple[str, Figure, str]]:
    """By series its name, the figure and its caption; nothing for a card without a name or the probe."""
    cell = next((line.cell for line in card.lines if line.probe == PROBE and line.cell), None)
    if card.naming is None or cell is None:
        return
    nearest = card.naming.nearest
    reference = read_library().series_of(nearest)
    trace = read_any(record_of(card, PROBE, cell))
    for kind, own in make_series(trace).items():
        if (PROBE, kind) in reference:
            axis, what = _SERIES[kind]
            figure = _draw(trace, own, reference[PROBE, kind], axis, nearest)
            yield kind, figure, f"{what}: run {cell} (blue) beside a run of {nearest} on {PROBE} (orange)."


def _draw(trace: Trace, own: Floats, reference: Floats, axis: str, nearest: str) -> Figure:
    span = (0.0, trace.duration_s)
    edges = np.linspace(*span, len(own) + 1)
    with time_panel(OPTIONS, span, axis) as plot:
        draw_curve(plot, (edges[1:] + edges[:-1]) / 2, own, span, "this sender")
        edges = np.linspace(*span, len(reference) + 1)
        # Wider, and behind the sender: equal curves are both visible.
        (shown,) = plot.axes.plot(
            (edges[1:] + edges[:-1]) / 2, reference, color=MEASURED.color, linewidth=2.0, zorder=1
        )
        plot.show(shown, nearest, reference)
    return plot.figure
