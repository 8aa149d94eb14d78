"""Cards of captures and logs of ss: the lines of the record of the same run, and tshark's counts.

Captures are those of `tcpdump` beside iperf3 on emulated paths, and exports of simulated runs."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from campaign_kit import narrows, sentence
from narrows.documents.identify import Card, Line
from narrows.errors import EXIT_SOME_INVALID, DataError, UsageError
from narrows.identify.captures import _limit, read_capture
from narrows.identify.features import FEATURES
from narrows.identify.logs import Log, read_log
from narrows.identify.running import read_cards
from narrows.identify.ss_logs import read_ss
from narrows.identify.trace import GAPS, WINDOW

CORPUS = Path(__file__).resolve().parents[1] / "imports"
TOOLS = ("tshark", "tcpdump", "iperf3", "ss")
CONTROLS = ("reno", "cubic")
#: A path on which a run of 20 s has several losses.
PATH = """\
schema: narrows/scenario/1
name: captured
question: Does a capture show what the record shows?
where: emulate
path:
  forward: [{{rate: 12 Mbit/s, queue: {{droptail: 1 bdp}}}}, {{delay: 20 ms}}]
  backward: [{{delay: 20 ms}}]
schemes: [{{program: {program}}}]
duration: 24 s
runs: 1
record: packets
"""
#: iperf3 with a capture and, at its sender, a log of ss beside it; both write into the folder of the test.
PROGRAM = """\
schema: narrows/program/1
what: iperf3 with captures
data: connector
listener:
  command: sh {folder}/receive {{port}}
  ready: tcp
connector:
  command: bash {folder}/send {{address}} {{port}} {{duration}}
end: {{when: duration, grace: 2 s}}
"""
CAPTURE = "tcpdump -Z root -i any -s 128 -U -w {folder}/{end}.pcap tcp 2>/dev/null &\n"
RECEIVE = CAPTURE + "exec iperf3 --server --one-off --port $1\n"
SEND = (
    CAPTURE
    + "while sleep 0.01; do echo $EPOCHREALTIME; ss -tinHO state established; done > {folder}/ss.log &\n"
    + "sleep 0.3\nexec iperf3 --client $1 --port $2 --time $3 --congestion {control}\n"
)
#: Lines that are too noisy in one short run to be compared, and one that the connection which controls iperf3
#: changes; it belongs to the flow of a record.
UNLIKE = {
    "gain",
    "drain",
    "gain-period",
    "dip-period",
    "dip-floor",
    "dip-length",
    "fall",
    "slow-start-growth",
}


@dataclass(frozen=True)
class Run:
    """A run, its record, and what was captured of it."""

    folder: Path
    record: Path

    def __getitem__(self, end: str) -> Path:
        return self.folder / f"{end}.pcap"


@pytest.fixture(scope="module", params=CONTROLS)
def captured(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """An emulated run of iperf3 with a congestion control, captured at both ends."""
    for tool in TOOLS:
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")
    folder = tmp_path_factory.mktemp(request.param)
    (folder / "program.yaml").write_text(PROGRAM.format(folder=folder))
    (folder / "receive").write_text(RECEIVE.format(folder=folder, end="receiver"))
    (folder / "send").write_text(SEND.format(folder=folder, end="sender", control=request.param))
    (folder / "captured.yaml").write_text(PATH.format(program=folder / "program.yaml"))
    done = narrows("run", folder / "captured.yaml", "-o", folder / "runs", "--no-report")
    # The record and the captures of a run that the machine disturbed show the same packets all the same.
    assert done.exit_code in (0, EXIT_SOME_INVALID), (done.output, done.exception)
    (record,) = (folder / "runs" / "cells").iterdir()
    return Run(folder, record)


def shark(file: Path, fields: list[str], wanted: str) -> list[list[str]]:
    """Fields of the packets that tshark chooses."""
    words = ["-T", "fields", *(part for field in fields for part in ("-e", field))]
    command = ["tshark", "-r", str(file), "-Y", wanted, *words]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    return [line.split("\t") for line in done.stdout.splitlines()]


def data_stream(file: Path) -> str:
    """tshark's filter of the stream with most data, in the direction of the data."""
    sums: dict[tuple[str, str], int] = {}
    for stream, port, length in shark(file, ["tcp.stream", "tcp.srcport", "tcp.len"], "tcp.len > 0"):
        sums[stream, port] = sums.get((stream, port), 0) + int(length)
    stream, port = max(sums, key=sums.__getitem__)
    return f"tcp.stream == {stream} and tcp.srcport == {port}"


