"""How a sender responds to the path: marks, steps of the rate or of the round trip, losses, a competitor."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from narrows.identify.rhythm import PARTS, SETTLED
from narrows.identify.samples import NotMeasuredError, Sample
from narrows.identify.trace import Trace

#: A fall of the window in a round, or two, by more than this share is more than jitter.
FALL = 0.03
#: A step counts as followed once this share of the new rate arrives, over this time.
REACHED, REACHED_OVER_S = 0.9, 0.2
#: The longest delay after a fall of the rate occurs within this time.
PEAK_WITHIN_S = 2.0
#: A queue counts as gone once less than this waits.
GONE_S = 0.01
_S = 1e9


def measure_fall(trace: Trace) -> list[Sample]:
    """The share of the window that remains when it falls without a loss, in one round or in several."""
    windows, times = trace.round_windows, trace.round_times
    noticed = np.sort(trace.resolved_s[trace.lost])
    falling = windows[1:] < windows[:-1] * (1 - FALL)
    samples: list[Sample] = []
    index = int(np.searchsorted(times, SETTLED * trace.duration_s))
    while index + 2 < len(windows):
        if not (falling[index] or windows[index + 2] < windows[index] * (1 - FALL)):
            index += 1
            continue
        lowest = index + (1 if falling[index] else 2)
        while lowest < len(falling) and falling[lowest]:
            lowest += 1
        start, end = float(times[index]), float(times[lowest])
        rtt = float(times[index + 1]) - start
        lost = np.searchsorted(noticed, end + rtt) - np.searchsorted(noticed, start - 2 * rtt)
        if not lost:
            before = float(windows[index])
            samples.append(Sample(float(windows[lowest]) / before, start, end, 1 / before))
        index = lowest
    if not samples:
        raise NotMeasuredError("the window does not fall without a loss")
    return samples


def _rates_beside(trace: Trace) -> list[tuple[float, float, float, float]]:
    """The parts of the run: start, end, and the delivered rates of the flow and of all others."""
    if not len(trace.others_s):
        raise NotMeasuredError("no other flow sends")
    parts = []
    edges = np.linspace(SETTLED * trace.duration_s, trace.duration_s, PARTS + 1)
    for start, end in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        inside = (trace.others_s >= start) & (trace.others_s < end)
        others = float(trace.others_bytes[inside].sum()) * 8 / (end - start)
        parts.append((start, end, trace.arrived_bps(start, end), others))
    return parts


def measure_share(trace: Trace) -> list[Sample]:
    """The share of the delivered data that belongs to the flow."""
    return [
        Sample(mine / (mine + others), start, end)
        for start, end, mine, others in _rates_beside(trace)
        if mine + others
    ]


def measure_harm(trace: Trace) -> list[Sample]:
    """The share of the rate that the other flow would have alone, and does not get (Ware et al., HotNets
    2019)."""
    alone = rate_alone(trace)
    if not alone:
        raise NotMeasuredError("nothing is delivered in the steady part of the run")
    return [
        Sample((alone - others) / alone, start, end, 0.01) for start, end, _, others in _rates_beside(trace)
    ]


def rate_alone(trace: Trace) -> float:
    """The rate that the other flow would have alone: the largest that both have together."""
    return max(mine + others for _, _, mine, others in _rates_beside(trace))


def find_steps(trace: Trace, member: str) -> list[tuple[float, float]]:
    """The changes of a rate or a delay during the run: time, and new value in base units."""
    steps = []
    if trace.settings is None:
        raise NotMeasuredError(f"a log does not tell whether the {member} of the path changes")
    for change in trace.settings.timeline:
        part = change.values.part(member) if member == "rate" else None
        value = part.number(member) if part is not None else change.values.number(member)
        if value is not None:
            steps.append((change.at_ns / _S, float(value)))
    if not steps:
        raise NotMeasuredError(f"the {member} of the path does not change")
    return [*steps, (trace.duration_s, float("nan"))]


def measure_rise(trace: Trace) -> list[Sample]:
    """The time from a rise of the rate until nine tenths of it arrive."""
    steps = find_steps(trace, "rate")
    samples = []
    for (_, before), (start, rate), (end, _) in zip(steps, steps[1:], steps[2:], strict=False):
        if rate <= before:
            continue
        edges = np.arange(start, end, REACHED_OVER_S / 4)
        counts = trace.arrived_bytes_until(edges)
        rates = (counts[4:] - counts[:-4]) * 8 / REACHED_OVER_S
        reached = np.flatnonzero(rates >= REACHED * rate)
        if len(reached):
            time = float(edges[reached[0]] - start)
            samples.append(Sample(time, start, float(edges[reached[0] + 4]), REACHED_OVER_S / 4))
    if not samples:
        raise NotMeasuredError("nine tenths of the new rate are not reached")
    return samples


def measure_clearing(trace: Trace) -> list[Sample]:
    """The time after a fall of the rate until the queue is short again, after its peak."""
    steps = find_steps(trace, "rate")
    samples = []
    before = float("inf")
    for (start, rate), (end, _) in pairwise(steps):
        sent = trace.sent_between(start, end)
        waits = trace.queueing_s[sent]
        early = waits[trace.sent_s[sent] < start + PEAK_WITHIN_S]
        if rate < before and np.isfinite(early).any():
            peak = int(np.nanargmax(early))
            # Comparisons with the delay of lost packets, which is unknown, are false.
            short = np.flatnonzero(waits[peak:] < GONE_S)
            if len(short):
                gone = float(trace.sent_s[sent][peak + short[0]])
                samples.append(Sample(gone - start, start, gone, trace.min_rtt_s / 4))
        before = rate
    if not samples:
        raise NotMeasuredError("the queue is never short after the fall")
    return samples


def measure_peak(trace: Trace) -> list[Sample]:
    """The longest queueing delay in the two seconds after a fall of the rate."""
    samples = []
    before = float("inf")
    for start, rate in find_steps(trace, "rate")[:-1]:
        if rate < before:
            waits = trace.queueing_s[trace.sent_between(start, start + PEAK_WITHIN_S)]
            if np.isfinite(waits).any():
                samples.append(Sample(float(np.nanmax(waits)), start, start + PEAK_WITHIN_S, 0.001))
        before = rate
    if not samples:
        raise NotMeasuredError("the sender was silent after the fall")
    return samples


def measure_after_delay(trace: Trace) -> list[Sample]:
    """The delivered rate from two seconds after a rise of the delay on, as a share of the rate before."""
    steps = find_steps(trace, "delay")
    start, until = steps[0][0], steps[1][0]
    before = trace.arrived_bps(start / 2, start)
    samples = []
    edges = np.linspace(start + 2, until, PARTS + 1)
    for first, last in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        samples.append(Sample(trace.arrived_bps(first, last) / before, first, last))
    return samples


# -- random loss -----------------------------------------------------------------------------------


def measure_loss_window(trace: Trace) -> list[Sample]:
    """The mean number of packets in flight, from the delivered rate and the mean round trip."""
    samples = []
    edges = np.linspace(SETTLED * trace.duration_s, trace.duration_s, PARTS + 1)
    for start, end in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        times = trace.rtt_s[trace.sent_between(start, end)]
        if np.isfinite(times).any():
            packets = trace.arrived_bps(start, end) / 8 / trace.packet_bytes
            samples.append(Sample(packets * float(np.nanmean(times)), start, end, 0.5))
    if not samples:
        raise NotMeasuredError("the sender was silent")
    return samples


def loss_ratio(trace: Trace) -> float | None:
    """The random loss that is configured on the way of the data, in the first element that has any."""
    if trace.settings is None:
        return None
    flow = next(flow for flow in trace.settings.flows if not flow.background)
    for element in trace.settings.network.ways(flow)[0]:
        if element.kind == "loss":
            ratio = element.number("ratio")
            return None if ratio is None else float(ratio)
    return None


@dataclass(frozen=True, slots=True)
class LossPoint:
    """The share of lost packets and the delivered rate in the steady part of a run."""

    lost: float
    rate_bps: float
    start_s: float
    end_s: float


def loss_point(trace: Trace) -> LossPoint:
    """The point of a run."""
    start, end = SETTLED * trace.duration_s, trace.duration_s
    part = trace.lost[trace.sent_between(start, end)]
    lost = float(part.mean()) if len(part) else 0.0
    return LossPoint(lost, trace.arrived_bps(start, end), start, end)


def fit_exponent(points: list[LossPoint]) -> list[Sample]:
    """The exponent of throughput against loss from the points of one run at several ratios: 0 for a sender
    that loss does not slow down, 1/2 for Reno."""
    known = [point for point in points if point.lost > 0 and point.rate_bps > 0]
    if len(known) < 2:
        raise NotMeasuredError("fewer than two ratios of random loss have losses")
    losses, rates = np.log([(point.lost, point.rate_bps) for point in known]).T
    centred = losses - losses.mean()
    exponent = -float((centred * rates).sum() / (centred**2).sum())
    return [Sample(exponent, known[0].start_s, known[0].end_s, 0.01)]
