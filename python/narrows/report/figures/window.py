"""Congestion window of every sender over time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from narrows.report.data import Run
from narrows.report.drawing import Numbers, Options
from narrows.report.figures._states import Samples

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Congestion window"
SCOPE = "run"
ORDER = 40

SAMPLES = Samples("cwnd_bytes", 1e-3, "cwnd_kB", "window (kB)", "a congestion window")


def absent(run: Run) -> str | None:
    """Schemes without a window report none."""
    return SAMPLES.absent(run)


def numbers(run: Run) -> Numbers:
    """One row per sample."""
    return SAMPLES.numbers(run)


def caption(run: Run) -> str:
    """The caption."""
    return (
        f"Congestion window of each sender{SAMPLES.sampled(run)}: from the kernel for its schemes, from the "
        "scheme for ours."
    )


def figure(run: Run, options: Options) -> Figure:
    """One line per flow."""
    return SAMPLES.figure(run, options)


def chart(run: Run) -> dict[str, Any]:
    """The interactive form."""
    return SAMPLES.chart(run)
