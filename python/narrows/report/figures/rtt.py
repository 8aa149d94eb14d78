"""Round-trip times that every sender measures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from narrows.report.data import Run
from narrows.report.drawing import Numbers, Options
from narrows.report.figures._states import Samples

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Round-trip time"
SCOPE = "run"
ORDER = 60
IN_REPORT = False

SAMPLES = Samples("rtt_ns", 1e-6, "rtt_ms", "round-trip time (ms)", "a round-trip time")


def absent(run: Run) -> str | None:
    """Flows without acknowledgements know no round-trip time."""
    return SAMPLES.absent(run)


def numbers(run: Run) -> Numbers:
    """One row per sample."""
    return SAMPLES.numbers(run)


def caption(run: Run) -> str:
    """The caption."""
    return f"Latest round-trip time that each sender has measured{SAMPLES.sampled(run)}."


def figure(run: Run, options: Options) -> Figure:
    """One line per flow."""
    return SAMPLES.figure(run, options)


def chart(run: Run) -> dict[str, Any]:
    """The interactive form."""
    return SAMPLES.chart(run)
