"""Runs in intervals, like iperf's output."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from campaign_kit import narrows, sentence, simulate
from narrows.analysis.intervals import Interval, in_iperfs_words

SCENARIO = """\
schema: narrows/scenario/1
question: How much in each second?
where: simulate
path: {forward: [{rate: 4 Mbit/s, queue: {droptail: 1 bdp}}, {delay: 10 ms}]}
schemes: [reno]
flows:
  - {label: first, stop: 3 s}
  - {label: second, start: 1500 ms}
duration: 4 s
runs: 1
"""


@pytest.fixture(scope="module")
def cell(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = simulate(tmp_path_factory.mktemp("intervals") / "run", SCENARIO)
    return next((folder / "cells").iterdir())


def test_lines_are_those_of_iperf() -> None:
    lines = [
        Interval("3", "", 0.0, 1.0, 56 * 1024),
        Interval("3", "", 1.0, 2.0, 312 * 1024),
        Interval("3", "", 0.0, 60.2, 213 * 2**20),
        Interval("SUM", "", 0.0, 1801.1, 19.7 * 2**30),
        Interval("4", "UDP", 0.0, 1.0, 0),
    ]
    assert in_iperfs_words(lines)[1:] == [
        "[  3]    0.0-   1.0 sec  56.0 KBytes   459 Kbits/sec",
        "[  3]    1.0-   2.0 sec   312 KBytes  2.56 Mbits/sec",
        "[  3]    0.0-  60.2 sec   213 MBytes  29.7 Mbits/sec",
        "[SUM]    0.0-1801.1 sec  19.7 GBytes  94.0 Mbits/sec",
        "[  4]    0.0-   1.0 sec  0.00 Bytes  0.00 bits/sec  UDP",
    ]


def test_each_flow_has_lines_from_its_start_to_its_stop(cell: Path) -> None:
    document = json.loads(narrows("show", cell, "--interval", "1", "--json").stdout)
    lines = document["runs"][0]["intervals"]
    assert document["interval_ns"] == 10**9
    spans = {
        name: [(one["start_s"], one["end_s"]) for one in lines if one["flow"] == name]
        for name in ("1", "2", "SUM")
    }
    assert spans["1"] == [(0, 1), (1, 2), (2, 3), (0, 3)]
    assert spans["2"] == [(1.5, 2), (2, 3), (3, 4), (1.5, 4)]
    assert spans["SUM"] == [(0, 1), (1, 2), (2, 3), (3, 4), (0, 4)]


def test_sums_are_sums_and_fill_the_link(cell: Path) -> None:
    lines = json.loads(narrows("show", cell, "--interval", "1", "--json").stdout)["runs"][0]["intervals"]
    steps = [one for one in lines if one["end_s"] - one["start_s"] <= 1]
    for end in (1, 2, 3, 4):
        parts = [one["bytes"] for one in steps if one["end_s"] == end and one["flow"] != "SUM"]
        (whole,) = (one["bytes"] for one in steps if one["end_s"] == end and one["flow"] == "SUM")
        assert whole == sum(parts) > 0
    full = next(one for one in lines if one["flow"] == "SUM" and one["start_s"] == 2)
    # After a loss the queue runs empty for a moment.
    assert full["throughput_bps"] == pytest.approx(4e6, rel=0.05)


def test_shorter_intervals_and_other_units(cell: Path) -> None:
    halves = json.loads(narrows("show", cell, "--interval", "500 ms", "--json").stdout)["runs"][0][
        "intervals"
    ]
    assert halves[0]["end_s"] == 0.5
    text = narrows("show", cell, "--interval", "2").stdout.splitlines()
    assert text[0].startswith("[ ID] Interval")
    assert any("first" in line for line in text)


def test_undisplayable_values_are_reported(cell: Path) -> None:
    assert "shows single runs" in sentence(narrows("show", cell.parent.parent, "--interval", "1"))
    assert "must be more than 0" in sentence(narrows("show", cell, "--interval", "0"))
    assert "--interval" in sentence(narrows("show", cell, "--interval", "often"))
    assert "take longer ones" in sentence(narrows("show", cell, "--interval", "1 ns"))
