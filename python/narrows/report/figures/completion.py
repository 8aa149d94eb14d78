"""Completion times of transfers: their distribution, one curve per scheme."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from narrows.report import units
from narrows.report.data import Campaign, floats
from narrows.report.drawing import Numbers, Options, legend_above, new_figure, paper_style
from narrows.report.style import of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Completion times"
SCOPE = "campaign"
ORDER = 40

POINTS = 400
"""Points of a curve: more than a page can show."""


def _times(data: Campaign) -> dict[str, tuple[Any, int, int]]:
    """Per scheme over its valid runs: completion times in ms in order, incomplete transfers, runs.

    Transfers of background flows are not among them.
    """
    found = {}
    for scheme in data.schemes:
        times: list[Any] = []
        incomplete = runs = 0
        for run in data.of_scheme(scheme):
            if not run.valid or run.record is None or not has_transfers(run.rows):
                continue
            tested = [flow.number for flow in run.tested]
            columns = run.transfers
            own = np.isin(floats(columns["flow"]), tested)
            taken = floats(columns["ended_s"])[own] - floats(columns["started_s"])[own]
            incomplete += int(np.sum(np.isnan(taken)))
            times.append(taken[np.isfinite(taken)] * 1e3)
            runs += 1
            run.forget()
        if runs:
            found[scheme] = (np.sort(np.concatenate(times)), incomplete, runs)
    return {scheme: one for scheme, one in found.items() if len(one[0])}


def has_transfers(rows: dict[str, Any]) -> bool:
    """Whether the measured rows of a run tell of transfers under test."""
    return ((rows.get("all") or {}).get("metrics") or {}).get("transfers") is not None


def absent(data: Campaign) -> str | None:
    """Most scenarios have bulk transfers that never end."""
    if not any(has_transfers(run.rows) for run in data.runs):
        return "Applications made no transfers of a size of their own, so none was completed."
    return None if _times(data) else "No transfer was completed in a valid run."


def _curve(times: Any) -> tuple[Any, Any]:
    """Times and the shares of transfers that took no longer, thinned out evenly by share."""
    shares = np.arange(1, len(times) + 1) / len(times)
    keep = np.unique(np.linspace(0, len(times) - 1, POINTS).round().astype(int))
    return times[keep], shares[keep]


def numbers(data: Campaign) -> Numbers:
    """One row per point of a curve."""
    curves = {scheme: _curve(times) for scheme, (times, _, _) in _times(data).items()}
    return {
        "scheme": [scheme for scheme, (times, _) in curves.items() for _ in times],
        "completion_ms": np.concatenate([times for times, _ in curves.values()] or [np.zeros(0)]),
        "share": np.concatenate([shares for _, shares in curves.values()] or [np.zeros(0)]),
    }


def caption(data: Campaign) -> str:
    """How to read it."""
    text = (
        "Share of the transfers that took no longer than the time on the axis, from the application's "
        "request until the last byte arrived; further left is better. All transfers of a scheme's valid runs "
        "together."
    )
    missing = [f"{s} {n}" for s, (_, n, _) in _times(data).items() if n]
    if missing:
        text += f" Transfers that were not complete at the end are not shown: {', '.join(missing)}."
    return text


def figure(data: Campaign, options: Options) -> Figure:
    """A rising line per scheme, on a logarithmic axis if the times differ much."""
    found = _times(data)
    with paper_style(options):
        picture = new_figure(options, 62.0)
        axes = picture.add_axes((0.1, 0.1, 0.8, 0.8))
        handles: list[Any] = []
        labels: list[str] = []
        for scheme, (times, _, _) in found.items():
            style = of(scheme)
            x, y = _curve(times)
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
            labels.append(f"{scheme} ({units.plural(len(times), 'transfer')})")
        low = min(float(times[0]) for times, _, _ in found.values())
        high = max(float(times[-1]) for times, _, _ in found.values())
        if low > 0 and high > 20 * low:
            axes.set_xscale("log")
            axes.xaxis.set_major_formatter(lambda value, _: units.trimmed(value))
        else:
            axes.set_xlim(left=0)
        axes.set_ylim(0, 1.02)
        axes.set_xlabel("completion time (ms)", labelpad=1.5)
        axes.set_ylabel("share of transfers")
        # Places the axes, and makes the figure higher if the legend needs more rows.
        _place(axes)
        legend_above(axes, handles, labels)
    return picture


def _place(axes: Any) -> None:
    from narrows.report import drawing

    figure = axes.get_figure(root=True)
    width, height = figure.get_figwidth() * 25.4, figure.get_figheight() * 25.4
    left, bottom = drawing.LEFT_MM / width, drawing.BOTTOM_MM / height
    across = (width - drawing.LEFT_MM - drawing.RIGHT_MM) / width
    axes.set_position((left, bottom, across, (height - drawing.BOTTOM_MM - drawing.TOP_MM) / height))
