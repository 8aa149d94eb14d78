"""`narrows shell` and its programs: start, end, messages and refusals."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import select
import shutil
import signal
import sys
import time
from pathlib import Path

import pytest

import processes
import shell_kit as kit
from processes import eventually
from shell_kit import OUTSIDE, PATH, Shell

pytestmark = pytest.mark.system

# -- the program and its end -------------------------------------------------------------------------


def test_the_exit_code_is_the_programs(shell: Shell) -> None:
    assert shell(PATH, "sh", "-c", "exit 7").code == 7
    outcome = shell(PATH, "sh", "-c", "kill -TERM $$")
    assert (outcome.code, outcome.summary["exit_code"]) == (128 + signal.SIGTERM, 143)
    (shell.folder / "text").write_text("no program")
    (shell.folder / "text").chmod(0o755)
    assert shell(PATH, str(shell.folder / "text")).code in (0, 126, 127), "not a format that runs"


def test_input_and_output_are_the_programs(one_shell: Shell) -> None:
    command = one_shell.command("-q", *PATH, "--", "cat")
    done = processes.run(command, text="through")
    assert (done.returncode, done.stdout, done.stderr) == (0, "through", "")


def test_signals_reach_the_program(shell: Shell) -> None:
    text = "trap 'echo got it; exit 3' TERM; echo ready; while :; do sleep 0.05; done"
    with shell.start(PATH, "sh", "-c", text) as running:
        assert running.stdout
        assert running.stdout.readline() == "ready\n"
        running.send_signal(signal.SIGTERM)
        assert running.stdout.read() == "got it\n"
        assert running.wait(20) == 3


class Terminal:
    """A program in a separate terminal."""

    def __init__(self, command: list[str], environment: dict[str, str]) -> None:
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            # Background test runs ignore these signals; a user with a terminal does not.
            for number in (signal.SIGINT, signal.SIGQUIT):
                signal.signal(number, signal.SIG_DFL)
            os.execvpe(command[0], command, environment)
        self.said = b""

    def read_until(self, pattern: str) -> None:
        """Reads until new output matches."""
        limit = time.monotonic() + 60
        while not (found := re.search(pattern.encode(), self.said)):
            assert time.monotonic() < limit, self.said
            if select.select([self.terminal], [], [], 0.1)[0]:
                self.said += os.read(self.terminal, 4096)
        self.said = self.said[found.end() :]

    def type(self, keys: str) -> None:
        os.write(self.terminal, keys.encode())

    def end(self) -> int:
        """Waits for the end; returns the exit code."""
        limit = time.monotonic() + 60
        while time.monotonic() < limit:
            with contextlib.suppress(OSError):  # A terminal's error once nobody has it open.
                if select.select([self.terminal], [], [], 0.01)[0]:
                    os.read(self.terminal, 4096)
            done, status = os.waitpid(self.pid, os.WNOHANG)
            if done:
                self.pid = 0
                return os.waitstatus_to_exitcode(status)
        raise AssertionError("it does not end")

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_: object) -> None:
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            eventually("the terminal's program is gone", lambda: os.waitpid(self.pid, os.WNOHANG)[0] != 0)
        os.close(self.terminal)


def test_keys_of_the_terminal_reach_the_program_once(one_shell: Shell) -> None:
    text = (
        "import signal, sys, time; count = []\n"
        "signal.signal(signal.SIGINT, lambda *_: count.append(1)); print('ready', flush=True)\n"
        "end = time.monotonic() + 60\n"
        "while not count and time.monotonic() < end: time.sleep(0.01)\n"
        "time.sleep(0.3); print('keys', len(count), sys.stdin.isatty(), flush=True); sys.exit(5)\n"
    )
    command = one_shell.command("-q", *PATH, "--", one_shell.interpreter(), "-c", text)
    with Terminal(command, one_shell.environment()) as terminal:
        terminal.read_until("ready")
        terminal.type("\x03")
        terminal.read_until("keys 1 True")
        assert terminal.end() == 5


def test_a_shell_in_a_terminal_has_job_control(one_shell: Shell) -> None:
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("bash not installed")
    environment = one_shell.environment(SHELL=bash, PS1="$ ")
    with Terminal(one_shell.command("-q", "--delay", "1 ms"), environment) as terminal:
        terminal.read_until(r"\[narrows 1 ms\]")
        terminal.type("echo at $NARROWS_SHELL\n")
        terminal.read_until(r"at 198\.18\.0\.0/16")
        terminal.type("echo now; sleep 100\n")
        terminal.read_until(r"\rnow\r")
        shell = processes.family(terminal.pid)[1]

        def foreground() -> bool:
            """True if the terminal belongs to another process group than the shell's."""
            return os.tcgetpgrp(terminal.terminal) not in (shell, os.getpgid(terminal.pid))

        eventually("sleep runs", foreground)
        time.sleep(0.5)  # bash hands the terminal over before the new process accepts signals.
        terminal.type("\x1a")
        terminal.read_until("Stopped")
        terminal.type("fg\n")
        eventually("sleep runs again", foreground)
        time.sleep(0.5)
        terminal.type("\x03")
        eventually("sleep has ended", lambda: not foreground())
        terminal.type("exit 4\n")
        assert terminal.end() == 4


