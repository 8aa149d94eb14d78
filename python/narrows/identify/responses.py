"""How a sender responds to the path: marks, steps of the rate or of the round trip, losses, another flow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from narrows.documents.identify import Span
from narrows.identify.rhythm import PARTS, SETTLED
from narrows.identify.samples import NotMeasuredError, Sample
from narrows.identify.trace import Floats, Trace

#: A fall of the window in a round, or two, by more than this share is more than jitter.
FALL = 0.03
#: A step counts as followed once this share of the new rate arrives, over this time.
REACHED, REACHED_OVER_S = 0.9, 0.2
#: The longest delay after a fall of the rate occurs within this time.
PEAK_WITHIN_S = 2.0
#: A queue counts as gone once less than this waits.
GONE_S = 0.01
#: Loss is tolerated if this share of the rate without loss remains.
TOLERATED = 0.9
#: Larger ratios of random loss lead to timeouts, which have no exponent.
LARGEST_FITTED = 0.03
#: Parts of the run of two flows: shares of a flow swing over seconds.
_SHARING_PARTS = 4
_S = 1e9


def measure_fall(trace: Trace) -> list[Sample]:
    """The share of the window that remains when it falls without a loss, in one round or in several."""
    windows, times = trace.round_windows, trace.round_times
    noticed = np.sort(trace.resolved_s[trace.lost])
    samples: list[Sample] = []
    index = int(np.searchsorted(times, SETTLED * trace.duration_s))
    while index + 2 < len(windows):
        lowest = index
        while step := _fall_from(windows, lowest):
            lowest += step
        if lowest == index:
            index += 1
            continue
        # The round in which the fall ends may have begun with the window before.
        if lowest + 1 < len(windows) and windows[lowest + 1] < windows[lowest]:
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


def _fall_from(windows: Floats, index: int) -> int:
    """The rounds, one or two, in which the window falls from a round on; 0 if it does not."""
    for rounds in (1, 2):
        if index + rounds < len(windows) and windows[index + rounds] < windows[index] * (1 - FALL):
            return rounds
    return 0


def _rates_beside(trace: Trace, count: int = PARTS) -> list[tuple[float, float, float, float]]:
    """The parts of the run: start, end, and the delivered rates of the flow and of all others."""
    if not len(trace.others_s):
        raise NotMeasuredError("no other flow sends")
    parts = []
    edges = np.linspace(SETTLED * trace.duration_s, trace.duration_s, count + 1)
    for start, end in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        inside = (trace.others_s >= start) & (trace.others_s < end)
        others = float(trace.others_bytes[inside].sum()) * 8 / (end - start)
        parts.append((start, end, trace.arrival_rate_bps(start, end), others))
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


def measure_rtt_bias(trace: Trace) -> list[Sample]:
    """The exponent e if rates are proportional to round trips to the power of -e: 0 if a longer way costs
    nothing, 1 if rates are inverse to round trips. Round trips are the fixed ones and the mean queueing
    delay, which both flows have at a common bottleneck."""
    samples = []
    for start, end, mine, others in _rates_beside(trace, _SHARING_PARTS):
        ratio = _ratio_of_round_trips(trace, start, end)
        if mine and others and np.isfinite(ratio):
            samples.append(Sample(float(np.log(mine / others) / ratio), start, end, 0.02))
    if not samples:
        raise NotMeasuredError("one of the flows delivers nothing in the steady part of the run")
    return samples


def list_shares(trace: Trace, exponents: Sequence[Span]) -> list[tuple[float, float, float]]:
    """The shares of the flow that exponents of round trips mean, with their seconds."""
    shares = []
    for span in exponents:
        start, end = float(span.from_s), float(span.to_s)
        odds = np.exp(float(span.value) * _ratio_of_round_trips(trace, start, end))
        shares.append((start, end, float(odds / (1 + odds))))
    return shares


def _ratio_of_round_trips(trace: Trace, start_s: float, end_s: float) -> float:
    """The logarithm of the ratio of the other flow's round trip to that of the flow."""
    mine_s, other_s = _base_round_trips(trace)
    waits = trace.queueing_s[trace.slice_sent(start_s, end_s)]
    queueing = float(np.nanmean(waits)) if np.isfinite(waits).any() else float("nan")
    return float(np.log((other_s + queueing) / (mine_s + queueing)))


