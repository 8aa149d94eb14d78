"""`narrows hunt`: the space, the search, the minimal scenario, and resuming."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from narrows.campaign import sealing
from narrows.campaign.json_files import read_json
from narrows.cli.all_commands import app
from narrows.documents.hunt import FORMAT
from narrows.errors import DataError, UsageError
from narrows.hunt import space as spaces
from narrows.hunt.evaluate import Question
from narrows.hunt.objectives import OBJECTIVES
from narrows.hunt.space import GENES, Space, make
from narrows.scenario.loading import load, load_text
from narrows.sweep.store import SweepFolder

SECOND = 10**9
#: A search that takes a second or two: short runs on slow links.
QUICK = ("--bound", "rate=2..8 Mbit/s", "--time", "4", "--no-report")


def space_of(worst: str, **bounds: str) -> Space:
    return make(OBJECTIVES[worst].genes, bounds, 10 * SECOND)


def hunt(*args: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["hunt", *args])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout


def hunted(folder: Path, *args: str) -> dict[str, Any]:
    code, text = hunt(*args, "-o", str(folder), "--json", *QUICK)
    document: dict[str, Any] = json.loads(text)
    document["exit"] = code
    return document


def told(folder: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((folder / "hunt.json").read_text())
    return document


def evaluated(folder: Path) -> set[str]:
    """The cells that have been written."""
    if not (folder / "evaluations" / "sweep.json").is_file():
        return set()
    return set(SweepFolder.read(folder / "evaluations").column("cell"))


def cells(folder: Path) -> int:
    """The number of cells."""
    return len(evaluated(folder))


@pytest.mark.parametrize("worst", OBJECTIVES)
def test_every_point_of_every_space_is_a_scenario_within_its_bounds(worst: str) -> None:
    objective = OBJECTIVES[worst]
    space = space_of(worst)
    question = Question("reno", objective, "cubic" if objective.beside else None, space, 1)
    draw = np.random.default_rng(7)
    seen: set[str] = set()
    for _ in range(60):
        values = space.decode(list(draw.random(space.free)))
        seen |= {name for name, value in values.items() if value is not None}
        for gene in space.genes:
            value = values[gene.name]
            assert value is None or gene.low <= value <= gene.high, gene.name
        scenario = load_text(question.scenario(values, 1)).scenario
        assert scenario.duration_ns == 10 * SECOND
        # Traffic that does not yield to congestion leaves most of even the lowest rate.
        assert all((values.get(name) or 0) <= 0.3 for name in ("datagrams", "short") if name in values)
    assert seen == {gene.name for gene in space.genes}


def test_an_absent_gene_removes_its_dependents() -> None:
    space = space_of("share")
    nothing = space.decode([0.0] * space.free)
    present = {name for name, value in nothing.items() if value is not None}
    assert present == {"rate", "delay", "queue"}
    both = space.tidy(nothing | {"later": 0.1, "earlier": 0.1})
    assert both["earlier"] is None, "a competitor starts once"


def test_bounds_are_read_with_their_units_and_refused_in_one_sentence() -> None:
    space = space_of("loss", rate="1..10 Mbit/s", queue="2 bdp", outage="none", loss="0.01 %..1 %")
    assert (space.gene("rate").low, space.gene("rate").high) == (1e6, 10e6)
    assert space.gene("queue").fixed
    assert not {"outage", "every"} & {gene.name for gene in space.genes}
    assert space.decode([0.5] * space.free)["queue"] == 2.0
    for bounds, words in (
        ({"rat": "1..2 Mbit/s"}, 'did you mean "rate"'),
        ({"rate": "none"}, "a path has a rate"),
        ({"rate": "1 ms..2 ms"}, "is not like 50 Mbit/s"),
        ({"delay": "20 ms..10 ms"}, "the lower one first"),
        ({"loss": "1 %..200 %"}, "at most 100 %"),
        ({"delay": "1 ms..2 ms..3 ms"}, "LOW..HIGH"),
    ):
        with pytest.raises(UsageError, match=words):
            space_of("loss", **bounds)


def test_scenarios_of_a_search_have_the_reported_values() -> None:
    values: spaces.Values = dict.fromkeys((gene.name for gene in GENES), None)
    values |= {"rate": 10e6, "delay": 20e6, "queue": 1.0, "bursts": 0.002, "burst": 5.0}
    values |= {"low": 0.4, "period": 2e9, "outage": 2e8, "every": 5e9, "datagrams": 0.25, "short": 0.1}
    question = Question("cubic", OBJECTIVES["loss"], None, space_of("loss"), 1)
    forward = load_text(question.scenario(values, 1)).scenario.to_json()["network"]["forward"]
    kinds = {one["kind"]: one for one in forward}
    served = kinds["bottleneck"]
    assert (served["rate"]["kind"], served["rate"]["low"]) == ("square", 4_000_000)
    # 10 Mbit/s x 40 ms are 33 packets of 1500 bytes.
    assert served["queue"]["packets"] == 33
    gilbert = kinds["gilbert"]
    assert gilbert["p"] / (gilbert["p"] + gilbert["r"]) == pytest.approx(0.002, rel=0.01)
    assert 1 / gilbert["r"] == 5
    traffic = spaces.background(values)
    assert "cbr: 1 Mbit/s" in traffic[0], "a quarter of the lowest rate"
    assert "load: 400 kbit/s" in traffic[1]


@pytest.mark.parametrize(
    ("value", "first"), [(0.0386, 0.05), (14e6, 10e6), (487e6, 500e6), (0.9, 1.0), (6.9, 5.0)]
)
def test_plain_numbers_come_before_those_with_more_digits(value: float, first: float) -> None:
    tried = spaces.plainer(value)
    assert tried[0] == pytest.approx(first)
    assert spaces.round_digits(value, 2) in [pytest.approx(one) for one in tried]


def test_objectives_define_the_worst_value_and_the_share_to_keep() -> None:
    share = OBJECTIVES["share"]
    own = {"1": {"throughput_bps": 1e6}, "2": {"throughput_bps": 9e6}, "all": {"throughput_ratio": 1 / 9}}
    assert share.of_run(own) == pytest.approx(0.1)
    assert OBJECTIVES["rival"].of_run(own) == pytest.approx(0.9)
    turned = own | {"1": own["2"], "2": own["1"]}
    assert share.of_run(turned) == pytest.approx(0.9)
    assert share.of_run({"all": {"throughput_ratio": None}}) is None
    loss, utilization = OBJECTIVES["loss"], OBJECTIVES["utilization"]
    assert loss.worse(0.3, 0.2)
    assert utilization.worse(0.1, 0.2)
    # Beyond a goal by a tenth, so that it still is in real time; without a goal, most of the worst value.
    assert loss.value_to_keep(0.5, 0.2, False) == pytest.approx(0.22)
    assert utilization.value_to_keep(0.02, 0.1, False) == pytest.approx(0.09)
    assert utilization.value_to_keep(-0.6, -0.3, True) == pytest.approx(-0.33)
    assert loss.value_to_promise(loss.value_to_keep(0.5, 0.2, False)) == pytest.approx(0.2)
    assert utilization.value_to_promise(utilization.value_to_keep(0.02, 0.1, False)) == pytest.approx(0.1)
    assert loss.value_to_keep(0.5, None, False) == pytest.approx(0.4)
    assert utilization.value_to_keep(0.1, None, False) == pytest.approx(0.15)


def test_a_hunt_finds_a_path_makes_it_minimal_and_shows_it_with_fresh_seeds(tmp_path: Path) -> None:
    found = hunted(tmp_path / "one", "vegas", "--against", "cubic", "--worst", "share", "--goal", "25 %",
                   "--budget", "400")  # fmt: skip
    assert found["exit"] == 0
    assert found["reached"] is True
    small = found["minimal"]
    assert set(small["values"]) <= set(found["found"]["values"]), "nothing was added"
    assert max(small["runs"]) <= 0.25 * 0.9 + 1e-9
    assert found["simulated"]["holds"]
    assert {one["verdict"] for one in found["simulated"]["runs"]} == {"ok"}
    assert found["simulated"]["median"] <= 0.25
    # The scenario runs like any other, with the finding as its expectations.
    scenario = load(tmp_path / "one" / "minimal.yaml").scenario
    assert scenario.seed != found["seed"]
    assert [one.metric for one in scenario.expect] == ["throughput_ratio", "throughput_bps"]
    # All evaluations exist, in the form of a sweep.
    kept = SweepFolder.read(tmp_path / "one" / "evaluations")
    assert len(set(kept.column("cell"))) >= found["evaluations"]
    words = (tmp_path / "one" / "hunt.md").read_text()
    assert "On which path does vegas starve beside cubic?" in words
    assert "| rate | 2 Mbit/s to 8 Mbit/s |" in words
    # Existing evaluations are not simulated again.
    parts = kept.parts
    again = hunted(tmp_path / "one", "vegas", "--against", "cubic", "--worst", "share", "--goal", "25 %",
                   "--budget", "400")  # fmt: skip
    assert again["minimal"] == small
    assert kept.parts == parts


def test_without_a_goal_the_minimal_scenario_keeps_most_of_the_worst(tmp_path: Path) -> None:
    args = ("bbr1", "--worst", "loss", "--budget", "90", "--seed", "3")
    found = hunted(tmp_path / "one", *args)
    assert found["exit"] == 0
    assert found["reached"] is None
    assert found["evaluations"] == 90
    assert found["minimal"]["value"] >= 0.8 * found["found"]["value"] - 1e-9
    assert "cubic" in found["simulated"]["schemes"], "others met the same path"
    expect = load(tmp_path / "one" / "minimal.yaml").scenario.expect
    assert [(one.metric, one.scheme) for one in expect] == [("loss_ratio", "bbr1")]
    # The same seed finds the same path.
    other = hunted(tmp_path / "two", *args)
    assert (other["found"], other["minimal"]) == (found["found"], found["minimal"])


def test_against_another_scheme_the_difference_counts(tmp_path: Path) -> None:
    found = hunted(tmp_path, "bbr1", "--against", "cubic", "--worst", "loss", "--budget", "60")
    assert found["exit"] == 0
    assert "more loss than cubic" in found["minimal"]["claim"]
    expect = load(tmp_path / "minimal.yaml").scenario.expect
    assert {one.scheme: (one.at_least is None, one.at_most is None) for one in expect} == {
        "bbr1": (False, True),
        "cubic": (True, False),
    }


def test_a_goal_that_is_not_reached_ends_with_5_and_tells_the_worst(tmp_path: Path) -> None:
    code, text = hunt(
        "reno", "--worst", "loss", "--goal", "90 %", "--budget", "45", "-o", str(tmp_path), *QUICK
    )
    assert code == 5
    assert "The goal, 90 %, was not reached." in text
    assert told(tmp_path)["reached"] is False
    assert (tmp_path / "minimal.yaml").is_file()


def test_the_command_refuses_nonsensical_input(tmp_path: Path) -> None:
    out = ["-o", str(tmp_path / "x")]
    for args, words in (
        (["bbr1", "--worst", "los"], "did you mean"),
        (["bbr1", "--worst", "share"], "needs a competitor"),
        (["linux:cubic"], "not a native scheme"),
        (["bbr1", "--goal", "20 ms"], "--goal"),
        (["bbr1", "--budget", "many"], "--budget"),
        (["bbr1", "--bound", "rate"], "NAME=LOW..HIGH"),
        (["bbr1", "--time", "20 min"], "1 s to 10 min"),
        ([], "name the scheme"),
    ):
        with pytest.raises((UsageError, DataError), match=words):
            hunt(*args, *out)
    assert not (tmp_path / "x").exists()


#: A hunt of one generation.
SHORT = ("reno", "--worst", "loss", "--budget", "45")


@pytest.fixture(scope="module")
def short_hunt(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a short hunt that is done."""
    folder = tmp_path_factory.mktemp("hunts") / "short"
    assert hunted(folder, *SHORT)["exit"] == 0
    return folder


