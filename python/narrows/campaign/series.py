"""Series of a record over time: rates, delays, packets, samples of queues and senders, transfers, frames."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from narrows import _native

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class FlowRates:
    """The sent and the delivered rate of a flow, per bin, in the direction of its data."""

    sent_bps: Floats
    arrived_bps: Floats


@dataclass(frozen=True, slots=True)
class Throughput:
    """Rates in bins of time, by flow, and the capacity of the bottleneck where it is known."""

    time_s: Floats
    capacity_bps: Floats | None
    flows: dict[int, FlowRates]


@dataclass(frozen=True, slots=True)
class Delays:
    """One-way delays of packets at the time of their arrival."""

    time_s: Floats
    delay_ms: Floats


@dataclass(frozen=True, slots=True)
class Packets:
    """All packets in the order of entering the network; `arrived_ns` is -1 for a packet that did
    not arrive."""

    flow: NDArray[np.uint16]
    backward: NDArray[np.bool_]
    size_bytes: NDArray[np.uint32]
    sent_ns: NDArray[np.int64]
    arrived_ns: NDArray[np.int64]
    late_ns: NDArray[np.int64]

    def of_flow(self, number: int, direction: str) -> NDArray[np.bool_]:
        """The indices of a flow's packets in one direction."""
        own: NDArray[np.bool_] = (self.flow == number) & (self.backward == (direction != "forward"))
        return own


@dataclass(frozen=True, slots=True)
class Queue:
    """Samples of a queue."""

    time_s: Floats
    backlog_bytes: Floats
    backlog_packets: Floats


@dataclass(frozen=True, slots=True)
class States:
    """Samples of a sender, NaN where it reported nothing."""

    time_s: Floats
    cwnd_bytes: Floats
    ssthresh_bytes: Floats
    pacing_bps: Floats
    rtt_ns: Floats
    srtt_ns: Floats
    min_rtt_ns: Floats
    inflight_bytes: Floats
    delivered_bytes: Floats
    delivery_rate_bps: Floats
    retransmitted_bytes: Floats
    lost_packets: Floats


@dataclass(frozen=True, slots=True)
class Transfers:
    """Transfers of applications; `ended_s` is NaN for one that was not complete at the end."""

    flow: Floats
    connection: Floats
    transfer: Floats
    bytes: Floats
    started_s: Floats
    ended_s: Floats


@dataclass(frozen=True, slots=True)
class Frames:
    """Frames of video; `key` and `discarded` are 0 or 1, `arrived_s` is NaN if it was never complete."""

    flow: Floats
    frame: Floats
    captured_s: Floats
    bytes: Floats
    key: Floats
    discarded: Floats
    arrived_s: Floats


# All functions raise `ValueError` for damaged records and `OSError` for files that can't be read.


def read_throughput(record: Path, bin_ns: int) -> Throughput:
    """Rates in bins; the bins of a record are combined up to the next multiple of their width."""
    series = _native.throughput_series(record, bin_ns)
    flows = {number: FlowRates(**rates) for number, rates in series["flows"].items()}
    return Throughput(series["time_s"], series["capacity_bps"], flows)


def read_delays(record: Path, max_points: int) -> dict[int, Delays] | None:
    """Delays by flow, thinned out without loss of extremes; None for a record of bins."""
    points = _native.delay_points(record, max_points)
    return None if points is None else {number: Delays(**own) for number, own in points.items()}


def read_packets(record: Path) -> Packets | None:
    """All packets; None for a record of bins."""
    packets = _native.packets(record)
    return None if packets is None else Packets(**packets)


def read_queues(record: Path) -> dict[str, Queue]:
    """The samples of queues by the names of their elements."""
    return {name: Queue(**samples) for name, samples in _native.queue_series(record).items()}


def read_states(record: Path) -> dict[int, States]:
    """The samples of senders by flow."""
    return {number: States(**samples) for number, samples in _native.state_series(record).items()}


def read_transfers(record: Path) -> Transfers:
    """The transfers of applications."""
    return Transfers(**_native.transfers(record))


def read_frames(record: Path) -> Frames:
    """The frames of video."""
    return Frames(**_native.frames(record))
