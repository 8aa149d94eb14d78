"""Pantheon's summary table: per scheme and flow, the mean of the printed numbers of all runs that count."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from narrows.documents.run import PantheonNumbers
from narrows.pantheon.stats import Printed, numbers_of


@dataclass(frozen=True)
class Line:
    """One flow of one scheme; texts have two decimals, or are `N/A`."""

    scheme: str
    flow: str
    #: The number of the scheme's runs that count.
    runs: int
    throughput_mbps: str
    delay_p95_ms: str
    loss_percent: str


def mean(values: list[float]) -> str:
    """The arithmetic mean with two decimals."""
    return f"{sum(values) / len(values):.2f}" if values else "N/A"


def summarise(scheme: str, runs: Iterable[PantheonNumbers]) -> list[Line]:
    """The lines of one scheme from Pantheon's numbers about its runs; the last, `all`, is not in its table.

    Like Pantheon, round the numbers to their printed form before taking the mean.
    """
    kept = list(runs)
    blocks = [numbers_of(run.text) for run in kept if run.text and not run.refused]
    flows = sorted({flow for run in kept if run.statistics for flow in run.statistics.flows}, key=int)
    return [_line(scheme, flow, len(blocks), blocks) for flow in [*flows, "all"]]


def _line(scheme: str, flow: str, runs: int, blocks: list[dict[str, Printed]]) -> Line:
    result = [block[flow] for block in blocks if flow in block]
    return Line(
        scheme,
        flow,
        runs,
        mean([item.throughput_mbps for item in result if item.throughput_mbps is not None]),
        mean([item.delay_p95_ms for item in result if item.delay_p95_ms is not None]),
        mean([item.loss_percent for item in result if item.loss_percent is not None]),
    )
