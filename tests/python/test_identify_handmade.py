"""Estimators of behaviour cards on traces that are written by hand, whose constants are known."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from narrows.identify import pauses, rhythm
from narrows.identify.responses import LossPoint, find_tolerance, fit_exponent, measure_fall
from narrows.identify.samples import NotMeasuredError
from narrows.identify.trace import Trace

RTT_S = 0.04


def send(windows: Sequence[float], silences_s: dict[int, float] | None = None) -> Trace:
    """A trace of a sender with these windows in its round trips, evenly paced and without any loss or queue;
    before some of the round trips it is silent."""
    sent: list[float] = []
    start = 0.0
    for number, window in enumerate(windows):
        start += (silences_s or {}).get(number, 0.0)
        sent += (start + np.arange(round(window)) * RTT_S / round(window)).tolist()
        start += RTT_S
    times = np.asarray(sent)
    arrived = times + RTT_S / 2
    return Trace(
        cell="by hand",
        settings=None,
        duration_s=start,
        sent_s=times,
        size_bytes=np.full(len(times), 1500.0),
        arrived_s=arrived,
        lost=np.zeros(len(times), bool),
        resolved_s=arrived + RTT_S / 2,
        answered_s=arrived,
        others_s=np.zeros(0),
        others_bytes=np.zeros(0),
    )


def cycle(*parts: Sequence[float], times: int) -> list[float]:
    return [window for _ in range(times) for part in parts for window in part]


# -- falls without loss ----------------------------------------------------------------------------


@pytest.mark.parametrize("rounds", [1, 2, 3, 6])
@pytest.mark.parametrize("factor", [0.5, 0.7, 0.85])
def test_a_fall_over_several_rounds_has_the_factor_of_all_of_them(factor: float, rounds: int) -> None:
    high = 120.0
    falling = [high * factor ** (step / rounds) for step in range(1, rounds + 1)]
    rising = np.linspace(high * factor, high, 30).tolist()
    # A round in which the window changes counts with its largest one, so that the lowest must last for three.
    trace = send(cycle([high] * 5, falling, [high * factor] * 3, rising, times=12))
    values = [float(sample.value) for sample in measure_fall(trace)]
    assert len(values) >= 8
    assert np.median(values) == pytest.approx(factor, abs=1.5 / high)
    assert max(abs(value - factor) for value in values) < 0.05


def test_a_steady_or_growing_window_does_not_fall() -> None:
    for windows in ([60.0] * 200, np.linspace(20, 200, 200).tolist()):
        with pytest.raises(NotMeasuredError, match="does not fall"):
            measure_fall(send(windows))


def test_a_ripple_below_the_limit_is_no_fall() -> None:
    with pytest.raises(NotMeasuredError, match="does not fall"):
        measure_fall(send(cycle([100.0], [98.0], times=120)))


# -- dips ------------------------------------------------------------------------------------------


def test_dips_have_their_floor_length_and_period() -> None:
    # Every 100 round trips 5 of 10 packets, among 80.
    trace = send(cycle([80.0] * 95, [10.0] * 5, times=8))
    assert np.median([float(s.value) for s in rhythm.measure_dip_period(trace)]) == pytest.approx(
        100 * RTT_S, abs=RTT_S / 2
    )
    assert np.median([float(s.value) for s in rhythm.measure_dip_floor(trace)]) == pytest.approx(10, abs=1)
    assert np.median([float(s.value) for s in rhythm.measure_dip_length(trace)]) == pytest.approx(
        5 * RTT_S, abs=RTT_S
    )


def test_a_dip_between_peaks_is_one_dip() -> None:
    # A peak of a single round trip inside, and one before and after: the window as ProbeRTT leaves it.
    dip = [120.0, *[8.0] * 3, 80.0, *[8.0] * 3, 120.0]
    trace = send(cycle([80.0] * 60, dip, times=8))
    periods = [float(sample.value) for sample in rhythm.measure_dip_period(trace)]
    assert np.median(periods) == pytest.approx(69 * RTT_S, abs=RTT_S / 2)
    assert len(periods) <= 7


def test_a_window_above_the_limit_of_dips_has_none() -> None:
    with pytest.raises(NotMeasuredError, match="do not dip"):
        rhythm.measure_dip_floor(send(cycle([80.0] * 20, [60.0] * 5, times=20)))


# -- periods ---------------------------------------------------------------------------------------

PERIOD = 50
_PHASE = 2 * np.pi * np.arange(1000) / PERIOD
SHAPES = {
    "sine": np.sin(_PHASE),
    "sawtooth": np.arange(1000) % PERIOD,
    # The second and third harmonics are as strong as the fundamental, or stronger.
    "second harmonic": np.sin(_PHASE) + np.sin(2 * _PHASE),
    "strong second harmonic": np.sin(_PHASE) + 1.5 * np.sin(2 * _PHASE + 1),
    "third harmonic": np.sin(_PHASE) + np.sin(3 * _PHASE),
    "pulses": (np.arange(1000) % PERIOD < 5).astype(float),
    "two unlike pulses": (np.arange(1000) % PERIOD < 5) + 0.5 * ((np.arange(1000) + 20) % PERIOD < 5),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("noise", [0.0, 0.2])
def test_the_period_of_an_oscillation_with_harmonics_is_that_of_its_fundamental(
    shape: str, noise: float
) -> None:
    for seed in range(10):
        disturbed = SHAPES[shape] / np.std(SHAPES[shape])
        disturbed = disturbed + noise * np.random.default_rng(seed).normal(size=1000)
        period = rhythm.find_period(40 + 10 * disturbed)
        assert period == pytest.approx(PERIOD, abs=2)


def test_twice_the_period_is_not_taken_though_it_repeats_better() -> None:
    # Every other tooth is a tenth lower, so that two of them repeat exactly and one does not.
    teeth = (np.arange(1000.0) % PERIOD) * np.where(np.arange(1000) // PERIOD % 2, 0.9, 1.0)
    assert rhythm.find_period(teeth) == pytest.approx(PERIOD, abs=2)


def test_noise_and_a_constant_have_no_period() -> None:
    assert rhythm.find_period(np.full(1000, 40.0)) is None
    generator = np.random.default_rng(1)
    assert all(rhythm.find_period(generator.normal(size=1000)) is None for _ in range(20))


def test_the_period_of_a_trace_is_in_round_trips() -> None:
    teeth = np.tile(np.linspace(40, 80, 25), 20)
    values = [float(sample.value) for sample in rhythm.measure_oscillation(send(teeth.tolist()))]
    assert values == pytest.approx([25, 25], abs=0.5)


# -- pauses ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("after", "word", "share"), [(80.0, "kept", 1.0), (20.0, "decayed", 0.25), (10.0, "reset", 0.125)]
)
def test_a_window_after_a_pause_is_kept_decayed_or_reset(after: float, word: str, share: float) -> None:
    growing = np.linspace(after, 80, 10).tolist()
    windows = cycle(growing, [80.0] * 10, times=6)
    trace = send(windows, dict.fromkeys(range(20, 120, 20), 0.6))
    assert [sample.value for sample in pauses.measure_reaction(trace)] == [word] * 5
    measured = [float(sample.value) for sample in pauses.measure_window(trace)]
    assert measured == pytest.approx([share] * 5, abs=1.5 / 80)


def test_small_windows_have_no_reaction_to_pauses_and_steady_ones_no_pauses() -> None:
    with pytest.raises(NotMeasuredError, match="fewer than 40 packets"):
        pauses.measure_reaction(send([20.0] * 40, {20: 0.6}))
    with pytest.raises(NotMeasuredError, match="never silent"):
        pauses.measure_window(send([20.0] * 40))


# -- random loss -----------------------------------------------------------------------------------


def points(rates: dict[float, float]) -> list[LossPoint]:
    return [LossPoint(ratio, ratio, rate, 2.0, 12.0) for ratio, rate in rates.items()]


@pytest.mark.parametrize(
    ("rates", "tolerated"),
    [
        # Lost packets themselves do not count: 0.95 of 10 Mbit/s arrive.
        ({0.0: 10e6, 0.001: 9.99e6, 0.02: 9.8e6, 0.05: 9.5e6, 0.15: 3e6}, 0.05),
        ({0.0: 10e6, 0.001: 8.9e6, 0.02: 2e6}, 0.0),
        # A ratio beyond one that costs more is chance.
        ({0.0: 10e6, 0.001: 9.9e6, 0.005: 8e6, 0.02: 9.7e6}, 0.001),
    ],
)
def test_tolerated_loss_is_the_last_ratio_at_which_the_rate_remains(
    rates: dict[float, float], tolerated: float
) -> None:
    assert find_tolerance(points(rates))[0].value == tolerated


def test_without_a_run_without_loss_no_tolerance_is_known() -> None:
    with pytest.raises(NotMeasuredError):
        find_tolerance(points({0.001: 9e6, 0.02: 8e6}))


def test_the_exponent_is_fitted_below_ratios_that_cause_timeouts() -> None:
    rates = {0.0: 20e6, **{ratio: 1e6 / ratio**0.5 for ratio in (0.001, 0.005, 0.02)}, 0.05: 1e5, 0.15: 1e4}
    assert fit_exponent(points(rates))[0].value == pytest.approx(0.5)
