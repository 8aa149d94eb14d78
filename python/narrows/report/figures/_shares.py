"""Distributions of times: the share that took no longer, one rising line per scheme, a panel per
condition.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from narrows.report.data import Campaign, Floats, Run
from narrows.report.drawing import Numbers, Options, paper_style
from narrows.report.figures import _conditions
from narrows.report.panels import Block, Panels
from narrows.report.ticks import make_logarithmic
from narrows.statistics.runs import quantiles_over_runs

if TYPE_CHECKING:
    from matplotlib.figure import Figure

POINTS = 400
"""Points of a curve: more than a page can show."""
OF_TABLES = (0.5, 0.95, 0.99)
"""The shares of which tables have the percentiles."""
_NAMED_ROWS = 6
"""Of more rows than this a caption states sums."""


def curve(runs: Sequence[Any]) -> tuple[Any, Any]:
    """Times and the shares that took no longer, from the sorted times of each run: the median over the runs
    of each quantile, so that a line agrees with the percentiles in tables.
    """
    longest = max(map(len, runs))
    # For a single run, the values themselves.
    ranks = np.unique(np.linspace(0, longest - 1, min(longest, POINTS)).round().astype(int)) + 1
    shares = ranks / longest
    if longest > POINTS:
        # When thinned out, the points still include those of tables.
        shares = np.unique(np.append(shares, OF_TABLES))
    return quantiles_over_runs(runs, shares), shares


def numbers_of(data: Campaign, entry: Mapping[str, Sequence[Any]], column: str) -> Numbers:
    """One row per point of a curve, from the sorted times of the runs of a row, by its label."""
    curves = {label: curve(runs) for label, runs in entry.items()}
    labels = [label for label, (times, _) in curves.items() for _ in times]
    return _conditions.columns(
        data,
        labels,
        {
            column: np.concatenate([times for times, _ in curves.values()] or [np.zeros(0)]),
            "share": np.concatenate([shares for _, shares in curves.values()] or [np.zeros(0)]),
        },
    )


def count_in_caption(entry: Mapping[str, Sequence[Any]], noun: str) -> str:
    """The sentence of a caption on the number of items behind the curves."""
    counts = [sum(map(len, runs)) for runs in entry.values()]
    low, high = min(counts), max(counts)
    many = f"{low:,}" if low == high else f"{low:,} to {high:,}"
    return f" A line has {many} {noun}{'s' if high != 1 else ''}."


@dataclass(frozen=True)
class Times:
    """Durations of things of one kind, by row over its valid runs, without those of background flows.

    `metric` names the one that a run has if it has such things, `spans` returns of single ones the flows, the
    begins and the ends.
    """

    metric: str
    spans: Callable[[Run], tuple[Floats, Floats, Floats]]
    column: str

    def has(self, run: Run) -> bool:
        """True if the measured rows of a run have such values for flows under test."""
        return run.value("all", self.metric) is not None

    def collect(self, data: Campaign) -> dict[str, tuple[list[Any], int]]:
        """For each row: the sorted times in ms of each run, and the number of items without an end."""
        return data.keep(f"times {self.metric}", lambda: self._read(data))

    def _read(self, data: Campaign) -> dict[str, tuple[list[Any], int]]:
        result = {}
        for scheme in data.schemes:
            times: list[Any] = []
            endless = 0
            for run in data.of_scheme(scheme):
                if not run.valid or run.record is None or not self.has(run):
                    continue
                flows, begins, ends = self.spans(run)
                own = np.isin(flows, [flow.number for flow in run.tested])
                taken = ends[own] - begins[own]
                endless += int(np.sum(np.isnan(taken)))
                run.forget()
                if len(ended := np.sort(taken[np.isfinite(taken)]) * 1e3):
                    times.append(ended)
            if times:
                result[scheme] = (times, endless)
        return result

    def times(self, data: Campaign) -> dict[str, list[Any]]:
        """The sorted times in ms of each run, by row."""
        return {label: times for label, (times, _) in self.collect(data).items()}

    def numbers(self, data: Campaign) -> Numbers:
        """One row per point of a curve."""
        return numbers_of(data, self.times(data), self.column)

    def without_end(self, data: Campaign) -> str:
        """The rows with unfinished items, and their number: `cubic 2, reno 1`; for many rows the sum."""
        counts = {scheme: count for scheme, (_, count) in self.collect(data).items() if count}
        if len(counts) <= _NAMED_ROWS:
            return ", ".join(f"{scheme} {count}" for scheme, count in counts.items())
        return f"{sum(counts.values())} of {len(counts)} rows, at most {max(counts.values())} of a row"


def draw(
    data: Campaign, options: Options, entry: Mapping[str, Sequence[Any]], axis_labels: tuple[str, str]
) -> Figure:
    """The picture of the sorted times (ms) of the runs of rows, by label.

    The time axis is logarithmic if the times differ widely.
    """
    groups = _conditions.groups(data, list(entry))
    with paper_style(options):
        block = Block(list(groups), *axis_labels, 48.0 if len(groups) == 1 else 24.0)
        panels = Panels(options, [block], least_mm=20.0, narrowest_mm=17.0)
        entries: dict[str, object] = {}
        for axes, labels in zip(panels.axes[0], groups.values(), strict=True):
            for label in labels:
                style, (x, y) = _conditions.look(data, label), curve(entry[label])
                (line,) = axes.step(
                    np.append(x[:1], x),
                    np.append([0.0], y),
                    where="post",
                    color=style.color,
                    linestyle=style.linestyle,
                    marker=style.marker,
                    markersize=3.4 * style.weight,
                    markeredgecolor="white",
                    markeredgewidth=0.4,
                    markevery=max(1, len(x) // 6),
                )
                entries.setdefault(_conditions.scheme_of(data, label), line)
        first = panels.axes[0][0]
        ends = [(x[0], x[-1]) for x, _ in map(curve, entry.values())]
        low, high = float(min(low for low, _ in ends)), float(max(high for _, high in ends))
        if low > 0 and high > 20 * low:
            make_logarithmic(first, "x")
        elif low >= 0:
            first.set_xlim(left=0)
        first.set_ylim(0, 1.03)
        panels.finish(entries)
    return panels.figure
