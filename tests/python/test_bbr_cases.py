"""The test cases in the appendix of the BBR draft: each scenario in `scenarios/bbr` meets its
expectations."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from campaign_kit import narrows

CASES = sorted((Path(__file__).resolve().parents[2] / "scenarios" / "bbr").glob("a*.yaml"))


def test_all_cases_of_the_appendix_have_a_scenario() -> None:
    assert [path.name[1:3] for path in CASES] == [f"{number:02}" for number in range(1, 23)]


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_the_case_holds(path: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = narrows("run", path, "-o", out, "--no-report")
    assert (out / "results.json").exists(), done.output
    found = json.loads((out / "results.json").read_text())["expect"]
    assert {one["scheme"] for one in found} == {"bbr3", "bbr-draft"}
    failed = [(one["text"], one["value"], one["reason"]) for one in found if one["outcome"] != "holds"]
    assert not failed, failed
    assert done.exit_code == 0, done.output
