"""The packets of one flow as an observer beside its sender sees them.

Acknowledgements are not read: a packet counts as acknowledged when the first packet that the receiver sent
after its arrival reaches the sender, and as noticed lost when the third later packet that did arrive is
acknowledged. This holds for TCP, QUIC and our transport alike, up to packets with a delayed acknowledgement.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from narrows.campaign import series
from narrows.documents.resolved import read_cell
from narrows.errors import DataError

if TYPE_CHECKING:
    from narrows.documents.resolved import Cell

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Indices = NDArray[np.int64]

#: Kinds of data that logs may lack: when packets were sent, to a small part of a round trip; the gaps between
#: them; when packets arrived; which were lost; the receiver's packets; delays; and the packets in flight.
SENDING, GAPS, ARRIVALS, LOSSES, ANSWERS, DELAYS, WINDOW = (
    "sending", "gaps", "arrivals", "losses", "answers", "delays", "window",
)  # fmt: skip
#: A packet is noticed lost when this many later ones have been acknowledged (RFC 5681, RFC 9002).
LATER_PACKETS = 3
#: Smaller packets, by the usual size, carry no data.
LEAST_DATA = 0.1


@dataclass(frozen=True, eq=False)
class Trace:
    """The data packets of a flow in the order of sending, and the answers to them. Times in seconds."""

    #: The name of its cell.
    cell: str
    #: None for a log of another tool.
    settings: Cell | None
    duration_s: float
    sent_s: Floats
    size_bytes: Floats
    #: NaN for a packet that did not arrive.
    arrived_s: Floats
    #: Packets that were lost; those in flight at the end are not.
    lost: Bools
    #: When the sender learns of the packet's fate; infinite if it does not.
    resolved_s: Floats
    #: Times at which the receiver's packets left it.
    answered_s: Floats
    #: Packets of other flows in the direction of the data that arrived: time and size.
    others_s: Floats
    others_bytes: Floats
    #: Why kinds of data are not known, or not well enough; their columns are then placeholders.
    missing: Mapping[str, str] = field(default_factory=dict)
    #: Sentences about a log: where it was taken, the measured flow, and the limits of its times.
    about: tuple[str, ...] = ()

    @cached_property
    def packet_bytes(self) -> float:
        """The usual size of a data packet."""
        return float(np.median(self.size_bytes))

    @cached_property
    def in_flight(self) -> Floats:
        """Packets (of the usual size) in flight just after each packet was sent."""
        order = np.sort(self.resolved_s)
        sizes = np.cumsum(self.size_bytes[np.argsort(self.resolved_s, kind="stable")])
        done = np.searchsorted(order, self.sent_s, "right")
        resolved = np.where(done > 0, sizes[np.maximum(done - 1, 0)], 0.0)
        return (np.cumsum(self.size_bytes) - resolved) / self.packet_bytes

    @cached_property
    def rtt_s(self) -> Floats:
        """The round-trip time of each packet; NaN for lost and unacknowledged ones."""
        known = np.isfinite(self.resolved_s) & ~self.lost
        return np.where(known, self.resolved_s - self.sent_s, np.nan)

    @cached_property
    def min_rtt_s(self) -> float:
        """The smallest round-trip time."""
        return float(np.nanmin(self.rtt_s))

    @cached_property
    def queueing_s(self) -> Floats:
        """One-way delay of each packet less the smallest one; NaN for packets that did not arrive."""
        delay = self.arrived_s - self.sent_s
        return np.asarray(delay - np.nanmin(delay))

    @cached_property
    def capacity_bps(self) -> float:
        """The rate of the bottleneck: the 90th percentile of rates at which a hundredth of the run's packets
        arrived, at least 20 at once."""
        arrived = np.sort(self.arrived_s[np.isfinite(self.arrived_s)])
        step = max(20, len(arrived) // 100)
        if len(arrived) <= step:
            return float("nan")
        spans = arrived[step:] - arrived[:-step]
        return float(np.percentile(step * self.packet_bytes * 8 / spans[spans > 0], 90))

    @cached_property
    def rounds(self) -> Indices:
        """The first packet of each round: a round ends when a packet sent in it is the first to be
        acknowledged."""
        starts, index = [], 0
        reached = np.fmin.accumulate(self.resolved_s[::-1])[::-1]
        while index < len(self.sent_s):
            starts.append(index)
            if not np.isfinite(reached[index]):
                break
            index = max(index + 1, int(np.searchsorted(self.sent_s, reached[index], "left")))
        return np.asarray(starts, np.int64)

    @cached_property
    def round_windows(self) -> Floats:
        """The most packets in flight in each round."""
        return np.asarray(np.maximum.reduceat(self.in_flight, self.rounds))

    @cached_property
    def round_times(self) -> Floats:
        """The start of each round."""
        return self.sent_s[self.rounds]

    def first_after(self, time_s: float) -> int:
        """The first packet sent at or after a time; the number of packets if there is none."""
        return int(np.searchsorted(self.sent_s, time_s, "left"))

    def slice_sent(self, start_s: float, end_s: float) -> slice:
        """The packets sent in an interval."""
        return slice(self.first_after(start_s), self.first_after(end_s))

    def bytes_until(self, times_s: Floats) -> Floats:
        """The bytes that had arrived by each time."""
        inside = np.isfinite(self.arrived_s)
        order = np.argsort(self.arrived_s[inside], kind="stable")
        total = np.concatenate([[0.0], np.cumsum(self.size_bytes[inside][order])])
        return np.asarray(total[np.searchsorted(self.arrived_s[inside][order], times_s)])

    def arrival_rate_bps(self, start_s: float, end_s: float) -> float:
        """The mean rate of arrivals in an interval."""
        inside = (self.arrived_s >= start_s) & (self.arrived_s < end_s)
        return float(self.size_bytes[inside].sum() * 8 / (end_s - start_s))


def read_trace(record: Path) -> Trace:
    """The trace of the first flow under test of a record. Raises `DataError` if it cannot be measured."""
    from narrows.campaign.json_files import read_run

    cell = read_cell(read_run(record).cell)
    try:
        packets = series.read_packets(record)
    except ValueError as error:
        raise DataError(str(error)) from None
    if packets is None:
        raise DataError(f"{record}: has bins and no packets; run it with record: packets")
    flow = next((flow for flow in cell.flows if not flow.background), None)
    if flow is None:
        raise DataError(f"{record}: has no flow under test")
    ahead = packets.backward != (flow.direction == "forward")
    mine = packets.flow == flow.number
    data = np.flatnonzero(mine & ahead)
    if len(data):
        data = data[find_data(packets.size_bytes[data])]
    data = data[np.argsort(packets.sent_ns[data], kind="stable")]
    arrived = _seconds(packets.arrived_ns[data])
    delivered = np.flatnonzero(np.isfinite(arrived))
    if not len(delivered):
        raise DataError(f"{record}: no data of flow {flow.number} arrived")
    lost = np.isnan(arrived) & (np.arange(len(arrived)) < delivered[-1])
    answered = _seconds(packets.sent_ns[mine & ~ahead])
    returned = _seconds(packets.arrived_ns[mine & ~ahead])
    came = np.isfinite(returned)
    others = ahead & ~mine & (packets.arrived_ns >= 0)
    return Trace(
        cell=record.name,
        settings=cell,
        duration_s=cell.duration_ns / 1e9,
        sent_s=_seconds(packets.sent_ns[data]),
        size_bytes=packets.size_bytes[data].astype(np.float64),
        arrived_s=arrived,
        lost=lost,
        resolved_s=resolve(arrived, lost, answered[came], returned[came]),
        answered_s=np.sort(answered),
        others_s=_seconds(packets.arrived_ns[others]),
        others_bytes=packets.size_bytes[others].astype(np.float64),
    )


def find_data(size_bytes: NDArray[np.uint32]) -> Bools:
    """The packets that carry data: handshakes and bare acknowledgements are much smaller than usual."""
    return np.asarray(size_bytes >= LEAST_DATA * np.percentile(size_bytes, 90))


def _seconds(times_ns: NDArray[np.int64]) -> Floats:
    """Times in seconds; NaN for never."""
    return np.where(times_ns >= 0, times_ns / 1e9, np.nan)


def resolve(arrived_s: Floats, lost: Bools, answered_s: Floats, returned_s: Floats) -> Floats:
    """When the sender learns of the fate of each packet."""
    order = np.argsort(answered_s, kind="stable")
    answered_s = answered_s[order]
    # A later answer that overtakes, or follows a lost one, covers the same packets.
    known = np.append(np.minimum.accumulate(returned_s[order][::-1])[::-1], np.inf)
    resolved = np.full(len(arrived_s), np.inf)
    delivered = np.flatnonzero(np.isfinite(arrived_s))
    resolved[delivered] = known[np.searchsorted(answered_s, arrived_s[delivered], "left")]
    missing = np.flatnonzero(lost)
    third = np.searchsorted(delivered, missing) + LATER_PACKETS - 1
    there = third < len(delivered)
    resolved[missing[there]] = resolved[delivered[third[there]]]
    return resolved
