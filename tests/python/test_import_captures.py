"""Captures of real tools, compared with tshark's numbers, and captures with known faults.

`tests/imports/make/pcapng` and `pcapng-truth` make the captures and `truth.json`; each value there has the
command that computes it."""

from __future__ import annotations

import gzip
import json
import struct
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from narrows import _native
from narrows.documents.results import Row
from narrows.errors import DataError
from narrows.formats import import_files
from narrows.formats.imports._choice import Choice

FOLDER = Path(__file__).parent.parent / "imports" / "pcapng"
TRUTH = json.loads((FOLDER / "truth.json").read_text())
#: Headers of IPv6 and TCP; a packet of at most this size carries no data.
HEADERS = 72


@dataclass
class Run:
    """One imported run."""

    document: dict[str, Any]
    rows: list[Row]
    cell: Path

    def metrics(self, flow: int | str = "all") -> dict[str, Any]:
        found: dict[str, Any] = next(row.metrics for row in self.rows if row.flow == flow)
        return found

    def reasons(self) -> str:
        return " | ".join(reason["text"] for reason in self.document["reasons"])

    def flow(self, port: int | None) -> dict[str, Any]:
        flows = self.document["flows"]
        found: dict[str, Any] = next(
            flow for flow in flows if port is None or flow["facts"]["ports"][0] == port
        )
        return found


def imported(tmp_path: Path, *files: Path, choice: Choice | None = None) -> list[Run]:
    done = import_files("pcapng", list(files), tmp_path / "c", choice=choice)
    runs = []
    for entry in done.folder.cells:
        cell = done.folder.cell_dir(entry.id)
        rows = [row for row in done.results.rows if (row.scheme, row.run) == (entry.scheme, entry.run)]
        runs.append(Run(json.loads((cell / "run.json").read_text()), rows, cell))
    return runs


def only(tmp_path: Path, *files: Path, choice: Choice | None = None) -> Run:
    runs = imported(tmp_path, *files, choice=choice)
    assert len(runs) == 1
    return runs[0]


@pytest.mark.parametrize("entry", TRUTH["entries"], ids=lambda entry: "+".join(entry["files"]))
def test_captures_of_real_tools_give_what_tshark_says(tmp_path: Path, entry: dict[str, Any]) -> None:
    run = only(tmp_path, *(FOLDER / name for name in entry["files"]))
    flow = run.flow(entry["port"])
    expect = {name: value["value"] for name, value in entry["expect"].items()}
    large = "hold several packets" in run.reasons()
    if "goodput_bytes" in expect:
        assert flow["receiver"]["goodput_bytes"] == expect["goodput_bytes"]
        # For frames with several packets tshark counts frames.
        if not large:
            assert flow["sender"]["retransmitted_packets"] == expect["retransmitted_frames"]
    if "rtt_mean_ns" in expect:
        assert run.metrics(flow["flow"])["rtt_mean_ns"] == pytest.approx(expect["rtt_mean_ns"], rel=0.01)
    if "sent_packets" in expect:
        packets: dict[str, Any] = dict(_native.packets(run.cell) or {})
        smallest = HEADERS if entry["port"] else 0
        mine = (packets["flow"] == flow["flow"]) & ~packets["backward"] & (packets["size_bytes"] > smallest)
        sent, arrived = packets["sent_ns"][mine], packets["arrived_ns"][mine]
        assert len(sent) == expect["sent_packets"]
        assert np.count_nonzero(arrived >= 0) == expect["arrived_packets"]
        if "delay_mean_ns" in expect:
            delays = (arrived - sent)[arrived >= 0]
            assert np.mean(delays) == pytest.approx(expect["delay_mean_ns"], rel=0.01)
    if "iperf3_lost_percent" in expect:
        lost = 1 - expect["arrived_packets"] / expect["sent_packets"]
        assert 100 * lost == pytest.approx(expect["iperf3_lost_percent"], abs=0.2)


def test_both_captures_of_a_connection_are_one_run_in_any_order(tmp_path: Path) -> None:
    names = ["parallel-sender", "parallel-receiver", "delay-receiver", "delay-sender"]
    runs = imported(tmp_path, *(FOLDER / f"{name}.pcap.gz" for name in names))
    assert [len(run.document["flows"]) for run in runs] == [2, 1]
    assert all(run.document["import"]["ends"] == "both" for run in runs)


def test_a_capture_at_the_receiver_gives_no_round_trip_time(tmp_path: Path) -> None:
    run = only(tmp_path, FOLDER / "delay-receiver.pcap.gz")
    assert run.metrics()["rtt_mean_ns"] is None
    assert "taken at the receiver" in run.reasons()
    assert not (run.cell / "states.parquet").exists()


