"""`narrows compare --pair`: which two schemes a text names."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from compare_kit import campaign, flow
from narrows.cli.all_commands import app
from narrows.comparison.document import Request, compare
from narrows.errors import UsageError


def test_labels_of_a_pair_may_contain_the_sign_that_parts_them(tmp_path: Path) -> None:
    labels = ["cubic (beta=0.5)", "cubic (beta=0.7)"]
    rows = [{"label": label, "flows": [flow("cubic")]} for label in labels]
    folder = campaign(
        tmp_path / "a", {label: [{"throughput_bps": 1e6}] for label in labels}, changes={"schemes": rows}
    )
    result = CliRunner().invoke(app, ["compare", str(folder), "--pair", "=".join(labels), "--json"])
    (row,) = json.loads(result.stdout)["rows"]
    assert (row["base"]["scheme"], row["other"]["scheme"]) == tuple(labels)
    for pair, words in (
        ("cubic", "is no pair"),
        ("=cubic", "is no pair"),
        ("reno=cubic (beta=0.5)", 'no scheme "reno"'),
    ):
        with pytest.raises(UsageError, match=words):
            compare(Request([folder], pairs=[pair]))


def test_a_pair_that_may_be_parted_in_two_ways_is_refused(tmp_path: Path) -> None:
    labels = ["a", "a=a", "a=a=a"]
    rows = [{"label": label, "flows": [flow("cubic")]} for label in labels]
    folder = campaign(
        tmp_path / "a", {label: [{"throughput_bps": 1e6}] for label in labels}, changes={"schemes": rows}
    )
    with pytest.raises(UsageError, match='may mean "a" with "a=a" or "a=a" with "a"'):
        compare(Request([folder], pairs=["a=a=a"]))
