"""`narrows calibrate`: its paths, its arithmetic, its surrogate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path as File
from typing import Any

import numpy as np
import pytest

from narrows.calibrate import round_paths
from narrows.calibrate import table as tables
from narrows.calibrate.paths import (
    BASIC,
    BYTES,
    CONSTANT,
    DELAY,
    FEATURES,
    LOSS,
    OFFSET,
    POISSON,
    QUEUE,
    RATE,
    Path,
    Space,
    Workload,
    interval_ns,
    scenario_text,
)
from narrows.calibrate.start import bounds
from narrows.calibrate.surrogate import Surrogate
from narrows.calibrate.targets import Objective, floor_of, targets_of
from narrows.scenario.loading import load, load_text


def test_every_feature_makes_a_scenario_that_loads(tmp_path: File) -> None:
    basic = {"rate": 2e6, "delay": 30e6, "queue": 40.0, "loss": 0.01}
    for name, feature in FEATURES.items():
        own = {one.name: one.value(one.axis((one.low + one.high) / 2)) for one in feature.parameters}
        path = Path(feature.link or CONSTANT, {**basic, **own}, BYTES)
        assert path.features == [name]
        text = scenario_text(path, Workload(("cubic",), 2, "5 s", "9 s"), runs=2, seed=1, title="it's")
        scenario = load_text(text).scenario
        assert scenario.runs == 2
        neutral = {one.name: one.neutral for one in feature.parameters if one.neutral is not None}
        assert Path(path.link, {**basic, **neutral}, BYTES).features == []


def test_flows_start_in_their_order_however_often_ranges_widen() -> None:
    basic = Path(POISSON, {"rate": 2e6, "delay": 60e6, "queue": 40.0, "loss": 0.0})
    ranges = {one.name: (one.axis(basic[one]) - 1, one.axis(basic[one]) + 1) for one in BASIC}
    for interval in ("1 s", "100 ms"):
        work = Workload(("cubic",), 2, interval, "9 s")
        half = interval_ns(work) / 2
        space = Space(POISSON, ranges, most={"offset": half}).with_feature("start-offsets")
        for _ in range(9):
            # Beyond the ranges as well, where neighbourhoods reach.
            most = space.path([0.5] * 4 + [1.5])
            assert most[OFFSET] == half
            space = space.around(most, 0.5, "closer")
            space.widen(space.path([0.5] * 4 + [1.0]))
            assert load_text(scenario_text(most, work, runs=1, seed=1)).scenario.runs == 1
    assert interval_ns(Workload((), 1, "1 s")) == 0


def test_shipped_and_written_paths_are_the_same() -> None:
    path = Path(POISSON, {"rate": 2e6, "delay": 30e6, "queue": 40.0, "loss": 0.01})
    assert path.words() == {"rate": "2 Mbit/s", "delay": "30 ms", "queue": "40 packets", "loss": "1 %"}


# -- arithmetic ----------------------------------------------------------------------------------


def runs(values: Mapping[str, Sequence[float]]) -> tables.Table:
    rows = [
        tables.Measured(scheme, str(run), "all", {"throughput": value, "delay": 5e7, "loss": 0.0})
        for scheme, of in values.items()
        for run, value in enumerate(of)
    ]
    return tables.Table("made", tuple(rows))


def test_the_noise_floor_is_the_error_of_runs_against_each_other() -> None:
    """For two runs, 0.9 and 1.1: each differs from the other by 18.2 and 22.2 %, and the mean is off by half
    of that."""
    floor = floor_of(targets_of(runs({"a": (0.9e6, 1.1e6)}), ["a"]))
    assert floor is not None
    throughput = (abs(0.9 / 1.1 - 1) + abs(1.1 / 0.9 - 1)) / 2
    assert floor.single == pytest.approx(throughput / 2)  # Delays do not differ.
    assert floor.mean == pytest.approx(throughput / 4)
    assert floor_of(targets_of(runs({"a": (1e6,)}), ["a"])) is None


def test_errors_are_relative_and_losses_are_differences() -> None:
    targets = targets_of(runs({"a": (1e6, 1e6), "b": (2e6, 2e6)}), ["a", "b"])
    ours = {"a": {"all": {"throughput": [1.1e6], "delay": [4e7], "loss": [0.02]}}}
    errors = targets.errors(targets.means(ours))
    assert errors[:3] == [pytest.approx(0.1), pytest.approx(-0.2), pytest.approx(0.02)]
    assert errors[3:] == [None, None, None]
    assert targets.mean_error(errors) == pytest.approx(0.15)
    assert targets.mean_error(errors, ["b"]) is None


def test_the_objective_is_zero_at_the_table_and_grows_away_from_it() -> None:
    targets = targets_of(runs({"a": (1e6, 1e6), "b": (2e6, 2e6)}), ["a", "b"])
    objective = Objective.first(targets)
    theirs = targets.theirs
    costs = objective.of(np.array([theirs, theirs + 0.05, theirs + 0.2, np.full(len(theirs), np.nan)]))
    assert costs[0] == pytest.approx(0)
    assert costs[0] < costs[1] < costs[2]
    # A scheme without results must not count as close.
    assert costs[3] > costs[1]
    only = objective.of(np.array([theirs + np.where(targets.mask(["a"]), 1.0, 0.0)]), targets.mask(["b"]))
    assert only[0] == pytest.approx(0)


@pytest.mark.parametrize(("quantity", "factor"), [("delay", 8.0), ("delay", 0.125), ("throughput", 0.5)])
def test_a_scheme_off_the_path_is_named_and_does_not_move_the_path(quantity: str, factor: float) -> None:
    """Ten schemes differ from a path by 6 %, another by a factor; in 20 tables the best path of a grid is
    near the true one, and of the 200 others at most 3 are named.
    """
    names = [f"scheme {number}" for number in range(11)]
    shares = np.linspace(-0.3, 0.3, 61)
    wrong = 0
    for seed in range(20):
        random = np.random.default_rng(seed)
        rows = []
        for name in names:
            throughput, delay = np.array([1e7, 5e7]) * random.lognormal(0, 0.06, 2)
            values: dict[str, float | None] = {"throughput": throughput, "delay": delay, "loss": 0.0}
            if name == names[-1]:
                values[quantity] = factor * (throughput if quantity == "throughput" else delay)
            rows += [tables.Measured(name, str(run), "all", values) for run in range(2)]
        targets = targets_of(tables.Table("made", tuple(rows)), names)
        rates, delays = (
            np.array([each.quantity == axis for each in targets.all]) for axis in ("throughput", "delay")
        )
        middle = np.log(np.where(rates, 1e7, np.where(delays, 5e7, 1e-3)))
        grid = np.array([middle + rates * rate + delays * delay for rate in shares for delay in shares])
        objective = Objective.first(targets)
        for _ in range(5):
            best = grid[int(np.argmin(objective.of(grid)))]
            objective = objective.after(best, np.full(len(best), 0.01))
        assert np.abs(best - middle).max() <= 0.1
        assert names[-1] in objective.off_path(best)
        wrong += len(objective.off_path(best)) - 1
    assert wrong <= 3


def test_a_path_carries_what_schemes_carried_and_delays_no_more_than_they_met() -> None:
    def bounds_of(values: Mapping[str, Sequence[float]]) -> tuple[float, float]:
        least, most = bounds(targets_of(runs(values), list(values)))
        return least["rate"], most["delay"]

    alike = dict.fromkeys("abcd", (1e7, 1e7))
    rate, delay = bounds_of(alike)
    assert 0.95e7 < rate < 0.98e7 and 5e7 < delay < 5.1e7
    # One that carried twice as much as all others met another path.
    assert bounds_of({**alike, "e": (2e7, 2e7)})[0] == pytest.approx(rate, rel=0.01)
    basic = Path(CONSTANT, {"rate": 1e7, "delay": 4e7, "queue": 40.0, "loss": 0.0})
    ranges = {each.name: (each.axis(basic[each]) - 1, each.axis(basic[each]) + 1) for each in BASIC}
    space = Space(CONSTANT, ranges, least={"rate": rate}, most={"delay": delay})
    for shares in ([0.0, 1.0, 0.5, 0.5], [-2.0, 3.0, 0.5, 0.5]):
        for _ in range(3):
            path = space.path(shares)
            assert path[RATE] == pytest.approx(rate, rel=1e-4) and path[DELAY] == pytest.approx(
                delay, rel=1e-4
            )
            space.widen(path)
            space = space.around(path, 0.5, "closer")


def test_a_surrogate_learns_a_smooth_function_through_noise() -> None:
    random = np.random.default_rng(1)
    points = random.random((60, 2))

    def true(at: Any) -> Any:
        return np.sin(3 * at[:, 0]) + 2 * at[:, 1]

    noise = 0.05
    surrogate = Surrogate(2, 2)
    values = true(points) + noise * random.standard_normal(60)
    # A target without any value has no expectation.
    surrogate.learn(points, np.stack([values, np.full(60, np.nan)], axis=1))
    fresh = random.random((200, 2))
    means = surrogate.means(fresh)
    assert np.sqrt(np.mean((means[:, 0] - true(fresh)) ** 2)) < noise
    assert np.isnan(means[:, 1]).all()
    samples = surrogate.samples(fresh[:20], 50, random)
    assert samples.shape == (50, 20, 2)
    assert abs(samples[:, :, 0].mean(axis=0) - means[:20, 0]).max() < noise


def test_the_shipped_india_path_loads() -> None:
    lab = File(__file__).parents[2] / "labs" / "pantheon-india"
    assert load(str(lab / "india.yaml")).scenario.where == "simulate"


# -- round paths ---------------------------------------------------------------------------------


def test_round_values_are_within_reach_or_the_nearest() -> None:
    two, loss = round_paths.VALUES["delay"], round_paths.VALUES["loss"]
    assert round_paths.round_values(22.39e6, two) == [18e6, 19e6, 20e6, 21e6, 22e6, 23e6, 24e6, 25e6, 26e6]
    # Two digits are coarser above a power of ten than below it.
    assert round_paths.round_values(98e6, round_paths.VALUES["rate"]) == [96e6, 97e6, 98e6, 99e6, 100e6]
    assert round_paths.round_values(12.5e6, round_paths.Values(0.01, 10)) in ([12e6], [13e6])
    assert round_paths.round_values(0.0031, loss) == [0.002, 0.0025, 0.003, 0.0035, 0.004]
    assert round_paths.round_values(0.0, loss) == [0.0]


def near(features: Mapping[str, float], loss: float = 0.0011) -> list[Path]:
    basic = {"rate": 2.96e6, "delay": 8.2e6, "queue": 33.0, "loss": loss}
    return round_paths.near(Path(CONSTANT, {**basic, **features}))


def test_round_paths_are_near_with_features_and_without() -> None:
    found = near({})
    assert {one[RATE] for one in found} == {2.9e6, 3e6}
    # The exact length of the queue is tried as well, and a small loss may become zero.
    assert {one[QUEUE] for one in found} == {float(queue) for queue in range(27, 40)}
    assert {one[LOSS] for one in found} >= {0.0, 0.0007, 0.001, 0.0015}
    assert {one[LOSS] for one in near({}, 0.004)} == {0.0025, 0.003, 0.0035, 0.004, 0.0045, 0.005, 0.0055}
    assert all(not one.features for one in found)
    both = near({"jitter": 3e6})
    assert len(both) == 2 * len(found)
    assert sum(one.features == ["jitter"] for one in both) == len(found)
    round_one = Path(CONSTANT, {"rate": 3e6, "delay": 20e6, "queue": 30.0, "loss": 0.0})
    assert round_one.words() not in [near.words() for near in round_paths.near(round_one)]


def test_of_round_paths_the_best_the_nearest_and_the_roundest_are_likely() -> None:
    paths = near({})
    best = Path(CONSTANT, {"rate": 2.96e6, "delay": 8.2e6, "queue": 33.0, "loss": 0.0011})
    found = round_paths.likeliest(paths, best, 2)
    assert len(found) == 6 and found[:2] == paths[:2]
    assert len({str(one.words()) for one in found}) == 6
    assert (found[2][DELAY], found[2][QUEUE], found[2][LOSS]) == (8.2e6, 33.0, 0.001)
    assert {(one[RATE], one[DELAY], one[QUEUE]) for one in found[4:]} <= {
        (3e6, delay, queue) for delay in (7e6, 8e6, 9e6) for queue in (30.0, 40.0)
    }
    assert len(round_paths.likeliest(paths, best, 10_000)) == len(paths)
