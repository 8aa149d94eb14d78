"""The test cases 5.1 to 5.8 of RFC 8867: each scenario in `scenarios/media` meets its expectations."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from campaign_kit import narrows

CASES = sorted((Path(__file__).resolve().parents[2] / "scenarios" / "media").glob("call-5.*.yaml"))


def test_all_cases_of_the_rfc_have_a_scenario() -> None:
    assert sorted({path.name[5:8] for path in CASES}) == [f"5.{number}" for number in range(1, 9)]


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_the_case_holds(path: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = narrows("run", path, "-o", out, "--no-report")
    assert (out / "results.json").exists(), done.output
    found = json.loads((out / "results.json").read_text())["expect"]
    tried = {one["scheme"].split()[0] for one in found}
    assert tried == ({path.stem.rpartition("-")[2]} if "pause" in path.stem else {"scream", "gcc"})
    failed = [
        (one["scheme"], one["text"], one["value"], one["reason"])
        for one in found
        if one["outcome"] != "holds"
    ]
    assert not failed, failed
    assert done.exit_code == 0, done.output
