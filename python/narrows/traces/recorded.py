"""A trace from the packets that arrived while a path was kept full."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from narrows.errors import DataError
from narrows.traces.trace import NS_PER_MS, OPPORTUNITY_BYTES, Integers, Opportunities


@dataclass(frozen=True)
class Recorded:
    """A recorded trace, and measures of its reliability."""

    trace: Opportunities
    #: Bytes that arrived within it.
    arrived_bytes: int
    #: Share of its length during which a packet was waiting to be delivered; in the rest the path may have
    #: been able to carry more.
    full_ratio: float
    #: The median excess delay over the fastest packet.
    waited_p50_ns: int


def derive_opportunities(sent_ns: Integers, arrived_ns: Integers, sizes: Integers) -> Recorded:
    """The opportunities of a path, from times of sending and arrival and the sizes of IP packets.

    The clocks of the two ends need not agree, because only differences of delays count. The times before the
    path was full, and after, are excluded: the trace runs from the first to the last packet that waited half
    as long as the median one.
    """
    if len(arrived_ns) < 2:
        raise DataError("nothing arrived, so there is no trace; narrows hosts check shows which packets pass")
    order = np.argsort(arrived_ns, kind="stable")
    sent, arrived, size = sent_ns[order], arrived_ns[order], sizes[order]
    delay = arrived - sent
    waited = delay - delay.min()
    median = int(np.median(waited))
    among = np.flatnonzero(2 * waited >= max(median, 1))
    if not len(among) or arrived[among[-1]] - arrived[among[0]] < NS_PER_MS:
        raise DataError(
            "the path was never full, so what it can carry is not known; allow more data or a higher rate"
        )
    span = slice(among[0], among[-1] + 1)
    sent, arrived, size, waited = sent[span], arrived[span], size[span], waited[span]
    # The first packet marks the beginning; its capacity was used before.
    delivered = np.cumsum(size[1:])
    count = int(delivered[-1]) // OPPORTUNITY_BYTES
    if not count:
        raise DataError("less than one packet arrived while the path was full; allow more data")
    reached = np.searchsorted(delivered, np.arange(1, count + 1, dtype=np.int64) * OPPORTUNITY_BYTES)
    times = -(-(arrived[1:][reached] - arrived[0]) // NS_PER_MS)
    gaps = np.diff(arrived)
    busy = int(gaps[waited[1:] >= gaps].sum())
    return Recorded(
        Opportunities(np.maximum(times, 1)),
        int(delivered[-1]),
        busy / int(gaps.sum()),
        int(np.median(waited)),
    )
