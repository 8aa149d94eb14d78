"""User-defined metrics: plain functions of a run, shown in every table."""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import narrows as package
from campaign_kit import narrows, rows_of, sentence, simulate
from narrows.campaign import own_metrics
from narrows.report import data
from narrows.report.tables import results as report_table
from narrows.report.tables import run_statistics
from narrows.site import making

METRICS = '''\
import narrows


@narrows.metric(label="packets per flow", better="higher")
def seen_packets(run: narrows.Run) -> dict:
    """Packets of a flow in either direction.

    Further words for those who read the file.
    """
    flows = {flow: run.packets(flow).num_rows for flow in run.flows}
    return {**flows, "all": run.packets().num_rows}


@narrows.metric
def share_ratio(run):
    return run.metrics(1)["throughput_bps"] / run.metrics()["throughput_bps"]


@narrows.metric(unit="apples")
def broken(run):
    return run.metrics()["no such metric"]
'''


@pytest.fixture(autouse=True)
def nothing_registered(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Each test begins without metrics, and with an empty folder of them."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    own_metrics.forget()
    yield
    own_metrics.forget()


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return simulate(tmp_path_factory.mktemp("own") / "small")


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    shutil.copytree(made, tmp_path / "small")
    shutil.copyfile(made.with_suffix(".yaml"), tmp_path / "small.yaml")
    return tmp_path / "small"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mine.py"
    path.write_text(METRICS)
    return path


def test_a_function_in_this_program_is_a_column(folder: Path) -> None:
    campaign = package.load(folder)
    before = campaign.results.column_names

    @package.metric(label="half")
    def half_of_loss_ratio(run: package.Run) -> float | None:
        """Half of the loss."""
        loss = run.metrics()["loss_ratio"]
        return None if loss is None else loss / 2

    assert campaign.results.column_names == [*before, "half_of_loss_ratio"]
    for row in rows_of(campaign.results, flow=None):
        assert row["half_of_loss_ratio"] == row["loss_ratio"] / 2
    assert {row["half_of_loss_ratio"] for row in rows_of(campaign.results, flow=1)} == {None}
    described = campaign.metrics[-1]
    assert described["definition"] == "Half of the loss." and described["show_unit"] == "%"
    line = rows_of(campaign.summary, scheme="reno", metric="half_of_loss_ratio", flow=None)[0]
    assert line["n"] == 2

    @package.metric(name="half_of_loss_ratio")
    def other(run: package.Run) -> float:
        return 7

    assert {row["half_of_loss_ratio"] for row in rows_of(campaign.results, flow=None)} == {7.0}
    # Nothing of this program is in the files.
    assert "half_of_loss_ratio" not in (folder / "results.csv").read_text()


def test_a_file_is_shown_in_every_table(folder: Path, file: Path) -> None:
    shown = narrows("show", folder, "--metrics", file)
    assert shown.exit_code == 0, shown.output
    for word in ("packets", "share", "broken", "apples"):
        assert word in shown.output
    why = "the function broken fails: KeyError: 'no such metric' (mine.py, line 21)"
    assert " ".join(shown.output.split()).count(f"reno, cubic: broken is N/A: {why}") == 1
    cell = narrows("show", folder / "cells" / "reno-r1", "--metrics", file)
    assert "packets per flow" in cell.output and cell.exit_code == 0
    asked = narrows(
        "query", "select run, seen_packets from results where flow = 2", folder, "--metrics", file
    )
    assert asked.exit_code == 0 and "seen_packets" in asked.output
    # The records and results are unchanged, since no command has asked to write them.
    assert "seen_packets" not in (folder / "results.json").read_text()


def test_values_by_flow_and_for_all(folder: Path, file: Path) -> None:
    own_metrics.read_file(file)
    results = package.load(folder).results
    for row in rows_of(results, cell="reno-r1"):
        packets = pq.read_table(folder / "cells" / "reno-r1" / "packets.parquet").to_pylist()
        assert row["seen_packets"] == sum(row["flow"] in (None, one["flow"]) for one in packets)
    shown = json.loads(narrows("show", folder, "--json", "--metrics", file).output)
    all_row = next(row for row in shown["rows"] if row["flow"] is None)
    one_row = next(row for row in shown["rows"] if row["flow"] == 1)
    assert one_row["absent"]["share_ratio"] == "it is computed for all flows only"
    assert 0 < all_row["metrics"]["share_ratio"] < 1
    assert all_row["absent"]["broken"].startswith("the function broken fails: KeyError")


def test_a_report_and_a_run_keep_them_in_the_results(folder: Path, file: Path, tmp_path: Path) -> None:
    assert narrows("report", folder, "--no-pdf", "--metrics", file).exit_code == 0
    text = (folder / "report.html").read_text()
    assert "packets per flow" in text and "the function broken fails" in text
    with (folder / "results.csv").open(newline="") as lines:
        assert next(csv.reader(lines))[-3:] == ["seen_packets", "share_ratio", "broken"]
    assert "seen_packets" in pq.read_schema(folder / "results.parquet").names
    own_metrics.forget()
    # Readers of the results no longer need the file.
    shown = narrows("show", folder)
    assert shown.exit_code == 0 and "the function broken fails" in shown.output
    again = narrows(
        "run", folder.with_suffix(".yaml"), "-o", tmp_path / "other", "--no-report", "--metrics", file
    )
    assert again.exit_code == 0, again.output
    assert "seen_packets" in (tmp_path / "other" / "results.csv").read_text()


def test_a_file_that_has_changed_is_computed_again(folder: Path, file: Path) -> None:
    assert narrows("report", folder, "--no-pdf", "--metrics", file).exit_code == 0
    own_metrics.forget()
    file.write_text(
        METRICS.replace("return {**flows", 'return {**flows, 1: 7, "x": 3} if 0 else {1: 7}; {**flows')
    )
    results = json.loads(narrows("show", folder, "--json", "--metrics", file).output)
    row = next(row for row in results["rows"] if row["flow"] == 1)
    assert row["metrics"]["seen_packets"] == 7
    all_row = next(row for row in results["rows"] if row["flow"] is None)
    assert all_row["absent"]["seen_packets"] == "it is computed per flow only"


def test_files_of_the_configuration_folder_are_always_loaded(
    folder: Path, file: Path, tmp_path: Path
) -> None:
    metrics = tmp_path / "config" / "narrows" / "metrics"
    metrics.mkdir(parents=True)
    shutil.copyfile(file, metrics / "mine.py")
    (metrics / "broken.py").write_text("import narrows\n@narrows.metric\ndef (:\n")
    shown = narrows("show", folder)
    assert shown.exit_code == 0 and "share" in shown.output
    assert f"{metrics / 'broken.py'}:3: is not Python: invalid syntax; it is left out" in shown.output


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("def (:", ":1: is not Python: invalid syntax"),
        ("x = 1", ": defines no metric; write @narrows.metric above a function of one run"),
        ("import nix_nix", ":1: can't be read: ModuleNotFoundError: No module named 'nix_nix'"),
        ("a = 1\nraise SystemExit(3)", ":2: can't be read: SystemExit: 3"),
        (
            "import narrows\n@narrows.metric(better='more')\ndef f(run): return 1",
            'better is "higher" or "lower"',
        ),
        (
            "import narrows\n@narrows.metric(name='a b')\ndef f(run): return 1",
            '"a b" is not a name of a metric',
        ),
        (
            "import narrows\n@narrows.metric\ndef throughput_bps(run): return 1",
            "throughput_bps is the name of a metric that there is already",
        ),
    ],
)
def test_files_that_are_refused(folder: Path, tmp_path: Path, text: str, words: str) -> None:
    file = tmp_path / "mine.py"
    file.write_text(text)
    refused = narrows("show", folder, "--metrics", file)
    assert sentence(refused).startswith(str(file)) and words in sentence(refused)
    assert "\n" not in sentence(refused)
    assert own_metrics.list_registered() == [] or "already" in words


