"""Recorded traces: a real path kept full, and its arrivals."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import hosts_kit as kit
import processes
import shell_kit
from campaign_kit import narrows, rows_of, sentence, simulate
from hosts_kit import NAME, Hosts
from narrows.campaign.record import Run
from narrows.errors import DataError, UsageError
from narrows.traces.formats import read_rates
from narrows.traces.recorded import derive_opportunities
from narrows.traces.trace import Opportunities, Rates, opportunities
from processes import eventually

MS = 10**6
#: The path of the test: a variable rate, a delay, and an unlimited queue.
PHASES = "time_s,rate_mbps\n0,6\n1.5,2\n3,9\n4,0.5\n5,0\n"
#: The highest rate of the path.
MOST_BPS = 9e6


# -- from arrivals to opportunities --------------------------------------------------------------


def arrivals(times_ms: list[float], waited_ms: float = 50.0, size: int = 1500) -> tuple[np.ndarray, ...]:
    """Packets that arrived at these times, preceded by one that did not wait."""
    arrived = np.array([1, *times_ms]) * MS
    sent = arrived - np.array([10, *[10 + waited_ms] * len(times_ms)]) * MS
    return sent.astype(np.int64), arrived.astype(np.int64), np.full(len(arrived), size, dtype=np.int64)


def test_arrivals_under_load_are_opportunities() -> None:
    found = derive_opportunities(*arrivals([100, 102, 104, 107, 107, 120]))
    # The first one under load marks the beginning.
    assert found.trace.times_ms.tolist() == [2, 4, 7, 7, 20]
    assert found.arrived_bytes == 5 * 1500
    assert found.full_ratio == 1.0
    assert found.waited_p50_ns == 50 * MS


def test_small_packets_share_an_opportunity_and_large_ones_take_several() -> None:
    sent, arrived, size = arrivals([100, 101, 102, 103, 104])
    assert derive_opportunities(sent, arrived, size // 2).trace.times_ms.tolist() == [2, 4]
    assert derive_opportunities(sent, arrived, size * 2).trace.times_ms.tolist() == [1, 1, 2, 2, 3, 3, 4, 4]


def test_clocks_may_differ_and_packets_overtake() -> None:
    sent, arrived, size = arrivals([100, 102, 104, 107])
    shifted = derive_opportunities(sent + 10**15, arrived, size)
    mixed = np.array([2, 0, 4, 1, 3])
    for one in (shifted, derive_opportunities(sent[mixed], arrived[mixed], size[mixed])):
        assert (
            one.trace.times_ms.tolist() == derive_opportunities(sent, arrived, size).trace.times_ms.tolist()
        )


def test_packets_that_did_not_wait_show_that_the_path_was_not_full() -> None:
    sent, arrived, size = arrivals([100, 110, 130, 140, 150])
    # Sent 1 ms after the previous one had arrived: until then the path may have been idle.
    sent[3] = arrived[2] + MS
    assert derive_opportunities(sent, arrived, size).full_ratio == pytest.approx(30 / 50)


def test_begin_and_end_without_load_are_left_out() -> None:
    sent, arrived, size = arrivals([10, 11, 12, 100, 101, 102, 103, 104, 200])
    for idle in (1, 2, 3, 9):
        sent[idle] = arrived[idle] - 10 * MS
    assert derive_opportunities(sent, arrived, size).trace.times_ms.tolist() == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("times", "waited", "said"),
    [([], 0, "nothing arrived"), ([5, 6, 7], 0, "never full"), ([5], 50, "never full")],
)
def test_too_little_data_is_reported(times: list[float], waited: float, said: str) -> None:
    with pytest.raises(DataError, match=said):
        derive_opportunities(*arrivals(times, waited))


# -- the command ---------------------------------------------------------------------------------


def test_a_recording_requires_limits_of_data_and_time(tmp_path: Path) -> None:
    assert narrows("trace", "record", "nobody", tmp_path / "x.trace").exit_code == 2
    limits = ("--data", "1 MB", "--time", "5 s")
    for words, said in (
        ((tmp_path / "x.trace", "--data", "much", "--time", "5 s"), "--data"),
        ((tmp_path / "x.trace", *limits, "--direction", "left"), "down, up or both"),
        ((tmp_path / "x.what", *limits), "does not say which format"),
        ((tmp_path / "x.trace", *limits, "--set", "duration=1 h"), "only keys of real_path"),
        ((tmp_path / "x.trace", *limits, "--set", "real_path.tunnel=off"), "only keys of real_path"),
    ):
        done = narrows("trace", "record", "nobody", *words)
        assert isinstance(done.exception, UsageError), done.output
        assert said in sentence(done)
    (tmp_path / "x.trace").write_text("1\n")
    assert "exists already" in sentence(narrows("trace", "record", "nobody", tmp_path / "x.trace", *limits))


def test_the_sender_stops_at_its_volume_and_keeps_its_rate(tmp_path: Path) -> None:
    text = """\
