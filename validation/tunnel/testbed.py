"""One run of one scheme over the emulated path, in the tunnel or without it.

This process must be in a shell (`narrows shell`): its network is that of the receiver. The sender is the
program of a second shell inside this one, with the emulated path: packets go from kernel to kernel, with
nothing else in between. Both ends are the peers of a run between two hosts, with a tunnel or without.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import datetime
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path
from typing import IO, Any

from narrows import _native
from narrows.agent.cell import CellRun
from narrows.agent.location import ROOT, Location
from narrows.campaign.peers import FORMAT, Peer, PeerFailure, PeerPair
from narrows.documents.data import to_data
from narrows.errors import DataError, UnavailableError
from narrows.hosts.path_probe import ClockOffset
from narrows.scenario.model import Cell
from narrows.shell import ShellOptions, plan
from validation.tunnel.exec_in_shell import SHELL_VARIABLE, apply_sysctls
from validation.tunnel.measure import NoDataError, Numbers, measure

#: Bytes that the tunnel adds to each packet in IPv4 (docs/guide/real-paths.md).
OVERHEAD = 56
#: The tunnel listens on this port, in a network without other users.
_PORT = 7000
#: Delay between the start command and the start: meanwhile the tunnel's clocks are compared a few times.
_START_NS = 500_000_000
SENDER, RECEIVER = 0, 1
#: Becomes the agent in a shell; run by its path, since it needs nothing of Narrows.
_EXEC = Path(__file__).with_name("exec_in_shell.py")
INVALID, FAILED = "invalid", "failed"


@dataclass(frozen=True)
class Setup:
    """Inside the tunnel or outside; outside, the return path may be longer by some ns."""

    name: str
    tunnelled: bool = False
    added_ns: int = 0


OUTSIDE, INSIDE = Setup("outside"), Setup("inside", tunnelled=True)


@dataclass(frozen=True)
class EmulatedPath:
    """The path in the notation of `narrows shell`, and the duration of flows."""

    rate: str
    delay: str
    queue: str
    loss: str | None
    length_ns: int

    def network(self) -> dict[str, Any]:
        """Both directions in base units: a bottleneck on the way of the data, only delay on the way back."""
        options = ShellOptions(
            rate=self.rate,
            delay=self.delay,
            queue=self.queue,
            loss=self.loss,
            down=f"[{{delay: {self.delay}}}]",
        )
        network: dict[str, Any] = to_data(plan(options)[0].network)
        return network


@dataclass
class RunResult:
    """The outcome of one run."""

    #: The verdict of the path's record: `ok` if its emulator was on time.
    verdict: str
    reasons: list[str] = field(default_factory=list)
    attempts: int = 0
    #: Metrics from the path's record.
    path: dict[str, Any] | None = None
    #: Metrics of the same packets from the tunnel's logs.
    tunnel: dict[str, Any] | None = None
    #: The smallest round-trip time that the sender's kernel measured.
    rtt_min_ns: int | None = None
    #: 99th percentile of the packets' lateness when leaving the path.
    late_p99_ns: int | None = None
    #: 99th percentile of the packets' wait in the sender's end of the tunnel.
    waited_p99_ns: int | None = None

    def to_json(self) -> dict[str, Any]:
        """In stored form."""
        return asdict(self)


class Testbed:
    """Runs over one path, with a folder for temporary files."""

    def __init__(self, agent: Location, emulated_path: EmulatedPath, folder: Path) -> None:
        self._agent = agent
        self._emulated_path = emulated_path
        self._folder = folder
        self._network = emulated_path.network()
        own = os.environ.get(SHELL_VARIABLE, "")
        if not own:
            raise UnavailableError("this runs only in a shell of narrows; start python -m validation tunnel")
        self._own = IPv4Network(own)
        #: Kernel, processor and memory of this machine.
        self.machine: dict[str, Any] = {}
        #: Kernel settings inside the tunnel, for the hosts outside.
        self._settings: dict[str, str] = {}
        self._cpus: list[int] = []

    def warm_up(self, cell: Cell) -> None:
        """An uncounted run in the tunnel, after which the hosts outside have the kernel settings of those
        inside, and their programs the same processors."""
        ran = self.run(cell, INSIDE, 0)
        side = self._side(SENDER)
        if ran.verdict == FAILED or side is None:
            raise UnavailableError(f"no run through the tunnel is possible here: {'; '.join(ran.reasons)}")
        self.machine = {key: side["machine"][key] for key in ("kernel", "cpu_model", "cpus", "memory_bytes")}
        self._settings = {name: str(value) for name, value in side["settings"]["sysctls"].items()}
        self._cpus = [int(cpu) for cpu in side["cpu"]["of"]["endpoints"]]
        apply_sysctls(self._settings)

    def differing_settings(self) -> list[str]:
        """Settings that differ between the sender outside and the one inside; call it after a run outside."""
        side = self._side(SENDER)
        if side is None:
            return []
        found = side["settings"]["sysctls"]
        return sorted(name for name, value in self._settings.items() if found.get(name) != value)

    def clean_up(self) -> None:
        """Removes the files of the last run."""
        shutil.rmtree(self._folder, ignore_errors=True)

    # -- a run -------------------------------------------------------------------------------------

    def run(
        self, cell: Cell, where: Setup, seed: int, stopped: Callable[[], bool] = lambda: False
    ) -> RunResult:
        """One run; `seed` is that of the path. Raises `Stopped` soon after `stopped` holds."""
        shutil.rmtree(self._folder, ignore_errors=True)
        self._folder.mkdir(parents=True)
        try:
            start_real_ns = self._play(cell, where, seed, stopped)
        except PeerFailure as failure:
            if failure.kind == "unavailable":
                raise UnavailableError(failure.message) from None
            return RunResult(FAILED, [failure.message])
        try:
            return self._read(cell, where, start_real_ns)
        except (NoDataError, PeerFailure) as error:
            return RunResult(FAILED, [str(error)])

    def _play(self, cell: Cell, where: Setup, seed: int, stopped: Callable[[], bool]) -> int:
        """Runs both peers, from their plans to the end; returns the start by the machine's clock."""
        with (
            (self._folder / "log").open("wb") as log,
            self._started(where, seed, log) as (sender, receiver, addresses),
        ):
            pair = PeerPair(sender, receiver, stopped, lambda: True, lambda _: None)
            with pair:
                plans = self._plans(cell, where, addresses)
                # Both share this machine's clock.
                pair.run(plans, _START_NS, None if where.tunnelled else ClockOffset(0, 0))
            # The record of the path is complete when its shell has ended.
            if sender.process.returncode != 0:
                raise PeerFailure(
                    "internal", f"the shell of the path has ended with {sender.process.returncode}"
                )
            return sender.events["starting"].real_ns or 0

    @contextmanager
    def _started(
        self, where: Setup, seed: int, log: IO[bytes]
    ) -> Iterator[tuple[Peer, Peer, tuple[str, str]]]:
        """The agents of sender and receiver, and the addresses of both on the path."""
        outside = {"settings": self._settings, "cpus": self._cpus}
        environment = json.dumps({"settings": {}, "cpus": []} if where.tunnelled else outside)
        agent = self._agent.prefix[-1]
        side = [sys.executable, str(_EXEC), environment, agent, "side", "--plan", "-"]
        shell = [agent, "shell", "--plan", str(self._shell_plan(where, seed)), "--"]
        sender = Peer(Location("sender", [*shell, *side], ROOT), log)
        try:
            addresses = self._addresses(sender)
            receiver = Peer(Location("receiver", side, ROOT), log)
            try:
                _first_line(receiver)
                yield sender, receiver, addresses
            finally:
                receiver.end()
        finally:
            sender.end()

    def _shell_plan(self, where: Setup, seed: int) -> Path:
        network = {**self._network}
        if where.added_ns:
            longer = {"name": "backward.added", "kind": "delay", "delay": where.added_ns}
            network["backward"] = [*network["backward"], longer]
        file = self._folder / "shell.json"
        document = {
            "format": "narrows/shell/1", "network": network, "timeline": [], "seed": seed,
            "quiet": True, "log": str(self._path), "summary": None,
        }  # fmt: skip
        file.write_text(json.dumps(document), encoding="utf-8")
        return file

    def _addresses(self, sender: Peer) -> tuple[str, str]:
        """The addresses of sender and receiver, from the sender's report about its shell."""
        said = _first_line(sender)
        network = IPv4Network(said["shell"])
        if not network.subnet_of(self._own) or network == self._own:
            raise UnavailableError(
                "a shell in a shell does not get packets forwarded here, which this comparison needs; run it"
                " as root"
            )
        first = int(network.network_address)
        return str(IPv4Address(first + 2)), str(IPv4Address(first + 1))

    def _plans(
        self, cell: Cell, where: Setup, addresses: tuple[str, str]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        secret = secrets.token_hex(32)
        sender, receiver = addresses
        tunnels = ({"dial": f"{receiver}:{_PORT}"}, {"bind": f"{receiver}:{_PORT}"})

        def side(host: int) -> dict[str, Any]:
            here, there = (sender, receiver) if host == SENDER else (receiver, sender)
            ends = (
                {"tunnel": {"secret": secret, **tunnels[host]}}
                if where.tunnelled
                else {"tunnel": None, "addresses": {"here": here, "there": there}}
            )
            folder = str(self._host(host).absolute())
            return {
                "format": FORMAT,
                "cell": cell.to_json(),
                "files": {},
                "host": host,
                "folder": folder,
                **ends,
            }

        return side(SENDER), side(RECEIVER)

    # -- results -----------------------------------------------------------------------------------

    @property
    def _path(self) -> Path:
        return self._folder.absolute() / "path"

    def _host(self, host: int) -> Path:
        return self._folder / f"host-{host}"

    def _side(self, host: int) -> dict[str, Any] | None:
        file = self._host(host) / "side.json"
        return _document(file) if file.exists() else None

    def _read(self, cell: Cell, where: Setup, start_real_ns: int) -> RunResult:
        document = _document(self._path / "run.json")
        reasons = [str(one["text"]) for one in document["reasons"]]
        ran = RunResult(document["verdict"], reasons, late_p99_ns=document["lateness"]["p99_ns"])
        ends = [end for host in (SENDER, RECEIVER) for end in (self._side(host) or {}).get("ends", [])]
        failures = [str(end["failure"]) for end in ends if end["failure"]]
        if failures:
            return RunResult(FAILED, failures)
        began_ns = round(datetime.fromisoformat(document["started_at"]).timestamp() * 1e9)
        ran.path = _measured(self._path, start_real_ns - began_ns, self._emulated_path.length_ns).to_json()
        for one in ends:
            if one["role"] == "sender":
                samples = [state["min_rtt_ns"] for state in one["outcome"]["states"]]
                # Values from timestamps, taken when packets were retransmitted, are rounded down to whole ms.
                exact = [value for value in samples if value and value % 1_000_000]
                ran.rtt_min_ns = min(exact, default=None)
        if where.tunnelled:
            self._read_tunnel(cell, ran)
        return ran

    def _read_tunnel(self, cell: Cell, ran: RunResult) -> None:
        for host in (SENDER, RECEIVER):
            tunnel = _document(self._host(host) / "tunnel.json")
            lost = sum(tunnel["lost_here"].values())
            if lost:
                ran.verdict = INVALID
                ran.reasons.append(
                    f"{lost} packets were lost at an end of the tunnel, which the path never saw"
                )
            if host == SENDER:
                ran.waited_p99_ns = tunnel["waited"]["p99_ns"]
        record, cell_file = self._folder / "record", self._folder / "cell.json"
        cell_file.write_text(cell.to_text(), encoding="utf-8")
        folders = [
            word
            for host in (SENDER, RECEIVER)
            for word in (f"--host{host}", str(self._host(host).absolute()))
        ]
        log = self._folder / "side-record.log"
        outcome = CellRun(
            self._agent, "side-record", cell_file, record, log, lambda _: None, self._folder, tuple(folders)
        ).run()
        if outcome.state != "finished":
            raise PeerFailure(outcome.kind, f"the tunnel's logs gave no record: {outcome.message}")
        ran.tunnel = _measured(record, 0, self._emulated_path.length_ns, OVERHEAD).to_json()


def _measured(record: Path, start_ns: int, length_ns: int, overhead: int = 0) -> Numbers:
    packets = _native.packets(str(record))
    if packets is None:
        raise DataError(f"{record}: has no packets")
    return measure(packets, start_ns, length_ns, overhead)


def _document(file: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return found


def _first_line(side: Peer) -> dict[str, Any]:
    """The first line of a program before it becomes the agent; byte by byte, because the rest belongs to the
    agent."""
    assert side.process.stdout and side.process.stderr
    line = b""
    while not line.endswith(b"\n"):
        letter = os.read(side.process.stdout.fileno(), 1)
        if not letter:
            complaint = side.process.stderr.read().decode(errors="replace").strip().splitlines()
            why = complaint[-1] if complaint else "it ended without a word"
            raise UnavailableError(f"the {side.location.name} can't be started: {why}")
        line += letter
    found: dict[str, Any] = json.loads(line)
    return found
