"""Metrics of one flow from a list of packets: the same for the record of the path and for the
tunnel's logs."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from narrows import _native

#: Smaller packets are acknowledgements, the tunnel's messages about clocks, connections being made.
LEAST_DATA = 1000
#: Packets that enter the path within this time of the previous one form a train: at 50 Mbit/s a packet of
#: 1500 bytes takes 240 us, so a paced sender leaves such gaps, and a bursty sender does not.
TRAIN_NS = 20_000


class NoDataError(Exception):
    """Nothing arrived that could be measured."""


@dataclass(frozen=True)
class Numbers:
    """One flow in the direction of its data; sizes are those of packets on the path."""

    #: Received bits divided by the time from the first arrival to the last.
    throughput_bps: float
    #: One-way, nearest rank.
    delay_p50_ns: int
    delay_p95_ns: int
    #: The path's drops as a share of the sent packets.
    loss_ratio: float
    #: The share of packets that immediately follow another one.
    train_ratio: float
    #: The sending time of the first packet that the path dropped, since the start; None if it dropped none.
    first_loss_ns: int | None
    #: Median of the sizes of the packets.
    size_bytes: int
    packets: int

    def to_json(self) -> dict[str, Any]:
        """In stored form."""
        return asdict(self)


def measure(packets: _native.Packets, start_ns: int, length_ns: int, overhead: int = 0) -> Numbers:
    """The data packets sent during an interval; `overhead` is the tunnel's addition to each packet.

    Delays are those of the path's model, without its emulator's lateness: they determine the path's
    decisions.
    """
    size = packets["size_bytes"].astype(np.int64) + overhead
    sent, arrived = packets["sent_ns"], packets["arrived_ns"]
    wanted = ~packets["backward"] & (size >= LEAST_DATA)
    wanted &= (sent >= start_ns) & (sent < start_ns + length_ns)
    due = arrived - packets["late_ns"]
    # Packets in flight at the end are neither delivered nor lost.
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
