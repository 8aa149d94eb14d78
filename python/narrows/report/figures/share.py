"""The share of each flow in the delivered bits, over time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from narrows.report import real_path
from narrows.report.charts import NumberChart
from narrows.report.data import Run
from narrows.report.drawing import Numbers, Options, over_time

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Share over time"
SCOPE = "run"
ORDER = 70
IN_REPORT = False


def _shares(run: Run) -> dict[int, Any]:
    """For each flow under test the share (0 to 1) of the bits that all of them received in a bin; NaN if
    nothing arrived.
    """
    series = run.throughput.flows
    rates = {flow.number: series[flow.number].arrived_bps for flow in run.tested if flow.number in series}
    total = np.sum(list(rates.values()), axis=0)
    filled = np.where(total > 0, total, np.nan)
    return {number: rate / filled for number, rate in rates.items()}


def absent(run: Run) -> str | None:
    """A single flow has everything."""
    if real_path.has_only_ends(run):
        return real_path.NOT_SEEN
    return None if len(_shares(run)) > 1 else "The run has a single flow, so there is nothing to share."


def numbers(run: Run) -> Numbers:
    """One row per bin."""
    shares = {f"flow_{number}_share": share for number, share in _shares(run).items()}
    return {"time_s": run.throughput.time_s, **shares}


def caption(run: Run) -> str:
    """The caption."""
    return (
        "Share of each flow in what all flows under test got, stacked, in bins of "
        f"{run.bin_ns / 1e6:g} ms. With equal shares all areas of the moment are equally high."
    )


def figure(run: Run, options: Options) -> Figure:
    """Stacked areas."""
    shares = _shares(run)
    flows = [flow for flow in run.tested if flow.number in shares]
    styles = run.styles_of(flows)
    edges = np.append(run.throughput.time_s, run.throughput.time_s[-1:] + run.bin_ns / 1e9)
    hatches = ("", "////", "....", "\\\\\\\\", "xxxx", "----")
    with over_time(options, 46.0, run.duration_s, run.change_times_s, "share of throughput") as plot:
        below = np.zeros(len(edges) - 1)
        for number, (flow, style) in enumerate(zip(flows, styles, strict=True)):
            above = below + np.nan_to_num(shares[flow.number])
            area = plot.axes.stairs(
                above,
                edges,
                baseline=below,
                fill=True,
                facecolor=style.color,
                edgecolor="white",
                linewidth=0.3,
                hatch=hatches[number % len(hatches)],
            )
            plot.show(area, style.label)
            below = above
        plot.axes.set_ylim(0, 1)
        plot.ends = None
    return plot.figure


def chart(run: Run) -> NumberChart:
    """The interactive form, not stacked."""
    made = NumberChart("share of throughput", run.change_times_s)
    made.xs.append(run.throughput.time_s)
    flows = {flow.number: flow for flow in run.tested}
    shares = _shares(run)
    styles = run.styles_of([flows[n] for n in shares])
    for share, style in zip(shares.values(), styles, strict=True):
        made.add(style.label, "step", share, style)
    return made
