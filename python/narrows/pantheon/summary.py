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
    #: Runs that count, of the scheme.
    runs: int
    throughput_mbps: str
    delay_p95_ms: str
    loss_percent: str


def mean(values: list[float]) -> str:
    """The arithmetic mean with two decimals."""
    return f"{sum(values) / len(values):.2f}" if values else "N/A"


def summarise(scheme: str, records: Iterable[dict[str, Any]]) -> list[Line]:
    """The lines of one scheme from the `run.json` of its runs; the last, `all`, is not in Pantheon's table.

    The numbers are rounded as Pantheon prints them before their mean is taken, since that is what it does.
    """
    kept = [record.get("pantheon") or {} for record in records]
    blocks = [numbers_of(one["text"]) for one in kept if one.get("text") and not one.get("refused")]
    flows = sorted({flow for one in kept for flow in _flows(one)}, key=int)
    return [_line(scheme, flow, len(blocks), blocks) for flow in [*flows, "all"]]


def _flows(kept: dict[str, Any]) -> list[str]:
    return list(((kept.get("statistics") or {}).get("flows")) or {})


def _line(scheme: str, flow: str, runs: int, blocks: list[dict[str, Printed]]) -> Line:
    found = [block[flow] for block in blocks if flow in block]
    return Line(
        scheme,
        flow,
        runs,
        mean([one.throughput_mbps for one in found if one.throughput_mbps is not None]),
        mean([one.delay_p95_ms for one in found if one.delay_p95_ms is not None]),
        mean([one.loss_percent for one in found if one.loss_percent is not None]),
    )
