"""CSV that spreadsheets can open safely: no text of ours is a formula there."""

from __future__ import annotations

import ast
import csv
import io
import json
import shutil
from pathlib import Path

import pytest

import narrows
from campaign_kit import SCENARIO, simulate
from campaign_kit import narrows as call
from narrows.csv_text import Rows, neutralise

FORMULAS = [
    "=1+1",
    "+a",
    "-a",
    "@SUM(A1)",
    "\t=1",
    "\r=1",
    "\n=1",
    "-",
    "=",
    "-1+2",
    "+1e5x",
    "-inf",
    "-nan",
    "+1_0",
]
PLAIN = ["", "cubic", "a=b", "-1.5", "+2", "-1e-3", "1e9", "'x", " =1"]


@pytest.mark.parametrize("text", FORMULAS, ids=repr)
def test_formulas_have_an_apostrophe(text: str) -> None:
    stream = io.StringIO()
    Rows(stream).write_all([[text, -1.5, None, True]])
    assert next(csv.reader(io.StringIO(stream.getvalue(), newline=""))) == [f"'{text}", "-1.5", "", "True"]


@pytest.mark.parametrize("text", PLAIN, ids=repr)
def test_other_texts_and_numbers_stay_as_they_are(text: str) -> None:
    assert neutralise(text) == text


@pytest.mark.parametrize("value", [-1, -1.5, None, True])
def test_values_that_are_no_text_stay_as_they_are(value: object) -> None:
    assert neutralise(value) is value


def _fields(text: str) -> list[str]:
    return [field for row in csv.reader(io.StringIO(text)) for field in row]


def test_names_of_schemes_become_no_formulas_in_any_table(tmp_path: Path) -> None:
    named = '{scheme: reno, name: "=HYPERLINK(1)"}'
    folder = simulate(tmp_path / "c", SCENARIO.replace("[reno, cubic]", f"[{named}, cubic]"))
    queried = call("query", "select scheme, -1 as low, '@x' as at from results", folder, "--format", "csv")
    assert call("plot", folder, "--figure", "summary", "-o", tmp_path / "s.svg").exit_code == 0
    assert call("export", folder, "--format", "csv", "-o", tmp_path / "x").exit_code == 0
    tables = [queried.stdout, *(path.read_text() for path in tmp_path.rglob("*.csv"))]
    assert len(tables) > 5
    found = [field for text in tables for field in _fields(text)]
    assert found.count("'=HYPERLINK(1)") >= 3 and "'@x" in found and "-1" in found
    assert not [one for one in found if neutralise(one) != one]


def test_words_of_records_become_no_formulas(tmp_path: Path) -> None:
    """An element named like a formula, as exported by the core."""
    from narrows import _native

    folder = simulate(tmp_path / "c")
    cell = json.loads((folder / "cells" / "reno-r1" / "run.json").read_text())["cell"]
    cell["network"]["forward"][0]["name"] = "=cmd"
    _native.simulate(json.dumps(cell), str(tmp_path / "cell"))
    (tmp_path / "x").mkdir()
    _native.export_csv(str(tmp_path / "cell"), str(tmp_path / "x"))
    fields = _fields((tmp_path / "x" / "queues.csv").read_text())
    assert "'=cmd" in fields and "=cmd" not in fields
    shutil.rmtree(tmp_path / "x")


def test_every_table_is_written_by_the_one_that_neutralises() -> None:
    package = Path(narrows.__file__).parent
    writers = {
        str(path.relative_to(package))
        for path in package.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and node.attr in ("writer", "DictWriter")
    }
    assert writers == {"csv_text.py"}
