"""Figures of lines that are measured from the runs at all ratios of random loss together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from narrows.documents.identify import Line
from narrows.identify.features import LOSS_EXPONENT, LOSS_TOLERANCE
from narrows.identify.figure_parts import HEIGHT_MM, MEASURED, TRACE
from narrows.identify.responses import TOLERATED, LossPoint, list_fitted
from narrows.report import style
from narrows.report.drawing import Options, TimePlot, new_figure, paper_style, settle, time_axes
from narrows.report.ticks import make_logarithmic

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Draw = Callable[[Line, Sequence[LossPoint], Options], "Figure"]


def draw_exponent(line: Line, points: Sequence[LossPoint], options: Options) -> Figure:
    """Throughput against lost packets at the fitted ratios of random loss, with the fitted power."""
    known = sorted((100 * point.lost, point.rate_bps / 1e6) for point in list_fitted(points))
    losses, rates = np.asarray(known).T
    exponent = 0.0 if not line.spans else float(line.spans[0].value)
    fitted = np.exp(np.log(rates).mean() - exponent * (np.log(losses) - np.log(losses).mean()))
    with paper_style(options):
        figure = new_figure(options, HEIGHT_MM)
        plot = TimePlot(figure, time_axes(figure, options, 1.0, "throughput (Mbit/s)"))
        plot.axes.set_xlabel("lost packets (%)", labelpad=1.5)
        (points_shown,) = plot.axes.plot(losses, rates, "o", color=TRACE.color, markersize=4)
        (line_shown,) = plot.axes.plot(losses, fitted, color=MEASURED.color, linewidth=1.4)
        every = np.concatenate([rates, fitted])
        plot.axes.set_xlim(losses.min() / 1.4, losses.max() * 1.4)
        plot.axes.set_ylim(every.min() / 1.4, every.max() * 1.4)
        make_logarithmic(plot.axes, "x")
        make_logarithmic(plot.axes, "y")
        plot.show(points_shown, "at each ratio")
        plot.show(line_shown, f"loss to the power of {-exponent:.2f}")
        settle(plot.axes, plot.entries, options, HEIGHT_MM)
    return figure


def draw_tolerance(line: Line, points: Sequence[LossPoint], options: Options) -> Figure:
    """The rate at each ratio of random loss, apart from the lost packets, by the rate without loss."""
    ordered = sorted(points, key=lambda point: point.ratio)
    whole = ordered[0].rate_bps
    ratios = np.array([100 * point.ratio for point in ordered[1:]])
    remaining = np.array([point.rate_bps / (1 - point.ratio) / whole for point in ordered[1:]])
    tolerated = 0.0 if not line.spans else 100 * float(line.spans[0].value)
    with paper_style(options):
        figure = new_figure(options, HEIGHT_MM)
        plot = TimePlot(figure, time_axes(figure, options, 1.0, "rate / rate without loss"))
        plot.axes.set_xlabel("random loss (%)", labelpad=1.5)
        (points_shown,) = plot.axes.plot(
            ratios, remaining, "o-", color=TRACE.color, markersize=4, linewidth=0.7
        )
        limit = plot.axes.axhline(TOLERATED, color=style.MUTED, linewidth=0.7, linestyle=(0, (1, 1.5)))
        plot.axes.set_xlim(ratios.min() / 1.4, ratios.max() * 1.4)
        plot.axes.set_ylim(0, 1.15 * max(1.0, remaining.max()))
        make_logarithmic(plot.axes, "x")
        plot.show(points_shown, "at each ratio")
        plot.show(limit, "nine tenths")
        if tolerated:
            chosen = ratios <= tolerated * (1 + 1e-9)
            (shown,) = plot.axes.plot(
                ratios[chosen], remaining[chosen], "o", color=MEASURED.color, markersize=4
            )
            plot.show(shown, "tolerated")
        settle(plot.axes, plot.entries, options, HEIGHT_MM)
    return figure


#: By line, the figure and its caption.
PICTURES: dict[str, tuple[Draw, str]] = {
    LOSS_EXPONENT.name: (
        draw_exponent,
        "Throughput at each ratio of random loss, and the fitted power; both axes are logarithmic.",
    ),
    LOSS_TOLERANCE.name: (
        draw_tolerance,
        "The rate at each ratio of random loss, apart from the lost packets, by the rate without loss.",
    ),
}
