"""`narrows shell` with real programs: what they see of the path, and what is left of them."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import browser
import shell_kit as kit
from shell_kit import MOST_RTT_S, PATH, RTT_S, Outcome, Shell, eventually

OUTSIDE = "outside.narrows"


@pytest.fixture(params=["root", "somebody"])
def shell(request: pytest.FixtureRequest) -> Iterator[Shell]:
    """A shell as root and as an ordinary user."""
    with kit.folder_for_everybody() as folder:
        yield kit.shell_of(request.param, folder)


@pytest.fixture
def one_shell(tmp_path: Path) -> Shell:
    """A shell as whoever runs the tests."""
    return kit.shell_of("root" if os.geteuid() == 0 else "somebody", tmp_path)


def smallest_ping_s(outcome: Outcome) -> float:
    assert outcome.code == 0, (outcome.out, outcome.err)
    times = [float(word) for word in re.findall(r"time=([0-9.]+) ms", outcome.out)]
    return min(times) / 1000


CONNECT = """
import socket, sys, time
times = []
for _ in range(5):
    start = time.monotonic()
    with socket.create_connection((sys.argv[1], int(sys.argv[2]))):
        times.append(time.monotonic() - start)
print(min(times))
"""


def echo(connection: socket.socket) -> None:
    with connection:
        while data := connection.recv(65536):
            connection.sendall(data)


# -- what the path does ----------------------------------------------------------------------------


def test_ping_shows_the_delay(shell: Shell) -> None:
    kit.needs("ping")
    outcome = shell(PATH, "ping", "-c", "5", "-i", "0.2", OUTSIDE)
    assert RTT_S <= smallest_ping_s(outcome) <= MOST_RTT_S
    up = outcome.summary["up"]
    assert (up["entered_packets"], up["left_packets"]) == (5, 5)
    assert "narrows shell:" in outcome.err, "the summary is printed"


@pytest.mark.parametrize("options", [[], ["-R"]], ids=["upload", "download"])
def test_iperf3_shows_rate_and_delay(shell: Shell, options: list[str]) -> None:
    with kit.iperf_server() as port:
        arguments = ["iperf3", "-c", OUTSIDE, "-p", str(port), "-t", "5", "--json", *options]
        outcome = shell(PATH, *arguments)
    assert outcome.code == 0, (outcome.out, outcome.err)
    end = json.loads(outcome.out)["end"]
    # 1448 of 1500 bytes are payload. The receiver counts from its first byte and from second to second,
    # so that its mean can be a little off; slow start and a shallow queue cost up to a quarter.
    most = 12e6 * 1448 / 1500
    assert 0.75 * most <= end["sum_received"]["bits_per_second"] <= 1.02 * most
    # The path itself: never above its rate (the first packet counts but takes no time: one in thousands).
    way = outcome.summary["down" if options else "up"]
    assert 0.75 * 12e6 <= way["mean_bps"] <= 12e6 * 1.002
    # The queue holds 60 kB, which take 40 ms; an empty one adds the packet's own millisecond.
    # (What the kernel shows late, it may accept into a queue that has drained meanwhile.)
    assert way["queueing_delay"]["max_ns"] <= 42e6 + outcome.summary["lateness"]["max_ns"]
    if not options:
        rtt = end["streams"][0]["sender"]["min_rtt"] / 1e6
        # The last packet of the handshake may have waited behind data; the smallest has not.
        assert RTT_S <= rtt <= MOST_RTT_S + 0.04


def test_curl_shows_the_delay(shell: Shell) -> None:
    kit.needs("curl")
    (shell.folder / "page.html").write_text("<p>behind the path</p>")
    with kit.web_server(shell.folder) as port:
        url = f"http://{OUTSIDE}:{port}/page.html"
        ask = f"curl -sS -w '|%{{time_namelookup}}|%{{time_connect}}|%{{time_total}}\\n' {url}"
        outcome = shell(PATH, "sh", "-c", "; ".join([ask] * 5))
    assert outcome.code == 0, outcome.err
    answers = [line.split("|") for line in outcome.out.splitlines()]
    assert [page for page, *_ in answers] == ["<p>behind the path</p>"] * 5
    times = [[float(time) for time in times] for _, *times in answers]
    # The name is in a file; the best of five, because the machine may be busy.
    assert RTT_S <= min(connect - lookup for lookup, connect, _ in times) <= MOST_RTT_S
    # One round trip for the handshake, one for question and answer.
    assert min(total - lookup for lookup, _, total in times) >= 2 * RTT_S


PAGE = """<!doctype html><title>x</title><p id=here>nothing</p><script>
fetch('data.bin').then(answer => answer.arrayBuffer())
  .then(data => { document.getElementById('here').textContent = `${data.byteLength} bytes`; });
