"""Support for tests of campaigns between two hosts: a campaign in a folder, its processes on both machines,
and the state of both when it is gone."""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import processes
from hosts_kit import Hosts
from narrows.agent.location import find_agent
from narrows.campaign import store
from narrows.errors import NarrowsError
from processes import eventually

#: A setting that campaigns raise here in place of the socket buffer limits: those belong to the machine, and
#: namespaces can only read them. Each namespace has this one for itself, and nothing here depends on it.
SETTING, RAISED = "net.ipv4.conf.all.rp_filter", 2
#: The command line that prepares this setting.
PREPARING = f"""
from narrows.cli import main
from narrows.hosts import sysctls
sysctls.LEAST = {{{SETTING!r}: {RAISED}}}
main()
"""
#: The kernel's name of the BPF program that campaigns of these tests load, and of any. Other tests load some
#: at the same time, and the kernel's lists of congestion controls are the same in all namespaces.
CONGESTION_CONTROLS = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
LOADED, ANY_LOADED = r" nw_westwood\S*", r" nw_\S+"
#: Everything about a host's network that might have changed, and named namespaces.
FOOTPRINT = """
ip -brief link; ip address; ip rule; ip -6 rule; ip route show table all; ip -6 route show table all
ip netns list; grep nsfs /proc/self/mountinfo
find /proc/sys/net -type f -perm -u=r -exec grep -H . {} + 2>/dev/null | sort
"""


class Lab:
    """A campaign in a folder; `before` precedes its command."""

    def __init__(self, pair: Hosts, folder: Path, scenario: str, before: tuple[str, ...] = ()) -> None:
        self.pair = pair
        self.folder = folder
        self.before = before
        self.out = folder / "out"
        (folder / "x.yaml").write_text(scenario)

    def words(self, *more: str) -> list[str]:
        arguments = (str(self.folder / "x.yaml"), "-o", str(self.out), *more)
        program = (sys.executable, "-c", PREPARING)
        return self.pair.words(*arguments, command="run", before=self.before, program=program)

    def run(self, *more: str) -> subprocess.CompletedProcess[str]:
        done = processes.run(self.words(*more), env=self.pair.environment(), cwd=self.folder, seconds=500)
        assert "Traceback" not in done.stderr, done.stderr
        return done

    def start(self, *more: str, **options: Any) -> subprocess.Popen[str]:
        """Starts the campaign as a process to be disturbed; `options` are those of Popen."""
        return subprocess.Popen(
            self.words(*more),
            env=self.pair.environment(),
            cwd=self.folder,
            text=True,
            **{"stdin": subprocess.DEVNULL, **options},
        )

    # -- what it has written -----------------------------------------------------------------------

    @property
    def campaign(self) -> dict[str, Any]:
        # While it runs, part of its state is in its journal.
        return store.read_document(self.out)

    def states(self) -> list[str]:
        with contextlib.suppress(NarrowsError):
            return sorted(cell["state"] for cell in self.campaign["cells"])
        return []

    def run_json(self, cell: str) -> dict[str, Any]:
        document: dict[str, Any] = json.loads((self.out / "cells" / cell / "run.json").read_text())
        return document

    def finished_files(self) -> dict[str, str]:
        """The files of finished cells, each with its content."""
        # A cell gets its name when it is complete.
        cells = [path.parent for path in self.out.glob("cells/[!.]*/run.json")]
        files = [file for cell in cells for file in cell.rglob("*") if file.is_file()]
        return {str(file): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}

    # -- its processes -----------------------------------------------------------------------------

    def processes(self) -> list[tuple[int, list[str]]]:
        """All processes that it has started, here and there, with their command lines."""
        return list(_marked(str(self.pair.folder)))

    def agents(self, command: str = "") -> list[int]:
        """Agents here and there that run a command, or any."""
        return [
            pid
            for pid, words in self.processes()
            if words[0].endswith("/narrows-agent") and (not command or command in words)
        ]

    def agents_at(self, place: str) -> list[int]:
        """Agents `here` or `there`, and their child processes."""
        agent = str(find_agent() if place == "here" else self.pair.remote_folder)
        return [pid for pid, words in self.processes() if words[0].startswith(agent)]

    def masters(self) -> list[int]:
        """The processes that hold connections."""
        return [
            pid
            for pid, words in self.processes()
            if "ControlMaster=yes" in words and words[0].endswith("ssh")
        ]

    # -- what is left ------------------------------------------------------------------------------

    def nothing_is_left(self, before: list[str], folders: bool = True) -> None:
        """Checks that both machines are in their former state; waits for processes that end by themselves: an
        ssh whose path was cut notices it after 15 s (three probes). Without `folders`, folders of runs may
        still exist."""
        left: list[str] = []

        def none() -> bool:
            left[:] = [" ".join(words) for _, words in self.processes()]
            left.extend(str(socket) for socket in self.pair.folder.glob("narrows-*"))
            if folders:
                left.extend(str(path) for path in self.pair.remote_folder.glob("runs/*"))
            if not left:
                left.extend(_difference(before, footprint(self.pair)))
                left.extend(re.findall(LOADED, CONGESTION_CONTROLS.read_text()))
            return not left

        with contextlib.suppress(AssertionError):
            eventually("nothing is left", none, seconds=60)
        assert not left, "\n".join(left)


def _marked(mark: str) -> Iterator[tuple[int, list[str]]]:
    """Processes with a word in their environment: all descendants of one from `Hosts.environment`, including
    all sshd sessions."""
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if mark.encode() in (process / "environ").read_bytes():
                words = (process / "cmdline").read_bytes().decode(errors="replace").split("\0")
                # A zombie has no environment left.
                if words != [""]:
                    yield int(process.name), words


def footprint(pair: Hosts) -> list[str]:
    """The state of both machines, without loaded BPF programs. (A namespace without a name vanishes with its
    processes.)"""
    found = []
    for name, end in (("here", pair.here), ("there", pair.there)):
        lines = processes.run([*end.enter, "sh", "-c", FOOTPRINT]).stdout.splitlines()
        found += [f"{name}: {re.sub(ANY_LOADED, '', line)}" for line in lines]
    assert any(SETTING.replace(".", "/") in line for line in found), found
    return found


def _difference(before: list[str], after: list[str]) -> list[str]:
    gone = [f"gone: {line}" for line in before if line not in after]
    return gone + [f"new: {line}" for line in after if line not in before]


@contextlib.contextmanager
def slow(pair: Hosts, limit: str = "500k") -> Iterator[None]:
    """20 Mbit/s in both directions, by the kernel's shaper with a buffer of `limit`: processors must not
    be the bottleneck."""
    for device in ("near", "far"):
        pair.router.do(f"tc qdisc add dev {device} root tbf rate 20mbit burst 10k limit {limit}")
    try:
        yield
    finally:
        for device in ("near", "far"):
            pair.router.do(f"tc qdisc del dev {device} root")
