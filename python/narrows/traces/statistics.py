"""Statistics of traces."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from narrows.errors import DataError
from narrows.traces.trace import NS_PER_MS, NS_PER_S, OPPORTUNITY_BITS, Opportunities, Trace

#: Windows for computing rates, by name.
WINDOWS_NS = {"100 ms": 100 * NS_PER_MS, "1 s": NS_PER_S}
#: A trace shorter than this many windows is repeated.
LEAST_WINDOWS = 100
#: Eleven days in windows of 100 ms.
MOST_WINDOWS = 10_000_000
PERCENTILES = (5, 25, 50, 75, 95)


def _cumulative(trace: Trace) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Corners (ns, bits) of the cumulative curve; steps for opportunities, ramps for rates."""
    if isinstance(trace, Opportunities):
        times = np.repeat(trace.times_ms.astype(np.float64) * NS_PER_MS, 2)
        counts = np.arange(len(trace.times_ms) + 1, dtype=np.float64) * OPPORTUNITY_BITS
        return times, np.repeat(counts, 2)[1:-1]
    times = np.append(trace.time_ns, trace.end_ns).astype(np.float64)
    bits = np.cumsum(trace.rate_bps.astype(np.float64) * (trace.spans_ns / NS_PER_S))
    return times, np.append(0.0, bits)


def _bits_until(trace: Trace, at_ns: NDArray[np.float64]) -> NDArray[np.float64]:
    """Bits delivered by each time, inclusive."""
    if isinstance(trace, Opportunities):
        # Half a millisecond after each edge, so that an opportunity on an edge is included.
        values = np.searchsorted(trace.times_ms, np.floor(at_ns / NS_PER_MS + 1e-6), side="right")
        return values.astype(np.float64) * OPPORTUNITY_BITS
    times, bits = _cumulative(trace)
    return np.interp(at_ns, times, bits)


def window_rates(trace: Trace, window_ns: int) -> NDArray[np.float64]:
    """Mean rates (bit/s) in consecutive complete windows.

    Opportunities on the border of two windows belong to the earlier one, those at 0 to the first. A trace
    that is shorter than 100 windows is repeated until it fills them.
    """
    length = trace.length_ns
    total = float(_bits_until(trace, np.array([float(length)]))[0])
    count = max(LEAST_WINDOWS, length // window_ns)
    if count > MOST_WINDOWS:
        raise DataError(f"the trace lasts {length / NS_PER_S:.3g} s, too long for statistics; cut it")
    edges = np.arange(count + 1, dtype=np.float64) * window_ns
    laps = np.floor(edges / length)
    passed = laps * total + _bits_until(trace, edges - laps * length)
    if isinstance(trace, Opportunities):
        # Opportunities at time 0 coincide with the end of the previous repetition, whose window contains
        # them.
        zero = float(np.count_nonzero(trace.times_ms == 0)) * OPPORTUNITY_BITS
        passed[0] -= zero
    rates: NDArray[np.float64] = np.diff(passed) * (NS_PER_S / window_ns)
    return rates


def autocorrelation(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Autocorrelation by lag up to half the length, with the values as a loop; empty if they never change."""
    centred = values - values.mean()
    if not np.any(np.abs(centred) > 1e-9 * max(1.0, float(np.abs(values).max()))):
        return np.empty(0)
    spectrum = np.abs(np.fft.rfft(centred)) ** 2
    numbers = np.fft.irfft(spectrum, len(values))[: len(values) // 2 + 1]
    result: NDArray[np.float64] = numbers / numbers[0]
    return result


def _longest_silence(trace: Trace) -> int:
    """The longest time without any opportunity or rate (ns), including across the repetition."""
    if isinstance(trace, Opportunities):
        return int(np.diff(trace.times_ms, prepend=0).max()) * NS_PER_MS
    spans = trace.spans_ns.tolist() * 2
    longest = run = 0
    for rate, span in zip(trace.rate_bps.tolist() * 2, spans, strict=True):
        run = 0 if rate else run + span
        longest = max(longest, run)
    return min(longest, trace.length_ns)


@dataclass(frozen=True)
class Statistics:
    """The numbers that `narrows trace show` prints."""

    length_ns: int
    rows: int
    mean_bps: float
    windows: dict[str, dict[str, float]]
    longest_gap_ns: int
    silent_ratio: float
    autocorrelation_time_s: float | None
    seam: str | None

    def to_json(self) -> dict[str, object]:
        """As a document."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


def measure(trace: Trace) -> Statistics:
    """All statistics of a trace."""
    windows = {}
    for name, window_ns in WINDOWS_NS.items():
        rates = window_rates(trace, window_ns)
        mean = float(rates.mean())
        result = {"lowest_bps": float(rates.min()), "highest_bps": float(rates.max())}
        result |= {f"p{p}_bps": float(np.percentile(rates, p)) for p in PERCENTILES}
        windows[name] = result | {"variation": float(rates.std()) / mean if mean else 0.0}
    short = window_rates(trace, WINDOWS_NS["100 ms"])
    below = np.flatnonzero(autocorrelation(short) < np.exp(-1))
    seam = None
    if isinstance(trace, Opportunities):
        rows = len(trace.times_ms)
        zero = int(np.count_nonzero(trace.times_ms == 0))
        if zero:
            seam = (
                f"{zero} {'opportunity is' if zero == 1 else 'opportunities are'} at 0 ms; when the trace is"
                " repeated, they fall on the same instant as the end of the lap before"
            )
    else:
        rows = len(trace.rate_bps)
    return Statistics(
        length_ns=trace.length_ns,
        rows=rows,
        mean_bps=trace.mean_bps,
        windows=windows,
        longest_gap_ns=_longest_silence(trace),
        silent_ratio=float(np.mean(short == 0)),
        autocorrelation_time_s=float(below[0]) * 0.1 if len(below) else None,
        seam=seam,
    )
