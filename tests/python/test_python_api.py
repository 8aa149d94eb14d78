"""`import narrows`: campaigns in Python."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import narrows
from campaign_kit import SCENARIO, rows_of, simulate


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return simulate(tmp_path_factory.mktemp("api") / "small")


@pytest.fixture
def campaign(folder: Path) -> narrows.Campaign:
    return narrows.load(folder)


def test_the_package_loads_nothing_before_it_is_used() -> None:
    code = (
        "import sys, narrows; heavy = {'numpy', 'pyarrow', 'rich', 'yaml', 'narrows._native', 'click'};"
        " print(sorted(heavy & set(sys.modules)), sorted(set(narrows.__all__) - set(dir(narrows))))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "[] []\n", done.stderr
    with pytest.raises(AttributeError, match="has no attribute 'nix'"):
        _ = narrows.nix  # type: ignore[attr-defined]
    assert all(getattr(narrows, name).__doc__ for name in narrows.__all__ if name != "__version__")


def test_a_campaign_has_the_properties_of_its_scenario(campaign: narrows.Campaign, folder: Path) -> None:
    assert (campaign.name, campaign.plane, campaign.question) == ("small", "simulate", "Does it work?")
    assert repr(campaign) == "<narrows.Campaign small (simulate): 4 ok>"
    assert campaign.written == SCENARIO
    assert campaign.scenario["duration_ns"] == 10**9
    assert campaign.schemes == ["reno", "cubic"]
    assert campaign.verdicts == dict.fromkeys(("reno-r1", "reno-r2", "cubic-r1", "cubic-r2"), "ok")
    written = json.loads((folder / "campaign.json").read_text())
    assert written.pop("digest").startswith("sha256:")
    assert campaign.document == written | {"format": "narrows/campaign/1"}
    cells = campaign.cells.to_pylist()
    assert {(one["cell"], one["scheme"], one["run"], one["verdict"]) for one in cells} == {
        (f"{scheme}-r{run}", scheme, run, "ok") for scheme in ("reno", "cubic") for run in (1, 2)
    }


def test_results_are_the_file(campaign: narrows.Campaign, folder: Path) -> None:
    assert campaign.results.to_pylist() == pq.read_table(folder / "results.parquet").to_pylist()
    row = rows_of(campaign.results, cell="reno-r1", flow=None)[0]
    assert row["throughput_bps"] == campaign.run("reno-r1").metrics()["throughput_bps"]
    summary = rows_of(campaign.summary, scheme="reno", flow=None, metric="throughput_bps")[0]
    both = [row["throughput_bps"] for row in rows_of(campaign.results, scheme="reno", flow=None)]
    assert (
        summary["n"] == 2 and summary["median"] == pytest.approx(sum(both) / 2) and summary["unit"] == "bit/s"
    )
    assert summary["low"] is None
    assert "throughput_bps" in [metric["name"] for metric in campaign.metrics]
    assert campaign.columns == [] and campaign.expectations == [] and campaign.skipped == {}


def test_records_are_the_files(campaign: narrows.Campaign, folder: Path) -> None:
    cell = folder / "cells" / "cubic-r2"
    whole = pq.read_table(cell / "packets.parquet")
    assert campaign.packets("cubic-r2").equals(whole)
    assert campaign.packets(2, scheme="cubic").equals(whole)
    own = campaign.packets("cubic-r2", 2)
    assert 0 < own.num_rows < whole.num_rows and set(own["flow"].to_pylist()) == {2}
    assert set(campaign.states("cubic-r2", flow=1)["flow"].to_pylist()) == {1}
    assert campaign.queues("cubic-r2", "forward.0").equals(pq.read_table(cell / "queues.parquet"))
    assert campaign.queues("cubic-r2", "nix").num_rows == 0
    assert campaign.run("cubic-r2").table("states").equals(pq.read_table(cell / "states.parquet"))


def test_tables_come_as_frames_on_request(campaign: narrows.Campaign) -> None:
    import pandas
    import polars

    arrow = campaign.packets("reno-r1", 1)
    assert isinstance(arrow, pa.Table)
    by_polars = campaign.packets("reno-r1", 1, to="polars")
    assert isinstance(by_polars, polars.DataFrame) and by_polars.to_arrow().num_rows == arrow.num_rows
    by_pandas = campaign.run("reno-r1").packets(1, to="pandas")
    assert isinstance(by_pandas, pandas.DataFrame) and len(by_pandas) == arrow.num_rows
    assert isinstance(campaign.queues("reno-r1", to="pandas"), pandas.DataFrame)
    with pytest.raises(narrows.NarrowsError, match="not a kind of table; choose arrow, polars or pandas"):
        campaign.packets("reno-r1", to="excel")  # type: ignore[call-overload]


def test_a_package_that_is_not_installed_is_named(
    campaign: narrows.Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(narrows.NarrowsError, match="polars is not installed; pip install polars"):
        campaign.states("reno-r1", to="polars")


def test_a_run_has_its_settings_and_verdict(campaign: narrows.Campaign) -> None:
    run = campaign.run(1, "reno")
    assert (run.cell, run.scheme, run.row, run.number, run.verdict, run.valid) == (
        "reno-r1", "reno", "reno", 1, "ok", True,
    )  # fmt: skip
    assert run.seed == campaign.run(1, "cubic").seed != campaign.run(2, "reno").seed
    assert run.flows == [1, 2] and run.duration_ns == 10**9 and run.reasons == [] and run.values == {}
    assert run.settings["flows"][1]["start_ns"] == 200_000_000
    assert set(run.metrics(2)) == set(run.metrics())
    assert repr(run) == "<narrows.Run reno-r1: ok>"


@pytest.mark.parametrize(
    ("run", "words"),
    [
        ("reno-r3", 'run "reno-r3" does not exist; did you mean'),
        ("x", 'run "x" does not exist; there are'),
        (1, "several runs have the number 1; name one of them: "),
        (7, "run 7 does not exist; there are"),
    ],
)
def test_unknown_runs_are_refused_with_the_existing_ones(
    campaign: narrows.Campaign, run: str | int, words: str
) -> None:
    with pytest.raises(narrows.NarrowsError, match=words):
        campaign.packets(run)


def test_missing_tables_and_flows_of_a_run_are_reported(campaign: narrows.Campaign) -> None:
    run = campaign.run("reno-r1")
    with pytest.raises(
        narrows.NarrowsError, match=r"has no bins \(they are kept with record: bins\); there are"
    ):
        run.table("bins")
    with pytest.raises(narrows.NarrowsError, match="flow 3 does not exist; there are 1, 2, all"):
        run.metrics(3)


def test_damaged_records_are_one_sentence(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "c")
    file = tmp_path / "c" / "cells" / "reno-r1" / "packets.parquet"
    file.write_bytes(file.read_bytes()[:-100])
    campaign = narrows.load(tmp_path / "c")
    with pytest.raises(narrows.NarrowsError) as error:
        campaign.packets("reno-r1")
    told = str(error.value)
    assert told.startswith(f"{file.parent}: its files are not those that the run left") and "\n" not in told
    assert campaign.packets("reno-r2").num_rows > 0
    with pytest.raises(narrows.NarrowsError, match="does not exist"):
        narrows.load(tmp_path / "nix")


def test_scenarios_are_files_names_texts_and_dictionaries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.yaml").write_text(SCENARIO)
    first = narrows.run("small.yaml", "a", runs=1)
    assert "reno run 1: ok" in capsys.readouterr().err
    dictionary = {
        "schema": "narrows/scenario/1",
        "name": "small",
        "question": "Does it work?",
        "where": "simulate",
        "path": {"forward": [{"rate": "4 Mbit/s", "queue": {"droptail": "1 bdp"}}, {"delay": "10 ms"}]},
        "schemes": ("reno", "cubic"),
        "flows": {"count": 2, "interval": "200 ms"},
        "duration": "1 s",
        "runs": 2,
    }
    second = narrows.run(dictionary, "b", runs=1, progress=False)
    third = narrows.run(SCENARIO, runs=1, progress=False)
    assert capsys.readouterr() == ("", "")
    assert first.document["hash"] == second.document["hash"] == third.document["hash"]
    assert first.results.equals(second.results) and third.path.parent == Path("results")
    assert second.written.startswith("schema: narrows/scenario/1\n")
    again = narrows.run(dictionary, "b", runs=1, progress=False)
    assert len(again.document["sessions"]) == 2
    with pytest.raises(narrows.NarrowsError, match="holds another campaign"):
        narrows.run(dictionary, "b", runs=2, progress=False)
    shipped = narrows.run("one-flow", time="200 ms", schemes="reno", progress=False)
    assert shipped.schemes == ["reno"]


def test_other_keys_are_set_by_their_addresses(tmp_path: Path) -> None:
    campaign = narrows.run(
        SCENARIO,
        tmp_path / "out",
        schemes=["reno", {"scheme": "cubic", "beta": 0.8, "name": "gentle"}],
        runs=1,
        seed=7,
        time="500 ms",
        set={"path.forward.0.rate": "2 Mbit/s", "flows": {"count": 1}, "sample": "20 ms"},
        progress=False,
    )
    assert campaign.schemes == ["reno", "gentle"]
    assert campaign.scenario["network"]["forward"][0]["rate"]["rate"] == 2_000_000
    assert campaign.scenario["seed"] == 7 and campaign.run("gentle-r1").flows == [1]
    assert campaign.run("gentle-r1").values == {"beta": 0.8}


def test_mistakes_are_sentences(tmp_path: Path) -> None:
    with pytest.raises(narrows.NarrowsError, match=r"scenario.yaml:\d+:\d+: duraton: unknown key"):
        narrows.run({"schema": "narrows/scenario/1", "duraton": "1 s"}, tmp_path / "a")
    with pytest.raises(narrows.NarrowsError, match="keys, lists, texts and numbers only"):
        narrows.run({"schema": object()}, tmp_path / "a")
    with pytest.raises(narrows.NarrowsError, match=r"runs: .*whole number"):
        narrows.run(SCENARIO, tmp_path / "a", runs="two")  # type: ignore[arg-type]
    with pytest.raises(narrows.NarrowsError, match="no shipped scenario"):
        narrows.run("no-such-scenario", tmp_path / "a")
    assert not (tmp_path / "a").exists()


def test_a_campaign_runs_in_any_thread(tmp_path: Path) -> None:
    found: list[narrows.Campaign] = []
    thread = threading.Thread(
        target=lambda: found.append(narrows.run(SCENARIO, tmp_path / "out", runs=1, progress=False))
    )
    thread.start()
    thread.join()
    assert [one.name for one in found] == ["small"]


def test_all_campaigns_below_a_folder(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "deep" / "a")
    shutil.copytree(folder, tmp_path / "b")
    (tmp_path / "b" / "campaign.json").write_text("{")
    with pytest.warns(UserWarning, match="is damaged") as told:
        found = narrows.campaigns(tmp_path)
    assert [one.path for one in found] == [tmp_path / "deep" / "a"] and len(told) == 1


def test_the_tables_are_printed(campaign: narrows.Campaign, capsys: pytest.CaptureFixture[str]) -> None:
    campaign.show()
    assert "reno" in capsys.readouterr().out
