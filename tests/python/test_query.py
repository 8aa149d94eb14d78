"""`narrows query`: SQL over all campaigns of a folder."""

from __future__ import annotations

import csv
import io
import json
import shutil
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner

import narrows as package
from campaign_kit import SCENARIO, narrows, sentence, simulate
from narrows.api.query import concatenate
from narrows.cli.all_commands import app
from narrows.errors import UsageError


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two campaigns in a folder, one of them with a matrix."""
    place = tmp_path_factory.mktemp("query") / "results"
    place.mkdir()
    simulate(place / "plain")
    (place / "deeper").mkdir()
    simulate(
        place / "deeper" / "swept",
        SCENARIO + "matrix: {path.forward.1.delay: [5 ms, 10 ms], path.forward.0.queue: [{codel: {}}]}\n",
        "--runs",
        "1",
    )
    return place


def rows(*arguments: object) -> list[dict[str, object]]:
    done = narrows("query", *arguments, "--format", "json")
    assert done.exit_code == 0, (done.output, done.exception)
    found: list[dict[str, object]] = json.loads(done.stdout)
    return found


def test_results_of_all_campaigns(made: Path) -> None:
    found = rows("select campaign, scheme, run, flow, delay_ns, queue from results where flow is null", made)
    assert {(one["campaign"], one["scheme"], one["run"], one["delay_ns"]) for one in found} == {
        ("plain", scheme, run, None) for scheme in ("reno", "cubic") for run in (1, 2)
    } | {
        ("deeper/swept", scheme, 1, delay)
        for scheme in ("reno", "cubic")
        for delay in (5_000_000, 10_000_000)
    }
    assert {one["queue"] for one in found} == {None, "codel"}


@pytest.mark.parametrize("view", ["packets", "states", "queues"])
def test_records_have_the_columns_of_their_run_in_front(made: Path, view: str) -> None:
    columns = [one["column_name"] for one in rows(f"describe {view}", made)]
    assert columns[:6] == ["campaign", "cell", "scheme", "row", "run", "verdict"]
    (one,) = rows(f"select count(*) as n from {view} where cell = 'reno-r1'", made)
    assert one["n"] == package.load(made / "plain").run("reno-r1").table(view).num_rows
    swept = rows(
        f"select distinct scheme, row from {view} where campaign = 'deeper/swept' and scheme = 'reno'", made
    )
    assert {one["row"] for one in swept} == {f"reno (delay {delay} ms, queue codel)" for delay in (5, 10)}


def test_one_campaign_is_called_by_its_folder(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert rows("select distinct campaign from results", made / "plain") == [{"campaign": "plain"}]
    monkeypatch.chdir(made.parent)
    assert len(rows("select distinct campaign from results")) == 2
    monkeypatch.chdir(made / "plain")
    assert rows("select distinct campaign from packets", ".") == [{"campaign": "plain"}]


def test_views_join(made: Path) -> None:
    found = rows(
        "select r.scheme, count(*) as packets from packets p join results r using (campaign, cell, flow)"
        " where r.delay_ns = 5000000 group by r.scheme order by 1",
        made,
    )
    assert [one["scheme"] for one in found] == ["cubic", "reno"]


def test_queries_print_json_and_csv(made: Path) -> None:
    sql = (
        "select scheme, null as nothing, 0.5::double as half, 1.5 as exact, true as yes from results limit 1"
    )
    answer = rows(sql, made)
    assert answer == [{"scheme": "reno", "nothing": None, "half": 0.5, "exact": 1.5, "yes": True}]
    assert json.loads(narrows("query", sql, made, "--json").stdout) == answer
    done = narrows("query", sql, made, "--format", "csv")
    assert list(csv.reader(io.StringIO(done.stdout))) == [list(answer[0]), ["reno", "", "0.5", "1.5", "true"]]
    shown = narrows("query", sql, made).stdout.splitlines()
    assert [line.split() for line in shown] == [list(answer[0]), ["reno", "0.5", "1.5", "true"]]
    assert narrows("query", sql, made, "--format", "excel").exit_code == 2


def test_tables_never_cut_and_name_what_does_not_fit(made: Path) -> None:
    done = narrows("query", "select *, 12345678 as last_one from results", made)
    assert "…" not in done.output
    assert "columns that don't fit: " in done.stderr and "--format csv has all" in done.stderr
    done = narrows("query", "select range as n from range(600)", made)
    assert "these are 500 of 600 rows; --format csv has all" in done.stderr


def test_a_query_comes_from_standard_input(made: Path) -> None:
    done = CliRunner().invoke(app, ["query", "-", str(made), "--json"], input="select 1 as one")
    assert json.loads(done.stdout) == [{"one": 1}]


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("selec 1", "the query can't be run: Parser Error: syntax error"),
        ("select nix from results", 'the query can\'t be run: Binder Error: Referenced column "nix"'),
        ("select * from nix", "the query can't be run: Catalog Error: Table with name nix does not exist"),
    ],
)
def test_wrong_queries_are_one_sentence(made: Path, sql: str, words: str) -> None:
    refused = narrows("query", sql, made)
    assert sentence(refused).startswith(words) and "\n" not in sentence(refused)
    assert refused.exception is not None and refused.exception.exit_code == 2  # type: ignore[attr-defined]


def test_missing_tables_and_folders_are_reported(made: Path, tmp_path: Path) -> None:
    assert "no finished run of these campaigns has bins" in sentence(narrows("query", "from bins", made))
    assert "there is no campaign that can be read" in sentence(narrows("query", "from results", tmp_path))
    assert "does not exist" in sentence(narrows("query", "from results", tmp_path / "nix"))


def test_damaged_files_cost_a_sentence_each(made: Path, tmp_path: Path) -> None:
    shutil.copytree(made, tmp_path / "results")
    cells = tmp_path / "results" / "plain" / "cells"
    cut = cells / "reno-r1" / "packets.parquet"
    cut.write_bytes(cut.read_bytes()[:-40])
    # Valid at both ends, and damaged inside.
    inside = cells / "cubic-r1" / "packets.parquet"
    content = bytearray(inside.read_bytes())
    content[100:2000] = bytes(1900)
    inside.write_bytes(content)
    newer = tmp_path / "results" / "deeper" / "swept" / "campaign.json"
    newer.write_text(newer.read_text().replace("narrows/campaign/1", "narrows/campaign/2"))
    done = narrows(
        "query", "select cell, sum(size_bytes) from packets group by cell", tmp_path / "results", "--json"
    )
    assert done.exit_code == 0, (done.output, done.exception)
    assert {one["cell"] for one in json.loads(done.stdout)} == {"reno-r2", "cubic-r2"}
    said = done.stderr.splitlines()
    assert any(
        "narrows/campaign/2, this version of narrows reads narrows/campaign/1; update narrows" in one
        for one in said
    )
    assert any(str(cut) in one and "damaged or cut off" in one for one in said)
    assert any(str(inside.parent) in one and one.endswith("it is left out") for one in said)
    with pytest.warns(UserWarning, match="update narrows") as told:
        assert package.query("select 1 as one from results", tmp_path / "results").num_rows == 12
    assert len(told) == 1


def test_columns_of_different_kinds_are_text_together() -> None:
    one = pa.table({"a": [1, 2], "b": [1, 2], "c": [None, None]})
    two = pa.table({"a": ["x"], "b": [0.5], "d": ["y"]})
    found = concatenate([one, two])
    assert found["a"].to_pylist() == ["1", "2", "x"]
    assert found["b"].to_pylist() == [1.0, 2.0, 0.5]
    assert found["d"].to_pylist() == [None, None, "y"]


def test_without_duckdb_the_package_to_install_is_named(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    assert "pip install duckdb" in sentence(narrows("query", "from results", made))


#: Statements that write, read other files, or change permissions.
FORBIDDEN = [
    "copy (select 1 as a) to 'stolen.csv'",
    "copy (pivot results on scheme using count(*)) to 'stolen.csv' (use_tmp_file false)",
    "copy results to 'RECORD' (format parquet, use_tmp_file false)",
    "explain analyze copy (select 1) to 'stolen.csv'",
    "prepare p as copy (select 1) to 'stolen.csv'; execute p",
    "export database 'stolen'",
    "attach 'other.db'",
    "install httpfs",
    "load httpfs",
    "set enable_external_access = true",
    "reset lock_configuration",
    "pragma enable_profiling",
    "call pragma_version()",
    "create table t as select 1",
    "create persistent secret s (type s3)",
    "select * from results; copy (select 1) to 'stolen.csv'",
    "select * from read_text('secret.txt')",
    "select * from read_csv('secret.txt')",
    "select * from 'secret.csv'",
    "select * from read_blob('/etc/hostname')",
    "select * from read_parquet('OTHER')",
    "select * from glob('*')",
    "select * from read_text('http://127.0.0.1:1/x')",
]


@pytest.mark.parametrize("sql", FORBIDDEN)
def test_queries_only_select_from_their_campaigns(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sql: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "secret.txt").write_text("secret")
    record = next((made / "plain").rglob("packets.parquet"))
    before = record.read_bytes()
    other = next((made / "deeper").rglob("packets.parquet"))
    text = sql.replace("RECORD", str(record)).replace("OTHER", str(other))
    done = narrows("query", text, made / "plain")
    assert isinstance(done.exception, UsageError), (done.output, done.exception)
    assert "--unrestricted" in str(done.exception) and "\n" not in str(done.exception)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["secret.txt"]
    assert record.read_bytes() == before


def test_an_unrestricted_query_may_do_what_duckdb_can(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = narrows("query", "copy (select 1 as a) to 'mine.csv'", made, "--unrestricted")
    assert (tmp_path / "mine.csv").read_text().split() == ["a", "1"], done.output
    (tmp_path / "t.txt").write_text("text")
    sql = "select content from read_text('t.txt')"
    assert package.query(sql, made, unrestricted=True).to_pylist() == [{"content": "text"}]
    with pytest.raises(UsageError, match="unrestricted=True"):
        package.query(sql, made)


@pytest.mark.parametrize(
    "sql",
    [
        "with x as (select * from results) select count(*) from x",
        "pivot (select scheme, run, flow from results) on run using count(*)",
        " /* a comment */ (pivot results on run using count(*) group by scheme)",
        "describe results",
        "summarize results",
        "from results select count(*)",
        "values (1)",
    ],
)
def test_everything_that_selects_is_allowed(made: Path, sql: str) -> None:
    done = narrows("query", sql, made, "--json")
    assert done.exit_code == 0 and json.loads(done.stdout), (done.output, done.exception)


def test_names_in_queries_are_never_variables_of_the_program(made: Path) -> None:
    for name in ("sql", "self", "connection", "files", "wanted"):
        done = narrows("query", f"select * from {name}", made)
        assert isinstance(done.exception, UsageError), done.output
