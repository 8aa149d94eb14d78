"""narrows calibrate: tables and maps, recovery of known paths, resuming, and tables with little
information."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path as File
from typing import Any

import pytest

from campaign_kit import narrows, sentence, simulate
from narrows.calibrate import table as tables
from narrows.calibrate import table_sources
from narrows.calibrate.mapping import Map, entries_of, read_map
from narrows.calibrate.paths import (
    CONSTANT,
    POISSON,
    TRACE,
    Path,
    TraceFile,
    Workload,
)
from narrows.calibrate.run import metrics_of, workload
from narrows.calibrate.simulate import EVALUATIONS, Simulator, Wanted
from narrows.calibrate.targets import targets_of
from narrows.campaign.json_files import read_json
from narrows.documents.calibration import FORMAT, Calibration
from narrows.documents.data import from_data, to_data
from narrows.errors import DataError, UsageError
from narrows.scenario.loading import load

HEAD = "scheme,run,flow,throughput_mbps,delay95_ms,loss_pct\n"
EIGHT = ("cubic", "reno", "vegas", "bbr1", "copa", "utp", "htcp", "illinois")


def written(folder: File, text: str, name: str = "table.csv") -> File:
    file = folder / name
    file.write_text(text)
    return file


def synthetic(
    folder: File, path: Path, schemes: Sequence[str] = EIGHT, runs: int = 3, duration: str = "20 s"
) -> File:
    """The table that our simulator makes of a path, with seeds that no fit uses."""
    work = Workload(tuple(schemes), 1, "0 s", duration)
    made = folder / "made"
    made.mkdir()
    simulator = Simulator(made, dict(zip(schemes, schemes, strict=True)), work, 2)
    found = simulator.evaluate([Wanted(path, tuple(schemes), runs, 77)])[0].values
    file = folder / "synthetic.csv"
    with file.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(("scheme", "run", "flow", "throughput_bps", "delay_p95_ns", "loss_ratio"))
        for scheme, flows in found.items():
            of = flows["all"]
            for run in range(runs):
                values = (of[name][run] for name in ("throughput_bps", "delay_p95_ns", "loss_ratio"))
                writer.writerow((scheme, run + 1, "all", *values))
    return file


def calibrated(file: File, folder: File, *options: object) -> dict[str, Any]:
    done = narrows("calibrate", file, "-o", folder, "--processors", 2, *options, "--json")
    assert done.exit_code == 0, (done.output, done.exception)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


# -- known paths ---------------------------------------------------------------------------------


#: Rate in bit/s, delay in ns, queue in packets and loss of a path of each kind of link.
KNOWN = pytest.mark.parametrize(
    ("link", "rate", "delay", "queue", "loss"),
    [(CONSTANT, 5e6, 10e6, 20, 0.005), (POISSON, 3e6, 40e6, 50, 0.0)],
    ids=["constant with loss", "poisson"],
)


@KNOWN
def test_a_known_path_is_found_again_from_three_schemes(
    tmp_path: File, link: str, rate: float, delay: float, queue: float, loss: float
) -> None:
    """Rate and delay within 3 %, queue within 10 %. Of 30,000 packets 150 are lost, so that the loss is known
    to a quarter (three deviations), and a path of round values is preferred."""
    truth = Path(link, {"rate": rate, "delay": delay, "queue": queue, "loss": loss})
    file = synthetic(tmp_path, truth, ("cubic", "vegas", "bbr1"), 3, "8 s")
    found = calibrated(file, tmp_path / "fit", "--time", 8, "--budget", 130)
    assert_path(found, truth, loss_error=0.35)


@pytest.mark.nightly
@KNOWN
def test_a_known_path_is_found_again(
    tmp_path: File, link: str, rate: float, delay: float, queue: float, loss: float
) -> None:
    """Rate and delay within 3 %, queue within 10 %, loss within 20 %, from eight schemes and three runs."""
    truth = Path(link, {"rate": rate, "delay": delay, "queue": queue, "loss": loss})
    file = synthetic(tmp_path, truth)
    found = calibrated(file, tmp_path / "fit", "--time", 20, "--budget", 130)
    assert_path(found, truth, loss_error=0.2)


def assert_path(found: dict[str, Any], truth: Path, loss_error: float) -> None:
    path = found["path"]
    assert path["link"] == truth.link
    assert path["rate_bps"] == pytest.approx(truth.values["rate"], rel=0.03)
    assert path["delay_ns"] == pytest.approx(truth.values["delay"], rel=0.03)
    assert path["queue_packets"] == pytest.approx(truth.values["queue"], rel=0.1)
    # The relative error of zero loss is undefined.
    assert path["loss_ratio"] == pytest.approx(truth.values["loss"], rel=loss_error, abs=1e-4)
    assert found["errors"]["fresh_seeds"] < 0.06
    assert set(path["features"]) == set()


def test_a_scheme_measured_at_another_rate_is_reported(tmp_path: File) -> None:
    """All schemes on one path, and one of them at four fifths of its rate, as when capacity drifts between
    measurements."""
    schemes = ("cubic", "reno", "vegas", "htcp", "bbr1")
    truth = Path(CONSTANT, {"rate": 4e6, "delay": 20e6, "queue": 30, "loss": 0.0})
    slower = Path(CONSTANT, {**truth.values, "rate": 3.2e6})
    (tmp_path / "slower").mkdir()
    lines = synthetic(tmp_path, truth, schemes, 2, "10 s").read_text().splitlines()
    of_slower = synthetic(tmp_path / "slower", slower, ("bbr1",), 2, "10 s").read_text().splitlines()[1:]
    kept = [line for line in lines if not line.startswith("bbr1,")]
    file = written(tmp_path, "\n".join([*kept, *of_slower]) + "\n", "mixed.csv")
    done = narrows("calibrate", file, "-o", tmp_path / "fit", "--time", 10, "--budget", 80)
    assert done.exit_code == 0, (done.output, done.exception)
    found = json.loads((tmp_path / "fit" / "results.json").read_text())
    by_scheme = {one["name"]: one for one in found["schemes"]}
    own = by_scheme.pop("bbr1")
    assert own["explained"] is False and own["on_path"] is False and own["error"] > 0.1
    assert found["errors"]["on_path"] < 0.02 < found["errors"]["fresh_seeds"]
    assert all(one["on_path"] for one in by_scheme.values())
    assert "off the path" in " ".join(done.stdout.split())
    # Rates are tried in steps of a twentieth.
    assert own["own_rate_factor"] == pytest.approx(0.8, abs=0.051)
    assert own["own_rate_error"] < own["error"] / 2
    assert all(one["own_rate_factor"] == pytest.approx(1, abs=0.051) for one in by_scheme.values())
    assert found["errors"]["own_rates"] < found["errors"]["fresh_seeds"]
    assert f"bbr1 {own['own_rate_factor']:g}" in " ".join(done.stdout.split())


def test_the_folder_has_a_scenario_that_runs_tables_and_a_figure(tmp_path: File) -> None:
    truth = Path(CONSTANT, {"rate": 2e6, "delay": 20e6, "queue": 30, "loss": 0.0})
    file = synthetic(tmp_path, truth, ("cubic", "vegas", "bbr1"), 2, "5 s")
    found = calibrated(file, tmp_path / "fit", "--time", 5, "--budget", 60)
    folder = tmp_path / "fit"
    assert narrows("run", folder / "scenario.yaml", "-o", tmp_path / "run", "--no-report").exit_code == 0
    assert {one.name for one in folder.iterdir()} >= {
        "results.json",
        "errors.csv",
        "points.svg",
        "points.png",
    }
    assert found["format"] == "narrows/calibration/1"
    assert json.loads((folder / "results.json").read_text())["path"] == found["path"]
    written = read_json(folder / "results.json", FORMAT)
    assert json.dumps(to_data(from_data(written, Calibration))) == json.dumps(written)
    lines = list(csv.DictReader((folder / "errors.csv").read_text().splitlines()))
    assert [line["quantity"] for line in lines[:3]] == ["throughput", "delay", "loss"]
    by_scheme = {one["name"]: one for one in found["schemes"]}
    mean = sum(one["error"] for one in by_scheme.values()) / len(by_scheme)
    assert found["errors"]["fresh_seeds"] == pytest.approx(mean)
    assert all(one["left_out_error"] is not None for one in by_scheme.values())
    assert found["errors"]["noise_floor"] is not None
    # In words, with the same numbers.
    said = narrows("calibrate", file, "-o", folder, "--time", 5, "--budget", 60)
    assert "on fresh seeds" in said.output
    assert "cubic" in said.output


def test_a_killed_calibration_resumes_with_the_same_result(tmp_path: File) -> None:
    truth = Path(CONSTANT, {"rate": 2e6, "delay": 20e6, "queue": 30, "loss": 0.01})
    file = synthetic(tmp_path, truth, ("cubic", "vegas", "bbr1"), 2, "5 s")
    options = ("--time", 5, "--budget", 60, "--seed", 4)
    whole = calibrated(file, tmp_path / "whole", *options)
    folder = tmp_path / "killed"
    words = [sys.executable, "-m", "narrows", "calibrate", file, "-o", folder, *options]
    process = subprocess.Popen([str(one) for one in words], stderr=subprocess.DEVNULL)
    log = folder / EVALUATIONS
    deadline = time.monotonic() + 120
    while not (log.exists() and log.read_bytes().count(b"\n") >= 25):
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    kept = log.read_bytes()
    # The crash may have cut a line off.
    log.write_bytes(kept + b'{"key": "torn')
    found = calibrated(file, folder, *options)
    assert log.read_bytes().startswith(kept[: kept.rfind(b"\n") + 1])
    keys = [json.loads(line)["key"] for line in log.read_text().splitlines()]
    assert len(set(keys)) == len(keys)
    for one in (whole, found):
        del one["folder"]
    assert found == whole


def test_a_folder_belongs_to_one_calibration(tmp_path: File) -> None:
    file = written(tmp_path, HEAD + "cubic,1,all,1,50,0\n")
    folder = tmp_path / "fit"
    folder.mkdir()
    (folder / "mine.txt").write_text("x")
    done = narrows("calibrate", file, "-o", folder, "-t", 5)
    assert isinstance(done.exception, UsageError)
    assert "is not empty" in sentence(done)


def test_the_rate_may_follow_a_recorded_trace(tmp_path: File) -> None:
    """The trace is scaled: measurements and recording are from different hours."""
    drive = tmp_path / "drive.csv"
    drive.write_text("time_s,rate_mbps\n0,1\n2,4\n3,0.5\n4,2.5\n6,0\n")
    truth = Path(
        TRACE, {"rate": 3e6, "delay": 20e6, "queue": 60, "loss": 0.0}, trace=TraceFile(str(drive), 11.5e6 / 6)
    )
    table = synthetic(tmp_path, truth, ("cubic", "vegas", "copa"), 2, "12 s")
    found = calibrated(table, tmp_path / "fit", "--time", 12, "--budget", 70, "--trace", drive)
    assert (found["path"]["link"], found["path"]["trace"]) == (TRACE, "drive.csv")
    assert found["path"]["rate_bps"] == pytest.approx(3e6, rel=0.03)
    assert found["path"]["delay_ns"] == pytest.approx(20e6, rel=0.1)
    assert set(found["links"]) == {TRACE}
    # The folder can be moved: its scenario names the copy beside it.
    assert (tmp_path / "fit" / "drive.csv").read_bytes() == drive.read_bytes()
    drive.unlink()
    assert (
        load(tmp_path / "fit" / "scenario.yaml").scenario.to_json()["network"]["forward"][0]["rate"]["kind"]
        == "trace"
    )
    refused = narrows(
        "calibrate", table, "-o", tmp_path / "other", "--time", 12, "--trace", tmp_path / "no.csv"
    )
    assert "does not exist" in sentence(refused)


# -- little information --------------------------------------------------------------------------


def test_one_scheme_has_a_path_and_nothing_to_leave_out(tmp_path: File) -> None:
    file = written(tmp_path, HEAD + "cubic,1,all,1.9,150,1\ncubic,2,all,1.95,140,1.2\n")
    found = calibrated(file, tmp_path / "fit", "-t", 3, "--budget", 50)
    assert found["errors"]["left_out"] is None
    assert found["schemes"][0]["explained"] is None
    assert "three schemes" in found["features_not_tried"]


def test_missing_delays_and_runs_that_carried_nothing_are_borne(tmp_path: File) -> None:
    text = HEAD + "cubic,1,all,1.9,,1\nvegas,1,all,1.8,60,\nreno,1,all,0,,\nbbr1,1,all,1.9,80,2\n"
    found = calibrated(written(tmp_path, text), tmp_path / "fit", "-t", 3, "--budget", 50)
    assert found["errors"]["noise_floor"] is None  # unknown for single runs
    by_name = {one["name"]: one for one in found["schemes"]}
    assert "reno" not in by_name
    assert "no value" in found["left_out_of_the_table"]["reno"]
    assert [one["quantity"] for one in by_name["cubic"]["values"]] == ["throughput", "loss"]


def test_a_campaign_of_ours_is_a_table(tmp_path: File) -> None:
    campaign = simulate(tmp_path / "campaign")
    table = table_sources.read(campaign)
    assert sorted(table.schemes) == ["cubic", "reno"]
    assert workload(table, Map()) == Workload((), 2, "200 ms", "1 s")
    assert set(table.flows) == {"1", "2"}
    targets = targets_of(table, table.schemes)
    assert {one.flow for one in targets.all} == {"all"}
    assert {one.quantity for one in targets.all} == {"throughput", "delay", "loss"}


def test_an_imported_campaign_of_pantheon_is_a_table(tmp_path: File) -> None:
    """Flows, interval and duration come from its metadata; its schemes must be mapped."""
    scenario = """\
