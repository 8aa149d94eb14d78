"""Congestion window of every sender over time."""

from __future__ import annotations

from narrows.report.data import Run
from narrows.report.figures._states import Samples

TITLE = "Congestion window"
ALSO = ("cwnd",)
SCOPE = "run"
ORDER = 40

SAMPLES = Samples(lambda own: own.cwnd_bytes, 1e-3, "cwnd_kB", "window (kB)", "a congestion window")
absent, numbers, figure, chart = SAMPLES.absent, SAMPLES.numbers, SAMPLES.figure, SAMPLES.chart


def caption(run: Run) -> str:
    """The caption."""
    return (
        f"Congestion window of each sender{SAMPLES.sampling_note(run)}: from the kernel for its schemes, "
        "from the scheme for ours."
    )
