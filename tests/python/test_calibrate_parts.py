"""`narrows calibrate`: its paths, its arithmetic, its surrogate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path as File
from typing import Any

import numpy as np
import pytest

from narrows.calibrate import table as tables
from narrows.calibrate.paths import (
    BASIC,
    BYTES,
    CONSTANT,
    FEATURES,
    POISSON,
    Path,
    Space,
    Workload,
    interval_ns,
    scenario_text,
)
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
    ranges = {one.name: (one.axis(basic[one.name]) - 1, one.axis(basic[one.name]) + 1) for one in BASIC}
    for interval in ("1 s", "100 ms"):
        work = Workload(("cubic",), 2, interval, "9 s")
        half = interval_ns(work) / 2
        space = Space(POISSON, ranges, most={"offset": half}).with_feature("start-offsets")
        for _ in range(9):
            # Beyond the ranges too, where neighbourhoods reach.
            most = space.path([0.5] * 4 + [1.5])
            assert most["offset"] == half
            space = space.around(most, 0.5, "closer")
            space.widen(space.path([0.5] * 4 + [1.0]))
            assert load_text(scenario_text(most, work, runs=1, seed=1)).scenario.runs == 1
    assert interval_ns(Workload((), 1, "1 s")) == 0


def test_shipped_and_written_paths_are_the_same() -> None:
    path = Path(POISSON, {"rate": 2e6, "delay": 30e6, "queue": 40.0, "loss": 0.01})
    assert path.said() == {"rate": "2 Mbit/s", "delay": "30 ms", "queue": "40 packets", "loss": "1 %"}


# -- arithmetic ----------------------------------------------------------------------------------


def runs(values: Mapping[str, Sequence[float]]) -> tables.Table:
    rows = [
        tables.Measured(scheme, str(run), "all", {"throughput": value, "delay": 5e7, "loss": 0.0})
        for scheme, of in values.items()
        for run, value in enumerate(of)
    ]
    return tables.Table("made", tuple(rows))


def test_the_noise_floor_is_what_runs_say_of_each_other() -> None:
    """Of two runs 0.9 and 1.1: each differs from the other by 18.2 and 22.2 %, and the mean is off by half
    of that."""
    floor = floor_of(targets_of(runs({"a": (0.9e6, 1.1e6)}), ["a"]))
    assert floor is not None
    throughput = (abs(0.9 / 1.1 - 1) + abs(1.1 / 0.9 - 1)) / 2
    assert floor.single == pytest.approx(throughput / 2)  # delays do not differ
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
    # A scheme without results is no way to be near.
    assert costs[3] > costs[1]
    only = objective.of(np.array([theirs + np.where(targets.mask(["a"]), 1.0, 0.0)]), targets.mask(["b"]))
    assert only[0] == pytest.approx(0)


def test_a_surrogate_learns_a_smooth_function_through_noise() -> None:
    random = np.random.default_rng(1)
    points = random.random((60, 2))

    def true(at: Any) -> Any:
        return np.sin(3 * at[:, 0]) + 2 * at[:, 1]

    noise = 0.05
    surrogate = Surrogate(2, 2)
    values = true(points) + noise * random.standard_normal(60)
    # A target that is known nowhere has no expectation.
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
