"""Figures of the states that senders report over time: one quantity of every flow under test."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from narrows.campaign.series import States
from narrows.report import units
from narrows.report.charts import NumberChart
from narrows.report.data import Floats, Run, thin
from narrows.report.drawing import Numbers, Options, over_time
from narrows.report.style import Style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

POINTS_ON_PAPER = 3_000
POINTS_ON_PAGE = 2_000


@dataclass(frozen=True)
class Samples:
    """One quantity that senders report: its place in the samples, the factor to the unit that is shown, the
    column of the numbers, the label of the axis and the words for it."""

    source: Callable[[States], Floats]
    scale: float
    column: str
    axis: str
    noun: str

    def collect(self, run: Run) -> list[tuple[Style, int, Any, Any]]:
        """Style, number, times and values of every flow whose sender reports the quantity."""
        states = run.states
        styles = run.styles_of(run.tested)
        pairs = []
        for flow, style in zip(run.tested, styles, strict=True):
            series = states.get(flow.number)
            value = None if series is None else self.source(series) * self.scale
            if series is not None and value is not None and np.any(np.isfinite(value)):
                pairs.append((style, flow.number, series.time_s, value))
        return pairs

    def absent(self, run: Run) -> str | None:
        """Not all schemes know the quantity."""
        return None if self.collect(run) else f"No sender of this run reported {self.noun}."

    def numbers(self, run: Run) -> Numbers:
        """One row per sample."""
        pairs = self.collect(run)
        return {
            "flow": [number for _, number, time, _ in pairs for _ in range(len(time))],
            "time_s": np.concatenate([t for _, _, t, _ in pairs] or [np.zeros(0)]),
            self.column: np.concatenate([v for _, _, _, v in pairs] or [np.zeros(0)]),
        }

    def sampling_note(self, run: Run) -> str:
        """`, sampled every 10 ms`, if the record has it."""
        sample = run.settings.sample_ns
        return f", sampled every {units.span(sample)}" if sample else ""

    def figure(self, run: Run, options: Options) -> Figure:
        """One line per flow, with markers to distinguish them."""
        pairs = self.collect(run)
        with over_time(options, 38.0, run.duration_s, run.change_times_s, self.axis) as plot:
            for index, (style, _, times, values) in enumerate(pairs):
                time, value = thin(times, values, POINTS_ON_PAPER)
                every = max(1, len(time) // 12)
                (line,) = plot.axes.plot(
                    time,
                    value,
                    color=style.color,
                    linestyle=style.linestyle,
                    linewidth=0.9,
                    marker=style.marker,
                    markersize=3.4,
                    markeredgecolor="white",
                    markeredgewidth=0.4,
                    markevery=(index * every // max(1, len(pairs)), every),
                )
                plot.show(line, style.label, value)
        return plot.figure

    def chart(self, run: Run) -> NumberChart:
        """The interactive form."""
        made = NumberChart(self.axis, run.change_times_s)
        for style, _, times, values in self.collect(run):
            time, value = thin(times, values, int(run.detail * POINTS_ON_PAGE))
            made.xs.append(time)
            made.add(style.label, "line", value, style)
        return made