@pytest.fixture
def folder(short_hunt: Path, tmp_path: Path) -> Path:
    """A copy of the short hunt."""
    return shutil.copytree(short_hunt, tmp_path / "hunt")


def test_a_folder_takes_no_other_hunt(folder: Path) -> None:
    with pytest.raises(UsageError, match="holds another hunt"):
        hunt("reno", "--worst", "delay", "--budget", "45", "-o", str(folder), *QUICK)


def test_a_hunt_that_was_edited_is_refused_with_its_remedy(folder: Path) -> None:
    text = (folder / "hunt.json").read_text()
    seed = re.search(r'"seed": (\d+)', text)
    assert seed is not None
    (folder / "hunt.json").write_text(text.replace(seed[0], f'"seed": {seed[1]}0', 1))
    with pytest.raises(
        DataError, match=r"was changed after it was written .* or hunt again in another folder"
    ):
        hunted(folder, *SHORT)


def test_a_hunt_with_a_wrong_member_names_file_and_member(folder: Path) -> None:
    file = folder / "hunt.json"
    document = read_json(file, FORMAT)
    document["bounds"][0]["low"] = "little"
    file.write_text(sealing.seal(document, FORMAT))
    with pytest.raises(DataError, match=r"hunt.json: is damaged: the file.bounds\[0\].low is not a number"):
        hunt(*SHORT, "-o", str(folder), *QUICK)