def test_interfaces_of_a_router_are_both_ends_of_its_queue(tmp_path: Path) -> None:
    run = only(tmp_path, FOLDER / "any-router.pcap.gz")
    assert run.document["import"]["ends"] == "both"
    # The router's queue holds at most 40 ms (tbf latency).
    assert 0 < run.metrics()["delay_mean_ns"] < 45e6


# --- by hand: 400 packets of 1448 bytes, one each 5 ms (2.4 Mbit/s), acknowledged after 40 ms ---

MSS, GAP, RTT = 1448, 0.005, 0.04
SENDER, RECEIVER = (bytes([192, 0, 2, 1]), 40_000), (bytes([192, 0, 2, 2]), 5201)
Frame = tuple[float, bytes, int]


def tcp(
    at: float, source: Any, target: Any, *, sequence: int = 0, ack: int = 0, flags: int = 0x10,
    payload: int = 0, number: int = 0, length: int | None = None, stamp: int = 0,
) -> Frame:  # fmt: skip
    total = 52 + payload if length is None else length
    ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, total, number & 0xFFFF, 0x4000, 64, 6, 0, source[0], target[0])
    head = struct.pack(">HHIIBBHHH", source[1], target[1], sequence, ack, 0x80, flags, 0xFFFF, 0, 0)
    options = bytes([1, 1, 8, 10]) + struct.pack(">II", stamp, 0)
    return at, bytes(12) + b"\x08\x00" + ip + head + options, 66 + payload


def connection(
    start: float = 1.7e9, initial: int = 999, count: int = 400, zero: int = 0, source: Any = SENDER
) -> list[Frame]:
    """The frames at the sender; every `zero`-th data frame has no IP length."""
    frames = [
        tcp(start - 0.1, source, RECEIVER, sequence=initial, flags=2),
        tcp(start - 0.06, RECEIVER, source, ack=initial + 1, flags=0x12),
    ]
    for k in range(count):
        at, begin = start + k * GAP, (initial + 1 + k * MSS) & 0xFFFFFFFF
        length = 0 if zero and k % zero == 0 else None
        stamp = int(at * 1000) & 0xFFFFFFFF
        frames.append(
            tcp(
                at, source, RECEIVER, sequence=begin, ack=1, flags=0x18, payload=MSS, number=k + 1,
                length=length, stamp=stamp,
            )
        )  # fmt: skip
        frames.append(
            tcp(at + RTT, RECEIVER, source, sequence=1, ack=(begin + MSS) & 0xFFFFFFFF, number=k + 1)
        )
    return sorted(frames, key=lambda frame: frame[0])


