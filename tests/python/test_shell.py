"""`narrows shell` with real programs: their view of the path, and the hosts that they reach through it."""

from __future__ import annotations

import json
import os
import re
import socket
import struct
from pathlib import Path

import pytest

import browser
import shell_kit as kit
from processes import eventually
from shell_kit import MOST_RTT_S, OUTSIDE, PATH, RTT_S, Outcome, Shell

pytestmark = pytest.mark.alone


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


TIMELINE = """
schema: narrows/scenario/1
question: What changes while a program runs?
path:
  forward: [{name: way, delay: 10 ms}]
  backward: [{delay: 10 ms}]
timeline: [{at: 100 ms, set: {way: {delay: 60 ms}}}]
schemes: [cubic]
flows: {count: 1}
duration: 1 s
"""


def test_a_changing_delay_is_not_a_queue(one_shell: Shell) -> None:
    kit.needs("ping")
    scenario = one_shell.folder / "changes.yaml"
    scenario.write_text(TIMELINE)
    outcome = one_shell(["--scenario", str(scenario)], "sh", "-c", f"sleep 0.2; ping -c 5 -i 0.2 {OUTSIDE}")
    assert 0.070 <= smallest_ping_s(outcome) <= 0.090
    # Nothing queues anywhere on this path.
    up = outcome.summary["up"]
    assert up["left_packets"] == 5
    assert up["queueing_delay"]["max_ns"] < 1e6


@pytest.mark.parametrize("options", [[], ["-R"]], ids=["upload", "download"])
def test_iperf3_shows_rate_and_delay(shell: Shell, options: list[str]) -> None:
    with kit.iperf_server() as port:
        arguments = ["iperf3", "-c", OUTSIDE, "-p", str(port), "-t", "5", "--json", *options]
        outcome = shell(PATH, *arguments)
    assert outcome.code == 0, (outcome.out, outcome.err)
    end = json.loads(outcome.out)["end"]
    # 1448 of 1500 bytes are payload. The receiver counts from its first byte and from second to second,
    # so that its mean can be a little off, and by another fiftieth if the machine pauses for a tenth of a
    # second at a wrong moment; slow start and a shallow queue cost up to a quarter.
    most = 12e6 * 1448 / 1500
    assert 0.75 * most <= end["sum_received"]["bits_per_second"] <= 1.04 * most
    # The path itself never exceeds its rate (the first packet counts but takes no time: one in thousands).
    way = outcome.summary["down" if options else "up"]
    assert 0.75 * 12e6 <= way["mean_bps"] <= 12e6 * 1.002
    # The queue holds 60 kB, which take 40 ms; an empty one adds the packet's serialisation of a millisecond.
    # (A packet that the kernel reports late may enter a queue that has drained meanwhile.)
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


def test_shells_side_by_side_in_a_shell_have_separate_paths(one_shell: Shell) -> None:
    kit.needs("ping")
    inner = " ".join([*one_shell.inner(delay="5 ms"), "ping -c 10 -i 0.1", OUTSIDE])
    outcome = one_shell(PATH, "sh", "-c", f"{inner} > one & {inner} > two; wait")
    assert outcome.code == 0, outcome.err
    for name in ("one", "two"):
        text = (one_shell.folder / name).read_text()
        assert 0.050 <= smallest_ping_s(Outcome(0, text, "")) <= 0.050 + (MOST_RTT_S - RTT_S)


def test_each_direction_has_separate_elements(one_shell: Shell) -> None:
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
        "import socket, sys, time; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(60)\n"
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
    # The last one is fragmented.
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


def test_connections_refused_outside_are_refused_inside(shell: Shell) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    text = (
        "import socket, sys, time\n"
        "to = (sys.argv[1], int(sys.argv[2])); times = []\n"
        "for _ in range(5):\n"
        "    start = time.monotonic()\n"
        "    try: socket.create_connection(to, 60)\n"
        "    except OSError as error: name = type(error).__name__; times.append(time.monotonic() - start)\n"
        "print(name, min(times))\n"
        "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
        "s.connect(to); s.settimeout(60); s.send(b'x')\n"
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
        # A small buffer, so that the accepted data are those that the relay and the path hold.
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
    # 2 s at 12 Mbit/s are 3 MB. Between sender and receiver are the buffers of four sockets and the relay.
    assert 1_000_000 <= got <= 3_000_000
    assert got <= taken[0] <= got + 3_000_000
