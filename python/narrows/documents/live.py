"""Runs while they are under way: samples of agents (drivers/emulate/src/live.rs), and the readings between
two of them, which terminals, pages and `narrows run --events` show.
"""

from __future__ import annotations

from msgspec import field

from narrows.documents.agent import Text
from narrows.documents.components import Values
from narrows.documents.data import Count, Number, Part

# -- lines of agents -------------------------------------------------------------------------------


class FlowSample(Part, frozen=True, kw_only=True):
    """The data of a flow: counts since the start of the run, and the latest state of its sender."""

    flow: Count
    delivered_packets: Count
    delivered_bytes: Count
    dropped_packets: Count
    #: Sum over the delivered packets: time in the network less the fixed delays of the route.
    queueing_ns: Count
    cwnd_bytes: Count | None = None
    srtt_ns: Count | None = None


class ElementSample(Part, frozen=True, kw_only=True):
    """An element with a queue: counts since the start of the run, and its present state."""

    element: Text
    left_packets: Count
    left_bytes: Count
    dropped_packets: Count
    queued_packets: Count
    queued_bytes: Count
    rate_bps: Count


class LiveSample(Part, frozen=True, kw_only=True):
    """All flows and queues at a time of the run."""

    time_ns: Count
    flows: list[FlowSample]
    elements: list[ElementSample]


class Changed(Part, frozen=True, kw_only=True):
    """An order that takes effect at a time: values of an element, or a flow that starts or stops."""

    at_ns: Count
    element: Text | None = None
    values: Values | None = field(name="set", default=None)
    start: Count | None = None
    stop: Count | None = None


class Refused(Part, frozen=True, kw_only=True):
    """An order that the agent refused."""

    message: Text


# -- readings --------------------------------------------------------------------------------------


class FlowReading(Part, frozen=True, kw_only=True):
    """The data of a flow between two samples, and the latest state of its sender."""

    flow: Count
    #: IP bits that left the network towards the receiver, per second.
    throughput_bps: Number
    #: Mean over the packets that left; none without packets.
    queueing_ns: Number | None = None
    #: Packets dropped / (dropped + delivered); none without packets.
    loss_ratio: Number | None = None
    cwnd_bytes: Count | None = None
    srtt_ns: Count | None = None


class QueueReading(Part, frozen=True, kw_only=True):
    """An element with a queue between two samples, and its state at the second one."""

    element: str
    rate_bps: Count
    throughput_bps: Number
    queued_packets: Count
    queued_bytes: Count
    #: Since the start of the run.
    dropped_packets: Count


class Reading(Part, frozen=True, kw_only=True):
    """All flows and queues between two samples."""

    time_ns: Count
    flows: list[FlowReading]
    queues: list[QueueReading]