schema: narrows/scenario/1
question: How much is sent?
where: simulate
path: {forward: [{rate: 20 Mbit/s, queue: unlimited}, {delay: 10 ms}]}
schemes: [{scheme: saturator, volume: 500 kB, rate: 2 Mbit/s}]
duration: 10 s
"""
    folder = simulate(tmp_path / "out", text)
    (cell,) = (folder / "cells").iterdir()
    sent = rows_of(Run(cell).packets(1), direction="forward")
    # Headers are on top, and less than a packet is left over.
    assert 500_000 <= sum(one["size_bytes"] for one in sent) <= 1.05 * 500_000 + 2 * 1500
    took = sent[-1]["sent_ns"] - sent[0]["sent_ns"]
    assert took == pytest.approx(500_000 * 8 / 2e6 * 1e9, rel=0.02)


# -- over a path whose rate is known -------------------------------------------------------------


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosts]:
    if shell_kit.refusal():
        pytest.skip(shell_kit.refusal())
    with kit.hosts(tmp_path_factory.mktemp("hosts")) as made:
        yield made


def words(pair: Hosts, known: Path, out: Path, *more: str, shell_json: Path | None = None) -> list[str]:
    """The command behind an emulated path, both directions of which follow a known trace."""
    shell = [sys.executable, "-m", "narrows", "shell", "--delay", "10 ms"]
    shell += ["--json", str(shell_json)] if shell_json else []
    shell += [word for way in ("up", "down") for word in (f"--trace-{way}", str(known))]
    record = ("record", NAME, str(out), "--set", "real_path.ports=5001-5002", *more)
    return pair.words(*record, command="trace", before=(*shell, "--quiet", "--"))


def deviation(found: Opportunities, known: Opportunities) -> float:
    """The largest deviation, in opportunities, between the cumulative deliveries of a trace and those of a
    known repeating one, aligned as well as possible."""
    period, each = int(known.times_ms[-1]), len(known.times_ms)
    times = found.times_ms
    repeats = int(times[-1]) // period + 2
    all_known = np.concatenate([known.times_ms + number * period for number in range(repeats)])

    def difference(start: int) -> float:
        before = np.searchsorted(all_known, start, side="right")
        given = np.searchsorted(all_known, times + start, side="right") - before
        return float(np.abs(given - np.arange(1, len(times) + 1)).max())

    assert each
    return min(map(difference, range(period)))


@pytest.mark.system
@pytest.mark.timeout(300)
def test_a_recorded_trace_is_that_of_the_path(pair: Hosts, tmp_path: Path) -> None:
    known = tmp_path / "known.csv"
    known.write_text(PHASES)
    out = tmp_path / "out.trace"
    limits = ("--data", "6 MB", "--time", "12 s", "--direction", "both", "--json")
    summary = tmp_path / "shell.json"
    command = words(pair, known, out, *limits, shell_json=summary)
    done = processes.run(command, env=pair.environment(), seconds=200)
    assert done.returncode == 0, (done.stdout, done.stderr)
    # In opportunities: the capacity while the emulator was late (or arrivals, by as little as the emulator on
    # a free machine), and one at either end.
    late_s = max(0.03, json.loads(summary.read_text())["lateness"]["max_ns"] / 1e9)
    tolerated = MOST_BPS * late_s / 12_000 + 2
    rates, _ = read_rates(known)
    assert isinstance(rates, Rates)
    truth = opportunities(rates)
    for document in json.loads(done.stdout)["traces"]:
        direction = document["direction"]
        assert document["file"] == str(tmp_path / f"out-{direction}.trace")
        assert document["ended_early"] is None
        found, form = read_rates(Path(document["file"]))
        assert form == "mahimahi" and isinstance(found, Opportunities)
        # More than a period, so that all phases were seen.
        assert found.length_ns > 6e9
        assert document["full_ratio"] > 0.95
        # The data, and the tunnel's messages for its clocks.
        assert document["arrived_bytes"] <= 6e6 + 12 * 20 * 100
        assert deviation(found, truth) <= tolerated, (direction, deviation(found, truth), late_s)
        assert found.mean_bps == pytest.approx(document["mean_bps"])
    # A scenario takes it as a rate, and so does a calibration.
    text = f"""\
schema: narrows/scenario/1
question: What does cubic get of what was recorded?
where: simulate
path:
  forward:
    - {{rate: {{trace: {tmp_path / "out-down.trace"}}}, queue: {{droptail: 200 kB}}}}
    - {{delay: 20 ms}}
schemes: [cubic]
duration: 10 s
"""
    used = simulate(tmp_path / "used", text)
    (row,) = [row for row in json.loads((used / "results.json").read_text())["rows"] if row["flow"] is None]
    assert row["metrics"]["utilization_ratio"] > 0.8


@pytest.mark.system
@pytest.mark.timeout(300)
def test_a_recording_survives_an_interruption_and_the_loss_of_the_other_host(
    pair: Hosts, tmp_path: Path
) -> None:
    known = tmp_path / "known.csv"
    known.write_text(PHASES)
    limits = ("--data", "100 MB", "--time", "5 min")

    def recording(out: Path) -> subprocess.Popen[str]:
        return subprocess.Popen(
            words(pair, known, out, *limits),
            env=pair.environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def ours(*named: str) -> list[tuple[int, list[str]]]:
        """Processes of this test with these words in their command lines."""
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if str(pair.folder).encode() in (process / "environ").read_bytes():
                    line = (process / "cmdline").read_bytes().decode(errors="replace").split("\0")
                    found += [(int(process.name), line)] if set(named) <= set(line) else []
        return found

    for end, code, said in (("interrupt", 130, "interrupted; what was recorded"), ("vanish", 4, "out.trace")):
        out = tmp_path / end / "out.trace"
        out.parent.mkdir()
        with processes.running(recording(out)) as process:
            eventually("both ends are there", lambda: len(ours("side")) == 2, seconds=60)
            # The tunnel opens, and the window grows.
            time.sleep(8)
            if end == "interrupt":
                (victim,) = [pid for pid, line in ours("record") if line[2:4] == ["narrows", "trace"]]
            else:
                there = str(pair.remote_folder)
                (victim,) = [pid for pid, line in ours("side") if line[0].startswith(there)]
            os.kill(victim, signal.SIGINT if end == "interrupt" else signal.SIGKILL)
            _, complaints = processes.finish(process, seconds=100)
        assert process.returncode == code, complaints
        assert said in complaints
        found, _ = read_rates(out)
        assert found.length_ns > 1e9
        eventually("nothing is left", lambda: not ours("side"))
