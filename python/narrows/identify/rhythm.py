"""Behaviour while the path stays the same: the queue, the rhythm of the rate, dips, bursts."""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise

import numpy as np

from narrows.identify.samples import NotMeasuredError, Sample
from narrows.identify.trace import Bools, Floats, Trace
from narrows.identify.windows import list_episodes

#: The steady part of a run begins after this share of it.
SETTLED = 0.2
#: Parts into which the steady part is divided where a mean needs an interval.
PARTS = 8
#: The rate is smoothed over this share of the smallest round trip, and sampled this often in it.
WINDOW, STEPS = 0.5, 16
#: Packets that a window of the smoothed rate must have: whole packets hide gains of an eighth below it.
FEWEST_PACKETS = 16
#: A phase is a rate that differs from the usual one by this share for most of a round trip.
GAIN, LEAST_PHASE = 0.06, 0.5
#: Gaps shorter than this, by the time that the bottleneck needs for a packet, belong to a burst.
BURST = 0.2
#: A dip is a time with less than this share of the usual bytes in flight.
DIP = 0.6
#: The least peak of the autocorrelation of a period, and the share of the highest from which peaks are equal.
LEAST_CORRELATION, NEARLY = 0.25, 0.8


def _parts(trace: Trace) -> list[tuple[float, float]]:
    edges = np.linspace(SETTLED * trace.duration_s, trace.duration_s, PARTS + 1)
    return list(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True))


def measure_queue(trace: Trace) -> list[Sample]:
    """The mean number of packets that wait at the bottleneck."""
    waiting = trace.queueing_s * trace.capacity_bps / 8 / trace.packet_bytes
    samples = []
    for start, end in _parts(trace):
        part = waiting[trace.slice_sent(start, end)]
        if np.isfinite(part).any():
            samples.append(Sample(float(np.nanmean(part)), start, end, 0.5))
    return _or_idle(samples)


def measure_utilization(trace: Trace) -> list[Sample]:
    """The delivered rate, as a share of the highest."""
    return [
        Sample(trace.arrival_rate_bps(start, end) / trace.capacity_bps, start, end, 0.005)
        for start, end in _parts(trace)
    ]


def measure_loss(trace: Trace) -> list[Sample]:
    """The share of packets that are lost in the steady part of the run."""
    start, end = SETTLED * trace.duration_s, trace.duration_s
    part = trace.lost[trace.slice_sent(start, end)]
    if not len(part):
        raise NotMeasuredError("the sender was silent")
    # One overload more or less may fall into the part.
    at_once = max(
        (episode.losses for episode in list_episodes(trace) if episode.noticed_s > start), default=0
    )
    return [Sample(float(part.mean()), start, end, (at_once + 1) / len(part))]


def measure_bursts(trace: Trace) -> list[Sample]:
    """The share of packets that leave within a fifth of the time that the bottleneck needs for a packet."""
    service = trace.packet_bytes * 8 / trace.capacity_bps
    samples = []
    for start, end in _parts(trace):
        gaps = np.diff(trace.sent_s[trace.slice_sent(start, end)])
        if len(gaps):
            samples.append(Sample(float((gaps < BURST * service).mean()), start, end, 0.01))
    return _or_idle(samples)


def measure_per_answer(trace: Trace) -> list[Sample]:
    """Data packets that arrive per packet that the receiver sends."""
    samples = []
    for start, end in _parts(trace):
        arrived = int(((trace.arrived_s >= start) & (trace.arrived_s < end)).sum())
        answers = int(((trace.answered_s >= start) & (trace.answered_s < end)).sum())
        if answers:
            samples.append(Sample(arrived / answers, start, end, arrived / answers / answers + 0.01))
    return _or_idle(samples)


def _or_idle(samples: list[Sample]) -> list[Sample]:
    if not samples:
        raise NotMeasuredError("the sender was silent")
    return samples


# -- phases of the rate ----------------------------------------------------------------------------


