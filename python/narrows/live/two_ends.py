"""From the counts of both ends of a run between hosts to readings: departures are known at one end,
arrivals at the other.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from narrows.documents.live import ArrivedCounts, FlowReading, PeerSample, Reading, SentCounts

#: Samples of one end that wait for those of the other, and counts of sent packets that are kept.
_MOST = 64
_NS = 1e9
_BITS = 8


@dataclass
class _Flow:
    """The counts of a flow so far."""

    #: Packets sent before an interval, by interval.
    sent: dict[int, int] = field(default_factory=dict)
    #: The latest interval for which both ends have counts: packets sent before it, and those that arrived.
    compared: tuple[int, int] = (0, 0)
    arrived: ArrivedCounts | None = None
    arrived_at_ns: int = 0
    acknowledged_bytes: int = 0
    acknowledged_at_ns: int = 0
    least_srtt_ns: int | None = None


class TwoEnds:
    """Computes readings from the samples of two ends."""

    def __init__(self) -> None:
        self._waiting: dict[int, dict[str, PeerSample]] = {}
        self._flows: dict[int, _Flow] = {}
        self._last = 0
        self._time_ns = 0

    def read(self, end: str, sample: PeerSample) -> Reading | None:
        """Takes the sample of an end; returns a reading once both ends have sent those of a number."""
        if sample.number <= self._last:
            return None
        both = self._waiting.setdefault(sample.number, {})
        both[end] = sample
        if len(both) < 2:
            while len(self._waiting) > _MOST:
                del self._waiting[min(self._waiting)]
            return None
        self._last = sample.number
        self._waiting = {number: ends for number, ends in self._waiting.items() if number > sample.number}
        sent = {counts.flow: (one, counts) for one in both.values() for counts in one.sent}
        arrived = {counts.flow: (one, counts) for one in both.values() for counts in one.arrived}
        # The other host may lie, but readings are in order of time.
        self._time_ns = max(self._time_ns + 1, *(one.time_ns for one in both.values()))
        return Reading(
            time_ns=self._time_ns,
            flows=[self._read_flow(number, *sent[number], arrived.get(number)) for number in sorted(sent)],
            queues=[],
        )

    def _read_flow(
        self,
        number: int,
        sample: PeerSample,
        sent: SentCounts,
        arrival: tuple[PeerSample, ArrivedCounts] | None,
    ) -> FlowReading:
        flow = self._flows.setdefault(number, _Flow())
        if arrival is None:
            throughput_bps, queueing_ns = _read_acknowledged(flow, sample.time_ns, sent)
            loss_ratio = None
        else:
            throughput_bps, queueing_ns = _read_arrived(flow, arrival[0].time_ns, arrival[1])
            loss_ratio = _read_losses(flow, sent, arrival[1])
        return FlowReading(
            flow=number,
            throughput_bps=throughput_bps,
            queueing_ns=queueing_ns,
            loss_ratio=loss_ratio,
            cwnd_bytes=sent.cwnd_bytes,
            srtt_ns=sent.srtt_ns,
        )


def _read_arrived(flow: _Flow, time_ns: int, now: ArrivedCounts) -> tuple[float, float | None]:
    """Throughput, and mean delay above the smallest one, of the packets since the last sample."""
    before, passed_ns = flow.arrived, time_ns - flow.arrived_at_ns
    flow.arrived, flow.arrived_at_ns = now, time_ns
    packets = now.packets - (before.packets if before else 0)
    size = now.size - (before.size if before else 0)
    queueing_ns = now.queueing_ns - (before.queueing_ns if before else 0)
    return _rate(size, passed_ns), max(0, queueing_ns) / packets if packets > 0 else None


def _read_acknowledged(flow: _Flow, time_ns: int, now: SentCounts) -> tuple[float, float | None]:
    """The same as the sender knows them: data acknowledged, round-trip time above the smallest one."""
    acknowledged, passed_ns = now.acknowledged_bytes or 0, time_ns - flow.acknowledged_at_ns
    size = acknowledged - flow.acknowledged_bytes
    flow.acknowledged_bytes, flow.acknowledged_at_ns = acknowledged, time_ns
    srtt_ns = now.srtt_ns
    if srtt_ns is None:
        return _rate(size, passed_ns), None
    flow.least_srtt_ns = min(srtt_ns, flow.least_srtt_ns if flow.least_srtt_ns is not None else srtt_ns)
    return _rate(size, passed_ns), srtt_ns - flow.least_srtt_ns


def _read_losses(flow: _Flow, sent: SentCounts, arrived: ArrivedCounts) -> float | None:
    """The share of packets that have not arrived, of those in the intervals since the last comparison."""
    if sent.interval is not None and sent.before is not None:
        flow.sent[sent.interval] = sent.before
    if arrived.interval not in flow.sent:
        return None
    now, before = (flow.sent[arrived.interval], arrived.before), flow.compared
    flow.compared = now
    flow.sent = {
        interval: count for interval, count in list(flow.sent.items())[-_MOST:] if interval > arrived.interval
    }
    packets = now[0] - before[0]
    lost = packets - (now[1] - before[1])
    return min(1.0, max(0, lost) / packets) if packets > 0 else None


def _rate(size: int, passed_ns: int) -> float:
    return max(0, size) * _BITS * _NS / passed_ns if passed_ns > 0 else 0.0
