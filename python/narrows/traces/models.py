"""Traces of simple links: constant, Poisson, square."""

from __future__ import annotations

import numpy as np

from narrows.errors import UsageError
from narrows.traces.numbers import Source
from narrows.traces.trace import NS_PER_MS, NS_PER_S, OPPORTUNITY_BITS, Opportunities, Rates

#: A larger file would hardly be intended.
MOST_OPPORTUNITIES = 50_000_000


def _count(rate_bps: int, length_ns: int) -> int:
    """The number of opportunities that comes closest to a mean rate."""
    unit = OPPORTUNITY_BITS * NS_PER_S
    count = (2 * rate_bps * length_ns + unit) // (2 * unit)
    if count < 1:
        raise UsageError("at this rate not one packet of 1500 bytes passes in this time; make it longer")
    if count > MOST_OPPORTUNITIES:
        raise UsageError(f"that would be {count} opportunities; make the trace shorter or slower")
    return int(count)


def constant(rate_bps: int, length_ns: int) -> Opportunities:
    """Opportunities spread evenly over the length, each at the nearest whole millisecond.

    The last one falls on the end. The actual rate differs from the requested one by less than half an
    opportunity per length, and by the rounding of the length to a millisecond.
    """
    count = _count(rate_bps, length_ns)
    numbers = range(1, count + 1)
    scale = 2 * count * NS_PER_MS
    times = ((2 * number * length_ns + count * NS_PER_MS) // scale for number in numbers)
    return _check(np.fromiter(times, np.int64, count))


def poisson(rate_bps: int, length_ns: int, seed: int) -> Opportunities:
    """As many opportunities as on a constant link, with independent exponential gaps.

    The number is fixed and the length is the sum of the gaps, so that cutting the trace off does not bias the
    mean rate.
    """
    count = _count(rate_bps, length_ns)
    gaps = Source(seed, "poisson").exponential(count) * (length_ns / count / NS_PER_MS)
    return _check(np.rint(np.cumsum(gaps)).astype(np.int64))


def _check(times_ms: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Opportunities:
    if times_ms[-1] < 1:
        raise UsageError("the trace is shorter than a millisecond; make it longer")
    return Opportunities(times_ms)


def square(low_bps: int, high_bps: int, period_ns: int, duty: float, length_ns: int) -> Rates:
    """First the high rate for a share of each period, then the low one."""
    high_ns = round(period_ns * duty)
    if not 0 < high_ns < period_ns:
        raise UsageError("the share of the high rate must leave time for both rates")
    if length_ns // period_ns > 1_000_000:
        raise UsageError("the trace would have more than a million periods; make it shorter")
    times, rates = [], []
    for start in range(0, length_ns, period_ns):
        for time, rate in ((start, high_bps), (start + high_ns, low_bps)):
            if time < length_ns:
                times.append(time)
                rates.append(rate)
    return Rates(np.array(times, dtype=np.int64), np.array(rates, dtype=np.int64), length_ns)
