"""Quality of outcome against a scenario's requirement, from the scenario to results, report and checks."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from campaign_kit import narrows, sentence, simulate

SCENARIO = """\
schema: narrows/scenario/1
name: scored
question: Is it good enough?
where: simulate
path: {forward: [{rate: 4 Mbit/s, queue: {droptail: 20 kB}}, {delay: 10 ms}]}
schemes: [cubic]
duration: 4 s
"""
REQUIREMENT = "{throughput: 3 Mbit/s, loss: [0 %, 20 %], delay: {p50: [20 ms, 60 ms], p99.9: [10 ms, 70 ms]}}"


@pytest.fixture(scope="module")
def scored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    text = SCENARIO + f"measure: {{requirement: {REQUIREMENT}}}\n"
    return simulate(tmp_path_factory.mktemp("scored") / "out", text)


def values(folder: Path) -> dict[str, float]:
    rows = json.loads((folder / "results.json").read_text())["rows"]
    metrics: dict[str, float] = next(row for row in rows if row["flow"] == 1)["metrics"]
    return metrics


def test_scores_follow_from_the_packets_by_the_formula_of_the_draft(scored: Path) -> None:
    rows: list[dict[str, Any]] = pq.read_table(scored / "cells" / "cubic-r1" / "packets.parquet").to_pylist()
    data = [row for row in rows if row["direction"] in (0, "forward")]
    delays = sorted(row["arrived_ns"] - row["sent_ns"] for row in data if row["arrived_ns"] is not None)
    lost = sum(row["fate"] in (1, "dropped") for row in data)

    def score(value: float, optimal: float, unacceptable: float) -> float:
        return min(max(1 - (value - optimal) / (unacceptable - optimal), 0), 1)

    median, tail = (delays[math.ceil(share * len(delays)) - 1] / 1e6 for share in (0.5, 0.999))
    latency = min(score(median, 20, 60), score(tail, 10, 70))
    loss = score(lost / (lost + len(delays)), 0, 0.2)
    got = values(scored)
    assert lost and 0 < latency < 1 and 0 < loss < 1
    assert got["qoo_latency_ratio"] == pytest.approx(latency)
    assert got["qoo_loss_ratio"] == pytest.approx(loss)
    assert got["qoo_throughput_ratio"] == 1
    assert got["qoo_ratio"] == pytest.approx(min(latency, loss))


def test_the_record_and_its_readers_say_which_requirement_was_used(scored: Path) -> None:
    cell = json.loads((scored / "cells" / "cubic-r1" / "run.json").read_text())["cell"]
    assert cell["measure"]["requirement"]["throughput_bps"] == 3_000_000
    told = "scored against the scenario's requirement: throughput of at least 3 Mbit/s, loss 0 % to 20 %"
    done = narrows("show", scored)
    assert told in " ".join(done.stdout.split())
    assert narrows("check", scored).exit_code == 0
    done = narrows("report", scored)
    assert done.exit_code == 0, done.output
    assert "throughput of at least 3 Mbit/s" in (scored / "report.html").read_text()


def test_comparisons_name_a_different_requirement(scored: Path, tmp_path: Path) -> None:
    without = simulate(tmp_path / "plain", SCENARIO)
    assert values(without)["qoo_ratio"] != values(scored)["qoo_ratio"]
    said = sentence(narrows("compare", scored, without))
    assert "requirement for quality of outcome is throughput of at least 3 Mbit/s, loss 0 % to 20 %" in said
    assert "and the draft's example in" in said
