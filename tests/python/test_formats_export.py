"""Campaigns as files of other tools, read by these tools if they are installed.

The oracles: tshark's count of retransmissions, flent itself and the rules of its loader, and the members that
qlog's schema requires.
"""

from __future__ import annotations

import csv
import gzip
import json
import shutil
import subprocess
from collections import Counter
from datetime import datetime
from math import isfinite
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from campaign_kit import edited
from narrows import _native
from narrows.campaign import results
from narrows.campaign.series import read_throughput
from narrows.cli.all_commands import app
from narrows.errors import DataError, UsageError

SCENARIO = """
schema: narrows/scenario/1
title: Formats
question: Do other tools read what we write?
where: simulate
path:
  forward:
    - {rate: 20 Mbit/s, queue: {droptail: 50 kB}}
    - {delay: 15 ms}
    - {loss: 0.5 %}
  backward:
    - {delay: 15 ms}
schemes: [cubic, bbr1]
flows: {count: 2, interval: 1 s}
duration: 4 s
runs: 1
seed: 3
"""


def narrows(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("formats")
    file = folder / "formats.yaml"
    file.write_text(SCENARIO)
    result = narrows("run", file, "-o", folder / "c", "--no-report")
    assert result.exit_code == 0, result.output
    return folder / "c"


def exported(campaign: Path, form: str, target: Path) -> dict[str, Any]:
    result = narrows("export", campaign, "--format", form, "-o", target, "--json")
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def run_of(campaign: Path, cell: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((campaign / "cells" / cell / "run.json").read_text())
    return content


def tshark(file: Path, *options: str) -> str:
    done = subprocess.run(["tshark", "-r", str(file), *options], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    warned = [line for line in done.stderr.splitlines() if "Running as user" not in line]
    assert not warned, warned
    return done.stdout


needs_tshark = pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")


@needs_tshark
def test_tshark_counts_the_retransmissions_of_the_senders(campaign: Path, tmp_path: Path) -> None:
    for cell in exported(campaign, "pcapng", tmp_path / "out")["cells"]:
        file = tmp_path / "out" / cell["files"][0]
        shown = ("-Y", "tcp.analysis.retransmission", "-T", "fields", "-e", "tcp.dstport")
        found = Counter(tshark(file, *shown).split())
        flows = run_of(campaign, cell["cell"])["flows"]
        ours = {str(20_000 + one["flow"]): one["sender"]["retransmitted_packets"] for one in flows}
        assert found == Counter(ours)
        assert cell["retransmissions"] == sum(ours.values()) > 0


@needs_tshark
def test_captures_of_senders_have_no_warnings_and_those_of_receivers_only_of_losses(
    campaign: Path, tmp_path: Path
) -> None:
    for cell in exported(campaign, "pcapng", tmp_path / "out")["cells"]:
        sender, receiver = (tmp_path / "out" / name for name in cell["files"])
        assert "Warn" not in tshark(sender, "-q", "-z", "expert,warn")
        for line in tshark(receiver, "-q", "-z", "expert,warn").splitlines():
            if "Sequence" in line or "Protocol" in line.partition("Summary")[0].split()[:1]:
                assert "Previous segment(s) not captured" in line, line
        assert "Malformed" not in tshark(sender, "-q", "-z", "expert,error")


@needs_tshark
def test_frames_have_the_times_and_sizes_of_the_packets(campaign: Path, tmp_path: Path) -> None:
    cell = exported(campaign, "pcapng", tmp_path / "out")["cells"][0]
    fields = ("-Y", "frame.packet_id", "-T", "fields", "-e", "frame.time_epoch", "-e", "frame.len")
    text = tshark(tmp_path / "out" / cell["files"][0], *fields, "-e", "frame.packet_id", "-e", "ip.src")
    packets = _native.packets(campaign / "cells" / cell["cell"])
    assert packets is not None
    rows = [line.split("\t") for line in text.splitlines()]
    assert len(rows) == cell["packets"]["sender"]
    for time, size, uid, source in rows:
        place = int(uid, 0) - 1
        back = source == "10.77.0.2"
        assert bool(packets["backward"][place]) == back
        seconds, _, parts = time.partition(".")
        ns = (int(seconds) - 946_684_800) * 10**9 + int(parts.ljust(9, "0"))
        assert ns == packets["arrived_ns" if back else "sent_ns"][place]
        assert int(size) == packets["size_bytes"][place]


@needs_tshark
def test_comments_name_flow_scheme_and_drops(campaign: Path, tmp_path: Path) -> None:
    cell = exported(campaign, "pcapng", tmp_path / "out")["cells"][0]
    file = tmp_path / "out" / cell["files"][0]
    text = tshark(file, "-Y", "frame.comment", "-T", "fields", "-e", "frame.comment")
    assert "flow 1: cubic" in text and "flow 2: cubic" in text
    dropped = tshark(file, "-Y", 'frame.comment contains "queue_full"', "-T", "fields", "-e", "frame.number")
    elements = run_of(campaign, cell["cell"])["elements"]
    bottleneck = next(one for one in elements if one["name"] == "forward.0")
    assert len(dropped.split()) == bottleneck["dropped_packets"] > 0


def records(file: Path) -> list[dict[str, Any]]:
    """The records of a JSON text sequence (RFC 7464)."""
    parts = file.read_bytes().split(b"\x1e")
    assert parts[0] == b"" and all(part.endswith(b"\n") for part in parts[1:])
    return [json.loads(part) for part in parts[1:]]


@pytest.mark.parametrize(("form", "version"), [("qlog", "0.4"), ("qlog-0.3", "0.3")])
def test_qlog_has_what_its_schema_requires(campaign: Path, tmp_path: Path, form: str, version: str) -> None:
    for cell in exported(campaign, form, tmp_path / "out")["cells"]:
        run = run_of(campaign, cell["cell"])
        for name, flow in zip(cell["files"], run["flows"], strict=True):
            head, *events = records(tmp_path / "out" / name)
            assert (head["qlog_version"], head["qlog_format"]) == (version, "JSON-SEQ")
            assert head["trace"]["vantage_point"]["type"] in ("client", "server", "network", "unknown")
            times = [event["time"] for event in events]
            assert times == sorted(times)
            kinds = Counter(event["name"] for event in events)
            assert all(":" in one["name"] and isinstance(one["data"], dict) for one in events)
            assert kinds["transport:packet_sent"] == flow["sender"]["sent_packets"]
            counts = cell["flows"][str(flow["flow"])]
            assert kinds["recovery:packet_lost"] == counts["lost"] > 0
            assert kinds["recovery:metrics_updated"] == counts["metrics"] > 0
            sent: dict[int, dict[str, Any]] = {}
            acked: set[int] = set()
            for event in events:
                data = event["data"]
                if event["name"] == "transport:packet_sent":
                    number = data["header"]["packet_number"]
                    assert data["header"]["packet_type"] == "1RTT" and number == len(sent)
                    sent[number] = data
                elif event["name"] == "transport:packet_received":
                    for frame in data.get("frames", ()):
                        for low, high in frame["acked_ranges"]:
                            numbers = set(range(low, high + 1))
                            # Every acknowledgement follows its packet, and there are no duplicates.
                            assert numbers <= sent.keys() and not numbers & acked
                            acked |= numbers
                elif event["name"] == "recovery:packet_lost":
                    assert data["header"]["packet_number"] in sent.keys() - acked
            repeated = {}
            again = 0
            for number, data in sent.items():
                offset = data["frames"][0]["offset"]
                again += offset in repeated
                repeated[offset] = number
            assert again == flow["sender"]["retransmitted_packets"]


def test_csv_has_the_rows_of_the_tables(campaign: Path, tmp_path: Path) -> None:
    found = exported(campaign, "csv", tmp_path / "out")
    cell = found["cells"][0]
    packets = _native.packets(campaign / "cells" / cell["cell"])
    assert packets is not None
    with (tmp_path / "out" / cell["cell"] / "packets.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(packets["flow"]) == cell["rows"]["packets.csv"]
    assert [int(row["sent_ns"]) for row in rows] == packets["sent_ns"].tolist()
    arrived = [int(row["arrived_ns"] or -1) for row in rows]
    assert arrived == packets["arrived_ns"].tolist()
    assert {row["fate"] for row in rows} == {"delivered", "dropped", "in_flight"}
    assert (tmp_path / "out" / "results.csv").read_text() == (campaign / "results.csv").read_text()
    states = (tmp_path / "out" / cell["cell"] / "states.csv").read_text().splitlines()
    assert states[0].startswith("flow,time_ns,cwnd_bytes")


def test_flent_would_load_its_file(campaign: Path, tmp_path: Path) -> None:
    for cell in exported(campaign, "flent", tmp_path / "out")["cells"]:
        (name,) = cell["files"]
        document = json.loads(gzip.decompress((tmp_path / "out" / name).read_bytes()))
        # The rules of flent's ResultSet.unserialise.
        assert document["version"] == 3
        meta = document["metadata"]
        assert meta["NAME"] == "tcp_nup" and meta["DATA_FILENAME"].endswith(".flent.gz")
        for moment in ("TIME", "T0"):
            datetime.strptime(meta[moment], "%Y-%m-%dT%H:%M:%S.%fZ")
        series = document["results"]
        assert all(len(values) == len(document["x_values"]) for values in series.values())
        streams = int(meta["TEST_PARAMETERS"]["upload_streams"])
        assert {f"TCP upload::{k + 1}" for k in range(streams)} | {"Ping (ms) ICMP"} <= series.keys()
        assert any("tcp_rtt" in point for point in document["raw_values"]["TCP upload::1"])
        # flent shows the values of the record.
        rows = results.read(campaign).rows
        metrics = next(row.metrics for row in rows if (row.cell, row.flow) == (cell["cell"], "all"))
        mean = sum(series["TCP upload sum"]) / len(series["TCP upload sum"])
        assert mean == pytest.approx((metrics["throughput_bps"] or 0.0) / 1e6, rel=0.03)
        pings = [value for value in series["Ping (ms) ICMP"] if value is not None]
        assert min(pings) >= 30 and max(pings) < 100


@pytest.mark.skipif(shutil.which("flent") is None, reason="flent is not installed")
def test_flent_reads_the_numbers_of_the_record(campaign: Path, tmp_path: Path) -> None:
    for cell in exported(campaign, "flent", tmp_path / "out")["cells"]:
        file = tmp_path / "out" / cell["files"][0]
        for options in (("-f", "csv", "-o", "read.csv"), ("-p", "totals", "-o", "totals.png")):
            command = ["flent", "-i", str(file), *options]
            done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
            assert done.returncode == 0, done.stderr
        assert (tmp_path / "totals.png").read_bytes().startswith(b"\x89PNG")
        with (tmp_path / "read.csv").open(newline="") as table:
            rows = list(csv.DictReader(table))
        series = read_throughput(campaign / "cells" / cell["cell"], 200_000_000)
        assert [float(row["tcp_nup"]) for row in rows] == pytest.approx(series.time_s.tolist())
        for number, flow in series.flows.items():
            shown = [float(row[f"TCP upload::{number}"]) for row in rows]
            assert shown == pytest.approx((flow.arrived_bps / 1e6).tolist())


@pytest.fixture(scope="module")
def rrul(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """flent's test with its classes, shortened."""
    folder = tmp_path_factory.mktemp("rrul") / "campaign"
    words = (
        "run",
        "flent/rrul",
        "--where",
        "simulate",
        "--time",
        "12 s",
        "--schemes",
        "cubic",
        "--no-report",
    )
    assert narrows(*words, "-o", folder).exit_code == 0
    return folder


def read_flent(campaign: Path, target: Path) -> dict[str, Any]:
    """The only file of an export for flent."""
    (cell,) = exported(campaign, "flent", target)["cells"]
    (name,) = cell["files"]
    document: dict[str, Any] = json.loads(gzip.decompress((target / name).read_bytes()))
    return document


def test_a_run_in_both_directions_and_four_classes_is_flents_rrul(rrul: Path, tmp_path: Path) -> None:
    document = read_flent(rrul, tmp_path / "out")
    assert document["metadata"]["NAME"] == "rrul"
    series = document["results"]
    classes = ("BE", "BK", "CS5", "EF")
    flows = [f"TCP {word} {name}" for word in ("upload", "download") for name in classes]
    sums = [f"TCP {word} {name}" for word in ("upload", "download") for name in ("sum", "avg")]
    pings = ["Ping (ms) ICMP", *(f"Ping (ms) UDP {name}" for name in ("BE", "BK", "EF"))]
    assert series.keys() == {*flows, *sums, *pings, "TCP totals", "Ping (ms) avg"}
    assert all(len(values) == len(document["x_values"]) for values in series.values())
    total = sum(sum(series[key]) for key in flows)
    assert sum(series["TCP totals"]) == pytest.approx(total)
    assert sum(series["TCP upload avg"]) == pytest.approx(sum(series["TCP upload sum"]) / 4)
    # The path has 30 ms of round trip, and the load 100 ms of queue in either direction after 5 s.
    idle = [y for x, y in zip(document["x_values"], series["Ping (ms) UDP BE"], strict=True) if y and x < 4.8]
    assert idle and all(30 <= value < 31 for value in idle)
    assert max(value for value in series["Ping (ms) UDP EF"] if value) > 60
    transfers = _native.transfers(rrul / "cells" / "cubic-r1")
    complete = sum(map(isfinite, transfers["ended_s"]))
    raw = document["raw_values"]
    assert sum(len(raw[f"Ping (ms) UDP {name}"]) for name in ("BE", "BK", "EF")) == complete


def test_a_run_in_both_directions_without_classes_is_flents_rrul_be_nflows(tmp_path: Path) -> None:
    file = tmp_path / "both.yaml"
    flows = "flows: [{}, {}, {direction: backward}]"
    text = SCENARIO.replace("[cubic, bbr1]", "[cubic]").replace("flows: {count: 2, interval: 1 s}", flows)
    back = "  backward:\n"
    file.write_text(text.replace(back, f"{back}    - {{rate: 20 Mbit/s, queue: {{droptail: 50 kB}}}}\n"))
    assert narrows("run", file, "-o", tmp_path / "c", "--no-report").exit_code == 0
    document = read_flent(tmp_path / "c", tmp_path / "out")
    meta = document["metadata"]
    assert meta["NAME"] == "rrul_be_nflows"
    assert meta["TEST_PARAMETERS"] == {"upload_streams": "2", "download_streams": "1"}
    flows_of = {key for key in document["results"] if "::" in key}
    assert flows_of == {"TCP upload BE::1", "TCP upload BE::2", "TCP download BE::1"}


@pytest.mark.skipif(shutil.which("flent") is None, reason="flent is not installed")
def test_flent_draws_its_plots_of_rrul(rrul: Path, tmp_path: Path) -> None:
    (cell,) = exported(rrul, "flent", tmp_path / "out")["cells"]
    file = tmp_path / "out" / cell["files"][0]
    for plot in ("all_scaled", "ping_cdf", "box_combine", "totals"):
        command = ["flent", "-i", str(file), "-p", plot, "-o", f"{plot}.png"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0 and "Warning" not in done.stderr, done.stderr
        assert (tmp_path / f"{plot}.png").read_bytes().startswith(b"\x89PNG")


def test_the_same_records_give_the_same_bytes(campaign: Path, tmp_path: Path) -> None:
    for form in ("pcapng", "qlog", "csv", "flent"):
        trees = []
        for turn in ("a", "b"):
            exported(campaign, form, tmp_path / form / turn)
            root = tmp_path / form / turn
            trees.append(
                {file.relative_to(root): file.read_bytes() for file in root.rglob("*.*") if file.is_file()}
            )
        assert trees[0] == trees[1] and trees[0]


def test_impossible_exports_are_refused_in_one_sentence(campaign: Path, tmp_path: Path) -> None:
    result = narrows("export", campaign, "--format", "excel", "-o", tmp_path / "x")
    assert isinstance(result.exception, UsageError) and "csv, flent, pantheon, pcapng, qlog, qlog-0.3" in str(
        result.exception
    )
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    result = narrows("export", campaign, "--format", "csv", "-o", tmp_path / "full")
    assert isinstance(result.exception, UsageError) and "is not empty" in str(result.exception)
    damaged = tmp_path / "damaged"
    shutil.copytree(campaign, damaged)
    packets = damaged / "cells" / "cubic-r1" / "packets.parquet"
    packets.write_bytes(packets.read_bytes()[:-100])
    result = narrows("export", damaged, "--format", "pcapng", "-o", tmp_path / "y")
    assert isinstance(result.exception, DataError) and "its files are not those" in str(result.exception)
    assert not (tmp_path / "y").exists()
    with edited(damaged / "campaign.json") as document:
        for entry in document["cells"]:
            entry.pop("digest")
    for form in ("pcapng", "qlog", "csv", "flent"):
        result = narrows("export", damaged, "--format", form, "-o", tmp_path / "y")
        assert isinstance(result.exception, DataError) and "packets.parquet" in str(result.exception), form
        assert not (tmp_path / "y").exists()


def test_records_of_bins_have_no_packets_to_export(tmp_path: Path) -> None:
    file = tmp_path / "bins.yaml"
    file.write_text(SCENARIO.replace("seed: 3", "seed: 3\nrecord: bins").replace("[cubic, bbr1]", "[cubic]"))
    assert narrows("run", file, "-o", tmp_path / "c", "--no-report").exit_code == 0
    for form in ("pcapng", "qlog"):
        result = narrows("export", tmp_path / "c", "--format", form, "-o", tmp_path / form)
        assert isinstance(result.exception, DataError) and "bins in place of packets" in str(result.exception)
    for form in ("csv", "flent"):
        exported(tmp_path / "c", form, tmp_path / form)
