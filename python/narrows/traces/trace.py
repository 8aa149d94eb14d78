"""The two kinds of traces: delivery opportunities, and rates over time.

`Opportunities` is mahimahi's model of a link: at given milliseconds the link delivers up to
`OPPORTUNITY_BYTES`. `Rates` has the rate of the link from one time to the next. Each can be converted to the
other; `bin_rates` and `opportunities` document the quantities that the conversion preserves.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from narrows.errors import DataError

#: Size of one opportunity of a mahimahi trace, in bytes of IP packets.
OPPORTUNITY_BYTES = 1500
OPPORTUNITY_BITS = 8 * OPPORTUNITY_BYTES
NS_PER_MS = 10**6
NS_PER_S = 10**9

Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Opportunities:
    """Delivery opportunities at whole milliseconds, non-decreasing; the last one ends the trace."""

    times_ms: Integers

    @property
    def length_ns(self) -> int:
        """Length of the trace: the time of its last opportunity."""
        return int(self.times_ms[-1]) * NS_PER_MS

    @property
    def bits(self) -> int:
        """Bits that the trace can carry from beginning to end."""
        return len(self.times_ms) * OPPORTUNITY_BITS

    @property
    def mean_bps(self) -> float:
        """Mean rate of the trace, repeated or not."""
        return self.bits * NS_PER_S / self.length_ns


@dataclass(frozen=True, eq=False)
class Rates:
    """Rate `rate_bps[i]` from `time_ns[i]` until the next time; the last one until `end_ns`."""

    time_ns: Integers
    rate_bps: Integers
    end_ns: int

    @property
    def length_ns(self) -> int:
        """Length of the trace."""
        return self.end_ns

    @property
    def spans_ns(self) -> Integers:
        """Duration of each rate in nanoseconds."""
        return np.diff(np.append(self.time_ns, self.end_ns))

    @property
    def bit_ns(self) -> int:
        """Capacity of the trace, in billionths of a bit (exact)."""
        rates, spans = self.rate_bps.tolist(), self.spans_ns.tolist()
        return sum(rate * span for rate, span in zip(rates, spans, strict=True))

    @property
    def mean_bps(self) -> float:
        """Mean rate of the trace, repeated or not."""
        return self.bit_ns / self.end_ns


Trace = Opportunities | Rates


@dataclass(frozen=True, eq=False)
class Delays:
    """Delay `delay_ns[i]` from `time_ns[i]` until the next time; the last one until `end_ns`."""

    time_ns: Integers
    delay_ns: Integers
    end_ns: int

    @property
    def length_ns(self) -> int:
        """Length of the trace."""
        return self.end_ns

    @property
    def mean_ns(self) -> float:
        """Mean delay over the length."""
        spans = np.diff(np.append(self.time_ns, self.end_ns)).tolist()
        delays = self.delay_ns.tolist()
        total: int = sum(delay * span for delay, span in zip(delays, spans, strict=True))
        return total / self.end_ns


AnyTrace = Opportunities | Rates | Delays


def bin_rates(trace: Opportunities, bin_ns: int) -> Rates:
    """The mean rate in each bin; the total up to the end of any bin deviates by at most half a bit per second
    of bin.

    An opportunity on the border of two bins belongs to the earlier one, so that the last line of a trace is
    included. The last bin is shorter if the length is not a multiple of the bin.
    """
    end = trace.length_ns
    count = -(-end // bin_ns)
    if count > 10_000_000:
        raise DataError(f"bins of {bin_ns} ns are too many for a trace of {end} ns; choose longer ones")
    # ceil(t / bin) - 1; opportunities at time 0 go into the first bin.
    times = trace.times_ms * NS_PER_MS
    owner = np.maximum(-(-times // bin_ns) - 1, 0)
    bits = np.cumsum(np.bincount(owner, minlength=count)) * OPPORTUNITY_BITS
    edges = np.append(np.arange(count, dtype=np.int64) * bin_ns, end)
    rates = np.empty(count, dtype=np.int64)
    # Whole numbers of bit/s cannot match every mean: the error of one bin is carried to the next.
    done = 0
    spans = np.diff(edges).tolist()
    for index, total in enumerate(bits.tolist()):
        missing = total * NS_PER_S - done
        rate = max(0, (2 * missing + spans[index]) // (2 * spans[index]))
        rates[index] = rate
        done += rate * spans[index]
    return Rates(edges[:-1], rates, end)


def opportunities(trace: Rates) -> Opportunities:
    """An opportunity at the end of each millisecond in which another 1500 bytes could have been sent.

    The remainder is carried over, so the total never deviates by more than one opportunity. The last
    opportunity marks the end of a mahimahi trace, so one is added there if none falls there.
    """
    end_ms = -(-trace.end_ns // NS_PER_MS)
    unit = OPPORTUNITY_BITS * NS_PER_S
    if trace.bit_ns // unit > 50_000_000:
        raise DataError("the trace has more than 50 million opportunities; make it shorter or slower")
    parts: list[Integers] = []
    done = 0  # Billionths of a bit sent before this row.
    rows = zip(trace.time_ns.tolist(), trace.rate_bps.tolist(), trace.spans_ns.tolist(), strict=True)
    for start, rate, span in rows:
        after = done + rate * span
        first, last = done // unit + 1, after // unit
        if last >= first:
            # Exact although the sums exceed 64 bits: Python's integers.
            times = (start + -(-(number * unit - done) // rate) for number in range(first, last + 1))
            parts.append(np.fromiter((-(-time // NS_PER_MS) for time in times), np.int64))
        done = after
    values = np.concatenate(parts) if parts else np.empty(0, dtype=np.int64)
    if not done:
        raise DataError("the trace never sends anything")
    if not len(values) or values[-1] != end_ms:
        values = np.append(values, end_ms)
    return Opportunities(values)
