"""Expectations of a sweep, judged at every point."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from narrows.cli.all_commands import app
from narrows.documents.data import to_data
from narrows.errors import EXIT_EXPECTATION, UsageError
from narrows.sweep.store import SweepFolder

SCENARIO = """\
schema: narrows/scenario/1
path: {forward: [{rate: 2 Mbit/s, queue: {droptail: 1 bdp}}, {delay: 20 ms}, {loss: 0.01 %}]}
schemes: [cubic, reno]
duration: 3 s
runs: 2
sweep:
  path.forward.2.loss: [0.01 %, 20 %]
expect:
  - {metric: utilization_ratio, at_least: 60 %}
  - {metric: loss_ratio, scheme: reno, at_most: 90 %}
"""


def run(tmp_path: Path, text: str = SCENARIO, *more: str) -> tuple[int, str]:
    file = tmp_path / "space.yaml"
    file.write_text(text)
    done = CliRunner().invoke(app, ["sweep", "run", str(file), "-o", str(tmp_path / "space"), *more])
    if done.exception and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.exit_code, done.stdout


def test_each_expectation_is_judged_at_every_point(tmp_path: Path) -> None:
    code, text = run(tmp_path, SCENARIO, "--json")
    assert code == EXIT_EXPECTATION
    found = {one["text"]: one for one in json.loads(text)["expect"]}
    assert len(found) == 3
    for scheme in ("cubic", "reno"):
        one = found[f"{scheme}, all flows: median utilization at least 60 %"]
        assert (one["points"], one["holds"]) == (2, 1)
        (fail,) = one["fails"]
        assert fail["point"] == 1
        assert fail["value"] < 0.6
        assert 0.2 in fail["parameters"].values()
    loss = found["reno, all flows: median loss at most 90 %"]
    assert loss["holds"] == loss["points"] == 2
    assert to_data(SweepFolder.read(tmp_path / "space").document.expect) == list(found.values())


def test_expectations_that_hold_everywhere_exit_with_0(tmp_path: Path) -> None:
    code, text = run(tmp_path, SCENARIO.replace("60 %", "0.1 %"))
    assert code == 0
    assert "holds   cubic, all flows: median utilization at least 0.1 %, at all 2 points" in text
    # Expectations do not change the experiment: nothing is simulated again.
    parts = SweepFolder.read(tmp_path / "space").parts
    code, text = run(tmp_path)
    assert code == EXIT_EXPECTATION
    assert "at 1 of 2 points (1)" in text
    assert SweepFolder.read(tmp_path / "space").parts == parts


def test_states_can_not_be_expected_of_a_sweep(tmp_path: Path) -> None:
    text = SCENARIO + "  - {mode: probe_rtt, measure: visits, at_least: 1}\n"
    with pytest.raises(UsageError, match="keeps no states"):
        run(tmp_path, text)
    assert not (tmp_path / "space").exists()
