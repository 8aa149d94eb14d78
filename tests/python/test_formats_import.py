"""Other tools' measurements as campaigns: from our exports and back, from real tools, and by hand."""

from __future__ import annotations

import json
import shutil
import socket
import struct
import subprocess
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from narrows import _native
from narrows.campaign import results
from narrows.cli.all_commands import app
from narrows.documents.results import Results
from narrows.errors import DataError, NarrowsError
from narrows.formats import IMPORTS
from narrows.formats.runs import carry_forward, scheme_of
from test_formats_export import SCENARIO

METRICS = ("throughput_bps", "delay_p95_ns", "loss_ratio")


def narrows(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("imports")
    (folder / "formats.yaml").write_text(SCENARIO)
    result = narrows("run", folder / "formats.yaml", "-o", folder / "c", "--no-report")
    assert result.exit_code == 0, result.output
    for form in ("pcapng", "qlog"):
        assert narrows("export", folder / "c", "--format", form, "-o", folder / form).exit_code == 0
    return folder


def imported(tool: str, target: Path, *files: Path) -> Results:
    result = narrows("import", tool, *files, "-o", target, "--no-report")
    assert result.exit_code == 0, (result.output, result.exception)
    return results.read(target)


def metrics_of(found: Results, scheme: str, flow: int | str = "all") -> dict[str, Any]:
    row = next(row for row in found.rows if (row.scheme, row.flow) == (scheme, flow))
    assert row.verdict == "ok", row
    return row.metrics


def test_captures_of_both_ends_give_the_numbers_of_the_record(campaign: Path, tmp_path: Path) -> None:
    files = sorted((campaign / "pcapng").glob("cubic-r1-*.pcapng"))
    found = imported("pcapng", tmp_path / "c", *files)
    ours = metrics_of(results.read(campaign / "c"), "cubic")
    theirs = metrics_of(found, "pcapng:cubic")
    for name in METRICS:
        assert theirs[name] == pytest.approx(ours[name], rel=1e-9), name
    before = _native.packets(campaign / "c" / "cells" / "cubic-r1")
    after = _native.packets(tmp_path / "c" / "cells" / "cubic-r1")
    assert before is not None and after is not None
    columns = [dict(one) for one in (before, after)]
    keys = ("size_bytes", "backward", "flow", "sent_ns")
    orders = [np.lexsort(tuple(one[key] for key in keys)) for one in columns]  # type: ignore[arg-type]
    for name in ("size_bytes", "sent_ns", "arrived_ns"):
        ours_then, theirs_then = (
            np.asarray(one[name])[order] for one, order in zip(columns, orders, strict=True)
        )
        assert np.array_equal(ours_then, theirs_then), name


def test_a_capture_of_one_end_yields_the_metrics_of_that_end(campaign: Path, tmp_path: Path) -> None:
    found = imported("pcapng", tmp_path / "c", campaign / "pcapng" / "cubic-r1-sender.pcapng")
    ours, theirs = metrics_of(results.read(campaign / "c"), "cubic"), metrics_of(found, "pcapng:cubic")
    assert theirs["throughput_bps"] == pytest.approx(ours["throughput_bps"], rel=0.02)
    assert theirs["retransmitted_ratio"] == pytest.approx(ours["retransmitted_ratio"], rel=1e-9)
    assert theirs["rtt_mean_ns"] == pytest.approx(ours["rtt_mean_ns"], rel=0.1)
    for name in ("loss_ratio", "delay_p95_ns", "queueing_delay_p95_ns"):
        assert theirs[name] is None, name
    row = next(row for row in found.rows if row.flow == "all")
    assert "one end" in row.absent["loss_ratio"] and "one end" in row.absent["delay_p95_ns"]
    assert _native.throughput_series(tmp_path / "c" / "cells" / "cubic-r1", 100_000_000)["flows"].keys() == {
        1,
        2,
    }


def test_runs_with_the_same_addresses_are_not_taken_for_two_ends(campaign: Path, tmp_path: Path) -> None:
    files = [campaign / "pcapng" / f"{scheme}-r1-sender.pcapng" for scheme in ("cubic", "bbr1")]
    found = imported("pcapng", tmp_path / "c", *files)
    assert {row.scheme for row in found.rows} == {"pcapng:cubic", "pcapng:bbr1"}


def test_qlog_of_ours_comes_back(campaign: Path, tmp_path: Path) -> None:
    found = imported("qlog", tmp_path / "c", campaign / "qlog" / "cubic-r1-flow1.sqlog")
    ours = metrics_of(results.read(campaign / "c"), "cubic", 1)
    theirs = metrics_of(found, "qlog:cubic", 1)
    assert theirs["throughput_bps"] == pytest.approx(ours["throughput_bps"], rel=0.02)
    before = _native.state_series(campaign / "c" / "cells" / "cubic-r1")[1]
    after = _native.state_series(tmp_path / "c" / "cells" / "cubic-r1")[1]
    for name in ("cwnd_bytes", "inflight_bytes"):
        assert np.array_equal(before[name], after[name], equal_nan=True), name
    assert np.allclose(before["time_s"] - before["time_s"][0], after["time_s"] - after["time_s"][0])


def events() -> list[dict[str, Any]]:
    """A stack that sends 1000 packets of 1200 bytes, one per millisecond, each acknowledged after 30 ms."""
    found: list[dict[str, Any]] = []
    for number in range(1000):
        header = {"packet_type": "1RTT", "packet_number": number}
        found.append(
            {
                "time": float(number),
                "name": "transport:packet_sent",
                "data": {"header": header, "raw": {"length": 1200}},
            }
        )
        frames = [{"frame_type": "ack", "acked_ranges": [[number, number]]}]
        found.append(
            {
                "time": number + 30.0,
                "name": "transport:packet_received",
                "data": {"header": header, "raw": {"length": 40}, "frames": frames},
            }
        )
    found.append(
        {
            "time": 500.0,
            "name": "recovery:metrics_updated",
            "data": {"congestion_window": 24000, "latest_rtt": 30},
        }
    )
    return sorted(found, key=lambda event: event["time"])


def as_text(form: str) -> str:
    trace = {"vantage_point": {"type": "client"}, "common_fields": {"time_format": "relative"}}
    if form == "json":
        return json.dumps(
            {"qlog_version": "0.3", "qlog_format": "JSON", "traces": [{**trace, "events": events()}]}
        )
    if form == "draft-01":
        rows = [[event["time"], *event["name"].split(":"), event["data"]] for event in events()]
        fields = ["relative_time", "category", "event", "data"]
        return json.dumps(
            {"qlog_version": "draft-01", "traces": [{**trace, "event_fields": fields, "events": rows}]}
        )
    head = {"qlog_version": "0.4", "qlog_format": "JSON-SEQ", "trace": trace}
    if form == "contained":
        head = {
            "file_schema": "urn:ietf:params:qlog:file:sequential",
            "serialization_format": "x",
            "trace": trace,
        }
        spaced = [{**event, "name": f"quic:{event['name'].partition(':')[2]}"} for event in events()]
        return "".join(f"\x1e{json.dumps(one)}\n" for one in [head, *spaced])
    begin = "\x1e" if form == "sequence" else ""
    return "".join(f"{begin}{json.dumps(one)}\n" for one in [head, *events()])


@pytest.mark.parametrize("form", ["json", "draft-01", "sequence", "lines", "contained"])
def test_qlog_of_every_form_gives_the_same_numbers(tmp_path: Path, form: str) -> None:
    (tmp_path / "stack-run1.qlog").write_text(as_text(form))
    found = imported("qlog", tmp_path / "c", tmp_path / "stack-run1.qlog")
    # 1200 bytes per millisecond, where time begins with the first arrival.
    assert metrics_of(found, "qlog:stack")["throughput_bps"] == pytest.approx(9.6e6, rel=0.02)
    states = _native.state_series(tmp_path / "c" / "cells" / "stack-r1")[1]
    assert states["cwnd_bytes"].tolist() == [24000] and states["rtt_ns"].tolist() == [30e6]


def test_the_log_of_a_receiver_yields_arrivals(tmp_path: Path) -> None:
    text = as_text("lines").replace("packet_sent", "packet_x").replace("packet_received", "packet_sent")
    (tmp_path / "server.qlog").write_text(text.replace("packet_x", "packet_received"))
    found = imported("qlog", tmp_path / "c", tmp_path / "server.qlog")
    assert metrics_of(found, "qlog:server")["throughput_bps"] == pytest.approx(9.6e6, rel=0.02)


def iperf3_document(retransmits: int = 2) -> dict[str, Any]:
    def stream(k: int) -> dict[str, Any]:
        return {
            "socket": 5, "start": k * 0.5, "end": (k + 1) * 0.5, "bytes": 625_000, "retransmits": retransmits,
            "snd_cwnd": 90_000, "rtt": 40_000, "omitted": False, "sender": True,
        }  # fmt: skip

    return {
        "start": {
            "version": "iperf 3.16", "timestamp": {"timesecs": 1_700_000_000}, "tcp_mss_default": 1448,
            "test_start": {"protocol": "TCP", "reverse": 0},
        },
        "intervals": [{"streams": [stream(k)]} for k in range(8)],
        "end": {
            "streams": [
                {"sender": {"socket": 5, "bytes": 5_000_000}, "receiver": {"socket": 5, "bytes": 4_900_000}}
            ],
            "sender_tcp_congestion": "cubic",
        },
    }  # fmt: skip


def test_iperf3_documents_are_runs_of_the_scheme_that_they_name(tmp_path: Path) -> None:
    for number in (1, 2):
        (tmp_path / f"{number}.json").write_text(json.dumps(iperf3_document()))
    found = imported("iperf3", tmp_path / "c", tmp_path / "1.json", tmp_path / "2.json")
    summary = next(line for line in found.summary if line.scheme == "iperf3:cubic")
    assert summary.valid == 2
    metrics = metrics_of(found, "iperf3:cubic")
    assert metrics["throughput_bps"] == pytest.approx(9.8e6, rel=0.01)
    assert metrics["goodput_bps"] == pytest.approx(4_900_000 * 8 / 4, rel=0.01)
    assert metrics["loss_ratio"] is None
    run = json.loads((tmp_path / "c" / "cells" / "cubic-r1" / "run.json").read_text())
    assert run["flows"][0]["sender"]["retransmitted_packets"] == 16
    assert run["started_at"] == "2023-11-14T22:13:20Z"


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@pytest.mark.skipif(
    not (shutil.which("iperf3") and shutil.which("ss")), reason="iperf3 or ss is not installed"
)
def test_logs_of_the_real_iperf3_and_ss_can_be_read(tmp_path: Path) -> None:
    port = free_port()
    with subprocess.Popen(["iperf3", "-s", "-1", "-p", str(port)], stdout=subprocess.DEVNULL) as server:
        time.sleep(0.5)
        command = ["iperf3", "-c", "127.0.0.1", "-p", str(port), "-t", "2", "-i", "0.2", "-b", "50M", "-J"]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as client:
            with (tmp_path / "ss.log").open("w") as log:
                for _ in range(15):
                    log.write(f"{time.time():.6f}\n")
                    log.write(
                        subprocess.run(
                            ["ss", "-tin", "dport", "=", f":{port}"], capture_output=True, text=True
                        ).stdout
                    )
                    time.sleep(0.1)
            output, _ = client.communicate(timeout=120)
        server.wait(timeout=60)
    (tmp_path / "x.json").write_bytes(output)
    scheme = json.loads(output)["end"]["sender_tcp_congestion"]
    found = imported("iperf3", tmp_path / "a", tmp_path / "x.json")
    assert metrics_of(found, f"iperf3:{scheme}")["throughput_bps"] == pytest.approx(50e6, rel=0.1)
    found = imported("ss", tmp_path / "b", tmp_path / "ss.log")
    assert metrics_of(found, f"ss:{scheme}")["throughput_bps"] == pytest.approx(50e6, rel=0.25)
    states = _native.state_series(tmp_path / "b" / "cells" / f"{scheme}-r1")[1]
    assert states["cwnd_bytes"].min() > 0 and states["srtt_ns"].min() > 0


def ss_log(times: list[str]) -> str:
    parts = []
    for k, moment in enumerate(times):
        parts.append(f"{moment}\n" if moment else "")
        parts.append("State Recv-Q Send-Q Local Address:Port Peer Address:Port Process\n")
        parts.append("ESTAB 0      0       10.0.0.1:4000     10.0.0.2:5001\n")
        counters = f"bytes_sent:{k * 130_000} bytes_acked:{k * 125_000} bytes_retrans:{k * 1448}"
        parts.append(
            f"\t cubic wscale:7,7 rto:240 rtt:40.5/2 mss:1448 cwnd:20 ssthresh:30 {counters} segs_out:9"
            " send 5.7Mbps pacing_rate 12.5Mbps delivery_rate 10Mbps unacked:10 retrans:0/3 minrtt:40\n"
        )
    return "".join(parts)


@pytest.mark.parametrize(
    "times",
    [
        [f"{1_700_000_000 + k / 10:.9f}" for k in range(20)],
        [f"2023-11-14T22:13:{20 + k // 10:02d},{k % 10}00000000+00:00" for k in range(20)],
    ],
)
def test_logs_of_ss_yield_the_kernels_numbers(tmp_path: Path, times: list[str]) -> None:
    (tmp_path / "ss.log").write_text(ss_log(times))
    found = imported("ss", tmp_path / "c", tmp_path / "ss.log")
    # 125 kB in each tenth of a second.
    assert metrics_of(found, "ss:cubic")["throughput_bps"] == pytest.approx(10e6, rel=0.02)
    states = _native.state_series(tmp_path / "c" / "cells" / "cubic-r1")[1]
    expected = {
        "cwnd_bytes": 20 * 1448, "ssthresh_bytes": 30 * 1448, "srtt_ns": 40.5e6, "min_rtt_ns": 40e6,
        "pacing_bps": 12.5e6, "delivery_rate_bps": 10e6, "inflight_bytes": 14480,
    }  # fmt: skip
    for name, value in expected.items():
        assert set(states[name].tolist()) == {value}, name  # type: ignore[literal-required]
    assert states["retransmitted_bytes"][-1] == 19 * 1448


def mahimahi_log(delay: int, sizes: int = 1504, every: int = 2) -> str:
    rows = [
        "# mahimahi mm-link (uplink) [x.trace] > up.log",
        "# base timestamp: 0",
        "# init timestamp: 1700000000000",
    ]
    timed = []
    for k in range(1000):
        at = k * every
        timed.append((at, 0, f"{at} + {sizes}"))
        if k % 50 == 7:
            timed.append((at, 1, f"{at} d 1 {sizes}"))
        else:
            timed.append((at + delay, 1, f"{at + delay} # {sizes}"))
            timed.append((at + delay, 2, f"{at + delay} - {sizes} {delay}"))
    return "\n".join([*rows, *(line for _, _, line in sorted(timed))]) + "\n"


def test_logs_of_mahimahi_give_delays_losses_and_capacity(tmp_path: Path) -> None:
    (tmp_path / "cubic-uplink.log").write_text(mahimahi_log(20))
    (tmp_path / "cubic-downlink.log").write_text(mahimahi_log(5, sizes=56))
    found = imported(
        "mahimahi", tmp_path / "c", tmp_path / "cubic-uplink.log", tmp_path / "cubic-downlink.log"
    )
    metrics = metrics_of(found, "mahimahi:cubic")
    assert metrics["delay_p95_ns"] == 20e6
    assert metrics["loss_ratio"] == pytest.approx(0.02, abs=0.001)
    assert metrics["throughput_bps"] == pytest.approx(1500 * 8 / 0.002 * 0.98, rel=0.01)
    assert metrics["utilization_ratio"] == pytest.approx(1.0, rel=0.02)


def plain_pcap(packets: list[tuple[float, bytes]], order: str = "<", nanoseconds: bool = False) -> bytes:
    magic = 0xA1B23C4D if nanoseconds else 0xA1B2C3D4
    parts = [struct.pack(f"{order}IHHiIII", magic, 2, 4, 0, 0, 65535, 1)]
    for at, frame in packets:
        part = round((at % 1) * (1e9 if nanoseconds else 1e6))
        parts.append(struct.pack(f"{order}IIII", int(at), part, len(frame), len(frame)) + frame)
    return b"".join(parts)


def udp_frame(number: int, payload: int = 1000) -> bytes:
    ip = struct.pack(
        ">BBHHHBBH4s4s",
        0x45,
        0,
        28 + payload,
        number,
        0,
        64,
        17,
        0,
        bytes([10, 0, 0, 1]),
        bytes([10, 0, 0, 2]),
    )
    udp = struct.pack(">HHHH", 4000, 5000, 8 + payload, 0)
    return bytes(12) + b"\x08\x00" + ip + udp + bytes(payload)


@pytest.mark.parametrize(("order", "nanoseconds"), [("<", False), (">", False), ("<", True), (">", True)])
def test_pcap_of_either_byte_order_and_resolution_is_read(
    tmp_path: Path, order: str, nanoseconds: bool
) -> None:
    here = [(1000 + k / 1000, udp_frame(k)) for k in range(200)]
    there = [(at + 0.025, frame) for k, (at, frame) in enumerate(here) if k % 10 != 3]
    for name, packets in (("a.pcap", here), ("b.pcap", there)):
        (tmp_path / name).write_bytes(plain_pcap(packets, order, nanoseconds))
    found = imported("pcapng", tmp_path / "c", tmp_path / "a.pcap", tmp_path / "b.pcap")
    metrics = metrics_of(found, "pcapng:a")
    assert metrics["delay_p95_ns"] == pytest.approx(25e6, abs=2000)
    assert metrics["loss_ratio"] == pytest.approx(0.1, abs=0.002)


def test_clocks_that_disagree_make_a_run_degraded(tmp_path: Path) -> None:
    here = [(1000 + k / 1000, udp_frame(k)) for k in range(200)]
    for name, packets in (("a.pcap", here), ("b.pcap", [(at - 0.5, frame) for at, frame in here])):
        (tmp_path / name).write_bytes(plain_pcap(packets))
    # Only one direction was seen, so the later clock belongs to the far end.
    result = narrows(
        "import", "pcapng", tmp_path / "a.pcap", tmp_path / "b.pcap", "-o", tmp_path / "c", "--no-report"
    )
    assert result.exit_code == 0, result.output


WRONG = {
    "qlog": {
        "empty": (b"", "is empty"),
        "binary": (bytes(range(256)) * 4, "is not text"),
        "other": (b'{"a": 1}', "not a qlog"),
        "cut": (as_text("json")[:100].encode(), "cut off"),
        "nothing": (b'{"qlog_version": "0.3", "traces": []}', "no events"),
    },
    "iperf3": {
        "empty": (b"", "not a complete JSON"),
        "cut": (json.dumps(iperf3_document())[:500].encode(), "not a complete JSON"),
        "other": (b"[1, 2]", "not a document of iperf3"),
        "error": (b'{"intervals": [], "error": "unable to connect"}', "unable to connect"),
        "half": (
            b'{"intervals": [{"streams": [{"socket": 5}]}], "start": {}, "end": {}}',
            "not a document of iperf3",
        ),
        "none": (b'{"intervals": [], "start": {}, "end": {}}', "no interval"),
    },
    "ss": {
        "empty": (b"", "not a log of ss"),
        "no times": (ss_log([""] * 5).encode(), "no time stands before"),
        "back": (ss_log(["1700000001", "1700000000"]).encode(), "earlier than one above"),
        "once": (ss_log(["1700000001"]).encode(), "no connection that sent"),
    },
    "pcapng": {
        "empty": (b"", "too short"),
        "other": (b"GIF89a" + bytes(100), "neither as pcapng nor as pcap"),
        "cut": (plain_pcap([(1.0, udp_frame(1))])[:-10], "damaged or cut off"),
        "no packets": (plain_pcap([]), "no TCP or UDP"),
        "bad block": (b"\x0a\x0d\x0d\x0a" + bytes(40), "damaged or cut off"),
    },
    "mahimahi": {
        "empty": (b"", "no packets"),
        "other": (b"hello\nworld\n", "line 1"),
        "damaged": (mahimahi_log(20).encode() + b"12 - 15\n", "is not a line of a log"),
        "numbers": (b"99999999999999999999 + 1504\n", "line 1"),
    },
}


@pytest.mark.parametrize(("tool", "case"), [(tool, case) for tool, cases in WRONG.items() for case in cases])
def test_damaged_files_end_in_one_sentence(tmp_path: Path, tool: str, case: str) -> None:
    content, says = WRONG[tool][case]
    (tmp_path / "file.x").write_bytes(content)
    result = narrows("import", tool, tmp_path / "file.x", "-o", tmp_path / "c", "--no-report")
    assert isinstance(result.exception, DataError), (result.output, result.exception)
    text = str(result.exception)
    assert says in text and "file.x" in text and "\n" not in text, text
    assert not (tmp_path / "c").exists()


@pytest.mark.parametrize("tool", list(IMPORTS))
def test_missing_files_and_empty_folders_are_reported(tmp_path: Path, tool: str) -> None:
    result = narrows("import", tool, tmp_path / "none", "-o", tmp_path / "c")
    assert isinstance(result.exception, DataError) and "none: does not exist" in str(result.exception)
    (tmp_path / "folder").mkdir()
    result = narrows("import", tool, tmp_path / "folder", "-o", tmp_path / "c")
    assert isinstance(result.exception, DataError) and "has no files called" in str(result.exception)


def test_captures_cut_anywhere_are_refused_or_read(campaign: Path, tmp_path: Path) -> None:
    whole = (campaign / "pcapng" / "cubic-r1-sender.pcapng").read_bytes()
    for length in [*range(0, 600, 7), len(whole) // 2, len(whole) - 1]:
        (tmp_path / "cut.pcapng").write_bytes(whole[:length])
        try:
            _native.read_capture(tmp_path / "cut.pcapng")
        except ValueError as error:
            assert "cut.pcapng" in str(error)


def test_an_imported_campaign_can_be_shown_reported_and_checked(campaign: Path, tmp_path: Path) -> None:
    result = narrows("import", "qlog", campaign / "qlog", "-o", tmp_path / "c", "--report")
    assert result.exit_code == 0, (result.output, result.exception)
    assert (tmp_path / "c" / "report.html").exists()
    html = (tmp_path / "c" / "report.html").read_text()
    assert "made and logged by qlog" in html
    for command in ("show", "check"):
        result = narrows(command, tmp_path / "c")
        assert result.exit_code == 0, (command, result.output, result.exception)
    # And exported again, as tables.
    assert narrows("export", tmp_path / "c", "--format", "csv", "-o", tmp_path / "tables").exit_code == 0


def test_names_of_files_tell_the_scheme() -> None:
    names = {
        "cubic-r2-sender.pcapng": "cubic", "cubic_run3.json": "cubic", "bbr1-r1-flow2.sqlog": "bbr1",
        "client.qlog": "client", "pcc-vivace-2.json": "pcc-vivace", "7.json": "7",
    }  # fmt: skip
    for name, scheme in names.items():
        assert scheme_of(Path(name)) == scheme, name


def test_states_without_a_new_value_are_carried_forward() -> None:
    nan = np.nan
    assert np.array_equal(carry_forward(np.array([nan, 1, nan, 2, nan])), [nan, 1, 1, 2, 2], equal_nan=True)
    assert len(carry_forward(np.array([]))) == 0


def test_errors_of_the_system_are_reported(tmp_path: Path) -> None:
    (tmp_path / "dir.qlog").mkdir()
    result = narrows("import", "qlog", tmp_path / "dir.qlog", "-o", tmp_path / "c")
    assert isinstance(result.exception, NarrowsError)
