"""Distributions of times: which share took no longer, one rising line per scheme."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from narrows.report import drawing, units
from narrows.report.data import Campaign, Run, floats
from narrows.report.drawing import Numbers, Options, legend_above, new_figure, paper_style
from narrows.report.style import distinct
from narrows.text import plural

if TYPE_CHECKING:
    from matplotlib.figure import Figure

POINTS = 400
"""Points of a curve: more than a page can show."""


def curve(times: Any) -> tuple[Any, Any]:
    """Times in order, and the shares that took no longer, thinned out evenly by share."""
    shares = np.arange(1, len(times) + 1) / len(times)
    keep = np.unique(np.linspace(0, len(times) - 1, POINTS).round().astype(int))
    return times[keep], shares[keep]


@dataclass(frozen=True)
class Times:
    """Durations of things of one kind, by scheme over its valid runs, without those of background flows.

    `metric` names the one that a run has if it has such things, `series` the records of single ones, `ends`
    their columns of begin and end.
    """

    metric: str
    series: str
    ends: tuple[str, str]
    column: str

    def has(self, run: Run) -> bool:
        """True if the measured rows of a run tell of such things under test."""
        return ((run.rows.get("all") or {}).get("metrics") or {}).get(self.metric) is not None

    def found(self, data: Campaign) -> dict[str, tuple[Any, int]]:
        """Per scheme: times in ms in order, and how many have no end."""
        found = {}
        for scheme in data.schemes:
            times: list[Any] = []
            endless = 0
            for run in data.of_scheme(scheme):
                if not run.valid or run.record is None or not self.has(run):
                    continue
                columns = getattr(run, self.series)
                own = np.isin(floats(columns["flow"]), [flow.number for flow in run.tested])
                taken = floats(columns[self.ends[1]])[own] - floats(columns[self.ends[0]])[own]
                endless += int(np.sum(np.isnan(taken)))
                times.append(taken[np.isfinite(taken)] * 1e3)
                run.forget()
            if times:
                found[scheme] = (np.sort(np.concatenate(times)), endless)
        return {scheme: one for scheme, one in found.items() if len(one[0])}

    def numbers(self, data: Campaign) -> Numbers:
        """One row per point of a curve."""
        curves = {scheme: curve(times) for scheme, (times, _) in self.found(data).items()}
        return {
            "scheme": [scheme for scheme, (times, _) in curves.items() for _ in times],
            self.column: np.concatenate([times for times, _ in curves.values()] or [np.zeros(0)]),
            "share": np.concatenate([shares for _, shares in curves.values()] or [np.zeros(0)]),
        }

    def without_end(self, data: Campaign) -> str:
        """The schemes with things that have no end, and how many: `cubic 2, reno 1`."""
        return ", ".join(f"{scheme} {count}" for scheme, (_, count) in self.found(data).items() if count)

    def figure(self, data: Campaign, options: Options, noun: str, axis: str) -> Figure:
        """A rising line per scheme."""
        found = {scheme: (times, plural(len(times), noun)) for scheme, (times, _) in self.found(data).items()}
        return draw(options, found, (f"{axis} (ms)", f"share of {noun}s"))


def draw(options: Options, found: dict[str, tuple[Any, str]], axis_labels: tuple[str, str]) -> Figure:
    """The picture of times (ms, in order) by scheme, each with a word about how many they are.

    The axis of times is logarithmic if they differ much.
    """
    with paper_style(options):
        picture = new_figure(options, 62.0)
        axes = picture.add_axes((0.1, 0.1, 0.8, 0.8))
        handles: list[Any] = []
        labels: list[str] = []
        styles = distinct(list(found))
        for scheme, (times, counted) in found.items():
            style = styles[scheme]
            x, y = curve(times)
            (line,) = axes.step(
                np.append(x[:1], x),
                np.append([0.0], y),
                where="post",
                color=style.color,
                linestyle=style.linestyle,
                marker=style.marker,
                markersize=3.6,
                markeredgecolor="white",
                markeredgewidth=0.4,
                markevery=max(1, len(x) // 8),
            )
            handles.append(line)
            labels.append(f"{scheme} ({counted})")
        low = min(float(times[0]) for times, _ in found.values())
        high = max(float(times[-1]) for times, _ in found.values())
        if low > 0 and high > 20 * low:
            axes.set_xscale("log")
            axes.xaxis.set_major_formatter(lambda value, _: units.trimmed(value))
        else:
            axes.set_xlim(left=0)
        axes.set_ylim(0, 1.02)
        axes.set_xlabel(axis_labels[0], labelpad=1.5)
        axes.set_ylabel(axis_labels[1])
        # Places the axes, and makes the figure higher if the legend needs more rows.
        drawing.place(axes, drawing.TOP_MM)
        legend_above(axes, handles, labels)
    return picture
