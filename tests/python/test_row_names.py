"""Rows of a matrix in tables: the scheme and each value in separate columns, shared values once."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from compare_kit import Values, campaign, flow, on_terminal, runs
from narrows.cli.all_commands import app
from narrows.report import document
from narrows.report.data import load
from narrows.text import distinct_names

SHARED = "rate 12 Mbit/s"


@pytest.fixture(scope="module")
def eighteen(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three schemes under six combinations that share a value; two rows have an invalid run."""
    rows: list[dict[str, Any]] = []
    values: dict[str, list[Values]] = {}
    for scheme in ("cubic", "reno", "copa"):
        for queue in ("0.5 bdp", "1 bdp", "4 bdp"):
            for delay in ("10 ms", "40 ms"):
                label = f"{scheme} (droptail {queue}, delay {delay}, {SHARED})"
                given = {"droptail": queue, "delay": delay, "rate": "12 Mbit/s"}
                rows.append({"label": label, "flows": [flow(scheme)], "values": given})
                values[label] = runs(len(rows), 10)
    verdicts = dict.fromkeys([(next(iter(values)), 1)], "invalid")
    folder = tmp_path_factory.mktemp("rows") / "eighteen"
    return campaign(folder, values, changes={"schemes": rows}, verdicts=verdicts)


def test_a_terminal_of_80_columns_shows_18_rows_in_one_line_each(eighteen: Path) -> None:
    text = on_terminal("show", eighteen, columns=80)
    assert all(len(line) <= 80 for line in text.splitlines())
    table = re.findall(r"^(cubic|reno|copa) +(0\.5|1|4) bdp +(10|40) ms +\d.*$", text, re.MULTILINE)
    assert len(set(table)) == 18
    assert f"All rows: {SHARED}." in text
    head = next(line for line in text.splitlines() if line.startswith("scheme"))
    assert head.split()[:3] == ["scheme", "droptail", "delay"]


def test_reports_have_the_same_columns(eighteen: Path) -> None:
    whole = document.compose(load(eighteen), {})
    for table in (whole.results.table, whole.verdicts.table):
        assert [column.head for column in table.columns][:3] == ["scheme", "droptail", "delay"]
        assert all(len(row) == len(table.columns) for row in table.rows)
        assert not any("(droptail" in one.text for row in table.rows for one in row)
        # The colour of a row is looked up by its label.
        assert table.rows[0][0].key.startswith("cubic (droptail 0.5 bdp")
    assert whole.results.words.startswith(f"All rows: {SHARED}.")


@pytest.mark.skipif(shutil.which("pdftotext") is None, reason="pdftotext is not installed")
def test_paper_has_each_row_in_one_line(eighteen: Path) -> None:
    done = CliRunner().invoke(app, ["report", str(eighteen), "--report", "pdf"])
    assert done.exit_code == 0, done.output
    told = ["pdftotext", "-layout", str(eighteen / "report.pdf"), "-"]
    text = subprocess.run(told, capture_output=True, text=True, check=True).stdout
    verdicts = re.findall(r"^ *(cubic|reno|copa) .*?(0\.5|1|4) bdp +(10|40) ms .*● ok", text, re.MULTILINE)
    assert len(set(verdicts)) == 18
    results = re.findall(r"^ *(cubic|reno|copa) .*?(0\.5|1|4) bdp +(10|40) ms +all +\d", text, re.MULTILINE)
    assert len(set(results)) == 18


def test_json_keeps_the_labels_and_has_the_values_apart(eighteen: Path) -> None:
    result = CliRunner().invoke(
        app, ["compare", str(eighteen), "--against", "cubic", "--json", "--no-traces"]
    )
    for row in json.loads(result.stdout)["rows"]:
        for side in (row["base"], row["other"]):
            assert side["scheme"].startswith(side["name"] + " (")
            assert set(side["values"]) == {"droptail", "delay", "rate"}


def test_campaigns_without_a_matrix_have_no_such_columns(tmp_path: Path) -> None:
    folder = campaign(tmp_path / "a", {"cubic": runs(1), "reno": runs(2)})
    text = on_terminal("show", folder, columns=80)
    assert "All rows" not in text
    table = document.compose(load(folder), {}).results.table
    assert [column.head for column in table.columns][:2] == ["scheme", "flow"]


def test_a_name_in_one_line_leaves_out_what_all_rows_share(eighteen: Path) -> None:
    from narrows.report.cells import row_names

    data = load(eighteen)
    names = [row_names(data).brief(label) for label in data.schemes]
    assert names[0] == "cubic (droptail 0.5 bdp, delay 10 ms)"
    assert len(set(names)) == 18


def test_folders_of_equal_names_are_distinguished() -> None:
    paths = [Path("/x/monday/run"), Path("/x/tuesday/run"), Path("/x/other")]
    assert distinct_names(paths) == ["monday/run", "tuesday/run", "other"]
    assert distinct_names([Path("/a/b/c"), Path("/a/d/b/c")]) == ["a/b/c", "d/b/c"]
    assert distinct_names([Path("run"), Path("run")]) == ["run", "run"]


def test_the_site_shows_folders_of_equal_names_apart(tmp_path: Path) -> None:
    for day in ("monday", "tuesday"):
        campaign(
            tmp_path / "results" / day / "run",
            {"cubic": runs(1), "reno": runs(2)},
            document={"created_at": f"2026-11-2{len(day)}T05:36:49.665Z"},
            skipped={"linux:none": "this kernel has no such scheme"},
        )
    target = tmp_path / "site"
    done = CliRunner().invoke(app, ["site", str(tmp_path / "results"), "-o", str(target)])
    assert done.exit_code == 0, done.output
    page = (target / "index.html").read_text()
    assert "monday/run" in page and "tuesday/run" in page
    assert str(tmp_path) not in page
    assert "1 skipped" in page, "what is skipped is counted"
