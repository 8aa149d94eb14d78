"""From the counters of an agent to the readings between them."""

from __future__ import annotations

from collections.abc import Mapping

from narrows.documents.live import (
    ElementSample,
    FlowReading,
    FlowSample,
    LiveSample,
    QueueReading,
    Reading,
)

#: Samples that are closer together than this are not told apart: their rates would be noise.
LEAST_NS = 50_000_000
_NS = 1e9
_BITS = 8


class Meter:
    """Computes readings from the samples of one run."""

    def __init__(self) -> None:
        self._before = LiveSample(time_ns=0, flows=[], elements=[])

    def read(self, sample: LiveSample) -> Reading | None:
        """The reading since the last sample; none if hardly any time has passed."""
        before, passed_ns = self._before, sample.time_ns - self._before.time_ns
        if passed_ns < LEAST_NS:
            return None
        self._before = sample
        flows = {flow.flow: flow for flow in before.flows}
        elements = {element.element: element for element in before.elements}
        return Reading(
            time_ns=sample.time_ns,
            flows=[_read_flow(flow, flows, passed_ns) for flow in sample.flows],
            queues=[_read_queue(element, elements, passed_ns) for element in sample.elements],
        )


def _read_flow(now: FlowSample, others: Mapping[int, FlowSample], passed_ns: int) -> FlowReading:
    before = others.get(now.flow)
    packets = now.delivered_packets - (before.delivered_packets if before else 0)
    size = now.delivered_bytes - (before.delivered_bytes if before else 0)
    dropped = now.dropped_packets - (before.dropped_packets if before else 0)
    queueing_ns = now.queueing_ns - (before.queueing_ns if before else 0)
    return FlowReading(
        flow=now.flow,
        throughput_bps=_rate(size, passed_ns),
        queueing_ns=queueing_ns / packets if packets > 0 else None,
        loss_ratio=dropped / (dropped + packets) if dropped + packets > 0 else None,
        cwnd_bytes=now.cwnd_bytes,
        srtt_ns=now.srtt_ns,
    )


def _read_queue(now: ElementSample, others: Mapping[str, ElementSample], passed_ns: int) -> QueueReading:
    before = others.get(now.element)
    return QueueReading(
        element=now.element,
        rate_bps=now.rate_bps,
        throughput_bps=_rate(now.left_bytes - (before.left_bytes if before else 0), passed_ns),
        queued_packets=now.queued_packets,
        queued_bytes=now.queued_bytes,
        dropped_packets=now.dropped_packets,
    )


def _rate(size: int, passed_ns: int) -> float:
    return max(0, size) * _BITS * _NS / passed_ns
