"""Pacing rate of every sender over time."""

from __future__ import annotations

from narrows.report.data import Run
from narrows.report.figures._states import Samples

TITLE = "Pacing rate"
ALSO = ("pacing-rate",)
SCOPE = "run"
ORDER = 50
IN_REPORT = False

SAMPLES = Samples(lambda own: own.pacing_bps, 1e-6, "pacing_mbps", "pacing rate (Mbit/s)", "a pacing rate")
absent, numbers, figure, chart = SAMPLES.absent, SAMPLES.numbers, SAMPLES.figure, SAMPLES.chart


def caption(run: Run) -> str:
    """The caption."""
    return f"Rate at which each sender spaces its packets{SAMPLES.sampling_note(run)}."
