"""Numbers of one flow by a list of packets: the same for the record of the path and for the tunnel's logs."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from narrows import _native

#: Smaller packets are acknowledgements, the tunnel's messages about clocks, connections being made.
LEAST_DATA = 1000
#: Packets that enter the path within this time of the one before are a train: at 50 Mbit/s one of 1500 bytes
#: takes 240 us, so that a sender which is paced leaves such gaps, and one which sends in bursts does not.
TRAIN_NS = 20_000


class NoDataError(Exception):
    """Nothing arrived that could be measured."""


@dataclass(frozen=True)
class Numbers:
    """One flow in the direction of its data; sizes are those of packets on the path."""

    #: Bits that arrived by the time from the first arrival to the last.
    throughput_bps: float
    #: One-way, nearest rank.
    delay_p50_ns: int
    delay_p95_ns: int
    #: Share of the packets sent that the path dropped.
    loss_ratio: float
    #: Share of the packets that follow the one before at once.
    train_ratio: float
    #: When the first packet was sent that the path dropped, since the start; None if it dropped none.
    first_loss_ns: int | None
    #: Median of the sizes of the packets.
    size_bytes: int
    packets: int

    def to_json(self) -> dict[str, Any]:
        """As it is kept."""
        return asdict(self)


def measure(packets: _native.Packets, start_ns: int, length_ns: int, overhead: int = 0) -> Numbers:
    """The data packets that were sent in a time; `overhead` is what a tunnel adds to each packet.

    Delays are those of the path's model, less what its emulator was late by: the path decides by them.
    """
    size = packets["size_bytes"].astype(np.int64) + overhead
    sent, arrived = packets["sent_ns"], packets["arrived_ns"]
    wanted = ~packets["backward"] & (size >= LEAST_DATA)
    wanted &= (sent >= start_ns) & (sent < start_ns + length_ns)
    due = arrived - packets["late_ns"]
    # Those still on the way at the end are neither delivered nor lost.
    known = wanted & ((arrived < 0) | (due < start_ns + length_ns))
    delivered = known & (arrived >= 0)
    count = int(delivered.sum())
    times = due[delivered]
    span = int(times.max() - times.min()) if count else 0
    if span <= 0:
        raise NoDataError("no data has arrived")
    delays = np.sort(times - sent[delivered])
    gaps = np.diff(np.sort(sent[wanted]))
    lost = sent[known & (arrived < 0)]
    return Numbers(
        throughput_bps=float(size[delivered].sum()) * 8e9 / span,
        delay_p50_ns=_rank(delays, 0.5),
        delay_p95_ns=_rank(delays, 0.95),
        loss_ratio=1 - count / int(known.sum()),
        train_ratio=float((gaps < TRAIN_NS).mean()) if len(gaps) else 0.0,
        first_loss_ns=int(lost.min()) - start_ns if len(lost) else None,
        size_bytes=_rank(np.sort(size[delivered]), 0.5),
        packets=count,
    )


def _rank(ordered: NDArray[np.int64], share: float) -> int:
    """The nearest rank."""
    return int(ordered[max(0, math.ceil(share * len(ordered)) - 1)])
