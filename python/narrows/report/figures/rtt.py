"""The round-trip times that every sender measures."""

from __future__ import annotations

from narrows.report.data import Run
from narrows.report.figures._states import Samples

TITLE = "Round-trip time"
ALSO = ("srtt",)
SCOPE = "run"
ORDER = 60
IN_REPORT = False

SAMPLES = Samples(lambda own: own.rtt_ns, 1e-6, "rtt_ms", "round-trip time (ms)", "a round-trip time")
absent, numbers, figure, chart = SAMPLES.absent, SAMPLES.numbers, SAMPLES.figure, SAMPLES.chart


def caption(run: Run) -> str:
    """The caption."""
    return f"Latest round-trip time that each sender has measured{SAMPLES.sampling_note(run)}."