def test_processes_in_the_background_end_with_the_program(one_shell: Shell) -> None:
    outcome = one_shell(PATH, "sh", "-c", "sleep 1000 & echo $!; setsid sleep 1001 & echo $!")
    assert outcome.code == 0
    for pid in outcome.out.split():
        assert not is_running_sleep(int(pid))


def is_running_sleep(pid: int) -> bool:
    try:
        return b"sleep" in Path(f"/proc/{pid}/cmdline").read_bytes() and processes.is_alive(pid)
    except OSError:
        return False


@pytest.mark.parametrize("victim", ["agent", "guard", "program"])
def test_nothing_is_left_when_a_process_is_killed(shell: Shell, victim: str) -> None:
    program = "sleep 1000 & setsid sleep 1001 & echo ready; wait"
    with shell.start(PATH, "sh", "-c", program) as running:
        assert running.stdout
        assert running.stdout.readline() == "ready\n"
        eventually("all have started", lambda: len(processes.family(running.pid)) >= 4)
        family = processes.family(running.pid)
        networks: set[str] = set()

        def found() -> int:
            networks.update(kit.network_of(pid) for pid in family)
            for task in Path(f"/proc/{running.pid}/task").iterdir():
                networks.add(str((task / "ns/net").readlink()))
            networks.discard(kit.network_of(os.getpid()))
            return len(networks)

        # A thread may not have been moved yet.
        eventually("the program's network, the emulator's and the gateway", lambda: found() == 3)
        guard, inner = family[0], family[1]
        os.kill({"agent": running.pid, "guard": guard, "program": inner}[victim], signal.SIGKILL)
        expected = -signal.SIGKILL if victim == "agent" else 128 + signal.SIGKILL
        assert running.wait(20) == expected
        for pid in family:
            eventually("everything is gone", lambda pid=pid: not processes.is_alive(pid))  # type: ignore[misc]
        for network in networks:
            # At once; but the number may now belong to another shell, which ends, too.
            eventually("nobody is left", lambda network=network: not kit.users_of(network))  # type: ignore[misc]
    assert not any(line.startswith("narrows ") for line in Path("/proc/self/mounts").read_text().splitlines())


# -- what is told ------------------------------------------------------------------------------------


def test_a_record_can_be_checked_and_read(shell: Shell) -> None:
    with kit.iperf_server() as port:
        arguments = ["iperf3", "-c", OUTSIDE, "-p", str(port), "-t", "2"]
        outcome = shell(["--log", "record", *PATH], *arguments)
    assert outcome.code == 0, (outcome.out, outcome.err)
    record = shell.folder / "record"
    run = json.loads((record / "run.json").read_text())
    assert run["format"] == "narrows/run/1"
    assert run["shell"]["up"]["left_packets"] == outcome.summary["up"]["left_packets"]
    table = json.loads((record / "connections.json").read_text())["connections"]
    assert [row["flow"] for row in table] == list(range(1, len(table) + 1))
    assert all(row["outside"] == f"198.18.0.1:{port}" and row["protocol"] == "tcp" for row in table)
    data = max(table, key=lambda row: row["up_bytes"])
    assert data["up_bytes"] > 1_000_000
    command = [sys.executable, "-m", "narrows", "check", str(record), "--json"]
    checked = processes.run(command)
    assert checked.returncode == 0, checked.stdout

    from narrows import _native

    points = _native.delay_points(str(record), 1000)
    assert points is not None
    delays = points[data["flow"]]["delay_ms"]
    # One way: 20 ms, at most 40 ms more in the queue, one for the packet, and the emulator's lateness.
    assert min(delays) >= 20
    assert _native.queue_series(str(record))["forward.0"]["backlog_bytes"].max() <= 60_000
    again = shell(["--log", "record", *PATH], "true")
    assert again.code == 3
    assert "exists already" in again.err


NUMBER = r"[0-9]+(?:\.[0-9]+)?"
PREFIXES = {"": 1, "k": 1e3, "M": 1e6}