schema: narrows/scenario/1
question: What did Pantheon see?
where: simulate
path: {forward: [{rate: 3 Mbit/s, queue: {droptail: 30 packets}}, {delay: 20 ms}], backward: [{delay: 20 ms}]}
schemes: [cubic, vegas, copa]
flows: {count: 2, interval: 2 s}
duration: 8 s
runs: 2
"""
    simulate(tmp_path / "ours", scenario)
    data, campaign = tmp_path / "data", tmp_path / "imported"
    assert narrows("export", tmp_path / "ours", "--format", "pantheon", "-o", data).exit_code == 0
    assert narrows("import", "pantheon", data, "-o", campaign, "--no-report").exit_code == 0
    assert workload(table_sources.read(campaign), Map()) == Workload((), 2, "2 s", "8 s")
    refused = narrows("calibrate", campaign, "-o", tmp_path / "fit", "--budget", 60)
    assert "--scheme" in sentence(refused)
    assert "pantheon:copa" in sentence(refused)
    names = [word for name in ("cubic", "vegas", "copa") for word in ("--scheme", f"pantheon:{name}={name}")]
    path = calibrated(campaign, tmp_path / "fit", "--budget", 80, *names)["path"]
    assert path["rate_bps"] == pytest.approx(3e6, rel=0.03)
    assert path["delay_ns"] == pytest.approx(20e6, rel=0.03)
    assert path["queue_packets"] == pytest.approx(30, rel=0.1)


# -- tables and maps -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("head", "factors"),
    [
        ("scheme,run,flow,throughput_mbps,delay95_ms,loss_pct", (2e6, 3e6, 0.04)),
        ("Protocol,Trial,Flow,Throughput (Mbit/s),p95 delay (ms),Loss (%)", (2e6, 3e6, 0.04)),
        ("cc,run_id,flow id,tput [kbps],95th percentile one-way delay [s],loss_ratio", (2e3, 3e9, 4.0)),
        ("scheme,run,flow,throughput_bps,delay_p95_ns,loss_ratio", (2, 3, 4.0)),
    ],
)
def test_usual_headings_are_understood(
    tmp_path: File, head: str, factors: tuple[float, float, float]
) -> None:
    loss = "0.5" if "ratio" in head else "4"
    table = tables.read_csv(written(tmp_path, f"{head}\ncubic,1,all,2,3,{loss}\n"))
    values = table.rows[0].values
    assert values["throughput"] == pytest.approx(factors[0])
    assert values["delay"] == pytest.approx(factors[1])
    assert values["loss"] == pytest.approx(0.5 if "ratio" in head else factors[2])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "a line of headings"),
        ("scheme,run\ncubic,1\n", "no heading for throughput"),
        ("run,throughput_mbps\n1,2\n", "no heading scheme"),
        ("scheme,throughput\ncubic,2\n", "no unit of throughput"),
        ("scheme,throughput_ms\ncubic,2\n", "no unit of throughput"),
        ("scheme,throughput_mbps,loss\ncubic,2,1\n", "no unit of loss"),
        ("scheme,throughput_mbps,throughput_kbps\ncubic,2,1\n", "several headings"),
        (HEAD + "cubic,1,all,x,1,1\n", '"x" is not a number'),
        (HEAD + "cubic,1,all,inf,1,1\n", "not a finite number"),
        (HEAD + "cubic,1,all,-1,1,1\n", "is negative"),
        (HEAD + "cubic,1,all,1,-1,1\n", "correct the clocks"),
        (HEAD + "cubic,1,all,1,0,1\n", "is zero"),
        (HEAD + "cubic,1,all,1,1,101\n", "more than everything"),
        (HEAD + "cubic,1,all,1,1,-50\n", "less than nothing"),
        (HEAD + "cubic,1,first,1,1,1\n", "must be a number from 1, or all"),
        (HEAD + "cubic,1,all,1,1\n", "5 values for 6 headings"),
        (HEAD + "cubic,1,all,1,1,1\ncubic,1,all,1,1,1\n", "twice"),
        (HEAD + ",1,all,1,1,1\n", "no name"),
        (HEAD + "cubic,1,all,,,\n", "no line with a value"),
        ("\x00\xff", "CSV"),
    ],
)
def test_errors_in_a_table_are_reported_in_a_sentence(tmp_path: File, text: str, said: str) -> None:
    file = tmp_path / "table.csv"
    file.write_bytes(text.encode("latin-1"))
    done = narrows("calibrate", file, "-t", 3, "-o", tmp_path / "fit")
    assert isinstance(done.exception, DataError), done.output
    assert said in sentence(done)
    assert str(file) in sentence(done)
    assert "\n" not in sentence(done)


def test_small_negative_losses_are_none_and_lines_of_means_are_left_out(tmp_path: File) -> None:
    text = HEAD + "cubic,1,all,1,50,-0.2\ncubic,mean,all,1,50,-0.2\n"
    table = tables.read_csv(written(tmp_path, text))
    assert len(table.rows) == 1
    assert table.rows[0].values["loss"] == 0
    assert len(table.notes) == 2


def test_names_are_mapped_and_never_guessed(tmp_path: File) -> None:
    table = tables.read_csv(written(tmp_path, HEAD + "TCP Cubic,1,all,1,50,0\ncubic,1,all,1,50,0\n"))
    with pytest.raises(
        DataError, match=r'"TCP Cubic" is not a scheme of Narrows.*--scheme "TCP Cubic=cubic"'
    ):
        entries_of(table, {})
    found, left = entries_of(table, {"TCP Cubic": "cubic-linux", "cubic": None})
    assert found == {"TCP Cubic": "cubic-linux"}
    assert left == {"cubic": "the map leaves it out"}
    with pytest.raises(DataError, match="which the map names"):
        entries_of(table, {"TCP Qubic": "cubic"})
    with pytest.raises(DataError, match="is not a scheme"):
        entries_of(table, {"TCP Cubic": "cubik"})
    with pytest.raises(DataError, match=r"no scheme is left.*real kernel"):
        entries_of(table, {"TCP Cubic": "linux:cubic", "cubic": None})


def test_maps_are_read_strictly_and_laboratories_are_maps(tmp_path: File) -> None:
    text = "schemes: {A: cubic, B: {scheme: copa, profile: pantheon}, C: null}\nflows: 3\ninterval: 10 s\n"
    found = read_map(written(tmp_path, text + "duration: 30\nloss: loss_ratio\n", "map.yaml"))
    assert found.schemes == {"A": "cubic", "B": "{scheme: copa, profile: pantheon}", "C": None}
    assert (found.flows, found.interval, found.duration) == (3, "10 s", "30 s")
    assert metrics_of(tables.Table("x", ()), found)["loss"] == "loss_ratio"
    for wrong, said in (
        ("scheme: {}\n", "did you mean"),
        ("flows: many\n", "wrong.yaml:1:8: flows: .*is not a whole number"),
        ("flows: 2000\n", "between 1 and 1000"),
        ("duration: 3 MB\n", "duration"),
        ("loss: everything\n", "loss_ratio"),
        ("columns: {speed: x}\n", "columns"),
        ("schemes: [cubic]\n", "names with schemes"),
        ("where: India\n", "must be keys with values, such as {place: India}"),
        ("where: {place: [India]}\n", "must be a text"),
    ):
        with pytest.raises(DataError, match=said):
            read_map(written(tmp_path, wrong, "wrong.yaml"))
    lab = File(__file__).parents[2] / "labs" / "pantheon-india" / "lab.yaml"
    assert read_map(lab).schemes["TCP BBR"] == "bbr1"


def test_a_place_is_chosen_from_a_table_of_many(tmp_path: File) -> None:
    head = HEAD.strip() + ",place,hour\n"
    lines = "cubic,1,all,1,50,0,India,9\ncubic,1,all,2,60,0,Nepal,9\ncubic,1,all,3,70,0,Nepal,18\n"
    # A line of another place may have words in place of numbers.
    file = written(tmp_path, head + lines + "cubic,1,all,broken,?,?,Peru,9\n")
    for chosen, mbps in (({"place": "India"}, 1), ({"place": "Nepal", "hour": "18"}, 3)):
        (row,) = table_sources.read(file, where=chosen).rows
        assert row.values["throughput"] == mbps * 1e6
    found = read_map(written(tmp_path, "where: {place: Nepal, hour: 18}\n", "map.yaml"))
    assert found.where == {"place": "Nepal", "hour": "18"}
    for wrong, said in (
        ({"place": "Indai"}, 'no line whose place is "Indai"; did you mean'),
        ({"plaice": "India"}, 'no heading "plaice" to choose lines by; did you mean'),
        ({"place": "India", "hour": "18"}, 'no line whose hour is "18"; lines have 9'),
    ):
        with pytest.raises(DataError, match=said):
            table_sources.read(file, where=wrong)
    with pytest.raises(DataError, match="the folder of a campaign"):
        table_sources.read(tmp_path, where={"place": "India"})


def test_flows_without_an_interval_and_runs_without_a_duration_are_asked_for(tmp_path: File) -> None:
    table = tables.read_csv(written(tmp_path, HEAD + "cubic,1,1,1,50,0\ncubic,1,2,1,50,0\n"))
    with pytest.raises(DataError, match="--interval"):
        workload(table, Map())
    with pytest.raises(DataError, match="--time"):
        workload(table, Map(interval="0 s"))
    assert workload(table, Map(interval="1 s", duration="9 s")) == Workload((), 2, "1 s", "9 s")


@pytest.mark.parametrize(
    "options",
    [
        ("--budget", 3),
        ("--budget", "soon"),
        ("--flows", 0),
        ("--loss", "x"),
        ("--scheme", "cubic"),
        ("--where", "x"),
    ],
)
def test_wrong_options_are_usage(tmp_path: File, options: tuple[object, ...]) -> None:
    file = written(tmp_path, HEAD + "cubic,1,all,1,50,0\n")
    done = narrows("calibrate", file, "-t", 3, "-o", tmp_path / "fit", *options)
    assert isinstance(done.exception, UsageError), done.output