</script>"""


def test_a_browser_loads_a_page_through_the_path(one_shell: Shell) -> None:
    if browser.PROGRAM is None:
        pytest.skip("no Chromium is installed")
    (one_shell.folder / "site").mkdir()
    (one_shell.folder / "site" / "index.html").write_text(PAGE)
    (one_shell.folder / "site" / "data.bin").write_bytes(bytes(300_000))
    with kit.web_server(one_shell.folder / "site") as port:
        outcome = one_shell(
            PATH,
            browser.PROGRAM,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-first-run",
            "--disable-background-networking",
            f"--user-data-dir={one_shell.folder / 'profile'}",
            "--virtual-time-budget=20000",
            "--dump-dom",
            f"http://{OUTSIDE}:{port}/",
            seconds=120,
        )
    assert outcome.code == 0, outcome.err
    assert "300000 bytes" in outcome.out, (outcome.out, outcome.err)
    down = outcome.summary["down"]
    assert down["left_bytes"] > 300_000
    # The burst of the server waits in the queue, and leaves at the rate of the path.
    assert down["queueing_delay"]["max_ns"] >= 10e6
    assert down["mean_bps"] <= 12e6 * 1.01


@pytest.mark.parametrize("depth", [2, 3])
def test_nested_shells_add_their_delays(shell: Shell, depth: int) -> None:
    kit.needs("ping")
    inner = shell.inner(rate=kit.RATE, delay=kit.DELAY, queue=kit.QUEUE) * (depth - 1)
    outcome = shell(PATH, *inner, "ping", "-c", "3", "-i", "0.2", OUTSIDE)
    assert depth * RTT_S <= smallest_ping_s(outcome) <= depth * MOST_RTT_S
    assert "relayed" not in outcome.err
    with kit.tcp_service(echo) as port:
        outcome = shell(PATH, *inner, shell.interpreter(), "-c", CONNECT, OUTSIDE, str(port))
    assert outcome.code == 0, outcome.err
    assert depth * RTT_S <= float(outcome.out) <= depth * MOST_RTT_S


def test_shells_side_by_side_in_a_shell_have_paths_of_their_own(one_shell: Shell) -> None:
    kit.needs("ping")
    inner = " ".join([*one_shell.inner(delay="5 ms"), "ping -c 10 -i 0.1", OUTSIDE])
    outcome = one_shell(PATH, "sh", "-c", f"{inner} > one & {inner} > two; wait")
    assert outcome.code == 0, outcome.err
    for name in ("one", "two"):
        text = (one_shell.folder / name).read_text()
        assert 0.050 <= smallest_ping_s(Outcome(0, text, "")) <= 0.050 + (MOST_RTT_S - RTT_S)


def test_each_direction_has_elements_of_its_own(one_shell: Shell) -> None:
    kit.needs("ping")
    options = ["--delay", "10 ms", "--up", "delay: 30 ms, loss: 50 %", "--seed", "3"]
    outcome = one_shell(options, "ping", "-c", "40", "-i", "0.01", "-W", "1", OUTSIDE)
    assert 0.040 <= smallest_ping_s(outcome) <= MOST_RTT_S
    (dropped,) = outcome.summary["up"]["dropped"]
    assert (dropped["element"], dropped["reason"]) == ("forward.1", "random_loss")
    # Twenty of forty are lost on average, with a standard deviation of 3.2.
    assert 7 <= dropped["packets"] <= 33
    assert outcome.summary["down"]["dropped"] == []
    assert "random loss at forward.1" in outcome.err


def test_a_trace_sets_the_rate(one_shell: Shell) -> None:
    # One packet of 1500 bytes each 10 ms: 1.2 Mbit/s.
    (one_shell.folder / "slow.trace").write_text("10\n")
    with kit.iperf_server() as port:
        options = ["--trace-up", "slow.trace", "--queue", "droptail 30 kB", "--delay", "5 ms"]
        outcome = one_shell(options, "iperf3", "-c", OUTSIDE, "-p", str(port), "-t", "3", "--json")
    assert outcome.code == 0, (outcome.out, outcome.err)
    assert 1.0e6 <= outcome.summary["up"]["mean_bps"] <= 1.2e6 * 1.01


def test_a_scenario_gives_the_path(one_shell: Shell) -> None:
    kit.needs("ping")
    text = (
        "schema: narrows/scenario/1\nquestion: How far?\nwhere: emulate\nduration: 1 s\nschemes: [cubic]\n"
        "path:\n  forward: [{rate: 5 Mbit/s}, {delay: 15 ms}]\n  backward: [{delay: 25 ms}]\n"
    )
    (one_shell.folder / "far.yaml").write_text(text)
    outcome = one_shell(["--scenario", "far.yaml"], "ping", "-c", "3", "-i", "0.2", OUTSIDE)
    assert RTT_S <= smallest_ping_s(outcome) <= MOST_RTT_S


# -- what programs reach -----------------------------------------------------------------------------


def test_there_is_nothing_but_the_path(shell: Shell) -> None:
    text = (
        "print(sorted(line.split(':')[0].strip() for line in list(open('/proc/net/dev'))[2:]));"
        "print([line.split()[:3] for line in list(open('/proc/net/route'))[1:]]);"
        "print(open('/etc/resolv.conf').read().split()[:2]);"
        "import os; print(os.environ['NARROWS_OUTSIDE'], os.getcwd(), os.getuid(), os.getgid())"
    )
    outcome = shell.python(PATH, text)
    assert outcome.code == 0, outcome.err
    devices, routes, resolver, rest = outcome.out.splitlines()
    assert devices == "['eth0', 'lo']"
    # One route, to everywhere (0.0.0.0), through the path; 198.18.0.1 as the kernel writes it.
    assert routes == "[['eth0', '00000000', '010012C6']]"
    assert resolver == "['nameserver', '198.18.0.1']"
    user = kit.SOMEBODY if shell.prefix else os.getuid()
    group = kit.SOMEBODY if shell.prefix else os.getgid()
    assert rest == f"198.18.0.1 {shell.folder} {user} {group}"


def test_datagrams_are_answered(shell: Shell) -> None:
    text = (
        "import socket, sys, time; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(5)\n"
        "s.connect((sys.argv[1], int(sys.argv[2])))\n"
        "for size in (10, 1400, 4000):\n"
        "    times = []\n"
        "    for _ in range(5):\n"
        "        start = time.monotonic(); s.send(bytes(size)); answer = s.recv(65536)\n"
        "        times.append(time.monotonic() - start)\n"
        "    print(len(answer), min(times))\n"
    )
    with kit.udp_service(lambda data: data[::-1]) as port:
        outcome = shell.python(PATH, text, OUTSIDE, str(port))
    assert outcome.code == 0, outcome.err
    answers = [line.split() for line in outcome.out.splitlines()]
    # The last one travels in fragments.
    assert [int(size) for size, _ in answers] == [10, 1400, 4000]
    assert all(RTT_S <= float(seconds) <= MOST_RTT_S + 0.01 for _, seconds in answers)


def test_names_are_asked_through_the_path(tmp_path: Path) -> None:
    shell = kit.shell_of("root", tmp_path)
    kit.needs("unshare", "mount")

    def answer(question: bytes) -> bytes:
        # RFC 1035: the question again, with one address if an address (type A) was asked for.
        end = question.index(b"\0", 12) + 5
        (kind,) = struct.unpack("!H", question[end - 4 : end - 2])
        count = 1 if kind == 1 else 0
        record = b"\xc0\x0c\0\1\0\1\0\0\0\0\0\4\xc0\0\2\7" * count
        return question[:2] + b"\x81\x80\0\1" + struct.pack("!HHH", count, 0, 0) + question[12:end] + record

    # A resolver on the loopback, as many machines have it.
    (tmp_path / "resolv.conf").write_text("nameserver 127.0.0.77\n")
    shell.prefix = [
        "unshare",
        "-m",
        "sh",
        "-c",
        f'mount --bind {tmp_path}/resolv.conf /etc/resolv.conf; exec "$@"',
        "-",
    ]
    text = (
        "import socket, time; start = time.monotonic()\n"
        "print(socket.gethostbyname('where.test'), time.monotonic() - start)"
    )
    with kit.udp_service(answer, ("127.0.0.77", 53)):
        outcome = shell.python(PATH, text)
    assert outcome.code == 0, outcome.err
    address, seconds = outcome.out.split()
    assert address == "192.0.2.7"
    assert float(seconds) >= RTT_S


def test_who_refuses_outside_refuses_inside(shell: Shell) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    text = (
        "import socket, sys, time\n"
        "to = (sys.argv[1], int(sys.argv[2])); times = []\n"
        "for _ in range(5):\n"
        "    start = time.monotonic()\n"
        "    try: socket.create_connection(to, 10)\n"
        "    except OSError as error: name = type(error).__name__; times.append(time.monotonic() - start)\n"
        "print(name, min(times))\n"
        "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.connect(to); s.settimeout(5); s.send(b'x')\n"
        "try: s.recv(10)\n"
        "except OSError as error: print(type(error).__name__)\n"
    )
    outcome = shell.python(PATH, text, OUTSIDE, str(port))
    tcp, udp = outcome.out.splitlines()
    name, seconds = tcp.split()
    assert name == "ConnectionRefusedError"
    assert RTT_S <= float(seconds) <= MOST_RTT_S
    assert udp == "ConnectionRefusedError"


def test_connections_end_as_they_do_outside(one_shell: Shell) -> None:
    def count_then_answer(connection: socket.socket) -> None:
        with connection:
            total = 0
            while data := connection.recv(65536):
                total += len(data)
            connection.sendall(str(total).encode())

    def reset(connection: socket.socket) -> None:
        connection.recv(1)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.close()

    text = (
        "import socket, sys\n"
        "s = socket.create_connection((sys.argv[1], int(sys.argv[2]))); s.sendall(bytes(300000))\n"
        "s.shutdown(socket.SHUT_WR); print(s.recv(100).decode(), s.recv(100))\n"
        "s = socket.create_connection((sys.argv[1], int(sys.argv[3]))); s.sendall(b'x')\n"
        "try: print(s.recv(10))\n"
        "except OSError as error: print(type(error).__name__)\n"
    )
    with kit.tcp_service(count_then_answer) as first, kit.tcp_service(reset) as second:
        outcome = one_shell.python(PATH, text, OUTSIDE, str(first), str(second))
    assert outcome.out.splitlines() == ["300000 b''", "ConnectionResetError"], outcome.err


def test_a_slow_path_slows_the_sender_outside(one_shell: Shell) -> None:
    taken = []

    def pour(connection: socket.socket) -> None:
        # A small buffer, so that what is taken is what the relay and the path hold.
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 65536)
        total = 0
        try:
            while total < 100_000_000:
                total += connection.send(bytes(65536))
        except OSError:
            pass
        taken.append(total)
        connection.close()

    text = (
        "import socket, sys, time\n"
        "s = socket.create_connection((sys.argv[1], int(sys.argv[2]))); end = time.monotonic() + 2; got = 0\n"
        "while time.monotonic() < end: got += len(s.recv(65536))\n"
        "print(got)\n"
    )
    with kit.tcp_service(pour) as port:
        outcome = one_shell.python(PATH, text, OUTSIDE, str(port))
        eventually("the sender notices", lambda: bool(taken))
    got = int(outcome.out)
    # 2 s at 12 Mbit/s are 3 MB. Ahead of the receiver are the buffers of four sockets and the relay.
    assert 1_000_000 <= got <= 3_000_000
    assert got <= taken[0] <= got + 3_000_000


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
    done = subprocess.run(command, input="through", capture_output=True, text=True, timeout=30, check=False)
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
    """A program in a terminal of its own."""

    def __init__(self, command: list[str], environment: dict[str, str]) -> None:
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.execvpe(command[0], command, environment)
        self.said = b""

    def read_until(self, pattern: str) -> None:
        """Reads until something was said that has not been waited for before."""
        limit = time.monotonic() + 60
        while not (found := re.search(pattern.encode(), self.said)):
            assert time.monotonic() < limit, self.said
            if select.select([self.terminal], [], [], 0.1)[0]:
                self.said += os.read(self.terminal, 4096)
        self.said = self.said[found.end() :]

    def type(self, keys: str) -> None:
        os.write(self.terminal, keys.encode())

    def end(self) -> int:
        """Waits for the end; gives the exit code."""
        limit = time.monotonic() + 60
        while time.monotonic() < limit:
            with contextlib.suppress(OSError):  # what a terminal says when nobody has it open any more
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
            os.waitpid(self.pid, 0)
        os.close(self.terminal)


def test_keys_of_the_terminal_reach_the_program_once(one_shell: Shell) -> None:
    text = (
        "import signal, sys, time; count = []\n"
        "signal.signal(signal.SIGINT, lambda *_: count.append(1)); print('ready', flush=True)\n"
        "end = time.monotonic() + 20\n"
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
        shell = kit.family(terminal.pid)[1]

        def foreground() -> bool:
            """Whether another group of processes than the shell's has the terminal."""
            return os.tcgetpgrp(terminal.terminal) not in (shell, os.getpgid(terminal.pid))

        eventually("sleep runs", foreground)
        time.sleep(0.5)  # bash hands the terminal over before the new process takes signals
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
        return b"sleep" in Path(f"/proc/{pid}/cmdline").read_bytes() and kit.is_alive(pid)
    except OSError:
        return False


