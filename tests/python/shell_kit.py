"""Support for tests of `narrows shell`: starting it as root or as another user, and services outside."""

from __future__ import annotations

import contextlib
import functools
import http.server
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import processes
from narrows.agent.location import find_agent, this_machine
from narrows.documents.data import to_data
from narrows.shell import ShellOptions, plan
from processes import eventually, is_alive

#: A user without any rights here. The number has no name, which must not matter.
SOMEBODY = 54321
#: The path of most tests.
RATE, DELAY, QUEUE = "12 Mbit/s", "20 ms", "droptail 60 kB"
OUTSIDE = "outside.narrows"
PATH = ["--rate", RATE, "--delay", DELAY, "--queue", QUEUE]
#: Its round-trip time. Nothing can be faster, and without queueing only the serialisation of small packets,
#: the kernel and a busy machine are added.
RTT_S = 0.040
MOST_RTT_S = 0.060


def needs(*programs: str) -> None:
    """Skips the test if a program is missing; continuous integration installs all of them."""
    missing = [program for program in programs if shutil.which(program) is None]
    if missing:
        pytest.skip(f"{' and '.join(missing)} not installed")


@functools.cache
def refusal() -> str:
    """Why this machine can't run shells; empty if it can."""
    facts = this_machine().doctor()
    for ability in (facts.namespaces, facts.packet_socket):
        if ability and not ability.ok:
            return f"{ability.why}"
    return ""


@dataclass
class Outcome:
    """The end of a shell."""

    code: int
    out: str
    err: str
    #: Its summary, if the program ran.
    summary: dict[str, Any] = field(default_factory=dict)


@dataclass
class Shell:
    """`narrows shell` as run by one user."""

    prefix: list[str]
    folder: Path

    def command(self, *arguments: str) -> list[str]:
        return [*self.prefix, sys.executable, "-m", "narrows", "shell", *arguments]

    def environment(self, **more: str) -> dict[str, str]:
        return {**os.environ, "HOME": str(self.folder), **more}

    def __call__(self, options: list[str], *program: str, seconds: float = 60, **environment: str) -> Outcome:
        """Runs a program behind a path to its end."""
        file = self.folder / "summary.json"
        file.unlink(missing_ok=True)
        done = processes.run(
            self.command(*options, "--json", str(file), "--", *program),
            seconds=seconds,
            env=self.environment(**environment),
            cwd=self.folder,
        )
        assert "Traceback" not in done.stderr or "Traceback" in done.stdout, done.stderr
        summary = json.loads(file.read_text()) if file.exists() else {}
        return Outcome(done.returncode, done.stdout, done.stderr, summary)

    @contextlib.contextmanager
    def start(self, options: list[str], *program: str) -> Iterator[subprocess.Popen[str]]:
        """Starts a program behind a path, and ends it afterwards if it still runs."""
        started = subprocess.Popen(
            self.command(*options, "--", *program),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=self.environment(),
            cwd=self.folder,
            start_new_session=True,
        )
        with processes.running(started) as running:
            yield running

    def interpreter(self) -> str:
        """A Python that the user may run: ours may lie where only root has access."""
        for path in (sys.executable, "/usr/local/bin/python3", "/usr/bin/python3"):
            # The shell in between no longer has root's rights.
            tried = processes.run([*self.prefix, "sh", "-c", f"exec {path} -c pass"])
            if tried.returncode == 0:
                return path
        pytest.skip("no Python that other users may run")

    def python(self, options: list[str], text: str, *arguments: str, seconds: float = 60) -> Outcome:
        """Runs a Python program behind a path."""
        return self(options, self.interpreter(), "-c", text, *arguments, seconds=seconds)

    def inner(self, **wishes: Any) -> list[str]:
        """The beginning of a command that starts a shell in a shell. (It uses the agent directly, because our
        Python may lie where only root has access.)"""
        document, _ = plan(ShellOptions(quiet=True, **wishes))
        file = self.folder / f"{abs(hash(str(wishes)))}.json"
        file.write_text(json.dumps(to_data(document)))
        return [str(find_agent()), "shell", "--plan", str(file), "--"]


@contextlib.contextmanager
def folder_for_everybody() -> Iterator[Path]:
    """A folder outside those that only root may enter, such as pytest's."""
    with tempfile.TemporaryDirectory(prefix="narrows-test-", ignore_cleanup_errors=True) as name:
        folder = Path(name).resolve()
        folder.chmod(0o755)
        yield folder


def shell_of(who: str, folder: Path) -> Shell:
    """The shell of root or of another user; of the user who runs the tests, if that is not root."""
    if refusal():
        pytest.skip(refusal())
    if who == "root" and os.geteuid() != 0:
        pytest.skip("the tests are not run by root")
    prefix: list[str] = []
    if who == "somebody" and os.geteuid() == 0:
        needs("setpriv")
        identity = str(SOMEBODY)
        prefix = ["setpriv", "--reuid", identity, "--regid", identity, "--clear-groups"]
        os.chown(folder, SOMEBODY, SOMEBODY)
        tried = processes.run([*prefix, sys.executable, "-c", "import narrows._native"], cwd=folder)
        if tried.returncode != 0:
            pytest.skip(f"other users cannot read this installation: {tried.stderr.strip()[-200:]}")
    return Shell(prefix, folder)


# -- services outside ------------------------------------------------------------------------------


@contextlib.contextmanager
def tcp_service(serve: Callable[[socket.socket], None]) -> Iterator[int]:
    """A service on the loopback of the machine; returns its port."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def accept() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = server.accept()
                    threading.Thread(target=serve, args=(connection,), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)


@contextlib.contextmanager
def udp_service(
    answer: Callable[[bytes], bytes], address: tuple[str, int] = ("127.0.0.1", 0)
) -> Iterator[int]:
    """A service that answers datagrams; returns its port."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(address)
        server.settimeout(0.1)
        over = threading.Event()

        def serve() -> None:
            while not over.is_set():
                with contextlib.suppress(TimeoutError):
                    data, peer = server.recvfrom(65536)
                    server.sendto(answer(data), peer)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield server.getsockname()[1]
        over.set()
        thread.join(10)
        assert not thread.is_alive(), "the service does not end"


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@contextlib.contextmanager
def web_server(folder: Path) -> Iterator[int]:
    """A web server for a folder on the loopback of the machine; returns its port."""
    handler = functools.partial(_Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


@contextlib.contextmanager
def iperf_server() -> Iterator[int]:
    """An iperf3 server on the loopback of the machine; returns its port."""
    needs("iperf3")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    server = subprocess.Popen(
        ["iperf3", "-s", "-B", "127.0.0.1", "-p", str(port)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        text=True,
    )
    with processes.running(server):
        eventually("iperf3 listens", lambda: _listens(port))
        yield port


def _listens(port: int) -> bool:
    # /proc/net/tcp has addresses and states as hexadecimal numbers; 0A is LISTEN.
    lines = Path("/proc/net/tcp").read_text().splitlines()
    return any(line.split()[1].endswith(f":{port:04X}") and line.split()[3] == "0A" for line in lines[1:])


# -- processes -------------------------------------------------------------------------------------


def network_of(pid: int) -> str:
    """The network namespace of a process."""
    return str(Path(f"/proc/{pid}/ns/net").readlink())


def users_of(network: str) -> list[int]:
    """Processes in a network namespace."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            tasks = list((process / "task").iterdir())
            if any(str((task / "ns/net").readlink()) == network for task in tasks) and is_alive(
                int(process.name)
            ):
                found.append(int(process.name))
    return found
