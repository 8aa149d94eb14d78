"""Estimates the memory that the packets of simulated cells may take, before they run.

Memory grows with a cell's packets: each takes `PACKET_BYTES` until the cell is measured, and
`UNDER_WAY_BYTES` while it is in flight. Bulk flows at most fill their narrowest bottleneck, so the estimate
is an upper bound for them; other flows are ignored. The agent ends a run that exceeds its limit, regardless
of the estimate.
"""

from __future__ import annotations

from narrows.documents.components import Component
from narrows.documents.resolved import BULK, Cell
from narrows.scenario.files import Files
from narrows.scenario.model import Scenario

#: Bytes per packet with `record: packets` until the cell is measured, and per packet in flight
#: (docs/performance.md).
PACKET_BYTES, UNDER_WAY_BYTES = 150, 100
#: Bytes of a full packet; an acknowledgement covers two.
FULL_PACKET = 1500
#: A plan that may need more states the amount.
TOLD_BYTES = 1_000_000_000


def describe_need(scenario: Scenario, cells: list[Cell]) -> list[str]:
    """A sentence for each scheme with a cell that may take more than `TOLD_BYTES`."""
    if scenario.where != "simulate":
        return []
    said: dict[str, int] = {}
    for cell in cells:
        # Runs of a scheme differ only in their randomness.
        if cell.scheme not in said:
            said[cell.scheme] = estimate(cell, scenario.files)
    large = {scheme: need for scheme, need in said.items() if need > TOLD_BYTES}
    if not large:
        return []
    names = ", ".join(list(large)[:3]) + (f" and {len(large) - 3} more" if len(large) > 3 else "")
    amount = f"{max(large.values()) / 1e9:.1f} GB of memory for its packets"
    remedy = "; record: bins keeps no packets" if scenario.record == "packets" else ""
    less = "less time, a lower rate or shorter queues make fewer"
    return [f"a cell of {names} may take up to {amount}{remedy}, and {less}"]


def estimate(cell: Cell, files: Files) -> int:
    """Bytes that the packets of the bulk flows of a cell may take; 0 if no rate is known."""
    links: dict[str, tuple[float, float]] = {}
    for flow in cell.flows:
        if flow.traffic_kind != BULK or ":" in flow.scheme:
            continue
        rates = {
            element.name: (rate, _waiting(element.queue))
            for element in cell.network.ways(flow)[0]
            if element.rate and element.queue and (rate := mean_bps(element.rate, files)) is not None
        }
        if rates:
            name = min(rates, key=lambda item: rates[item][0])
            links[name] = rates[name]
    need = 0.0
    # An upper bound of the round-trip time without queues.
    rtt = sum(element.fixed_delay_ns for element in cell.network.elements)
    for rate, waiting in links.values():
        total = rate * cell.duration_ns / 8e9 / FULL_PACKET
        under_way = min(total, (rate * rtt / 8e9 + waiting) / FULL_PACKET)
        kept = total * PACKET_BYTES if cell.record == "packets" else 0.0
        need += 1.5 * (kept + under_way * UNDER_WAY_BYTES)
    return round(need)


def _waiting(queue: Component) -> float:
    """The maximum number of bytes in a queue; 0 if its limit has another form."""
    return float(queue.number("bytes") or (queue.number("packets") or 0) * FULL_PACKET)


def mean_bps(rate: Component, files: Files) -> float | None:
    """The mean rate of a server, or its largest rate if it is random; None if it is unknown."""
    if rate.kind == "trace":
        return _trace_bps(rate, files)
    named = [number for name in ("rate", "high", "mean") if (number := rate.number(name)) is not None]
    named += [amount for _, amount in rate.steps("steps")]
    return float(max(named)) if named else None


def _trace_bps(rate: Component, files: Files) -> float | None:
    content = files.contents.get(rate.digest("file") or "")
    if content is None:
        return None
    last = content.rstrip().rpartition(b"\n")[2].strip()
    if not last.isdigit() or int(last) == 0:
        # A trace of rates is treated like a link.
        return None
    opportunities = content.count(b"\n") + (not content.endswith(b"\n"))
    size = (rate.number("packet") or FULL_PACKET) * (rate.number("scale") or 1.0)
    return opportunities * size * 8e3 / int(last)