@pytest.mark.parametrize("victim", ["agent", "guard", "program"])
def test_nothing_is_left_when_a_process_is_killed(shell: Shell, victim: str) -> None:
    program = "sleep 1000 & setsid sleep 1001 & echo ready; wait"
    with shell.start(PATH, "sh", "-c", program) as running:
        assert running.stdout
        assert running.stdout.readline() == "ready\n"
        eventually("all have started", lambda: len(kit.family(running.pid)) >= 4)
        family = kit.family(running.pid)
        networks = {kit.network_of(pid) for pid in family}
        for task in Path(f"/proc/{running.pid}/task").iterdir():
            networks.add(str((task / "ns/net").readlink()))
        networks.remove(kit.network_of(os.getpid()))
        assert len(networks) == 3, "the program's, the emulator's and the gateway"
        guard, inner = family[0], family[1]
        os.kill({"agent": running.pid, "guard": guard, "program": inner}[victim], signal.SIGKILL)
        expected = -signal.SIGKILL if victim == "agent" else 128 + signal.SIGKILL
        assert running.wait(20) == expected
        for pid in family:
            eventually("everything is gone", lambda pid=pid: not kit.is_alive(pid))  # type: ignore[misc]
        for network in networks:
            assert kit.users_of(network) == []
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
    checked = subprocess.run(command, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout

    from narrows import _native

    points = _native.delay_points(str(record), 1000)
    assert points is not None
    delays = points[data["flow"]]["delay_ms"]
    # One way, 20 ms; at most 40 ms more in the queue, one for the packet, and what the emulator is late.
    assert min(delays) >= 20
    assert _native.queue_series(str(record))["forward.0"]["backlog_bytes"].max() <= 60_000
    again = shell(["--log", "record", *PATH], "true")
    assert again.code == 3
    assert "exists already" in again.err


def test_the_live_line_shows_what_passes(one_shell: Shell) -> None:
    with kit.iperf_server() as port:
        outcome = one_shell(["--live-lines", *PATH], "iperf3", "-c", OUTSIDE, "-p", str(port), "-t", "2")
    lines = re.findall(r"^up ([0-9.]+) Mbit/s, queue ([0-9.]+) kB, [0-9]+ dropped \| down", outcome.err, re.M)
    assert len(lines) >= 4, outcome.err
    assert max(float(rate) for rate, _ in lines) <= 14
    assert max(float(queue) for _, queue in lines) <= 60


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
        (["--rate", "12 Mbit"], 3, '--rate: unknown unit "Mbit"; did you mean "Mbit/s"?'),
        (["--rate", "0 Mbit/s"], 3, "--rate: 0 bit/s is out of range"),
        (["--delay", "20"], 3, "--delay: 20 has no unit"),
        (["--delay", "20 kB"], 3, "--delay: 20 kB is not a time"),
        (["--rate", "1 Mbit/s", "--queue", "dropptail 60 kB"], 3, "droptail"),
        (["--rate", "1 Mbit/s", "--queue", "60 kB"], 3, "--queue: "),
        (["--rate", "1 Mbit/s", "--queue", "droptail 2 bdp"], 3, "bdp"),
        (["--delay", "1 ms", "--up", "rte: 3 Mbit/s"], 3, 'rte: unknown key; did you mean "rate"?'),
        (["--delay", "1 ms", "--up", "[{"], 3, "--up: is not valid YAML"),
        (["--delay", "1 ms", "--down", "loss"], 3, "--down: must be elements"),
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


def test_a_program_that_is_not_there_is_told_before_anything_is_built(tmp_path: Path) -> None:
    outcome = Shell([], tmp_path)(PATH, "no-such-program")
    assert outcome.code == 2
    assert "there is no program no-such-program" in outcome.err


def test_a_machine_without_namespaces_says_what_would_help() -> None:
    kit.needs("setpriv", "unshare")
    if os.geteuid() != 0:
        pytest.skip("taking rights away needs root")
    # A user namespace in which no further namespaces may be made.
    limit = 'echo 0 > /proc/sys/user/max_user_namespaces; exec setpriv --bounding-set=-all "$@"'
    with kit.folder_for_everybody() as folder:
        shell = kit.shell_of("root", folder)
        shell.prefix = ["unshare", "-U", "-r", "sh", "-c", limit, "-"]
        outcome = shell(PATH, "true")
    assert outcome.code == 4, outcome.err
    assert "max_user_namespaces" in outcome.err
