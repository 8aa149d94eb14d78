"""How the window falls and grows back: loss episodes, decreases, and the law of growth between them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np

from narrows.identify.samples import NotMeasuredError, Sample
from narrows.identify.trace import Floats, Trace

#: Rounds that a fit of the law of growth needs.
FEWEST_ROUNDS = 8
#: Standard deviation of the windows of rounds around a law, in packets.
NOISE_PACKETS = 0.5
#: A law with a further constant must explain this much more (twice the logarithm of the likelihood).
PENALTY = 6.0
#: By how much the window may exceed the sender's: limited transmit (RFC 3042), a packet per acknowledgement.
UNCERTAIN_PACKETS = 1.5
#: Losses in this share of the run may still belong to slow start.
AFTER_START = 0.1
#: A window that grows by fewer packets per round does not grow.
LEAST_LINEAR = 0.05
#: The constant of a cubic is known only if the plateau lies in this part of the growth.
PLATEAU_SEEN = 0.85
#: A window that fell below this share went through a timeout, which is another rule than the decrease.
LEAST_DECREASE = 0.2


@dataclass(frozen=True, slots=True)
class Episode:
    """Losses that a sender answers at once: from noticing the first until the first packet that it sent
    afterwards is acknowledged. Windows are in packets."""

    noticed_s: float
    ended_s: float
    before: float
    after: float
    losses: int

    @property
    def ratio(self) -> float:
        """The share of the window that remains."""
        return self.after / self.before


@lru_cache(maxsize=2)
def list_episodes(trace: Trace) -> tuple[Episode, ...]:
    """The loss episodes of a trace in order."""
    noticed = np.sort(trace.resolved_s[trace.lost])
    noticed = noticed[np.isfinite(noticed)]
    episodes: list[Episode] = []
    index = 0
    while index < len(noticed):
        start = float(noticed[index])
        end = _end_of_recovery(trace, start)
        following = int(np.searchsorted(noticed, end, "right"))
        # Packets sent during recovery may be lost too; losses that are noticed soon after belong to it.
        if end < trace.duration_s:
            rtt = end - start
            before = trace.in_flight[trace.slice_sent(start - rtt, start)]
            after = trace.in_flight[trace.slice_sent(end, end + rtt / 2)]
            if len(before) and len(after):
                episodes.append(
                    Episode(start, end, float(before.max()), float(np.median(after)), following - index)
                )
        index = max(following, index + 1)
    return tuple(episodes)


def _end_of_recovery(trace: Trace, start_s: float) -> float:
    first = trace.first_after(start_s)
    later = trace.resolved_s[first:]
    return float(later.min()) if len(later) else float("inf")


def measure_decrease(trace: Trace) -> list[Sample]:
    """The share of the window that remains after each loss episode in congestion avoidance."""
    episodes = list_episodes(trace)
    if not episodes:
        raise NotMeasuredError("no packet was lost")
    samples = [
        Sample(episode.ratio, episode.noticed_s, episode.ended_s, UNCERTAIN_PACKETS / episode.before)
        for earlier, episode in pairwise(episodes)
        # Losses in or just after a recovery follow from the same overload.
        if episode.ratio >= LEAST_DECREASE
        and episode.noticed_s > max(2 * earlier.ended_s - earlier.noticed_s, AFTER_START * trace.duration_s)
    ]
    if not samples:
        raise NotMeasuredError("the only losses are those at the end of slow start")
    return samples


# -- growth ----------------------------------------------------------------------------------------


LINEAR, EXPONENTIAL, CUBIC, CONVEX, FLAT = "linear", "exponential", "cubic", "convex", "flat"
UNCLEAR = "linear or exponential"


@dataclass(frozen=True, slots=True)
class Growth:
    """A part of a run without losses, and its fits."""

    start_s: float
    end_s: float
    rounds: float
    #: By law, the penalised error in units of the noise; infinite for a law that is impossible here.
    costs: dict[str, float]
    #: By law, its constant (packets per round, share per round, packets per s^3), if it can be known.
    constants: dict[str, float]
    #: By law, the change of the constant by one packet more or less at an end of the part.
    resolutions: dict[str, float]
    #: The ends of its rounds, and the windows there by each law.
    times_s: Floats
    curves: dict[str, Floats]


@lru_cache(maxsize=2)
def list_growths(trace: Trace) -> tuple[Growth, ...]:
    """The growth between loss episodes, slow start excluded."""
    growths = []
    for earlier, later in pairwise(list_episodes(trace)):
        inside = (trace.round_times >= earlier.ended_s) & (trace.round_times < later.noticed_s)
        # The window still rests in the first round after a recovery; the last one has the loss.
        chosen = np.flatnonzero(inside)[1:-1]
        if len(chosen) >= FEWEST_ROUNDS:
            # The largest window of a round is that at its end.
            times = trace.round_times[chosen + 1] - earlier.noticed_s
            windows = trace.round_windows[chosen]
            # Rounds by the data that were sent: one may be a packet or two longer than its window.
            rounds = np.cumsum(np.diff(trace.rounds)[chosen] / windows)
            growths.append(_fit(times, rounds, windows, earlier.noticed_s, later.noticed_s))
    return tuple(growths)


def _fit(times: Floats, rounds: Floats, windows: Floats, start_s: float, end_s: float) -> Growth:
    """The fits of all laws."""
    linear, straight = _solve([rounds], windows)
    logarithmic, logarithms = _solve([rounds], np.log(windows))
    plateau, cubic = _fit_cubic(times, windows)
    square, parabola = _solve([times, times**2], windows)
    cubes = cubic * (times - plateau) ** 3
    curves = {
        LINEAR: straight,
        EXPONENTIAL: np.exp(logarithms),
        CUBIC: cubes - cubes.mean() + windows.mean(),
        CONVEX: parabola,
    }
    possible = {CUBIC: cubic > 0 and plateau > 0, CONVEX: square[2] > 0}
    errors = {
        law: float(((windows - curve) ** 2).sum()) if possible.get(law, True) else float("inf")
        for law, curve in curves.items()
    }
    penalties = {CUBIC: PENALTY, CONVEX: PENALTY}
    length = float(rounds[-1] - rounds[0])
    constants = {LINEAR: float(linear[1]), EXPONENTIAL: float(np.expm1(logarithmic[1]))}
    resolutions = {LINEAR: 1 / length, EXPONENTIAL: 1 / length / float(windows.mean())}
    if plateau < PLATEAU_SEEN * times[-1]:
        constants[CUBIC] = cubic
        resolutions[CUBIC] = 1 / float(np.ptp((times - plateau) ** 3))
    costs = {law: error / NOISE_PACKETS**2 + penalties.get(law, 0) for law, error in errors.items()}
    return Growth(start_s, end_s, length, costs, constants, resolutions, start_s + times, curves)


def _solve(columns: list[Floats], values: Floats) -> tuple[list[float], Floats]:
    """Coefficients of least squares, the constant first, and the fitted values."""
    matrix = np.column_stack([np.ones(len(values)), *columns])
    solution = np.asarray(np.linalg.lstsq(matrix, values, rcond=None)[0], np.float64)
    return solution.tolist(), np.asarray(matrix @ solution, np.float64)


def _fit_cubic(times: Floats, windows: Floats) -> tuple[float, float]:
    """W = C (t - K)^3 + W_max by least squares for each of many K: K and C."""
    candidates = np.linspace(-0.5, 1.5, 401) * times[-1]
    cubes = (times[None, :] - candidates[:, None]) ** 3
    cubes -= cubes.mean(axis=1, keepdims=True)
    centred = windows - windows.mean()
    slopes = (cubes @ centred) / (cubes**2).sum(axis=1)
    errors = ((centred[None, :] - slopes[:, None] * cubes) ** 2).sum(axis=1)
    best = int(errors.argmin())
    return float(candidates[best]), float(slopes[best])


def measure_law(trace: Trace) -> list[Sample]:
    """The law by which the window grows after decreases, as a word: that with the smallest error in all parts
    of the run together."""
    growths = list_growths(trace)
    if not growths:
        raise NotMeasuredError(f"no {FEWEST_ROUNDS} rounds of growth between two losses")
    return [Sample(_law(growths), growths[0].start_s, growths[-1].end_s)]


def _law(growths: tuple[Growth, ...]) -> str:
    rounds = sum(growth.rounds for growth in growths)
    grown = sum(growth.constants[LINEAR] * growth.rounds for growth in growths)
    if grown < LEAST_LINEAR * rounds:
        return FLAT
    costs = {law: sum(growth.costs[law] for growth in growths) for law in growths[0].costs}
    law = min(costs, key=costs.__getitem__)
    unclear = law in (LINEAR, EXPONENTIAL) and abs(costs[LINEAR] - costs[EXPONENTIAL]) < PENALTY
    return UNCLEAR if unclear else law


def curves_of(growths: tuple[Growth, ...]) -> list[tuple[Floats, Floats]]:
    """The fitted windows over time by the law of all parts."""
    law = _law(growths)
    drawn = law if law in growths[0].curves else LINEAR
    return [(growth.times_s, growth.curves[drawn]) for growth in growths]


def _constants(law: str) -> Callable[[Trace], list[Sample]]:
    def measure(trace: Trace) -> list[Sample]:
        measured = measure_law(trace)[0].value
        if measured != law:
            raise NotMeasuredError(f"the law of growth is {measured}")
        samples = [
            Sample(growth.constants[law], growth.start_s, growth.end_s, growth.resolutions[law])
            for growth in list_growths(trace)
            if law in growth.constants
        ]
        if not samples:
            raise NotMeasuredError("no part of the run extends beyond the plateau")
        return samples

    return measure


measure_linear = _constants(LINEAR)
measure_exponential = _constants(EXPONENTIAL)
measure_cubic = _constants(CUBIC)


#: The queue is empty while less than this share of the smallest round trip waits.
EMPTY_QUEUE = 0.1
#: Rounds with an empty queue that a growth needs.
FEWEST_EMPTY = 5


def measure_empty_growth(trace: Trace) -> list[Sample]:
    """The packets per round by which the window grows after a loss while the queue is empty."""
    samples = []
    episodes = list_episodes(trace)
    for earlier, later in pairwise(episodes):
        inside = (trace.round_times >= earlier.ended_s) & (trace.round_times < later.noticed_s)
        # The window still rests in the first round after a recovery.
        chosen = np.flatnonzero(inside)[1:-1]
        waits = [
            np.nanmax(part)
            if np.isfinite(part := trace.queueing_s[_packets_of(trace, index)]).any()
            else np.inf
            for index in chosen
        ]
        waiting = np.flatnonzero(np.asarray(waits) > EMPTY_QUEUE * trace.min_rtt_s)
        chosen = chosen[: waiting[0]] if len(waiting) else chosen
        if len(chosen) < FEWEST_EMPTY:
            continue
        rounds = np.arange(len(chosen), dtype=np.float64)
        slope = _solve([rounds], trace.round_windows[chosen])[0][1]
        start, end = float(trace.round_times[chosen[0]]), float(trace.round_times[chosen[-1] + 1])
        samples.append(Sample(max(0.0, slope), start, end, 1 / (len(chosen) - 1)))
    if not samples:
        raise NotMeasuredError(f"the queue is not empty for {FEWEST_EMPTY} rounds between two losses")
    return samples


def _packets_of(trace: Trace, index: int) -> slice:
    """The packets of a round."""
    return slice(int(trace.rounds[index]), int(trace.rounds[index + 1]))


# -- slow start ------------------------------------------------------------------------------------

#: A round in which the window grows by less than this factor does not belong to slow start.
LEAST_GROWTH = 1.25
#: Slow start begins within this many rounds: some schemes first wait for a measurement.
LATEST_START = 5


def find_slow_start(trace: Trace) -> tuple[int, int]:
    """The first and the last round of slow start: from the first round after which the window grows until it
    has grown by less than a quarter in two rounds in a row."""
    windows = trace.round_windows
    fast = windows[1:] >= LEAST_GROWTH * windows[:-1]
    began = np.flatnonzero(fast[:LATEST_START])
    if not len(began):
        return 0, 0
    first = int(began[0])
    slow = ~fast[first:]
    both = np.flatnonzero(slow[:-1] & slow[1:])
    return first, first + int(both[0]) if len(both) else len(windows) - 1


def measure_start(trace: Trace) -> list[Sample]:
    """The factor by which the window grows per round of slow start, without the round in which it ends."""
    first, last = find_slow_start(trace)
    windows, times = trace.round_windows, trace.round_times
    lost = trace.resolved_s[trace.lost]
    until = float(lost.min()) if len(lost) else float("inf")
    # A loss, or the end, may have cut the last round short.
    while last > first and (times[min(last + 1, len(times) - 1)] > until or last == len(windows) - 1):
        last -= 1
    rounds = last - 1 - first
    if rounds < 1:
        raise NotMeasuredError("slow start lasted less than two rounds")
    growth = float(windows[last - 1] / windows[first]) ** (1 / rounds)
    resolution = growth / rounds / float(windows[first])
    return [Sample(growth, float(times[first]), float(times[last]), resolution)]


def measure_exit(trace: Trace) -> list[Sample]:
    """The event that ended slow start: a loss, a queue, or neither."""
    last, times = find_slow_start(trace)[1], trace.round_times
    end = float(times[min(last + 1, len(times) - 1)])
    lost = trace.resolved_s[trace.lost]
    if len(lost) and float(lost.min()) <= end + 2 * trace.min_rtt_s:
        return [Sample("loss", 0.0, end)]
    waited = trace.queueing_s[trace.slice_sent(float(times[max(last - 1, 0)]), end)]
    queued = len(waited) > 0 and float(np.nanmax(waited)) > 0.1 * trace.min_rtt_s
    return [Sample("queue" if queued else "no signal", 0.0, end)]


def measure_exit_window(trace: Trace) -> list[Sample]:
    """The window at the end of slow start, in bandwidth-delay products."""
    last = find_slow_start(trace)[1]
    product = trace.capacity_bps * trace.min_rtt_s / 8 / trace.packet_bytes
    times = trace.round_times
    peak = float(trace.round_windows[: last + 2].max())
    return [Sample(peak / product, 0.0, float(times[min(last + 1, len(times) - 1)]), 1 / product)]