def _base_round_trips(trace: Trace) -> tuple[float, float]:
    """The fixed round trips of the flow and of the only other one, in seconds."""
    if trace.settings is None:
        raise NotMeasuredError("a log does not contain the round trip of another flow")
    flows = [flow for flow in trace.settings.flows if not flow.background]
    if len(flows) != 2:
        raise NotMeasuredError("there are not two flows of the scheme")
    mine, other = (trace.settings.network.rtt_ns(flow) / _S for flow in flows)
    if mine == other:
        raise NotMeasuredError("both flows have the same round trip")
    return mine, other


def find_steps(trace: Trace, member: str) -> list[tuple[float, float]]:
    """The changes of a rate or a delay during the run: time, and new value in base units."""
    steps = []
    if trace.settings is None:
        raise NotMeasuredError(f"a log does not say whether the {member} of the path changes")
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
        counts = trace.bytes_until(edges)
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
        sent = trace.slice_sent(start, end)
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
            waits = trace.queueing_s[trace.slice_sent(start, start + PEAK_WITHIN_S)]
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
    before = trace.arrival_rate_bps(start / 2, start)
    samples = []
    edges = np.linspace(start + 2, until, PARTS + 1)
    for first, last in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        samples.append(Sample(trace.arrival_rate_bps(first, last) / before, first, last))
    return samples


# -- random loss -----------------------------------------------------------------------------------


def measure_loss_window(trace: Trace) -> list[Sample]:
    """The mean number of packets in flight, from the delivered rate and the mean round trip."""
    samples = []
    edges = np.linspace(SETTLED * trace.duration_s, trace.duration_s, PARTS + 1)
    for start, end in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        times = trace.rtt_s[trace.slice_sent(start, end)]
        if np.isfinite(times).any():
            packets = trace.arrival_rate_bps(start, end) / 8 / trace.packet_bytes
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
    """The configured ratio, the share of lost packets and the delivered rate in the steady part of a run."""

    ratio: float
    lost: float
    rate_bps: float
    start_s: float
    end_s: float


def loss_point(trace: Trace) -> LossPoint:
    """The point of a run."""
    start, end = SETTLED * trace.duration_s, trace.duration_s
    part = trace.lost[trace.slice_sent(start, end)]
    lost = float(part.mean()) if len(part) else 0.0
    return LossPoint(loss_ratio(trace) or 0.0, lost, trace.arrival_rate_bps(start, end), start, end)


def list_fitted(points: Sequence[LossPoint]) -> list[LossPoint]:
    """The points that an exponent is fitted to."""
    return [
        point
        for point in points
        if 0 < point.ratio <= LARGEST_FITTED and point.lost > 0 and point.rate_bps > 0
    ]


def find_tolerance(points: Sequence[LossPoint]) -> list[Sample]:
    """The largest probed ratio of loss up to which nine tenths of the rate without loss remain, apart from
    the lost packets themselves; 0 if the smallest ratio costs more."""
    ordered = sorted(points, key=lambda point: point.ratio)
    if len(ordered) < 2 or ordered[0].ratio > 0 or not ordered[0].rate_bps:
        raise NotMeasuredError("no run without random loss can be measured")
    whole = ordered[0]
    tolerated = whole.ratio
    for point in ordered[1:]:
        if point.rate_bps < TOLERATED * (1 - point.ratio) * whole.rate_bps:
            break
        tolerated = point.ratio
    return [Sample(tolerated, whole.start_s, whole.end_s)]


def fit_exponent(points: Sequence[LossPoint]) -> list[Sample]:
    """The exponent of throughput against loss from the points of one run at several ratios: 0 for a sender
    that loss does not slow down, 1/2 for Reno."""
    known = list_fitted(points)
    if len(known) < 2:
        raise NotMeasuredError("fewer than two ratios of random loss have losses")
    losses, rates = np.log([(point.lost, point.rate_bps) for point in known]).T
    centred = losses - losses.mean()
    exponent = -float((centred * rates).sum() / (centred**2).sum())
    return [Sample(exponent, known[0].start_s, known[0].end_s, 0.01)]
