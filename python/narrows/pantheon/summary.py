"""Pantheon's summary table: per scheme and flow, the mean of the printed numbers of all runs that count."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

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


def summarise(scheme: str, records: Iterable[dict[str, Any]]) -> list[Line]:
    """The lines of one scheme from the `run.json` of its runs; the last line, `all`, is not in Pantheon's
    table.

    Like Pantheon, round the numbers to their printed form before taking the mean.
    """
    kept = [record.get("pantheon") or {} for record in records]
    blocks = [numbers_of(entry["text"]) for entry in kept if entry.get("text") and not entry.get("refused")]
    flows = sorted({flow for entry in kept for flow in _flows(entry)}, key=int)
    return [_line(scheme, flow, len(blocks), blocks) for flow in [*flows, "all"]]


def _flows(kept: dict[str, Any]) -> list[str]:
    return list(((kept.get("statistics") or {}).get("flows")) or {})


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
