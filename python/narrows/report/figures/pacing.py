"""Pacing rate of every sender over time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from narrows.report.data import Run
from narrows.report.drawing import Numbers, Options
from narrows.report.figures._states import Samples

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Pacing rate"
SCOPE = "run"
ORDER = 50
IN_REPORT = False

SAMPLES = Samples("pacing_bps", 1e-6, "pacing_mbps", "pacing rate (Mbit/s)", "a pacing rate")


def absent(run: Run) -> str | None:
    """Schemes that don't pace report no rate."""
    return SAMPLES.absent(run)


def numbers(run: Run) -> Numbers:
    """One row per sample."""
    return SAMPLES.numbers(run)


def caption(run: Run) -> str:
    """The caption."""
    return f"Rate at which each sender spaces its packets{SAMPLES.sampled(run)}."


def figure(run: Run, options: Options) -> Figure:
    """One line per flow."""
    return SAMPLES.figure(run, options)


def chart(run: Run) -> dict[str, Any]:
    """The interactive form."""
    return SAMPLES.chart(run)