def test_the_list_names_what_can_be_hunted_and_bounded() -> None:
    code, text = hunt("--list", "--json")
    listed = json.loads(text)
    assert code == 0
    assert [one["name"] for one in listed["objectives"]] == list(OBJECTIVES)
    assert [one["name"] for one in listed["bounds"]] == [gene.name for gene in GENES]
    assert "1, or 2 to 4" in hunt("--list")[1]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_hunt_keeps_the_worst_and_resumes(tmp_path: Path, number: int) -> None:
    folder = tmp_path / "long"
    command = [sys.executable, "-m", "narrows", "hunt", "bbr1", "--worst", "loss", "-o", str(folder)]
    command += ["--budget", "100000", *QUICK]
    work = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    ended = time.monotonic() + 60
    # The first generation has 45 paths; further ones belong to the second.
    while cells(folder) <= 45 and time.monotonic() < ended:
        time.sleep(0.1)
    os.kill(work.pid, number)
    said = work.communicate(timeout=60)[1]
    assert work.returncode == 128 + number
    assert "the worst so far" in said
    assert "resumes it" in said
    before = told(folder)
    assert before["state"] == "interrupted"
    assert load(folder / "found.yaml").scenario.schemes[0].label == "bbr1"
    count, known = before["evaluations"], evaluated(folder)
    after = hunted(folder, "bbr1", "--worst", "loss", "--budget", str(count))
    assert after["state"] == "done"
    assert after["evaluations"] == count
    # Every path that was tried is still there; `found` is now the mildest of several runs.
    assert known < evaluated(folder)


def test_a_process_that_was_killed_has_lost_little(tmp_path: Path) -> None:
    folder = tmp_path / "killed"
    command = [sys.executable, "-m", "narrows", "hunt", "bbr1", "--worst", "loss", "-o", str(folder)]
    work = subprocess.Popen([*command, "--budget", "1 h", *QUICK], stderr=subprocess.DEVNULL)
    ended = time.monotonic() + 60
    while cells(folder) <= 45 and time.monotonic() < ended:
        time.sleep(0.1)
    work.kill()
    work.wait()
    assert cells(folder) > 45
    found = hunted(folder, "bbr1", "--worst", "loss", "--budget", "90")
    assert found["evaluations"] == 90
    assert found["exit"] == 0
