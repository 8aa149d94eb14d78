"""Laboratories: families that are folders of data, run and compared with published values."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from browser import PROGRAM, Browser
from campaign_kit import narrows, sentence
from lab_kit import LAB, TABLE, family
from narrows.documents.data import from_data, to_data
from narrows.documents.laboratory import LabReport
from narrows.files import SHIPPED
from narrows.lab import store
from narrows.lab.keys import schema
from narrows.lab.reading import read
from narrows.lab.running import check
from narrows.lab.store import list_families


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """The family after its run, and its document."""
    place = tmp_path_factory.mktemp("lab")
    result = narrows("lab", "run", family(place / "buffers"), "-o", place / "out", "--json")
    assert result.exit_code == 0, (result.output, result.exception)
    return place / "out", json.loads(result.stdout)


def cells(document: dict[str, Any], column: str) -> dict[tuple[str, str], dict[str, Any]]:
    of = next(one for one in document["columns"] if one["name"] == column)
    return {(cell["scheme"], cell["case"]): cell for cell in of["cells"]}


def test_a_family_is_added_by_files_alone(tmp_path: Path) -> None:
    family(store.user_folder() / "buffers")
    found = json.loads(narrows("lab", "list", "--json").stdout)["labs"]
    mine = next(one for one in found if one["name"] == "buffers")
    assert (mine["origin"], mine["kind"], mine["problem"]) == ("yours", "laboratory", None)
    shown = narrows("lab", "show", "buffers")
    assert "A page." in shown.stdout
    assert "narrows lab run buffers" in shown.stdout
    out = tmp_path / "out"
    result = narrows("lab", "run", "buffers", "--quick", "-o", out)
    assert result.exit_code == 0, (result.output, result.exception)
    assert "Half as long." in result.stdout
    assert (out / "report.html").is_file()
    assert (out / "buffers" / "results.json").is_file()


def test_a_written_comparison_reads_back_to_the_same_bytes(done: tuple[Path, dict[str, Any]]) -> None:
    text = (done[0] / "comparison.json").read_text(encoding="utf-8")
    again = to_data(from_data(json.loads(text), LabReport))
    assert json.dumps(again, indent=1, ensure_ascii=False) + "\n" == text


def test_values_stand_beside_the_published_ones(done: tuple[Path, dict[str, Any]]) -> None:
    _, document = done
    rate = cells(document, "rate")
    assert rate["NewReno", "small"]["theirs"] == 3.9e6
    assert rate["NewReno", "small"]["state"] == "compared"
    assert rate["NewReno", "small"]["relative"] == pytest.approx(rate["NewReno", "small"]["ours"] / 3.9e6 - 1)
    assert rate["CUBIC", "large"]["state"] == "not published"
    # A parameter of a scheme reaches its runs.
    assert rate["CUBIC", "small"]["records"][0].startswith("cubic-beta-0.8")


def test_the_note_of_a_laboratory_that_was_edited_is_refused(
    done: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    (tmp_path / "lab.json").write_text(
        (done[0] / "lab.json").read_text().replace('"quick": false', '"quick": true')
    )
    assert "its digest does not fit" in sentence(narrows("lab", "report", tmp_path))


def test_artefacts_are_marked_and_not_compared(done: tuple[Path, dict[str, Any]]) -> None:
    out, document = done
    cell = cells(document, "delay")["CUBIC", "small"]
    assert (cell["state"], cell["artefact"], cell["relative"]) == ("artefact", "A broken clock.", None)
    of = next(one for one in document["columns"] if one["name"] == "delay")
    assert (of["all"]["cells"], of["all"]["artefacts"]) == (3, 1)
    text = (out / "report.txt").read_text()
    assert "A broken clock." in text


def test_a_published_zero_has_an_error_in_its_unit(done: tuple[Path, dict[str, Any]]) -> None:
    cell = cells(done[1], "delay")["CUBIC", "large"]
    assert cell["relative"] is None
    assert cell["absolute"] == cell["ours"] > 0
    assert cell["log"] is None


def test_statements_hold_or_do_not(done: tuple[Path, dict[str, Any]]) -> None:
    first, second = done[1]["relations"]
    assert (first["published"], first["here"]) == ("holds", "holds")
    assert second["published"] == "does not hold"
    assert first["records"][0].startswith("buffers/cells/reno")


def test_the_report_opens_with_its_answer(done: tuple[Path, dict[str, Any]]) -> None:
    out, document = done
    assert document["answer"]
    page = (out / "report.html").read_text()
    assert page.index(document["question"]) < page.index("Ours and theirs")
    for text in ("It was a link of 4 Mbit/s.", "Nobody else used it.", "Another seed.", "Assumptions about"):
        assert text in page
    lines = (out / "report.txt").read_text().splitlines()
    assert lines[1] == document["question"]
    assert lines[3].startswith(document["answer"][0][:40])


def test_a_family_is_completed_in_its_folder(done: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    out, document = done
    again = narrows("lab", "report", out, "--json")
    assert json.loads(again.stdout) == document
    other = narrows("lab", "run", family(tmp_path / "others"), "-o", out)
    assert "holds another laboratory" in sentence(other)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").touch()
    assert "holds something else" in sentence(
        narrows("lab", "run", tmp_path / "others", "-o", tmp_path / "full")
    )


def test_a_broken_limit_is_reported_and_exits_with_5(tmp_path: Path) -> None:
    strict = LAB.replace("statistic: mean_relative_error, at_most: 10 %", "statistic: tau, at_least: 0.99")
    table = TABLE.replace("CUBIC,1,rate,3.9", "CUBIC,1,rate,4.0").replace("CUBIC,2,rate,", "CUBIC,2,rate,1.0")
    made = family(tmp_path / "strict", strict, table)
    assert narrows("lab", "run", made, "--quick", "-o", tmp_path / "quick").exit_code == 0
    result = narrows("lab", "run", made, "-o", tmp_path / "out")
    assert result.exit_code == 5, result.output
    assert "1 of 1 limit broken: throughput: Kendall's tau" in " ".join(result.stdout.split())


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("title: Buffers", "titel: Buffers", 'unknown key; did you mean "title"?'),
        ("question: What does a buffer cost?\n", "", "the key question is missing"),
        (
            "NewReno: reno",
            "Newreno: reno",
            'the published table has no scheme "Newreno"; did you mean "NewReno"?',
        ),
        (
            "{buffer: 1}}",
            "{bufer: 1}}",
            'column of the published table "bufer" does not exist; did you mean "buffer"?',
        ),
        ("NewReno @ large", "NewReno @ big", 'case "big" does not exist'),
        ("statistic: mean_relative_error", "statistic: mean", "is not one of mean_absolute_error"),
        (", at_most: 10 %", "", "limits nothing"),
        ("file: table.csv", "file: ../table.csv", "must be a file in the folder of the family"),
        ("quick: false", "quick: maybe", '"maybe" is neither true nor false'),
        (
            "column: delay, where",
            "column: delays, where",
            'column "delays" does not exist; did you mean "delay"?',
        ),
    ],
)
def test_mistakes_are_reported_with_their_place(tmp_path: Path, old: str, new: str, told: str) -> None:
    assert old in LAB
    made = family(tmp_path / "wrong", LAB.replace(old, new))
    result = narrows("lab", "run", made, "-o", tmp_path / "out")
    assert told in sentence(result)
    assert "lab.yaml:" in sentence(result)
    assert getattr(result.exception, "exit_code", None) == 3
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (
            ("metric: throughput_bps", "metric: throughput_bbs"),
            'metric "throughput_bbs" does not exist; did you mean',
        ),
        (("1.0 bdp", "7 bdp"), "no row of the scenario has droptail: 7 bdp; there is droptail: 1 bdp"),
        (("scenario: buffers.yaml", "scenario: bufers.yaml"), "does not exist"),
        (("set: {runs: 1}", "set: {runs: one}"), "experiments.buffers.set.runs"),
    ],
)
def test_contradictions_are_reported_before_anything_runs(
    tmp_path: Path, change: tuple[str, str], told: str
) -> None:
    result = narrows("lab", "run", family(tmp_path / "wrong", LAB.replace(*change)), "-o", tmp_path / "out")
    assert told in sentence(result)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("table", "told"),
    [
        ("variant,buffer\n", "has a head and at least one line"),
        ("scheme,buffer\nx,1\n", 'has no column "variant"'),
        (TABLE + "CUBIC,3\n", ":10: has 2 values for 4 columns"),
        (TABLE.replace("delay,20", "delay,twenty"), "is not a number"),
    ],
)
def test_a_table_that_is_none_is_refused(tmp_path: Path, table: str, told: str) -> None:
    result = narrows(
        "lab", "run", family(tmp_path / "wrong", table=table), "--only", "buffers", "-o", tmp_path / "o"
    )
    assert told in sentence(result)


def test_names_that_are_not_there_are_corrected(tmp_path: Path) -> None:
    assert 'did you mean "geni"?' in sentence(narrows("lab", "run", "genni"))
    made = family(tmp_path / "buffers")
    assert 'has no experiment "bufers"; did you mean' in sentence(
        narrows("lab", "run", made, "--only", "bufers")
    )
    assert "no laboratory was run here" in sentence(narrows("lab", "report", tmp_path))
    assert "is not simulate or emulate" in sentence(narrows("lab", "run", made, "--where", "here"))
    plain = family(tmp_path / "plain", LAB.replace("quick: Half as long.\n", ""))
    assert "has no quick runs" in sentence(narrows("lab", "run", plain, "--quick", "-o", tmp_path / "out"))


def test_a_new_family_runs_as_it_stands(tmp_path: Path) -> None:
    made = tmp_path / "mine"
    assert narrows("lab", "new", made).exit_code == 0
    assert "already exists" in sentence(narrows("lab", "new", made))
    result = narrows("lab", "run", made, "--quick", "-o", tmp_path / "out")
    assert result.exit_code == 0, (result.output, result.exception)


def _shipped() -> list[str]:
    return [one.name for one in list_families() if one.origin == SHIPPED]


@pytest.mark.parametrize("name", _shipped())
@pytest.mark.parametrize("quick", [False, True])
@pytest.mark.parametrize("where", ["simulate", "emulate"])
def test_shipped_families_can_be_run(name: str, quick: bool, where: str) -> None:
    lab = store.load(name)
    check(lab, where, quick, [])
    assert quick is False or lab.quick, "every shipped family has quick runs"
    content = yaml.safe_load((lab.folder / "lab.yaml").read_text())
    jsonschema.validate(content, schema())


@pytest.mark.parametrize("name", _shipped())
def test_every_published_value_of_a_shipped_family_is_found(name: str) -> None:
    """Each column has a published value for some cell, and each case has one in some column."""
    lab = store.load(name)
    if lab.published is None:
        return
    empty = []
    for experiment in lab.experiments.values():
        for case in experiment.cases.values():
            values = [
                lab.published.lines(of.scheme or scheme, experiment.published, case.published, of.where)
                for scheme in experiment.schemes
                for column in lab.columns.values()
                if experiment.name in column.experiments and (of := column.published)
            ]
            if not any(values):
                empty.append(f"{experiment.name}: {case.name}")
    assert not empty


def test_the_schema_and_the_reader_refuse_the_same(tmp_path: Path) -> None:
    content = yaml.safe_load(LAB)
    jsonschema.validate(content, schema())
    for wrong in ({**content, "titel": "x"}, {k: v for k, v in content.items() if k != "title"}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(wrong, schema())
    assert read(family(tmp_path / "right")).name == "right"


@pytest.mark.skipif(PROGRAM is None, reason="no Chromium is installed (Debian package: chromium)")
@pytest.mark.parametrize("width", [360, 1200])
def test_the_page_fits_its_window(done: tuple[Path, dict[str, Any]], tmp_path: Path, width: int) -> None:
    out, _ = done
    with Browser(tmp_path / "profile") as opened:
        opened.open(out / "report.html", width=width)
        assert opened.run("document.documentElement.scrollWidth") <= width
        assert not opened.said
