"""Trainings of learned schemes by the command line."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from safetensors.numpy import load_file

from narrows.learn.card_map import Box, list_boxes
from narrows.learn.recipe import FOLDER, list_recipes, read_recipe

#: A network of four units on one path.
SMALL = """\
scheme: indigo
units: 4
rounds: 6
paths:
  - {rate_bps: 5000000, one_way_ms: 20}
rollouts: 2
listed_rollouts: 2
late_hosts: 0.5
decisions: 100
updates: 5
first_updates: 5
batch: 4
learning_rate: [0.01, 0.001]
decay: 0.0001
tolerance: 0.05
replay: 3
validate_every: 2
validation: 0
"""


#: A policy of four units for paths of one kind.
REWARDED = """\
scheme: aurora
units: [4]
rounds: 6
law:
  rate_bps: [2000000, 4000000]
  one_way_ms: [20, 40]
reward: aurora
episodes: 4
decisions: 40
discount: 0.95
trace: 0.95
clip: 0.2
epochs: 2
batch: 80
learning_rate: [0.01, 0.001]
deviation: 0.5
entropy: 0
validate_every: 2
validation: 2
"""


def narrows(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "narrows", *map(str, arguments)], capture_output=True, text=True, check=False
    )


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    path = tmp_path / "small.yaml"
    path.write_text(SMALL)
    return path


def test_a_training_leaves_log_state_model_and_card_and_its_model_runs(tmp_path: Path, recipe: Path) -> None:
    out = tmp_path / "mine"
    done = narrows("learn", "indigo", "--out", out, "--recipe", recipe, "--seed", "3", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["file"] == str(out / "model.safetensors")
    log = (out / "log.csv").read_text().splitlines()
    assert log[0].split(",")[0] == "round"
    assert [line.split(",")[0] for line in log[1:]] == [str(number) for number in range(1, 7)]
    # Rows of the rounds that are kept, and no others.
    assert sorted(path.name for path in (out / "rows").iterdir()) == [
        "000004.bin",
        "000005.bin",
        "000006.bin",
    ]
    arrays = load_file(out / "model.safetensors")
    assert arrays["kernel0"].shape == (9 + 4, 16)
    card = (out / "card.md").read_text()
    assert "units: 4" in card and "| 0.5 |" in card
    assert "(card.png)" in card and (out / "card.png").read_bytes().startswith(b"\x89PNG")
    schemes = f"schemes=[{{indigo: {out / 'model.safetensors'}}}]"
    ran = narrows("run", "slow-link", "--set", schemes, "--time", "5 s",
                  "-o", tmp_path / "run", "--where", "simulate")  # fmt: skip
    assert ran.returncode == 0, ran.stderr


def test_a_killed_training_resumes_to_the_model_of_an_uninterrupted_one(tmp_path: Path, recipe: Path) -> None:
    recipe.write_text(SMALL.replace("rounds: 6", "rounds: 40"))
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    assert narrows("learn", "indigo", "--out", whole, "--recipe", recipe).returncode == 0
    command = [sys.executable, "-m", "narrows", "learn", "indigo", "--out", str(cut), "--recipe", str(recipe)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        while not (cut / "state.bin").exists() and process.poll() is None:
            time.sleep(0.01)
        os.kill(process.pid, signal.SIGKILL)
    assert not (cut / "card.md").exists()
    resumed = narrows("learn", "indigo", "--out", cut, "--resume", "--threads", "1")
    assert resumed.returncode == 0, resumed.stderr
    for name in ("model.safetensors", "log.csv"):
        assert (cut / name).read_bytes() == (whole / name).read_bytes()


def test_a_policy_is_trained_by_rewards_and_its_model_runs(tmp_path: Path) -> None:
    recipe, out = tmp_path / "rewarded.yaml", tmp_path / "mine"
    recipe.write_text(REWARDED)
    done = narrows("learn", "aurora", "--out", out, "--recipe", recipe, "--seed", "3")
    assert done.returncode == 0, done.stderr
    rows = list(csv.DictReader((out / "log.csv").read_text().splitlines()))
    assert [row["round"] for row in rows] == ["1", "2", "3", "4", "5", "6"]
    assert all(0 < int(row["decisions"]) <= 160 for row in rows)
    assert all(float(row["divergence"]) >= 0 and float(row["value_loss"]) > 0 for row in rows)
    assert [bool(row["validation"]) for row in rows] == [False, True] * 3
    arrays = load_file(out / "model.safetensors")
    assert {name: array.shape for name, array in arrays.items()} == {
        "kernel0": (30, 4),
        "bias0": (4,),
        "kernel1": (4, 1),
        "bias1": (1,),
    }
    card = (out / "card.md").read_text()
    assert "mean reward per decision" in card and "half round trip" in card and "reward: aurora" in card
    schemes = f"schemes=[{{aurora: {out / 'model.safetensors'}}}]"
    ran = narrows("run", "slow-link", "--set", schemes, "--time", "5 s",
                  "-o", tmp_path / "run", "--where", "simulate")  # fmt: skip
    assert ran.returncode == 0, ran.stderr


def test_a_policy_is_resumed_after_any_round(tmp_path: Path) -> None:
    from narrows.learn import training

    recipe = tmp_path / "rewarded.yaml"
    recipe.write_text(REWARDED)
    whole = training.begin(tmp_path / "whole", read_recipe(recipe), 1, None, 1, None)
    whole.train(lambda _: None)
    cut = training.begin(tmp_path / "cut", read_recipe(recipe), 1, None, 1, None)
    for threads in (2, 1, 2, 1, 2):
        with pytest.raises(InterruptedError):
            cut.train(_interrupt)
        cut.close()
        cut = training.resume(tmp_path / "cut", None, threads)
    cut.train(lambda _: None)
    for name in (training.MODEL, training.LOG):
        assert (tmp_path / "cut" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def _interrupt(_: int) -> None:
    raise InterruptedError


@pytest.mark.parametrize(
    ("line", "replacement", "place", "words"),
    [
        ("units: 4", "units: 0", 2, "units is 0; use 1 to 1024"),
        ("units: 4", "unitz: 4", 2, 'unitz: this key does not exist; did you mean "units"?'),
        ("units: 4", "units: -3", 2, "units is -3; use a whole number of at least 0"),
        ("units: 4", "", 1, "units is missing"),
        ("decay: 0.0001", "decay: none", 14, 'decay is "none"; use a number'),
        ("  - {rate_bps: 5000000, one_way_ms: 20}", "  - {rate_bps: 5000000}", 5, "one_way_ms is missing"),
        ("  - {rate_bps: 5000000, one_way_ms: 20}", "  - 20", 5, "paths.0 is 20; use keys with values"),
        ("  - {rate_bps: 5000000, one_way_ms: 20}", "  - {rate_bps: 5, one_way_ms: 20}", 5, "rate_bps is 5"),
    ],
)
def test_a_wrong_recipe_is_refused_with_its_line(
    tmp_path: Path, recipe: Path, line: str, replacement: str, place: int, words: str
) -> None:
    recipe.write_text(SMALL.replace(line, replacement))
    done = narrows("learn", "indigo", "--out", tmp_path / "out", "--recipe", recipe)
    assert done.returncode == 3
    assert words in done.stderr
    assert f"small.yaml:{place}:" in done.stderr
    assert not (tmp_path / "out" / "training.json").exists()


def test_a_training_is_neither_overwritten_nor_continued_with_another_schedule(
    tmp_path: Path, recipe: Path
) -> None:
    out = tmp_path / "mine"
    assert "no training to resume" in narrows("learn", "indigo", "--out", out, "--resume").stderr
    assert narrows("learn", "indigo", "--out", out, "--recipe", recipe, "--rounds", "2").returncode == 0
    assert read_recipe(out / "recipe.yaml").rounds == 2
    again = narrows("learn", "indigo", "--out", out, "--recipe", recipe)
    assert again.returncode == 2 and "--resume" in again.stderr
    longer = narrows("learn", "indigo", "--out", out, "--resume", "--rounds", "9")
    assert longer.returncode == 2 and "has 2 rounds" in longer.stderr
    (out / "state.bin").write_bytes(b"other")
    damaged = narrows("learn", "indigo", "--out", out, "--resume")
    assert damaged.returncode == 3 and "damaged" in damaged.stderr


def test_only_one_training_at_a_time_writes_to_a_folder(tmp_path: Path, recipe: Path) -> None:
    from narrows.learn import training

    out = tmp_path / "mine"
    run = training.begin(out, read_recipe(recipe), 1, None, 1, None)
    before = {path: path.read_bytes() for path in out.iterdir()}
    for option in ((), ("--resume",)):
        second = narrows("learn", "indigo", "--out", out, "--recipe", recipe, *option)
        assert second.returncode == 1 and "another narrows is working on this training" in second.stderr
    assert {path: path.read_bytes() for path in out.iterdir()} == before
    run.close()
    assert narrows("learn", "indigo", "--out", out, "--resume").returncode == 0


def test_recipes_are_found_by_name_and_belong_to_their_scheme(tmp_path: Path) -> None:
    unknown = narrows("learn", "indigo", "--out", tmp_path / "a", "--recipe", "indigi")
    assert unknown.returncode == 3 and "indigo-1-128" in unknown.stderr
    other = narrows("learn", "indigo", "--out", tmp_path / "a", "--recipe", "muses")
    assert other.returncode == 3 and "muses.yaml" in other.stderr
    for name in list_recipes():
        assert read_recipe(FOLDER / f"{name}.yaml").scheme in ("aurora", "indigo", "muses", "remy")


def test_models_are_scored_on_the_same_paths(tmp_path: Path, recipe: Path) -> None:
    models = []
    for seed in ("1", "2"):
        out = tmp_path / seed
        assert (
            narrows(
                "learn", "indigo", "--out", out, "--recipe", recipe, "--rounds", "1", "--seed", seed
            ).returncode
            == 0
        )
        models.append(out / "model.safetensors")
    done = narrows("learn", "score", models[0], "--against", models[1], "--json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert len(document["paths"]) == 33 and document["scheme"] == "indigo"
    ours, theirs = (document["power"][str(model)] for model in models)
    ratios = sorted(a / b for a, b in zip(ours, theirs, strict=True))
    result = document["ratios"][str(models[0])]
    assert result["median"] == ratios[16] and result["p10"] == ratios[3]
    text = narrows("learn", "score", models[0])
    assert "200 Mbit/s, 80 ms" in text.stdout and max(map(len, text.stdout.splitlines())) <= 80


def test_pantheons_other_paths_are_those_of_its_scenarios(tmp_path: Path) -> None:
    done = narrows("learn", "score", "indigo", "--paths", "pantheon", "--json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["paths"] == [
        *(f"{rate} Mbit/s, {delay} ms, one packet" for rate in (12, 60, 108) for delay in (10, 50)),
        "12 Mbit/s, 10 ms, 1 acks/100 ms",
        "12 Mbit/s, 10 ms, 10 acks/200 ms",
        "12 Mbit/s, 30 ms, 6 packets",
    ]
    ran = narrows("run", "pantheon/ack-aggregation-10-per-200ms", "--set", "schemes=[indigo]",
                  "--where", "simulate", "-o", tmp_path / "run", "--no-report")  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    # Flow 1, or all flows: there is only one.
    row = next(csv.DictReader((tmp_path / "run" / "results.csv").read_text().splitlines()))
    power = float(row["throughput_bps"]) / float(row["delay_p95_ns"])
    # Other random numbers for the hosts.
    assert document["power"]["indigo"][7] == pytest.approx(power, rel=0.1)


def test_rule_tables_are_scored_by_their_objective_and_networks_are_refused() -> None:
    done = narrows("learn", "score", "tao", "--paths", "links", "--json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    scores = document["score_log2"]["tao"]
    assert len(document["links"]) == len(scores) == 20
    assert document["means"]["tao"] == pytest.approx(sum(scores) / 20)
    # The published table for the same links has -0.6, and a sender that knows them about -0.4.
    assert -0.75 < document["means"]["tao"] < 0
    network = narrows("learn", "score", "indigo", "--paths", "links")
    assert network.returncode == 3 and "indigo is a network" in network.stderr
    both = narrows("learn", "score", "tao", "--paths", "links", "--paths", "grid")
    assert both.returncode == 2 and "choose it alone" in both.stderr


def test_boxes_surround_the_paths_of_a_recipe() -> None:
    boxes = {name: list_boxes(read_recipe(FOLDER / f"{name}.yaml")) for name in list_recipes()}
    assert boxes["indigo"] == [Box((1, 200), (5, 130))]
    assert boxes["indigo-no-calib"] == [Box((5, 200), (10, 80))]
    long, short = boxes["tao"]
    assert (long.delays, short.delays) == ((75, 75), (20, 20))
    assert long.rates == pytest.approx((3.162, 316.2))