@lru_cache(maxsize=4)
def smooth_rate(trace: Trace) -> tuple[Floats, Floats]:
    """Times, and the rate in packets per second around each."""
    width, step = WINDOW * trace.min_rtt_s, trace.min_rtt_s / STEPS
    times = np.arange(SETTLED * trace.duration_s, trace.duration_s - width, step)
    counts = np.searchsorted(trace.sent_s, times + width / 2) - np.searchsorted(
        trace.sent_s, times - width / 2
    )
    return times, counts / width


def _runs(inside: Bools) -> list[tuple[int, int]]:
    """The first index of each run of true values, and the first after it."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], inside, [False]]).astype(np.int8)))
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))


def _join_runs(runs: list[tuple[int, int]], gap: int) -> list[tuple[int, int]]:
    """The runs with those joined that fewer than so many places separate."""
    joined: list[tuple[int, int]] = []
    for first, after in runs:
        if joined and first - joined[-1][1] < gap:
            joined[-1] = joined[-1][0], after
        else:
            joined.append((first, after))
    return joined


@lru_cache(maxsize=4)
def _phases(trace: Trace, sign: int) -> tuple[Sample, ...]:
    """Phases with more (1) or less (-1) than the usual rate: their gain, from their middle parts."""
    if WINDOW * trace.min_rtt_s * trace.capacity_bps / 8 / trace.packet_bytes < FEWEST_PACKETS:
        raise NotMeasuredError("a round trip has too few packets to see changes of the rate in it")
    times, rate = smooth_rate(trace)
    usual = float(np.median(rate))
    if usual == 0:
        raise NotMeasuredError("the sender was mostly silent")
    noticed = np.sort(trace.resolved_s[trace.lost])
    phases = []
    for first, after in _runs(sign * (rate / usual - 1) > GAIN):
        start, end = float(times[first]), float(times[after - 1])
        if end - start < LEAST_PHASE * trace.min_rtt_s or _lost_recently(noticed, trace, start, end):
            continue
        # Half of the smoothing at both ends belongs to the neighbouring phases too.
        margin = min((end - start) / 3, WINDOW * trace.min_rtt_s / 4)
        part = trace.sent_s[trace.slice_sent(start + margin, end - margin)]
        if len(part) >= FEWEST_PACKETS // 2:
            gain = (len(part) - 1) / (part[-1] - part[0]) / usual
            phases.append(Sample(float(gain), start, end, 1 / len(part)))
    return tuple(phases)


def _lost_recently(noticed_s: Floats, trace: Trace, start_s: float, end_s: float) -> bool:
    """True if a loss, of which the notices are given, may be the cause of what happens in an interval."""
    earliest = start_s - 4 * trace.min_rtt_s
    return bool(np.searchsorted(noticed_s, end_s) > np.searchsorted(noticed_s, earliest))


def measure_gain(trace: Trace) -> list[Sample]:
    """The rate in phases of probing, relative to the usual one."""
    phases = _phases(trace, 1)
    if len(phases) < 2:
        raise NotMeasuredError("the rate does not rise above the usual one for most of a round trip")
    return list(phases)


def measure_drain(trace: Trace) -> list[Sample]:
    """The rate in phases of draining, relative to the usual one."""
    phases = _phases(trace, -1)
    if len(phases) < 2:
        raise NotMeasuredError("the rate does not fall below the usual one for most of a round trip")
    return list(phases)


def measure_gain_period(trace: Trace) -> list[Sample]:
    """The time from one phase of probing to the next."""
    phases = measure_gain(trace)
    return [
        Sample(later.start_s - earlier.start_s, earlier.start_s, later.start_s, trace.min_rtt_s / STEPS)
        for earlier, later in pairwise(phases)
    ]


# -- dips ------------------------------------------------------------------------------------------


@lru_cache(maxsize=4)
def _dips(trace: Trace) -> tuple[tuple[float, float, float], ...]:
    """Times in which few bytes are in flight without a loss before, of which two within two round trips are
    the same: start, end, fewest packets."""
    step = trace.min_rtt_s / 4
    times = np.arange(SETTLED * trace.duration_s, trace.duration_s, step)
    sent = np.searchsorted(trace.sent_s, times, "right")
    resolved = np.searchsorted(np.sort(trace.resolved_s), times, "right")
    flight = (sent - resolved).astype(np.float64)
    noticed = np.sort(trace.resolved_s[trace.lost])
    dips = []
    for first, after in _join_runs(_runs(flight < DIP * np.median(flight)), 8):
        start, end = float(times[first]), float(times[after - 1])
        recent = np.searchsorted(noticed, start + step) - np.searchsorted(
            noticed, start - 2 * trace.min_rtt_s
        )
        if end - start >= trace.min_rtt_s / 2 and not recent and after < len(times):
            dips.append((start, end, float(flight[first:after].min())))
    return tuple(dips)


def _dips_or_none(trace: Trace) -> tuple[tuple[float, float, float], ...]:
    if not (dips := _dips(trace)):
        raise NotMeasuredError("the bytes in flight do not dip without a loss")
    return dips


def measure_dip_floor(trace: Trace) -> list[Sample]:
    """The fewest packets in flight in each dip."""
    return [Sample(fewest, start, end, 1.0) for start, end, fewest in _dips_or_none(trace)]


def measure_dip_length(trace: Trace) -> list[Sample]:
    """How long each dip lasts."""
    return [Sample(end - start, start, end, trace.min_rtt_s / 2) for start, end, _ in _dips_or_none(trace)]


def measure_dip_period(trace: Trace) -> list[Sample]:
    """The time from one dip to the next."""
    dips = _dips_or_none(trace)
    if len(dips) < 2:
        raise NotMeasuredError("there is one dip only")
    return [Sample(b[0] - a[0], a[0], b[0], trace.min_rtt_s / 2) for a, b in pairwise(dips)]


def measure_oscillation(trace: Trace) -> list[Sample]:
    """The period at which the bytes in flight repeat themselves, in smallest round trips."""
    step = trace.min_rtt_s / 4
    times = np.arange(SETTLED * trace.duration_s, trace.duration_s, step)
    index = np.minimum(np.searchsorted(trace.sent_s, times), len(trace.sent_s) - 1)
    flight = trace.in_flight[index]
    samples = []
    for part, (start, end) in zip(np.array_split(flight, 2), _halves(trace), strict=True):
        if (lag := find_period(part)) is not None:
            samples.append(Sample(lag * step / trace.min_rtt_s, start, end, 0.5))
    if not samples:
        raise NotMeasuredError("the bytes in flight have no period")
    return samples


def find_period(values: Floats) -> int | None:
    """The period of a series, in places; None without one.

    It is the first of the peaks between sign changes of the autocorrelation that is nearly as high as the
    highest (McLeod and Wyvill, "A smarter way to find pitch", ICMC 2005): that at twice the period may be
    higher by chance, and those of harmonics are much lower.
    """
    centred = values - values.mean()
    count = len(centred)
    spectrum = np.fft.rfft(centred, 2 * count)
    sums = np.fft.irfft(spectrum * spectrum.conj())[: count // 2]
    if not len(sums) or sums[0] <= 1e-9 * count:
        return None
    # Fewer products are summed at large lags.
    correlation = sums / sums[0] * count / (count - np.arange(len(sums)))
    falling = np.flatnonzero(correlation < 0)
    if len(falling) == 0:
        return None
    peaks = [
        first + int(correlation[first:after].argmax())
        for first, after in _runs(correlation > 0)
        # The first is that at lag 0, and the last may still rise.
        if first > falling[0] and after < len(correlation)
    ]
    if not peaks:
        return None
    heights = correlation[peaks]
    if heights.max() <= LEAST_CORRELATION:
        return None
    return peaks[int(np.flatnonzero(heights >= NEARLY * heights.max())[0])]


def _halves(trace: Trace) -> tuple[tuple[float, float], tuple[float, float]]:
    start, end = SETTLED * trace.duration_s, trace.duration_s
    return (start, (start + end) / 2), ((start + end) / 2, end)