def card_of(*files: Path) -> Card:
    (card,) = read_cards(files[0], files[1] if len(files) > 1 else None)
    return card


def check_lines(made: Card, record: Card, wanted: set[str], near: float = 0.05) -> None:
    """The lines of a card have the values of the record's."""
    lines = {line.name: line for line in made.lines}
    for line in record.lines:
        if line.name in wanted and line.why is None:
            check_line(lines[line.name], line, near)


def check_line(line: Line, expected: Line, near: float) -> None:
    assert line.why is None, (line, expected)
    assert line.word == expected.word, (line, expected)
    if expected.value is not None:
        assert line.value is not None and expected.low is not None and expected.high is not None
        within = near * abs(expected.value) + (expected.high - expected.low) / 2 + expected.resolution
        assert line.value == pytest.approx(expected.value, abs=within), (line, expected)


# -- captures of iperf3 ------------------------------------------------------------------------------


@pytest.mark.system
def test_packets_repetitions_and_round_trips_at_the_sender_are_those_of_tshark(captured: Run) -> None:
    file = captured["sender"]
    trace = read_capture([file])
    stream = data_stream(file)
    lengths = [int(row[0]) for row in shark(file, ["tcp.len"], f"{stream} and tcp.len > 0")]
    segment = float(np.median(trace.size_bytes)) - 52
    # iperf3 begins with a packet of 37 bytes.
    assert len(trace.sent_s) == sum(-(-length // int(segment)) for length in lengths if length > 100)
    # At the sender, tshark calls repetitions that follow soon out of order.
    repeated = "(tcp.analysis.retransmission or tcp.analysis.out_of_order)"
    again = shark(file, ["tcp.len"], f"{stream} and {repeated}")
    sent_again = sum(-(-int(row[0]) // int(segment)) for row in again)
    assert sent_again > 0
    # Each lost packet is sent again, and a repetition that was not needed has no lost packet.
    assert int(trace.lost.sum()) == pytest.approx(sent_again, abs=2)
    # The first two times are of the handshake and of the first bytes of iperf3.
    back = stream.replace("tcp.srcport", "tcp.dstport")
    times = [
        float(row[0]) for row in shark(file, ["tcp.analysis.ack_rtt"], f"{back} and tcp.analysis.ack_rtt")
    ]
    assert trace.min_rtt_s == pytest.approx(min(times[2:]), rel=0.02)
    assert float(np.nanmedian(trace.rtt_s)) == pytest.approx(float(np.median(times)), rel=0.03)


@pytest.mark.system
def test_bytes_in_flight_are_those_of_tshark_outside_of_recoveries(captured: Run) -> None:
    file = captured["sender"]
    trace = read_capture([file])
    shown = ["frame.time_relative", "tcp.analysis.bytes_in_flight"]
    stream = data_stream(file)
    rows = [row for row in shark(file, shown, f"{stream} and tcp.analysis.bytes_in_flight") if row[1]]
    times, flight = np.array(rows, np.float64).T
    first = float(shark(file, shown[:1], stream)[0][0])
    last = np.searchsorted(trace.sent_s, times - first + 1e-6, "right") - 1
    segment = trace.packet_bytes - 52
    ours = trace.in_flight[last] * segment
    # In recoveries we count selectively acknowledged data as arrived, tshark does not.
    near = np.abs(ours - flight) < 3.5 * segment
    assert near.mean() > 0.85


@pytest.mark.system
@pytest.mark.parametrize("ends", [("sender",), ("receiver",), ("sender", "receiver")], ids="+".join)
def test_captures_have_the_lines_of_the_record_of_their_run(captured: Run, ends: tuple[str, ...]) -> None:
    made, record = card_of(*(captured[end] for end in ends)), card_of(captured.record)
    wanted = {line.name for line in record.lines if line.probe == "captured"} - UNLIKE
    known = {line.name: line for line in made.lines}
    if ends == ("receiver",):
        assert "tick of the sender's time stamps" in str(known["bursts"].why)
        # A packet more or less in the window of a round hides how CUBIC grows in its friendly region.
        wanted -= {"bursts"} if "reno" in captured.folder.name else {"bursts", "law", "growth-linear"}
    check_lines(made, record, wanted)
    assert known["slow-start-growth"].value == pytest.approx(2, abs=0.35)
    where = "both ends" if len(ends) > 1 else f"the {ends[0]}"
    assert f"taken at {where}: connection" in made.notes[0]


@pytest.mark.system
def test_a_dense_log_of_ss_has_the_law_of_growth_and_the_queue(captured: Run) -> None:
    made, record = card_of(captured.folder / "ss.log"), card_of(captured.record)
    reasons = {line.name: str(line.why) for line in made.lines}
    wanted = {"decrease", "queue", "utilization", "loss"}
    if "snapshots every" in reasons["decrease"]:
        # A busy machine takes them too slowly.
        wanted.remove("decrease")
    check_lines(made, record, wanted, near=0.12)
    assert reasons["bursts"] == "a log of ss has no single packets"


@pytest.mark.system
def test_two_captures_of_a_connection_become_one_card(captured: Run) -> None:
    done = narrows("identify", captured["receiver"], captured["sender"])
    assert done.exit_code == 0, done.output
    shown = " ".join(done.stdout.split())
    assert shown.count("taken at both ends") == 1 and "taken at the" not in shown


# -- captures of other tests -------------------------------------------------------------------------


def test_a_capture_of_quic_says_what_is_encrypted(tmp_path: Path) -> None:
    shutil.copy(CORPUS / "pcapng" / "udp-lost-receiver.pcap.gz", tmp_path / "quic.pcap.gz")
    card = card_of(tmp_path / "quic.pcap.gz")
    reasons = {line.name: line.why for line in card.lines}
    assert "has no times of sending of UDP" in str(reasons["decrease"])
    assert "encrypt what arrived; the sender's qlog shows it" in str(reasons["loss"])


def test_a_flow_is_chosen_by_its_number(tmp_path: Path) -> None:
    shutil.copy(CORPUS / "pcapng" / "parallel-sender.pcap.gz", tmp_path / "two.pcap.gz")
    file = tmp_path / "two.pcap.gz"
    assert "connection 2 of 3" in read_log(Log((file,), 2)).about[0]
    with pytest.raises(DataError, match="connection 3 has 99 packets of data; at least 100"):
        read_log(Log((file,), 3))
    done = narrows("identify", file, "--flow", "9")
    assert "has no connection 9; its last one is 3" in sentence(done)
    assert isinstance(done.exception, DataError)
    done = narrows("identify", file, "--flow", "1")
    assert "packets of data; at least 100 are needed" in sentence(done)
    done = narrows("identify", "reno", "--flow", "1")
    assert "no WHAT is one" in str(done.exception) and isinstance(done.exception, UsageError)


def test_captures_of_different_connections_stay_two_cards(tmp_path: Path) -> None:
    for name in ("plain", "loss"):
        shutil.copy(CORPUS / "pcapng" / f"{name}-sender.pcap.gz", tmp_path / f"{name}.pcap.gz")
    done = narrows("identify", tmp_path / "plain.pcap.gz", tmp_path / "loss.pcap.gz")
    assert done.exit_code == 0
    assert done.stdout.count("taken at the sender") == 2


def test_a_long_run_within_a_host_has_no_lines_of_rounds(tmp_path: Path) -> None:
    trace = read_log(Log((CORPUS / "pcapng" / "loss-sender.pcap.gz",)))
    short = replace(trace, resolved_s=trace.sent_s + 1e-6, lost=np.zeros_like(trace.lost))
    assert WINDOW in _limit(short).missing and not _limit(trace).missing


def test_lines_need_known_kinds_of_data() -> None:
    from narrows.identify import trace

    kinds = {
        trace.SENDING,
        trace.GAPS,
        trace.ARRIVALS,
        trace.LOSSES,
        trace.ANSWERS,
        trace.DELAYS,
        trace.WINDOW,
    }
    assert all(feature.needs and kinds.issuperset(feature.needs) for feature in FEATURES)


# -- exports, and logs made by hand ------------------------------------------------------------------


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Simulated runs on a probe, and their captures at both ends."""
    place = tmp_path_factory.mktemp("exports")
    words = ("--where", "simulate", "--runs", "1", "--set", "schemes=[reno, cubic]", "--no-report")
    assert narrows("run", "probe-long-rtt", *words, "-o", place / "runs").exit_code == 0
    made = narrows("export", place / "runs", "--format", "pcapng", "-o", place / "logs")
    assert made.exit_code == 0, made.output
    return place / "runs", place / "logs"


@pytest.mark.parametrize("scheme", CONTROLS)
@pytest.mark.parametrize("end", ["sender", "receiver"])
def test_an_exported_capture_of_one_end_has_the_lines_of_the_record(
    exported: tuple[Path, Path], scheme: str, end: str
) -> None:
    folder, logs = exported
    (log,) = logs.glob(f"{scheme}-r1*{end}*.pcapng")
    made, record = card_of(log), card_of(folder / "cells" / f"{scheme}-r1")
    reasons = {line.name: str(line.why) for line in made.lines}
    if end == "sender":
        assert "acknowledgements are not selective" in reasons["decrease"]
        wanted = {"utilization", "loss", "bursts"}
    else:
        assert "tick of the sender's time stamps" in reasons["bursts"]
        wanted = {"slow-start-growth", "decrease", "law", "growth-linear", "growth-cubic", "queue", "loss"}
    check_lines(made, record, wanted)


def ss_log(step_s: float) -> str:
    """A sender of 10 Mbit/s with a window like a saw, whose round trips are 40 ms and its queue."""
    rows = []
    window, sent, acked, again = 20.0, 20.0, 0.0, 0
    capacity = 10e6 / 8 / 1448
    for number in range(int(20 / step_s)):
        now = number * step_s
        rtt = max(0.04, (sent - acked) / capacity)
        acked += min((sent - acked) / rtt, capacity) * step_s
        window += step_s / rtt
        if window > 60:
            window, again = 30.0, again + 1
        # After a decrease nothing is sent until the window has room.
        sent = max(sent, acked + window)
        rows.append(
            f"{1_700_000_000 + now:.4f}\n"
            "ESTAB 0 0 10.0.0.1:40000 10.0.0.2:5201\n"
            f"\t reno rto:240 rtt:{1e3 * rtt:.3f}/1 mss:1448 cwnd:{int(window)} minrtt:40"
            f" bytes_sent:{int(sent * 1448)} bytes_retrans:{again * 1448}"
            f" bytes_acked:{int(acked * 1448)} unacked:{round(sent - acked)}"
        )
    return "\n".join(rows) + "\n"


def test_a_log_of_ss_has_the_window_if_each_round_trip_has_two_snapshots(tmp_path: Path) -> None:
    (tmp_path / "ss.log").write_text(ss_log(0.01))
    lines = {line.name: line for line in card_of(tmp_path / "ss.log").lines}
    assert lines["decrease"].value == pytest.approx(0.5, abs=0.06)
    assert lines["law"].word == "linear"
    assert lines["growth-linear"].value == pytest.approx(1.0, abs=0.15)


def test_a_sparse_log_of_ss_has_the_queue_and_says_why_it_has_no_window(tmp_path: Path) -> None:
    (tmp_path / "ss.log").write_text(ss_log(0.1))
    lines = {line.name: line for line in card_of(tmp_path / "ss.log").lines}
    assert "snapshots every 100 ms are too few for round trips of 53" in str(lines["decrease"].why)
    # The mean of the saw between 34.5 packets in the pipe, and 60, after 30.
    assert lines["queue"].value == pytest.approx(11, abs=3)
    assert GAPS in read_ss(tmp_path / "ss.log").missing