def test_the_live_line_shows_rate_and_queue(one_shell: Shell) -> None:
    with kit.iperf_server() as port:
        outcome = one_shell(["--live-lines", *PATH], "iperf3", "-c", OUTSIDE, "-p", str(port), "-t", "2")
    rate, queue = rf"({NUMBER}) ([kM]?)bit/s", rf"({NUMBER}) (k?)B"
    lines = re.findall(rf"^up {rate}, queue {queue}, [0-9]+ dropped \| down {NUMBER}", outcome.err, re.M)
    rates = [float(number) * PREFIXES[prefix] for number, prefix, _, _ in lines]
    queues = [float(number) * PREFIXES[prefix] for _, _, number, prefix in lines]
    # Two seconds of five lines each, of which a busy machine skips some.
    assert len(lines) >= 4, outcome.err
    # Consecutive lines are at least 190 ms apart. Packets that the emulator sent late in one of them count in
    # the next.
    late_s = outcome.summary["lateness"]["max_ns"] / 1e9
    assert 1e6 < max(rates) <= 14e6 * (1 + late_s / 0.19)
    assert 1e3 < max(queues) <= 60e3


def test_the_congestion_control_outside_can_be_chosen(one_shell: Shell) -> None:
    with kit.iperf_server() as port:
        arguments = ["iperf3", "-c", OUTSIDE, "-p", str(port), "-t", "1", "-R"]
        assert one_shell([*PATH, "--congestion", "reno"], *arguments).code == 0
    outcome = one_shell([*PATH, "--congestion", "linux:nosuch"], "true")
    assert outcome.code == 4
    assert "no congestion control 'nosuch'" in outcome.err


# -- what is refused ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "code", "sentence"),
    [
        (["--rate", "12 Mbs"], 2, '--rate: unknown unit "Mbs"; did you mean "Mbit/s"?'),
        (["--rate", "0 Mbit/s"], 2, "--rate: 0 bit/s is out of range"),
        (["--delay", "20"], 2, "--delay: 20 has no unit"),
        (["--delay", "20 kB"], 2, "--delay: 20 kB is not a time"),
        (["--rate", "1 Mbit/s", "--queue", "dropptail 60 kB"], 2, "droptail"),
        (["--rate", "1 Mbit/s", "--queue", "60 KB"], 2, "--queue: "),
        (["--rate", "1 Mbit/s", "--queue", "droptail 2 bdp"], 2, "bdp"),
        (["--delay", "1 ms", "--up", "rte: 3 Mbit/s"], 2, 'rte: unknown key; did you mean "rate"?'),
        (["--delay", "1 ms", "--up", "[{"], 2, "--up: is not valid YAML"),
        (["--delay", "1 ms", "--down", "loss"], 2, "--down: must be elements"),
        (["--trace-up", "nosuch.trace"], 3, "nosuch.trace"),
        (["--queue", "droptail 60 kB"], 2, "--queue: a queue stands before a rate"),
        (["--delay", "1 ms", "--up", "queue: codel"], 2, "--up: a queue stands before a rate"),
        ([], 2, "the path is not described"),
        (["--scenario", "first-look", "--delay", "1 ms"], 2, "--scenario brings the whole path"),
        (["--scenario", "nosuch"], 3, "nosuch"),
        (["--seed", "x", "--delay", "1 ms"], 2, "seed"),
    ],
)
def test_bad_options_are_refused(tmp_path: Path, options: list[str], code: int, sentence: str) -> None:
    shell = Shell([], tmp_path)
    outcome = shell(options, "true")
    assert outcome.code == code, outcome.err
    assert sentence in " ".join(outcome.err.split()), outcome.err


def test_a_missing_program_is_reported_before_anything_is_built(tmp_path: Path) -> None:
    outcome = Shell([], tmp_path)(PATH, "no-such-program")
    assert outcome.code == 127
    assert "there is no program no-such-program" in outcome.err
    outcome = Shell([], tmp_path)(PATH, "/etc/passwd")
    assert outcome.code == 126
    assert "may not be executed" in outcome.err


def test_a_machine_without_namespaces_says_what_would_help() -> None:
    kit.needs("setpriv", "unshare")
    if os.geteuid() != 0:
        pytest.skip("taking rights away needs root")
    # A user namespace in which no further namespaces may be created.
    limit = 'echo 0 > /proc/sys/user/max_user_namespaces; exec setpriv --bounding-set=-all "$@"'
    with kit.folder_for_everybody() as folder:
        shell = kit.shell_of("root", folder)
        shell.prefix = ["unshare", "-U", "-r", "sh", "-c", limit, "-"]
        outcome = shell(PATH, "true")
    assert outcome.code == 4, outcome.err
    assert "max_user_namespaces" in outcome.err