def test_a_file_that_is_not_there_is_refused(folder: Path, tmp_path: Path) -> None:
    assert "can't be read" in sentence(narrows("show", folder, "--metrics", tmp_path / "nix.py"))


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("return float('nan')", "the function gives nan, which is not a number that can be compared"),
        ("return [1]", "the function f fails: TypeError"),
        ("return {'first': 1}", "the function f fails: ValueError: invalid literal for int()"),
        ("return None", "the function gives no value"),
        ("raise SystemExit('enough')", "the function f fails: SystemExit: enough (mine.py, line 3)"),
        ("raise ValueError('two\\nlines')", "the function f fails: ValueError: two lines (mine.py, line 3)"),
        ("raise ValueError", "the function f fails: ValueError (mine.py, line 3)"),
    ],
)
def test_failures_of_a_function_are_one_sentence(folder: Path, tmp_path: Path, body: str, words: str) -> None:
    file = tmp_path / "mine.py"
    file.write_text(f"import narrows\n@narrows.metric\ndef f(run): {body}\n")
    results = json.loads(narrows("show", folder, "--json", "--metrics", file).output)
    row = next(row for row in results["rows"] if row["flow"] is None)
    assert row["metrics"]["f"] is None
    assert row["absent"]["f"].startswith(words) and "\n" not in row["absent"]["f"]


def test_reports_have_them_in_their_tables(folder: Path, file: Path) -> None:
    own_metrics.read_file(file)
    from narrows.campaign import results
    from narrows.campaign.store import CampaignFolder

    results.write(CampaignFolder.read(folder), results.read(folder))
    campaign = data.load(folder)
    heads = [column.head for column in report_table(campaign).columns]
    assert heads[-3:] == ["packets per flow", "share", "broken"]
    rows = {row[0].text: row for row in run_statistics(campaign, campaign.runs[0]).rows}
    assert float(rows["packets per flow"][-1].text) > 100
    assert {"mine.py"} == {metric.source for metric in campaign.metrics if metric.is_own}


def test_sites_have_them_in_their_tables(folder: Path, file: Path, tmp_path: Path) -> None:
    done = narrows("site", folder, "-o", tmp_path / "site")
    assert done.exit_code == 0, (done.output, done.exception)
    own_metrics.read_file(file)
    before = making._mark(folder, "x")
    own_metrics.forget()
    assert making._mark(folder, "x") != before, "pages are made again"
    own_metrics.read_file(file)
    assert making._mark(folder, "x") == before
    done = narrows("site", folder, "-o", tmp_path / "site")
    assert done.exit_code == 0, (done.output, done.exception)
