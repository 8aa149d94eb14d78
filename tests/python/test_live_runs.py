"""Emulated runs that are watched and changed while they are under way, with the real agent."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

import processes

PROGRAM = str(Path(sys.executable).parent / "narrows")
PATIENCE_S = 60.0
SCENARIO = """\
schema: narrows/scenario/1
question: What does a watched run look like?
where: emulate
path:
  forward:
    - {rate: 8 Mbit/s, queue: {droptail: 40 kB}}
    - {delay: 10 ms}
  backward:
    - {delay: 10 ms}
schemes: [reno]
flows: {count: 2, interval: 4 s}
duration: 5 s
seed: 5
"""

pytestmark = pytest.mark.system


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "s.yaml").write_text(SCENARIO)
    return tmp_path


def call(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    done = processes.run([PROGRAM, *arguments], cwd=cwd, seconds=240)
    assert "Traceback" not in done.stderr, done.stderr
    return done


def run(*arguments: str) -> list[str]:
    return ["run", "s.yaml", "--no-report", "-o", "out", *arguments]


def test_readings_agree_with_the_record(folder: Path) -> None:
    done = call(*run("--live", "--events", "--schemes", "linux:cubic"), cwd=folder)
    assert done.returncode in (0, 6), done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    live = [line for line in lines if line["event"] == "live"]
    assert len(live) >= 10
    # The record counts the same packets: bytes of flow 1 that left towards its receiver.
    bits, before = 0.0, 0
    for line in live:
        bits += line["flows"][0]["throughput_bps"] * (line["time_ns"] - before) / 1e9
        before = line["time_ns"]
    measured = json.loads((folder / "out" / "results.json").read_text())
    record = json.loads((folder / "out/cells/linux-cubic-r1/run.json").read_text())
    (bottleneck,) = (item for item in record["elements"] if item["name"] == "forward.0")
    both = sum(
        line["queues"][0]["throughput_bps"] * (line["time_ns"] - start) / 8e9
        for line, start in zip(live, [0, *(line["time_ns"] for line in live)], strict=False)
    )
    assert both == pytest.approx(bottleneck["out_bytes"], rel=0.05)
    assert 0 < bits / 8 <= both and measured["rows"]
    windows = [line["flows"][0].get("cwnd_bytes") for line in live]
    assert any(windows) and live[-1]["queues"][0]["rate_bps"] == 8_000_000


def test_a_changed_run_repeats_from_any_folder(
    folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    # A packet of 1500 B every 2 ms: 6 Mbit/s.
    (folder / "link.trace").write_text("".join(f"{time}\n" for time in range(2, 1001, 2)))
    text = SCENARIO.replace("rate: 8 Mbit/s", "rate: {trace: link.trace}")
    text = text.replace("flows: {count: 2, interval: 4 s}", "flows: [{}, {start: 4 s}]")
    (folder / "s.yaml").write_text(text)
    with subprocess.Popen(
        [PROGRAM, *run("--live", "--interactive", "--events")],
        cwd=folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin and process.stdout and process.stderr
        orders = ["start 2", "delay 30 ms", "stop 2"]
        for line in process.stdout:
            event = json.loads(line)
            if event["event"] == "live" and event["time_ns"] > 500_000_000 and orders:
                process.stdin.write(orders.pop(0) + "\n")
                process.stdin.flush()
        problems = process.stderr.read()
    assert process.returncode in (0, 6), problems
    cell = json.loads((folder / "out/cells/reno-r1/run.json").read_text())["cell"]
    assert cell["flows"][1]["start_ns"] < 3e9 and cell["flows"][1]["stop_ns"] < 5e9
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (folder / "link.trace").unlink()
    again = call("run", str(folder / "out" / "as-run.yaml"), "--no-report", "-o", "again", cwd=elsewhere)
    assert again.returncode in (0, 6), again.stderr
    assert json.loads((elsewhere / "again/cells/reno-r1/run.json").read_text())["cell"] == cell
    assert call("check", "out", cwd=folder).returncode == 0


def test_without_a_terminal_there_is_a_line_per_second(folder: Path) -> None:
    done = call(*run("--live"), cwd=folder)
    lines = [line for line in done.stderr.splitlines() if line.startswith("reno run 1, ")]
    assert 3 <= len(lines) <= 8, done.stderr
    assert re.search(
        r"flow 1 \d+\.\d\d Mbit/s, queue .* ms, .*window .* kB; .*forward\.0 \d+ packets", lines[2]
    )
    assert "\x1b" not in done.stderr


def test_orders_become_the_scenario_and_repeat_the_run(folder: Path) -> None:
    with subprocess.Popen(
        [PROGRAM, *run("--live", "--interactive", "--events")],
        cwd=folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin and process.stdout and process.stderr
        orders = ["rate 4 Mbit/s", "nonsense", "delay 30 ms", "start 2", "stop 1"]
        for line in process.stdout:
            event = json.loads(line)
            if event["event"] == "live" and event["time_ns"] > 500_000_000 and orders:
                process.stdin.write(orders.pop(0) + "\n")
                process.stdin.flush()
        problems = process.stderr.read()
    assert process.returncode in (0, 6), problems
    text = (folder / "out" / "as-run.yaml").read_text()
    timeline = yaml.safe_load(text)["timeline"]
    assert [{key: value for key, value in entry.items() if key != "at"} for entry in timeline] == [
        {"set": {"forward.0": {"rate": "4 Mbit/s"}}},
        {"set": {"forward.1": {"delay": "30 ms"}}},
        {"start": 2},
        {"stop": 1},
    ]
    # The record is of the changed scenario: the verifier knows the new rate and delay.
    assert call("check", "out", cwd=folder).returncode == 0
    cell = json.loads((folder / "out/cells/reno-r1/run.json").read_text())["cell"]
    assert [change["element"] for change in cell["timeline"]] == ["forward.0", "forward.1"]
    again = call("run", "out/as-run.yaml", "--no-report", "-o", "again", cwd=folder)
    assert again.returncode in (0, 6), again.stderr
    repeated = json.loads((folder / "again/cells/reno-r1/run.json").read_text())["cell"]
    assert repeated == cell
    simulated = call(
        "run", "out/as-run.yaml", "--where", "simulate", "--no-report", "-o", "virtual", cwd=folder
    )
    assert simulated.returncode == 0, simulated.stderr


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("--live", "--where", "simulate"), "--live is for runs on the machine's clock"),
        (("--interactive",), "--interactive changes runs that are shown; add --live or --live-page"),
        (("--live", "--interactive", "--runs", "2"), "--interactive changes a single run"),
        (("--live", "--json"), "--live follows a running campaign; leave out --json and --dry-run"),
        (("--live-page", "--dry-run"), "--live follows a running campaign"),
    ],
)
def test_what_cannot_be_shown_is_refused_in_one_sentence(
    folder: Path, arguments: tuple[str, ...], why: str
) -> None:
    done = call(*run(*arguments), cwd=folder)
    assert done.returncode == 2
    assert why in done.stderr and not (folder / "out").exists()


# -- on a terminal ---------------------------------------------------------------------------------


class Terminal:
    """The program on a terminal of a given size."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.screen = b""
        self.pid, self._fd = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            os.environ.update(TERM="xterm-256color")
            os.environ.pop("COLUMNS", None)
            os.execv(PROGRAM, [PROGRAM, *arguments])
        self.resize(80, 24)

    def resize(self, columns: int, lines: int) -> None:
        fcntl.ioctl(self._fd, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def until(self, holds: Callable[[bytes], bool]) -> None:
        """Reads until the output of the program satisfies a condition."""
        end = time.monotonic() + PATIENCE_S
        while not holds(self.screen):
            assert time.monotonic() < end, self.screen[-2000:]
            if select.select([self._fd], [], [], 0.2)[0] and not self._read():
                assert holds(self.screen), self.screen[-2000:]

    def _read(self) -> bool:
        try:
            data = os.read(self._fd, 65536)
        except OSError:
            return False
        self.screen += data
        return bool(data)

    def type(self, text: str) -> None:
        os.write(self._fd, text.encode())

    def local_flags(self) -> int:
        flags = termios.tcgetattr(self._fd)[3]
        assert isinstance(flags, int)
        return flags

    def end(self) -> int:
        """Waits until the program has ended; returns its exit code."""
        while self._read():
            pass
        code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        os.close(self._fd)
        return code


ENTERS, LEAVES, CURSOR = b"\x1b[?1049h", b"\x1b[?1049l", b"\x1b[?25h"


def test_the_terminal_is_restored_and_resized(folder: Path) -> None:
    terminal = Terminal(folder, *run("--live"))
    terminal.until(lambda screen: b"queueing delay" in screen)
    terminal.resize(40, 12)
    before = len(terminal.screen)
    terminal.until(lambda screen: b"window" not in screen[-600:] and len(screen) > before + 1500)
    terminal.resize(100, 30)
    assert terminal.end() in (0, 6)
    assert terminal.screen.count(ENTERS) == terminal.screen.count(LEAVES) == 1
    after = terminal.screen.split(LEAVES)[1]
    assert CURSOR in terminal.screen and b"[1/1] reno run 1" in after


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_restore_the_terminal_and_leave_no_half_record(folder: Path, number: signal.Signals) -> None:
    terminal = Terminal(folder, *run("--live", "--interactive"))
    flags = terminal.local_flags()
    terminal.until(lambda screen: b"queueing delay" in screen)
    assert not terminal.local_flags() & termios.ECHO
    if number == signal.SIGINT:
        terminal.type("\x03")
    else:
        os.kill(terminal.pid, number)
    terminal.until(lambda screen: LEAVES in screen)
    assert terminal.end() == 128 + number
    assert flags & termios.ECHO
    assert terminal.screen.count(LEAVES) == 1
    assert list((folder / "out" / "cells").iterdir()) == []


def test_orders_are_typed_and_shown(folder: Path) -> None:
    terminal = Terminal(folder, *run("--live", "--interactive"))
    terminal.until(lambda screen: b"queueing delay" in screen)
    terminal.type("rate 4 Mbit/x\x7fs\r")
    terminal.until(lambda screen: b"forward.0 rate: 4 Mbit/s" in screen)
    terminal.type("faster\r")
    terminal.until(lambda screen: b"is not an order" in screen)
    assert terminal.end() in (0, 6)
    assert b"as-run.yaml" in terminal.screen.split(LEAVES)[1]


def test_the_page_serves_a_run_until_it_ends(folder: Path) -> None:
    with subprocess.Popen(
        [PROGRAM, *run("--live-page")],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr
        url = next(line for line in process.stderr if line.startswith("live: ")).split()[1]
        count = 0
        with urllib.request.urlopen(f"{url}events", timeout=PATIENCE_S) as stream:
            for line in stream:
                if line.startswith(b"data: "):
                    news = json.loads(line[6:])
                    count += len(news.get("readings", ()))
                    if news["over"]:
                        break
        process.stderr.read()
    assert count >= 10
    assert process.returncode in (0, 6)


@pytest.mark.parametrize("whole_group", [False, True])
def test_a_killed_program_leaves_the_terminal_as_it_was(folder: Path, whole_group: bool) -> None:
    terminal = Terminal(folder, *run("--live", "--interactive"))
    terminal.until(lambda screen: b"queueing delay" in screen)
    assert not terminal.local_flags() & termios.ECHO
    others = processes.family(terminal.pid)
    if whole_group:
        os.killpg(terminal.pid, signal.SIGKILL)
    else:
        os.kill(terminal.pid, signal.SIGKILL)
    terminal.until(lambda screen: screen.rstrip().endswith(CURSOR))
    assert LEAVES in terminal.screen.rsplit(ENTERS, 1)[1]
    assert terminal.local_flags() & (termios.ECHO | termios.ICANON) == termios.ECHO | termios.ICANON
    assert terminal.end() == -signal.SIGKILL
    processes.eventually("nothing is left", lambda: not any(map(is_running, others)))
    # The campaign can be read, and completed into a record.
    assert call("show", "out", cwd=folder).returncode in (0, 3, 6)
    done = call(*run(), cwd=folder)
    assert done.returncode in (0, 6), done.stderr
    assert call("check", "out", cwd=folder).returncode == 0


def is_running(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text()
    return False


def test_a_killed_program_leaves_no_agent_and_the_campaign_can_go_on(folder: Path) -> None:
    with subprocess.Popen(
        [PROGRAM, *run("--live", "--events")],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout
        next(line for line in process.stdout if '"live"' in line)
        process.kill()
    done = call(*run("--live"), cwd=folder)
    assert done.returncode in (0, 6), done.stderr
