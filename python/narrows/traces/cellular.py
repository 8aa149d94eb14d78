"""A seeded model of a fading cellular link.

It does not replay any network but combines textbook parts whose statistics are known, so that a scheme's
behaviour on it can be explained. Per millisecond (one LTE subframe):

1. **Shadowing** in dB is a Gauss-Markov process along the way travelled, R(x) = s^2 exp(-x/d)
   (Gudmundson, Electronics Letters 27(23), 1991; s and d of ITU-R M.2135-1 for urban macro cells without
   line of sight).
2. **Fast fading** of each part of the band is Rayleigh with Clarke's autocorrelation J0(2 pi f_d t)
   (Bell System Technical Journal 47(6), 1968), f_d = v f_c / c, as a sum of plane waves with random angles
   and phases.
3. The signal-to-noise ratio of each part picks a rung of LTE's ladder of modulation and coding
   (3GPP TS 36.213, table 7.2.3-1: efficiency per CQI); rung i is usable where 0.6 log2(1 + SNR), the
   attenuated Shannon bound of 3GPP TR 36.942 annex A, reaches its efficiency.
4. **Share**: the cell's other active users arrive as a Poisson process and stay for exponential times
   (M/M/infinity); with k of them the link has 1/(1 + k) of the cell.
5. **Outages**: a handover after each exponential distance, of fixed length, and longer gaps in coverage
   (exponential, a given share of the time).

The width of the band is chosen so that the trace has the requested mean rate.

The random stream (see `numbers`) and all arithmetic behind the ladder, which uses whole numbers, are
identical everywhere. Only the comparison of a ratio with a rung uses functions that may differ in the last
bit between machines; a trace would change only if a sample lay within 1e-15 of a rung.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from narrows.errors import UsageError
from narrows.traces.numbers import Numbers, Source
from narrows.traces.trace import NS_PER_MS, NS_PER_S, OPPORTUNITY_BITS, Integers, Opportunities, Rates

#: Bits per symbol of CQI 1 to 15, in ten thousandths: 3GPP TS 36.213, table 7.2.3-1.
_LOW = (1523, 2344, 3770, 6016, 8770, 11758, 14766, 19141)
_HIGH = (24063, 27305, 33223, 39023, 45234, 51152, 55547)
EFFICIENCIES: tuple[int, ...] = _LOW + _HIGH
#: Attenuation of Shannon's bound for real receivers: 3GPP TR 36.942, annex A.
ATTENUATION = 0.6
LIGHT_M_PER_S = 299_792_458.0
#: Plane waves per part of the band; with 16, the distribution of the envelope is close to Rayleigh's.
WAVES = 16
#: The model's step: a subframe of LTE.
STEP_NS = NS_PER_MS
LONGEST_STEPS = 4_000_000


@dataclass(frozen=True)
class Cellular:
    """Parameters of the model. `docs/guide/traces.md` has the sources of the defaults."""

    mean_bps: int = 5_000_000
    speed_m_per_s: float = 3 / 3.6
    carrier_hz: float = 2e9
    snr_db: float = 10.0
    shadow_db: float = 6.0
    shadow_m: float = 50.0
    parts: int = 4
    users: float = 1.0
    stay_s: float = 5.0
    handover_m: float = 500.0
    handover_s: float = 0.028
    outage: float = 0.0
    outage_s: float = 1.0

    def check(self) -> None:
        """Raises for parameters without meaning."""
        rules = (
            (self.mean_bps >= 1, "the mean rate must be more than 0"),
            (0 <= self.speed_m_per_s <= 200, "the speed must be between 0 and 200 m/s (720 km/h)"),
            (1e6 <= self.carrier_hz <= 1e12, "the carrier must be between 1 MHz and 1 THz"),
            (-20 <= self.snr_db <= 60, "the median signal-to-noise ratio must be between -20 and 60 dB"),
            (0 <= self.shadow_db <= 20, "the deviation of the shadowing must be between 0 and 20 dB"),
            (self.shadow_m > 0, "the distance of the shadowing must be more than 0"),
            (1 <= self.parts <= 64, "the parts of the band must be between 1 and 64"),
            (0 <= self.users <= 100, "the mean number of other users must be between 0 and 100"),
            (0.01 <= self.stay_s <= 3600, "the stay of users must be between 10 ms and 1 h"),
            (self.handover_m > 0, "the distance between handovers must be more than 0"),
            (0 <= self.handover_s <= 60, "the length of a handover must be between 0 and 60 s"),
            (0 <= self.outage <= 0.9, "the share of outages must be between 0 and 0.9"),
            (0.001 <= self.outage_s <= 600, "the length of outages must be between 1 ms and 600 s"),
        )
        for holds, text in rules:
            if not holds:
                raise UsageError(text)


def rungs() -> Numbers:
    """The signal-to-noise ratio (as a plain number) from which each CQI is usable."""
    return np.array([2.0 ** (efficiency / 1e4 / ATTENUATION) - 1 for efficiency in EFFICIENCIES])


def shadowing(model: Cellular, seed: int, steps: int) -> Numbers:
    """Shadowing in dB per step: a Gauss-Markov process along the distance travelled."""
    draws = Source(seed, "cellular/shadowing").normal(steps)
    moved = model.speed_m_per_s * STEP_NS / NS_PER_S
    keep = math.exp(-moved / model.shadow_m)
    news = draws * math.sqrt(1 - keep * keep)
    values = np.empty(steps)
    state = float(draws[0])
    values[0] = state
    for index in range(1, steps):
        state = keep * state + float(news[index])
        values[index] = state
    return values * model.shadow_db


def fading(model: Cellular, seed: int, part: int, steps: int) -> Numbers:
    """Power of the fast fading of one part of the band per step, with mean 1."""
    source = Source(seed, f"cellular/fading/{part}")
    # One angle in each of several equal sectors: the mean over seeds is Clarke's J0, and the waves never
    # bunch.
    angles = 2 * np.pi * (np.arange(WAVES) + source.uniform(WAVES)) / WAVES
    phases = 2 * np.pi * source.uniform(WAVES)
    doppler = model.speed_m_per_s * model.carrier_hz / LIGHT_M_PER_S
    time = np.arange(steps) * (STEP_NS / NS_PER_S)
    real, imaginary = np.zeros(steps), np.zeros(steps)
    for angle, phase in zip(angles.tolist(), phases.tolist(), strict=True):
        turn = (2 * np.pi * doppler * math.cos(angle)) * time + phase
        real += np.cos(turn)
        imaginary += np.sin(turn)
    return (real * real + imaginary * imaginary) / WAVES


def other_users(model: Cellular, seed: int, steps: int) -> Integers:
    """Number of other active users per step: M/M/infinity, starting from its stationary law."""
    source = Source(seed, "cellular/users")
    length = steps * STEP_NS / NS_PER_S
    changes = np.zeros(steps + 1, dtype=np.int64)
    # Users at the start: Poisson, counted as arrivals of a unit-rate process up to the mean.
    there, sum_of_gaps = 0, float(source.exponential(1)[0])
    while sum_of_gaps < model.users:
        there += 1
        sum_of_gaps += float(source.exponential(1)[0])
    changes[0] += there
    for left in (source.exponential(there) * model.stay_s).tolist():
        changes[min(steps, math.ceil(left * 1000))] -= 1
    now = 0.0
    while model.users > 0:
        gap, stay = source.exponential(2).tolist()
        now += gap * model.stay_s / model.users
        if now >= length:
            break
        changes[min(steps, math.ceil(now * 1000))] += 1
        changes[min(steps, math.ceil((now + stay * model.stay_s) * 1000))] -= 1
    return np.cumsum(changes[:steps])


def outages(model: Cellular, seed: int, steps: int) -> NDArray[np.bool_]:
    """True if the link is interrupted, per step."""
    lost = np.zeros(steps, dtype=np.bool_)
    length = steps * STEP_NS / NS_PER_S

    def mark(begin: float, end: float) -> None:
        lost[min(steps, math.ceil(begin * 1000)) : min(steps, math.ceil(end * 1000))] = True

    source = Source(seed, "cellular/handovers")
    now = 0.0
    while model.speed_m_per_s > 0 and model.handover_s > 0:
        now += float(source.exponential(1)[0]) * model.handover_m / model.speed_m_per_s
        if now >= length:
            break
        mark(now, now + model.handover_s)
    source = Source(seed, "cellular/outages")
    covered_s = model.outage_s * (1 - model.outage) / model.outage if model.outage else math.inf
    now = 0.0
    # The start is in an outage with the stationary probability.
    if model.outage and float(source.uniform(1)[0]) < model.outage:
        now = float(source.exponential(1)[0]) * model.outage_s
        mark(0.0, now)
    while model.outage:
        begin = now + float(source.exponential(1)[0]) * covered_s
        if begin >= length:
            break
        now = begin + float(source.exponential(1)[0]) * model.outage_s
        mark(begin, now)
    return lost


def efficiency(model: Cellular, seed: int, steps: int) -> Integers:
    """Sum over the parts of the band of the bits per symbol, in ten thousandths, per step."""
    median = 10 ** ((model.snr_db + shadowing(model, seed, steps)) / 10)
    ladder = np.array([0, *EFFICIENCIES], dtype=np.int64)
    total = np.zeros(steps, dtype=np.int64)
    for part in range(model.parts):
        total += ladder[np.searchsorted(rungs(), median * fading(model, seed, part, steps), side="right")]
    return total


def shares(model: Cellular, seed: int, length_ns: int) -> tuple[Integers, Integers]:
    """The share of the link per step, as numerators and denominators: efficiency / (1 + users), 0 during
    outages.
    """
    model.check()
    steps = length_ns // STEP_NS
    if not 1 <= steps <= LONGEST_STEPS:
        raise UsageError(f"the length must be between 1 ms and {LONGEST_STEPS // 1000} s")
    numerators = efficiency(model, seed, steps)
    numerators[outages(model, seed, steps)] = 0
    if not numerators.any():
        raise UsageError("the link is never usable with these values; raise the signal-to-noise ratio")
    return numerators, 1 + other_users(model, seed, steps)


def _cumulative(model: Cellular, seed: int, length_ns: int) -> list[int]:
    """Billionths of a bit delivered by the end of each step; the last value is mean rate times length."""
    numerators, denominators = shares(model, seed, length_ns)
    # 12 additional binary digits, so that the division by the number of users loses less than a millionth,
    # and the sum over the longest trace still fits 64 bits.
    weights = (numerators << 12) // denominators
    sums = np.cumsum(weights)
    total = int(sums[-1])
    whole = model.mean_bps * len(sums) * STEP_NS
    return [whole * int(value) // total for value in sums]


def rates(model: Cellular, seed: int, length_ns: int, bin_ns: int = 20 * NS_PER_MS) -> Rates:
    """The model as mean rates of bins."""
    if bin_ns < STEP_NS or bin_ns % STEP_NS:
        raise UsageError("the bins of a cellular trace must be whole milliseconds")
    sums = _cumulative(model, seed, length_ns)
    per_bin = bin_ns // STEP_NS
    times, numbers = [], []
    done = 0
    for first in range(0, len(sums), per_bin):
        last = min(first + per_bin, len(sums))
        span = (last - first) * STEP_NS
        rate = max(0, (2 * (sums[last - 1] - done) + span) // (2 * span))
        times.append(first * STEP_NS)
        numbers.append(rate)
        done += rate * span
    end = len(sums) * STEP_NS
    return Rates(np.array(times, dtype=np.int64), np.array(numbers, dtype=np.int64), end)


def opportunities(model: Cellular, seed: int, length_ns: int) -> Opportunities:
    """The model as opportunities: one at the end of each step in which another 1500 bytes have been
    delivered.
    """
    unit = OPPORTUNITY_BITS * NS_PER_S
    numbers = np.array([value // unit for value in _cumulative(model, seed, length_ns)], dtype=np.int64)
    counts = np.diff(numbers, prepend=0)
    times = np.repeat(np.arange(1, len(counts) + 1, dtype=np.int64), counts)
    # The last line of a mahimahi trace is its length.
    if not len(times) or times[-1] != len(counts):
        times = np.append(times, len(counts))
    return Opportunities(times)
