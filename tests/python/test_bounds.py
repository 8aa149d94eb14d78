"""The bounds of flows: plans name them, simulations without them are refused, and memory is limited."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import processes
from forked_commands import run_in
from narrows.campaign.plan import bounds_in_words, make_plan
from narrows.documents.agent import MachineFacts
from narrows.errors import DataError
from narrows.scenario import load, shipped
from narrows.scenario.model import Scenario
from processes import eventually, family, is_alive

HEAD = "schema: narrows/scenario/1\nquestion: Does it end?\nduration: 10 s\n"
#: Networks without anything that bounds a flow.
ENDLESS = [
    "path: {forward: [{delay: 20 ms}]}",
    "path: {forward: [{delay: 0 ms}]}",
    "path: {forward: [{delay: 20 ms}, {jitter: 5 ms}]}",
    "path: {forward: [{delay: 20 ms}, {loss: 0.001 %}]}",
    "path: {forward: [{delay: 20 ms}, {losslist: [3, 7]}]}",
    "path: {forward: [{delay: 20 ms}, {duplicate: 10 %}]}",
    "path: {forward: [{delay: 20 ms}, {reorder: 10 %}]}",
    "path: {forward: [{delay: 20 ms}, {outage: {start: 5 s, length: 1 s}}]}",
    "path: {forward: [{delay: 20 ms}, {gate: true}]}",
    "path: {forward: [{delay: 20 ms}], backward: [{rate: 1 Mbit/s, queue: {droptail: 60 kB}}]}",
]
#: A window of 8000 small packets and a round trip of a microsecond: simulated time hardly moves.
HARDLY_MOVING = (
    "path: {forward: [{delay: 500 ns}], backward: [{delay: 500 ns}]}\n"
    "transport: {window: 1 MB, packet_size: 128 B, initial_window: 1000 packets}\nrecord: bins\n"
)
#: Slow start doubles the data in flight every 20 ms, up to a million times.
GREEDY = (
    "path: {forward: [{rate: 10000 Gbit/s, queue: {unlimited: {}}}, {delay: 20 ms}]}\n"
    "transport: {initial_window: 1000 packets}\n"
)


def _scenario(folder: Path, more: str, schemes: str = "[reno]", where: str = "simulate") -> Scenario:
    file = folder / "x.yaml"
    file.write_text(f"{HEAD}where: {where}\nschemes: {schemes}\n{more}\n")
    return load(str(file), []).scenario


def _start(folder: Path, more: str, *options: str) -> subprocess.Popen[str]:
    _scenario(folder, more)
    words = [sys.executable, "-m", "narrows", "run", "x.yaml", "-o", "out", "--no-report", *options]
    pipe = subprocess.PIPE
    return subprocess.Popen(
        words, cwd=folder, text=True, stdout=pipe, stderr=pipe, env=os.environ | {"NO_COLOR": "1"}
    )


@pytest.mark.parametrize("network", ENDLESS)
def test_simulations_of_flows_that_nothing_bounds_are_refused(tmp_path: Path, network: str) -> None:
    for scheme in ("reno", "bbr1", "copa"):
        with pytest.raises(DataError, match=rf"^{scheme}: nothing bounds flow 1 .* add a link with a rate"):
            make_plan(_scenario(tmp_path, network, f"[{scheme}]"), MachineFacts())


def test_between_real_machines_something_gives_way(tmp_path: Path) -> None:
    plan = make_plan(_scenario(tmp_path, ENDLESS[0], where="emulate"), MachineFacts())
    assert bounds_in_words(plan) == ["every flow is bounded by nothing but this machine"]


def test_plans_name_what_bounds_flows(tmp_path: Path) -> None:
    link = "path: {forward: [{rate: 12 Mbit/s, queue: {droptail: 60 kB}}, {delay: 20 ms}]}"
    plan = make_plan(_scenario(tmp_path, link, "[reno, bbr1]"), MachineFacts())
    assert bounds_in_words(plan) == ["every flow is bounded by link forward.0 (12 Mbit/s)"]
    more = "\nflows: [{count: 2}, {traffic: {cbr: {rate: 1 Mbit/s}}}]"
    plan = make_plan(_scenario(tmp_path, link + more), MachineFacts())
    assert bounds_in_words(plan) == [
        "bounded by link forward.0 (12 Mbit/s): flows 1, 2 of scheme reno",
        "bounded by its application (cbr): flow 3 of scheme reno",
    ]


@pytest.mark.parametrize("name", [one.name for one in shipped.list_scenarios()])
def test_every_shipped_scenario_is_bounded(name: str) -> None:
    scenario = load(name, []).scenario
    # A kernel that offers everything.
    names = [name.removeprefix("linux:") for row in scenario.schemes for name in row.scheme_names]
    plan = make_plan(scenario, MachineFacts(congestion_controls=names))
    assert plan.bounds.keys() == {cell.scheme for cell in plan.cells}
    assert not any("nothing" in by for flows in plan.bounds.values() for _, by in flows)


def test_a_cell_that_needs_too_much_memory_fails_and_says_so(tmp_path: Path) -> None:
    process = _start(tmp_path, GREEDY, "--memory", "150 MB")
    _, said = processes.finish(process)
    assert process.returncode == 6, said
    (entry,) = json.loads((tmp_path / "out" / "campaign.json").read_text())["cells"]
    assert (entry["state"], entry["error"]["kind"]) == ("failed", "memory")
    assert "needs more memory than the 150 MB that are allowed" in entry["error"]["message"]
    assert list((tmp_path / "out" / "cells").iterdir()) == []


@pytest.mark.parametrize("size", ["a lot", "5", "-1 GB", "3 ms", "1 MB"])
def test_limits_of_memory_are_sizes(tmp_path: Path, size: str) -> None:
    _scenario(tmp_path, GREEDY)
    words = ["run", "x.yaml", "-o", "out", "--no-report", f"--memory={size}"]
    done = run_in(os.environ | {"NO_COLOR": "1"}, words, tmp_path)
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith("narrows: --memory: ") and done.stderr.count("\n") == 1, done.stderr


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_simulations_do_not_outlive_their_parent(tmp_path: Path, number: signal.Signals) -> None:
    process = _start(tmp_path, HARDLY_MOVING)
    cells = tmp_path / "out" / "cells"
    eventually("the simulation has begun", lambda: cells.is_dir() and any(cells.glob(".*.partial")))
    agents = family(process.pid)
    assert agents
    process.send_signal(number)
    processes.finish(process)
    eventually("the agent is gone", lambda: not any(is_alive(pid) for pid in agents))
    assert not any(cells.glob(".*.partial"))