def pcap(path: Path, frames: list[Frame], link: int = 1) -> Path:
    parts = [struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65_535, link)]
    for at, kept, size in frames:
        ticks = round(at * 1e6)
        parts.append(struct.pack("<IIII", ticks // 1_000_000, ticks % 1_000_000, len(kept), size) + kept)
    path.write_bytes(b"".join(parts))
    return path


def test_lengths_of_zero_are_taken_from_the_frame(tmp_path: Path) -> None:
    for zero in (1, 2, 7):
        file = pcap(tmp_path / f"x{zero}.pcap", connection(zero=zero))
        run = only(tmp_path / str(zero), file)
        assert run.flow(None)["receiver"]["goodput_bytes"] == 400 * MSS
        assert run.metrics()["throughput_bps"] == pytest.approx(2.4e6, rel=0.01)


def test_the_control_connection_of_iperf3_enters_no_total(tmp_path: Path) -> None:
    control = (SENDER[0], 39_998)
    frames = connection()
    for at, payload, begin in ((1.7e9 - 0.5, 37, 1), (1.7e9 + 2.5, 300, 38)):
        frames.append(tcp(at, control, RECEIVER, sequence=begin, payload=payload))
        frames.append(tcp(at + RTT, RECEIVER, control, ack=begin + payload))
    frames.sort(key=lambda frame: frame[0])
    file = pcap(tmp_path / "control.pcap", frames)
    run = only(tmp_path, file)
    assert run.metrics()["throughput_bps"] == pytest.approx(2.4e6, rel=0.01)
    assert len(run.document["flows"]) == 1
    assert "192.0.2.1:39998 > 192.0.2.2:5201 (connection 1, 337 bytes)" in run.reasons()
    assert "control" in run.reasons() and run.document["verdict"] == "ok"
    both = only(tmp_path / "both", file, choice=Choice(flows=[1, 2]))
    assert len(both.document["flows"]) == 2
    port = only(tmp_path / "port", file, choice=Choice(ports=[40_000]))
    assert "were not selected (1)" in port.reasons()
    for choice, says in ((Choice(flows=[3]), "no connection 3"), (Choice(ports=[7]), "has port 7")):
        with pytest.raises(DataError, match=says):
            import_files("pcapng", [file], tmp_path / "none", choice=choice)


@pytest.mark.parametrize("second", [900_000_000, 5_000, 999])
def test_a_connection_on_used_ports_repeats_nothing(tmp_path: Path, second: int) -> None:
    frames = [*connection(count=200), *connection(1.7e9 + 2, second, count=200)]
    run = only(tmp_path, pcap(tmp_path / "again.pcap", frames))
    senders = [flow["sender"]["retransmitted_packets"] for flow in run.document["flows"]]
    assert senders == [0, 0]
    assert [flow["receiver"]["goodput_bytes"] for flow in run.document["flows"]] == [200 * MSS] * 2


def test_fairness_counts_only_the_time_that_connections_share(tmp_path: Path) -> None:
    frames = [*connection(count=200), *connection(1.7e9 + 2, 900_000_000, count=200)]
    apart = only(tmp_path / "apart", pcap(tmp_path / "apart.pcap", frames))
    assert [flow["start_ns"] // 10**9 for flow in apart.document["cell"]["flows"]] == [0, 2]
    assert apart.metrics()["jain_index"] is None


@pytest.mark.parametrize("step", [3600.0, 0.2])
def test_a_clock_set_back_is_corrected_and_degrades(tmp_path: Path, step: float) -> None:
    frames = connection()
    frames = [(at - step * (k >= 400), kept, size) for k, (at, kept, size) in enumerate(frames)]
    run = only(tmp_path, pcap(tmp_path / "clock.pcap", frames))
    assert run.document["verdict"] == "degraded" and "was set back" in run.reasons()
    assert run.flow(None)["sender"]["retransmitted_packets"] == 0
    assert run.metrics()["throughput_bps"] == pytest.approx(2.4e6, rel=0.01)
    assert run.metrics()["rtt_mean_ns"] == pytest.approx(RTT * 1e9, rel=0.01)


def test_a_cut_file_is_read_up_to_the_cut_and_degrades(tmp_path: Path) -> None:
    file = pcap(tmp_path / "cut.pcap", connection())
    file.write_bytes(file.read_bytes()[:-20])
    run = only(tmp_path, file)
    assert run.document["verdict"] == "degraded" and "cut off at the end of the file" in run.reasons()
    assert run.metrics()["throughput_bps"] == pytest.approx(2.4e6, rel=0.01)


def test_frames_that_are_no_ip_are_counted_and_named(tmp_path: Path) -> None:
    arp = [(1.7e9 + k, bytes(12) + b"\x08\x06" + bytes(28), 42) for k in range(2)]
    frames = sorted([*connection(), *arp], key=lambda frame: frame[0])
    run = only(tmp_path, pcap(tmp_path / "arp.pcap", frames))
    assert "ARP frames (2)" in run.reasons() and run.document["verdict"] == "ok"
    with pytest.raises(
        DataError, match=r"no TCP or UDP packets that can be read; it has only ARP frames \(2\)"
    ):
        import_files("pcapng", [pcap(tmp_path / "only.pcap", arp)], tmp_path / "none")
    wrong = pcap(
        tmp_path / "radio.pcap", [(at, kept[14:], size) for at, kept, size in connection()], link=127
    )
    with pytest.raises(DataError, match=r"link type 127 \(802.11 with radiotap header\) \(802\)"):
        import_files("pcapng", [wrong], tmp_path / "none")


def test_captures_whose_packets_differ_are_one_run_and_name_offloads(tmp_path: Path) -> None:
    near = pcap(tmp_path / "a.pcap", connection())
    far = pcap(tmp_path / "b.pcap", connection(1.7e9 + 0.02, initial=1 << 31))
    run = only(tmp_path, near, far)
    assert run.document["verdict"] == "degraded"
    assert "ethtool -K IFACE tso off gso off gro off" in run.reasons() and "offloads" in run.reasons()
    assert run.metrics()["throughput_bps"] == pytest.approx(2.4e6, rel=0.01)


def test_one_capture_twice_is_one_run(tmp_path: Path) -> None:
    file = pcap(tmp_path / "a.pcap", connection())
    (tmp_path / "b.pcap.gz").write_bytes(gzip.compress(file.read_bytes()))
    run = only(tmp_path, file, tmp_path / "b.pcap.gz")
    assert "at the same place" in run.reasons()
    assert run.metrics()["rtt_mean_ns"] == pytest.approx(RTT * 1e9, rel=0.01)


def _rotate(file: Path, folder: Path, form: str) -> list[Path]:
    """Parts of a capture, as made and named by editcap."""
    folder.mkdir()
    plain = folder.parent / "plain.pcap"
    plain.write_bytes(gzip.decompress(file.read_bytes()))
    subprocess.run(["editcap", "-F", form, "-c", "200", plain, folder / f"part.{form}"], check=True)
    return sorted(folder.iterdir())


@pytest.mark.parametrize("form", ["pcap", "pcapng"])
def test_a_rotated_capture_is_read_as_the_whole_one(tmp_path: Path, form: str) -> None:
    whole = FOLDER / "plain-sender.pcap.gz"
    parts = _rotate(whole, tmp_path / "parts", form)
    assert len(parts) == 3
    (expected,) = imported(tmp_path / "whole", whole)
    (run,) = imported(tmp_path / "rotated", *reversed(parts))
    assert run.metrics() == expected.metrics()
    assert "these 3 files were read as one" in run.reasons()
    assert all(part.name in run.reasons() for part in parts)


def test_a_rotated_capture_of_one_end_meets_the_whole_one_of_the_other(tmp_path: Path) -> None:
    parts = _rotate(FOLDER / "plain-sender.pcap.gz", tmp_path / "parts", "pcap")
    # tcpdump's names with -C.
    named = [part.rename(part.with_name(f"x.pcap{place or ''}")) for place, part in enumerate(parts)]
    receiver = FOLDER / "plain-receiver.pcap.gz"
    (expected,) = imported(tmp_path / "whole", FOLDER / "plain-sender.pcap.gz", receiver)
    (run,) = imported(tmp_path / "rotated", *named, receiver)
    assert run.metrics() == expected.metrics()


def _translate(file: Path, target: Path, *, ports: bool, keep_handshake: bool = True) -> Path:
    """A capture (Ethernet, IPv4, TCP) as if taken beyond a NAT: clients have another address, and other
    ports."""
    content = gzip.decompress(file.read_bytes())
    parts, place = [content[:24]], 24
    while place < len(content):
        header = content[place : place + 16]
        length = struct.unpack("<I", header[8:12])[0]
        frame = bytearray(content[place + 16 : place + 16 + length])
        place += 16 + length
        assert frame[12:15] == b"\x08\x00\x45", "IPv4 without options"
        # The client is 10.0.1.2.
        source = frame[26:30] == bytes([10, 0, 1, 2])
        at, port = (26, 34) if source else (30, 36)
        frame[at : at + 4] = bytes([198, 51, 100, 7])
        if ports:
            frame[port : port + 2] = (int.from_bytes(frame[port : port + 2]) - 20_000).to_bytes(2)
        if keep_handshake or not frame[47] & 2:
            parts += [header, bytes(frame)]
    target.write_bytes(b"".join(parts))
    return target


@pytest.mark.parametrize("ports", [False, True])
def test_both_ends_of_a_connection_behind_a_nat_are_one_run(tmp_path: Path, ports: bool) -> None:
    near, far = FOLDER / "plain-sender.pcap.gz", FOLDER / "plain-receiver.pcap.gz"
    (expected,) = imported(tmp_path / "plain", near, far)
    translated = _translate(far, tmp_path / "public.pcap", ports=ports)
    for place, files in enumerate(([near, translated], [translated, near])):
        (run,) = imported(tmp_path / f"nat{place}", *files)
        assert run.document["import"]["ends"] == "both"
        assert run.metrics() == expected.metrics()
        assert "matched by their initial sequence numbers" in run.reasons()
        assert "address translation" not in expected.reasons()


def test_a_nat_without_the_handshake_is_named(tmp_path: Path) -> None:
    near = FOLDER / "plain-sender.pcap.gz"
    far = FOLDER / "plain-receiver.pcap.gz"
    translated = _translate(far, tmp_path / "public.pcap", ports=True, keep_handshake=False)
    runs = imported(tmp_path, near, translated)
    assert len(runs) == 2
    assert all("with other addresses or ports (NAT)" in run.reasons() for run in runs)
    others = imported(tmp_path / "other", near, FOLDER / "loss-receiver.pcap.gz")
    assert not any("(NAT)" in run.reasons() for run in others)


def test_runs_whose_names_differ_in_digits_alone_stay_apart(tmp_path: Path) -> None:
    files = []
    for number, name in ((1, "plain-sender"), (2, "loss-sender")):
        files.append(tmp_path / f"run{number}.pcap.gz")
        files[-1].write_bytes((FOLDER / f"{name}.pcap.gz").read_bytes())
    assert len(imported(tmp_path, *files)) == 2
