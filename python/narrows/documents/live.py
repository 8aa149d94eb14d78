"""Runs while they are under way: samples of agents (drivers/emulate/src/live.rs and, of both ends of a run
between hosts, drivers/realpath/src/peer/live.rs), and the readings between two of them, which terminals,
pages and `narrows run --events` show.
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


# -- lines of the two agents of a run between hosts -------------------------------------------------


class SentCounts(Part, frozen=True, kw_only=True):
    """A flow at the end that sends its data. Without a tunnel there are no counts of packets."""

    flow: Count
    #: The packets that were sent before an interval of 500 ms, by the clock of this end.
    interval: Count | None = None
    before: Count | None = None
    cwnd_bytes: Count | None = None
    srtt_ns: Count | None = None
    #: Data that the other end has acknowledged since the start.
    acknowledged_bytes: Count | None = None


class ArrivedCounts(Part, frozen=True, kw_only=True):
    """A flow at the end that receives its data: counts since the start."""

    flow: Count
    packets: Count
    #: Their IP bytes.
    size: Count = field(name="bytes")
    #: Sum of their one-way delays above the smallest one so far.
    queueing_ns: Count
    #: Those that were sent before an interval of the other end's clock, of which no more are expected.
    interval: Count
    before: Count


class PeerSample(Part, frozen=True, kw_only=True):
    """A reading of one end. Those of both ends with the same number are of the same time."""

    number: Count
    time_ns: Count
    sent: list[SentCounts]
    arrived: list[ArrivedCounts]


class Rescheduled(Part, frozen=True, kw_only=True):
    """One end has given a flow other times."""

    flow: Count
    #: By how much the command came after the time that changes.
    late_ns: Count


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
