"""Campaigns with files, background flows and expectations, run by the fake agent."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from test_campaign import SCENARIO, Lab

TRACE = b"1\n2\n3\n"
STORED = f"{hashlib.sha256(TRACE).hexdigest()[:16]}-up.trace"


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    yield Lab(tmp_path)


def with_trace(lab: Lab) -> None:
    (lab.path / "up.trace").write_bytes(TRACE)
    text = SCENARIO.replace("rate: 12 Mbit/s, queue: {droptail: 1 bdp}", "rate: {toy_trace: up.trace}")
    (lab.path / "test.yaml").write_text(text)


def test_files_are_kept_with_the_campaign(lab: Lab) -> None:
    with_trace(lab)
    code, _, stderr = lab.run()
    assert code == 0, stderr
    assert [path.name for path in (lab.out / "files").iterdir()] == [STORED]
    assert (lab.out / "files" / STORED).read_bytes() == TRACE
    # The agent receives their location; lost files come back with the next run.
    (lab.out / "files" / STORED).unlink()
    assert lab.run()[0] == 0
    assert (lab.out / "files" / STORED).read_bytes() == TRACE
    run = json.loads((lab.out / "cells" / "reno-r1" / "run.json").read_text())
    assert run["files"] == str(Path("out") / "files")


def test_another_content_is_another_campaign(lab: Lab) -> None:
    with_trace(lab)
    assert lab.run()[0] == 0
    (lab.path / "up.trace").write_bytes(TRACE + b"9\n")
    code, _, stderr = lab.run()
    assert code == 2
    assert "holds another campaign" in stderr


def test_background_is_measured_but_not_summed(lab: Lab) -> None:
    (lab.path / "test.yaml").write_text(SCENARIO + "background: [{scheme: reno, label: noise, count: 2}]\n")
    code, stdout, _ = lab.run()
    assert code == 0
    results = json.loads((lab.out / "results.json").read_text())
    rows = [row for row in results["rows"] if row["cell"] == "cubic-r1"]
    assert [row["flow"] for row in rows] == [1, 2, 3, None]
    assert [row.get("background", False) for row in rows] == [False, True, True, False]
    assert [row.get("label") for row in rows] == [None, "noise 1", "noise 2", None]
    assert {line["flow"] for line in results["summary"]} == {1, None}
    assert "noise" not in stdout


def test_labels_of_flows_are_shown(lab: Lab) -> None:
    (lab.path / "test.yaml").write_text(SCENARIO + "flows: [{label: early}, {start: 0.5 s}]\n")
    assert lab.run()[0] == 0
    stdout = lab.call("show", "out")[1]
    assert "1 (early)" in stdout


# The synthetic measurements are a little more than 1 Mbit/s per flow, and a total loss of 1 %.
HOLDS = "expect: [{metric: throughput_bps, at_least: 1 Mbit/s}, {metric: loss_ratio, at_most: 1 %}]\n"
FAILS = "expect: [{metric: throughput_bps, scheme: reno, of: min, at_least: 2 Mbit/s}]\n"


def test_expectations_decide_the_exit_code(lab: Lab) -> None:
    (lab.path / "test.yaml").write_text(SCENARIO + HOLDS)
    code, stdout, _ = lab.run()
    assert code == 0
    assert "holds   cubic, all flows: median throughput at least 1 Mbit/s (1" in stdout
    results = json.loads((lab.out / "results.json").read_text())
    assert [one["outcome"] for one in results["expect"]] == ["holds"] * 6
    # Another expectation about the same results: they are judged again, and nothing is run.
    (lab.path / "test.yaml").write_text(SCENARIO + FAILS)
    code, stdout, stderr = lab.run()
    assert code == 5
    assert "fails   reno, all flows: min throughput at least 2 Mbit/s (1" in stdout
    assert "1 of 1 expectations fail" in stderr
    assert "fails   reno" in lab.call("show", "out")[1]


def test_a_skipped_scheme_fails_no_expectation(lab: Lab) -> None:
    (lab.path / "test.yaml").write_text(SCENARIO + HOLDS)
    code, stdout, _ = lab.run("--where", "simulate")
    assert code == 0
    assert "skipped 2 about linux:cubic\n" in stdout


def test_an_expectation_without_a_valid_run_fails(lab: Lab) -> None:
    (lab.path / "test.yaml").write_text(SCENARIO + HOLDS)
    code, stdout, _ = lab.run(fail={"reno-r1": "invalid", "reno-r2": "invalid"})
    assert code == 5
    assert "fails   reno, all flows: median throughput at least 1 Mbit/s: no valid run gave a value" in stdout


def test_the_plan_tells_of_links_and_changes(lab: Lab) -> None:
    text = SCENARIO.replace("path: {forward:", "topology: {star: {access:").replace("}]}\n", "}]}}\n")
    (lab.path / "test.yaml").write_text(text + "timeline: [{at: 500 ms, cut: [left, center]}]\n")
    code, stdout, stderr = lab.call("run", "test.yaml", "--dry-run")
    assert code == 0, stderr
    assert "  left-center    12 Mbit/s with droptail 120 kB -> delay 20 ms\n" in stdout
    assert "  at 500 ms  center-left is cut" in stdout


def test_changed_words_in_the_same_folder_are_said_and_kept(lab: Lab) -> None:
    assert lab.run()[0] == 0
    text = SCENARIO.replace("question: ", "question: Now, ", 1)
    assert text != SCENARIO
    (lab.path / "test.yaml").write_text(text + "title: Another title\n")
    code, _, stderr = lab.run()
    assert code == 0, stderr
    assert 'the title was not given and is now "Another title"' in stderr
    assert 'the question was "' in stderr and 'and is now "Now, ' in stderr
    document = json.loads((lab.out / "campaign.json").read_text())
    resolved = document["scenario"]["resolved"]
    assert resolved["title"] == "Another title" and resolved["question"].startswith("Now, ")
    assert document["scenario"]["written"].endswith("title: Another title\n")
    assert set(document["sessions"][-1]["changed"]) == {"title", "question"}
    # Unchanged texts are not reported.
    assert "is now" not in lab.run()[2]
