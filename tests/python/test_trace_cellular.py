"""The cellular model has the statistics that its documentation promises."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from narrows.errors import UsageError
from narrows.traces import cellular
from narrows.traces.cellular import Cellular
from narrows.traces.statistics import measure
from narrows.traces.trace import NS_PER_MS, NS_PER_S

WALK = Cellular()
DRIVE = replace(WALK, speed_m_per_s=30 / 3.6)
STEPS = 60_000


def _bessel_j0(x: float) -> float:
    """J0 by its integral: the mean of cos(x sin a) over all angles."""
    angles = np.linspace(0, np.pi, 20_001)
    return float(np.cos(x * np.sin(angles))[:-1].mean())


def test_shadowing_is_gauss_markov() -> None:
    fast = replace(WALK, speed_m_per_s=50.0)  # a decorrelation distance per second
    paths = np.array([cellular.shadowing(fast, seed, STEPS) for seed in range(20)])
    assert paths.std() == pytest.approx(fast.shadow_db, rel=0.05)
    for lag in (250, 500, 1000):
        found = float((paths[:, lag:] * paths[:, :-lag]).mean()) / fast.shadow_db**2
        assert found == pytest.approx(np.exp(-lag / 1000), abs=0.06)


def test_fading_is_rayleigh_with_clarkes_memory() -> None:
    powers = np.array([cellular.fading(DRIVE, seed, 0, 20_000) for seed in range(60)])
    assert powers.mean() == pytest.approx(1.0, abs=0.03)
    # The power of a Rayleigh amplitude is exponential.
    for share in (0.1, 0.5, 0.9):
        assert float(np.quantile(powers, share)) == pytest.approx(-np.log(1 - share), rel=0.08)
    # Its autocovariance is the square of that of the amplitudes, J0(2 pi f_d t).
    doppler = DRIVE.speed_m_per_s * DRIVE.carrier_hz / cellular.LIGHT_M_PER_S
    assert doppler == pytest.approx(55.6, abs=0.1)
    centred = powers - 1
    for lag in (2, 5, 7, 10):
        found = float((centred[:, lag:] * centred[:, :-lag]).mean())
        assert found == pytest.approx(_bessel_j0(2 * np.pi * doppler * lag / 1000) ** 2, abs=0.08)


def test_parts_of_the_band_fade_independently() -> None:
    one, other = (
        np.concatenate([cellular.fading(DRIVE, seed, part, 20_000) for seed in range(20)]) for part in (0, 1)
    )
    assert abs(np.corrcoef(one, other)[0, 1]) < 0.05


def test_users_are_a_poisson_number_that_forgets() -> None:
    busy = replace(WALK, users=2.0, stay_s=1.0)
    counts = np.array([cellular.other_users(busy, seed, STEPS) for seed in range(30)])
    assert counts.min() >= 0
    assert counts.mean() == pytest.approx(2.0, abs=0.15)
    assert counts.var() == pytest.approx(2.0, abs=0.3)
    centred = counts - counts.mean()
    found = float((centred[:, 1000:] * centred[:, :-1000]).mean() / centred.var())
    assert found == pytest.approx(np.exp(-1), abs=0.08)
    assert counts[:, 0].mean() == pytest.approx(2.0, abs=0.8)
    assert not cellular.other_users(replace(WALK, users=0.0), 1, STEPS).any()


def test_outages_take_their_share() -> None:
    patchy = replace(WALK, speed_m_per_s=0.0, outage=0.1, outage_s=0.5)
    lost = np.array([cellular.outages(patchy, seed, STEPS) for seed in range(60)])
    assert lost.mean() == pytest.approx(0.1, abs=0.015)
    begins = np.count_nonzero(np.diff(lost.astype(int), axis=1) == 1)
    assert lost.sum() / begins / 1000 == pytest.approx(0.5, abs=0.08)


def test_handovers_come_with_the_distance() -> None:
    train = replace(WALK, speed_m_per_s=50.0, handover_m=500.0, handover_s=0.028)
    lost = np.array([cellular.outages(train, seed, STEPS) for seed in range(60)])
    # One in 10 s, 28 ms long.
    assert lost.mean() == pytest.approx(0.0028, rel=0.15)
    runs = np.diff(np.flatnonzero(np.diff(lost.astype(int).ravel())))[::2]
    assert np.median(runs) == 28


def test_the_ladder_follows_the_attenuated_bound() -> None:
    found = cellular.rungs()
    assert np.all(np.diff(found) > 0)
    assert 10 * np.log10(found[[0, -1]]) == pytest.approx([-7.16, 27.86], abs=0.01)
    good = replace(WALK, snr_db=60.0)
    assert cellular.efficiency(good, 1, 100).max() == good.parts * cellular.EFFICIENCIES[-1]
    assert cellular.efficiency(replace(WALK, snr_db=-20.0, shadow_db=0), 1, 5000).min() == 0


@pytest.mark.parametrize("model", [WALK, DRIVE, replace(DRIVE, outage=0.2, users=3.0, mean_bps=777_777)])
def test_the_mean_is_the_requested_one(model: Cellular) -> None:
    length = 20 * NS_PER_S
    rates = cellular.rates(model, 3, length)
    # Half a bit per second of the last bin.
    assert rates.mean_bps == pytest.approx(model.mean_bps, abs=1)
    found = cellular.opportunities(model, 3, length)
    assert found.length_ns == length
    assert abs(found.mean_bps - model.mean_bps) <= 12_000 / 20
    # Both forms are the same link: at most one opportunity apart at the end of any bin.
    passed = np.cumsum(rates.rate_bps * (20 * NS_PER_MS)) / NS_PER_S
    edges = (rates.time_ns + 20 * NS_PER_MS) // NS_PER_MS
    counted = np.searchsorted(found.times_ms, edges, side="right") * 12_000
    gaps = (passed - counted)[:-1]  # the last opportunity marks the end, due or not
    assert np.all(gaps > -2)
    assert np.all(gaps < 12_002)


def test_statistics_that_the_guide_states() -> None:
    """Medians over the seeds 1 to 12 of 60 s; the table in docs/guide/traces.md."""
    for model, wanted in (
        (WALK, (0.55, 0.35, 0.83, 2.17, 3.25)),
        (DRIVE, (0.65, 0.20, 0.84, 2.27, 3.25)),
        (replace(WALK, users=0.0), (0.31, 0.51, 0.98, 1.54, 7.05)),
    ):
        found = []
        for seed in range(1, 13):
            one = measure(cellular.rates(model, seed, 60 * NS_PER_S))
            window = one.windows["100 ms"]
            shares = [window[f"p{p}_bps"] / model.mean_bps for p in (5, 50, 95)]
            found.append([window["variation"], *shares, one.autocorrelation_time_s or np.nan])
        assert np.nanmedian(np.array(found), axis=0) == pytest.approx(wanted, rel=0.03)


def test_the_seed_decides() -> None:
    one, same, other = (cellular.rates(DRIVE, seed, NS_PER_S) for seed in (1, 1, 2))
    assert one.rate_bps.tolist() == same.rate_bps.tolist()
    assert one.rate_bps.tolist() != other.rate_bps.tolist()


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"speed_m_per_s": -1.0}, "the speed must be between 0 and 200 m/s"),
        ({"parts": 0}, "the parts of the band must be between 1 and 64"),
        ({"outage": 1.0}, "the share of outages must be between 0 and 0.9"),
        ({"snr_db": float("nan")}, "the median signal-to-noise ratio must be between"),
    ],
)
def test_senseless_values_are_refused(values: dict[str, float], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        cellular.rates(replace(WALK, **values), 1, NS_PER_S)  # type: ignore[arg-type]


def test_lengths_and_bins_have_limits() -> None:
    with pytest.raises(UsageError, match="the length must be between 1 ms and 4000 s"):
        cellular.rates(WALK, 1, 5000 * NS_PER_S)
    with pytest.raises(UsageError, match="must be whole milliseconds"):
        cellular.rates(WALK, 1, NS_PER_S, NS_PER_MS + 1)
    with pytest.raises(UsageError, match="never usable with these values"):
        cellular.rates(replace(WALK, snr_db=-20.0, shadow_db=0.0), 1, 2 * NS_PER_MS)
