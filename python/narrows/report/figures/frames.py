"""Delays of frames of video: their distribution, one curve per scheme."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from narrows.report import units
from narrows.report.data import Campaign, floats
from narrows.report.drawing import Numbers, Options
from narrows.report.figures._shares import curve, draw

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Frame delays"
SCOPE = "campaign"
ORDER = 45


def _delays(data: Campaign) -> dict[str, tuple[Any, int]]:
    """Per scheme over its valid runs: delays of frames in ms in order, and frames that never were whole.

    Frames of background flows are not among them.
    """
    found = {}
    for scheme in data.schemes:
        delays: list[Any] = []
        missing = 0
        for run in data.of_scheme(scheme):
            if not run.valid or run.record is None or not has_frames(run.rows):
                continue
            tested = [flow.number for flow in run.tested]
            columns = run.frames
            own = np.isin(floats(columns["flow"]), tested)
            taken = floats(columns["arrived_s"])[own] - floats(columns["captured_s"])[own]
            missing += int(np.sum(np.isnan(taken)))
            delays.append(taken[np.isfinite(taken)] * 1e3)
            run.forget()
        if delays:
            found[scheme] = (np.sort(np.concatenate(delays)), missing)
    return {scheme: one for scheme, one in found.items() if len(one[0])}


def has_frames(rows: dict[str, Any]) -> bool:
    """Whether the measured rows of a run tell of frames under test."""
    return ((rows.get("all") or {}).get("metrics") or {}).get("freezes") is not None


def absent(data: Campaign) -> str | None:
    """Most schemes carry bytes, not frames."""
    if not any(has_frames(run.rows) for run in data.runs):
        return "No scheme of this campaign sent frames of video."
    return None if _delays(data) else "No frame arrived whole in a valid run."


def numbers(data: Campaign) -> Numbers:
    """One row per point of a curve."""
    curves = {scheme: curve(delays) for scheme, (delays, _) in _delays(data).items()}
    return {
        "scheme": [scheme for scheme, (delays, _) in curves.items() for _ in delays],
        "delay_ms": np.concatenate([delays for delays, _ in curves.values()] or [np.zeros(0)]),
        "share": np.concatenate([shares for _, shares in curves.values()] or [np.zeros(0)]),
    }


def caption(data: Campaign) -> str:
    """How to read it."""
    text = (
        "Share of the frames of video that were whole at the receiver no later than the time on the axis "
        "after their capture; further left is better. All frames of a scheme's valid runs together."
    )
    lost = [f"{scheme} {count}" for scheme, (_, count) in _delays(data).items() if count]
    if lost:
        text += f" Frames that were never whole are not shown: {', '.join(lost)}."
    return text


def figure(data: Campaign, options: Options) -> Figure:
    """A rising line per scheme, on a logarithmic axis if the delays differ much."""
    found = {
        scheme: (delays, units.plural(len(delays), "frame")) for scheme, (delays, _) in _delays(data).items()
    }
    return draw(options, found, ("frame delay (ms)", "share of frames"))
