"""Every shipped scenario runs: its first seconds, simulated, with a record that passes verification."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from narrows import _native
from narrows.cli.all_commands import app
from narrows.errors import NarrowsError
from narrows.scenario import load
from narrows.scenario.files import name_in_store
from narrows.scenario.model import Cell, Scenario, cells_of
from narrows.scenario.prefixes import BPF_PREFIX, KERNEL_PREFIX
from narrows.scenario.schemes import missing_model
from narrows.scenario.shipped import Shipped, find, list_scenarios

SECONDS = 2
#: From a gigabit on, half a second has more packets than two seconds of the others.
FAST_BPS = 1_000_000_000


def shortened(content: dict[str, Any], duration_ns: int) -> dict[str, Any]:
    """The first part of a cell, without later events."""
    flows = [
        {**flow, "stop_ns": min(flow["stop_ns"], duration_ns)}
        for flow in content["flows"]
        if flow["start_ns"] < duration_ns
    ]
    timeline = [change for change in content.get("timeline", []) if change["at_ns"] < duration_ns]
    later = {"timeline": timeline} if timeline else {}
    kept = {key: value for key, value in content.items() if key != "timeline"}
    # A measured part that begins later is dropped as well, and the whole run is measured.
    if kept.get("measure", {}).get("from_ns", 0) >= duration_ns:
        del kept["measure"]
    return {**kept, **later, "flows": flows, "duration_ns": min(duration_ns, content["duration_ns"])}


def needs_the_kernel(cell: Cell) -> bool:
    """True if one of its flows follows a scheme of the kernel, or is a program."""
    flows = cell.to_json()["flows"]
    return any("program" in one or one["scheme"].startswith((KERNEL_PREFIX, BPF_PREFIX)) for one in flows)


def chosen(scenario: Scenario) -> list[Cell]:
    """The first and the last cell that can be simulated: for a matrix, both ends."""
    cells = [
        cell
        for cell in cells_of(scenario)
        if cell.run == 1
        and not needs_the_kernel(cell)
        and not any(missing_model(flow["params"]) for flow in cell.to_json()["flows"])
    ]
    return [cells[0], cells[-1]] if len(cells) > 1 else cells


def test_there_are_scenarios_of_the_field() -> None:
    families = {one.family for one in list_scenarios()}
    assert {"basic", "geni", "ncsu", "parking-lot", "rfc8867", "pantheon", "cellular"} <= families
    names = [one.name for one in list_scenarios()]
    assert len(names) == len(set(names)), "scenarios are found by their names alone"
    basic = {"first-look", "one-flow", "three-flows", "shallow-buffer", "lossy", "gigabit"}
    assert basic <= set(names)


@pytest.mark.parametrize("name", ["tcp_nup", "tcp-nup", "flent/tcp_nup", "flent/tcp-nup.yaml"])
def test_hyphens_of_names_may_be_written_as_underscores(name: str) -> None:
    assert find(name).name == "tcp-nup.yaml"


def test_a_host_implies_a_run_between_hosts() -> None:
    result = CliRunner().invoke(app, ["run", "flent/rrul", "--host", "me@nowhere.invalid", "--dry-run"])
    assert isinstance(result.exception, NarrowsError) and "ssh to me@nowhere.invalid" in str(result.exception)


@pytest.mark.parametrize("one", list_scenarios(), ids=lambda one: f"{one.family}/{one.name}")
def test_it_is_called_as_its_file_and_asks_something(one: Shipped) -> None:
    scenario = load(one.path).scenario
    assert scenario.name == one.name
    assert scenario.question.endswith("?")


@pytest.mark.parametrize("one", list_scenarios(), ids=lambda one: f"{one.family}/{one.name}")
def test_its_first_seconds_simulated(one: Shipped, tmp_path: Path) -> None:
    scenario = load(one.path).scenario
    files = tmp_path / "files"
    files.mkdir()
    for sha256, content in scenario.files.contents.items():
        (files / name_in_store(scenario.files.names[sha256], sha256)).write_bytes(content)
    cells = chosen(scenario)
    # Scenarios for the kernel alone have nothing to simulate.
    if not cells and not all(needs_the_kernel(cell) for cell in cells_of(scenario)):
        pytest.skip("its models are not installed")
    for number, cell in enumerate(cells):
        fast = str(FAST_BPS) in json.dumps(cell.to_json()["network"])
        part = shortened(cell.to_json(), SECONDS * 10**9 // (4 if fast else 1))
        out = tmp_path / str(number)
        run = json.loads(_native.simulate(json.dumps(part), out, files))
        assert run["verdict"] == "ok", run["reasons"]
        failed = [check for check in json.loads(_native.verify(out))["checks"] if not check["ok"]]
        assert not failed, failed
        measured = json.loads(_native.measure(out))
        # If the flows under test start later, the background already runs.
        rates = [flow["metrics"].get("throughput_bps") or 0 for flow in measured["flows"]]
        assert max(rates) > 0, cell.id
