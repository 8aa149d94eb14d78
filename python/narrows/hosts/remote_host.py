"""The other host of a campaign: connected, examined, and reconnected after it vanished.

One decision lasts: which host waits for the other's datagrams, on which port, and the packet size.
"""

from __future__ import annotations

import contextlib
import hashlib
import secrets
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from msgspec.structs import replace

from narrows.addresses import socket_address
from narrows.agent.location import SUDO, Location, with_best_rights
from narrows.documents.agent import CurrentHost, HostFacts
from narrows.documents.data import to_data
from narrows.documents.resolved import RealPath
from narrows.errors import NarrowsError, UnavailableError
from narrows.hosts import clocks, deploy, path_probe, sysctls
from narrows.hosts.check import their_address
from narrows.hosts.deploy import Deployment
from narrows.hosts.ssh import Ssh
from narrows.scenario.real_path import AUTO, LOCAL, REMOTE

Answer = TypeVar("Answer")
#: Larger packets than those of an Ethernet are only used if they are asked for.
_USUAL_MTU = 1500
#: The tunnel takes no smaller packets outside, as IPv6 does not (RFC 8200, section 5).
_LEAST_MTU = 1280
#: Bytes that the tunnel adds to a packet: IP and UDP headers, its own header, and a tag
#: (core/tunnel/src/mtu.rs).
_AROUND = {4: 56, 6: 76}
#: Leftovers of killed campaigns that are older, in minutes, are removed by the next one.
_LEFTOVER_MIN = 24 * 60
#: Attempts to reach a vanished host before a cell is given up, and the pause between them.
_TRIES = 2
_PAUSE_S = 3.0


@dataclass(frozen=True)
class RemoteOptions:
    """Options for reaching the other host; none of them is part of a scenario."""

    ssh: tuple[str, ...] = ("ssh",)
    #: The folder of Narrows there.
    folder: str | None = None
    #: An agent for another architecture.
    agent: Path | None = None


@dataclass(frozen=True)
class Rendezvous:
    """The listening side, and its address."""

    #: `here` or `there`.
    listener: str
    port: int
    #: The listener's address from the other end's view.
    address: str
    mtu: int

    @property
    def version(self) -> int:
        """The IP version."""
        return 6 if ":" in self.address else 4

    @property
    def inner_mtu(self) -> int:
        """The largest packet that fits into the tunnel."""
        return self.mtu - _AROUND[self.version]

    def tunnel(self, location: str, secret: str, interfaces: dict[str, str]) -> dict[str, object]:
        """The tunnel settings of one end, in the agent's format."""
        waits = location == self.listener
        any_address = "::" if self.version == 6 else "0.0.0.0"
        return {
            "bind": socket_address(any_address, self.port if waits else 0),
            "dial": None if waits else socket_address(self.address, self.port),
            "interface": interfaces.get(location),
            "secret": secret,
            "outer_mtu": self.mtu,
        }


class RemoteHost:
    """The other host; a context manager."""

    def __init__(self, settings: RealPath, reach: RemoteOptions, say: Callable[[str], None]) -> None:
        self.settings = settings
        self.reach = reach
        self.say = say
        self.name = str(settings.other)
        self.local: Location = with_best_rights()
        self.facts: dict[str, HostFacts] = {}
        self.path: path_probe.PathFacts | None = None
        self._deployment: Deployment | None = None
        self._ssh = contextlib.ExitStack()
        #: Overridden settings, by the end of the path.
        self._overrides: dict[str, sysctls.SysctlOverride] = {}
        self._is_prepared = False
        #: The common prefix of our folders there.
        self._token = secrets.token_hex(8)
        self._lock = threading.Lock()

    def __enter__(self) -> RemoteHost:
        try:
            self._connect()
            self.facts = self._both(lambda location: location.ask(HostFacts, "host"))
        except BaseException:
            self._ssh.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(NarrowsError):
            if self.alive:
                self._remove_all()
        for name, override in self._overrides.items():
            self._put_back(name, override)
        self._ssh.close()

    # -- the connection ----------------------------------------------------------------------------

    @property
    def remote(self) -> Location:
        """The other host as a location."""
        assert self._deployment
        return self._deployment.location

    @property
    def alive(self) -> bool:
        """True unless this side has detected that the connection is down."""
        return self._deployment is not None and self.connection.is_open

    @property
    def connection(self) -> Ssh:
        """The connection."""
        assert self._deployment
        return self._deployment.ssh

    def location(self, name: str) -> Location:
        """The end named `here` or `there`."""
        return self.local if name == LOCAL else self.remote

    def _connect(self) -> None:
        connection = self._ssh.enter_context(Ssh(self.name, self.reach.ssh))
        self._deployment = deploy.deploy(connection, self.reach.agent, self.reach.folder)
        # Only old folders of killed campaigns, since other campaigns may be running.
        folder = deploy.quote(self.runs)
        ours = f'-mindepth 1 -maxdepth 1 -name "{deploy.RUNS}"'
        old = f"{ours} -mmin +{_LEFTOVER_MIN} -exec rm -rf {{}} +"
        made = f"umask 077; mkdir -p {folder} || exit 1"
        done = connection.run(f"{made}; {self._sudo}find {folder} {old}; exit 0")
        if done.returncode != 0:
            why = done.stderr.decode(errors="replace").strip().splitlines()[-1:] or ["no reason given"]
            raise UnavailableError(
                f"{self.name}: {self.runs} could not be made ({why[0]}); choose another folder with"
                " --remote-folder"
            )

    def ensure(self) -> None:
        """Reconnects if the other host had vanished; raises `UnavailableError` if it still has."""
        with self._lock:
            for attempt in range(_TRIES):
                try:
                    if not self.alive:
                        self._ssh.close()
                        self._connect()
                        self.say(f"{self.name}: connected again")
                    if self._is_prepared:
                        self.prepare()
                    return
                except UnavailableError:
                    if attempt + 1 == _TRIES:
                        raise
                    time.sleep(_PAUSE_S)

    def failure(self) -> str:
        """The message for a lost connection."""
        return (
            f"{self.name} has vanished: the connection by ssh is gone; see whether this works:"
            f" {self.connection.by_hand}"
        )

    @property
    def _sudo(self) -> str:
        """The prefix of shell commands that need the agents' rights there."""
        return "sudo -n " if self.remote.rights == SUDO else ""

    # -- folders there -----------------------------------------------------------------------------

    @property
    def runs(self) -> str:
        """The folder of runs there."""
        assert self._deployment
        return f"{self._deployment.folder}/runs"

    def claim(self, campaign: Path) -> None:
        """From now on, folders there belong to a campaign; leftovers of an earlier, killed process of it are
        removed.

        Only one process at a time works on a campaign.
        """
        whose = f"{socket.gethostname()}:{campaign.absolute()}"
        self._token = hashlib.sha256(whose.encode()).hexdigest()[:16]
        self._remove_all()

    def new_folder(self, name: str) -> str:
        """A folder for one cell that does not exist yet; its parent does."""
        return f"{self.runs}/{self._token}-{name}-{secrets.token_hex(4)}"

    def remove(self, folder: str) -> None:
        """Removes one of our folders there."""
        self.connection.run(f"{self._sudo}rm -rf {deploy.quote(folder)}")

    def _remove_all(self) -> None:
        """Removes the leftovers of this campaign there."""
        self.connection.run(f"{self._sudo}rm -rf {deploy.quote(f'{self.runs}/{self._token}')}-*")

    # -- facts about both machines ------------------------------------------------------------------

    def _both(self, ask: Callable[[Location], Answer]) -> dict[str, Answer]:
        """Asks both at the same time."""
        with ThreadPoolExecutor(2) as pool:
            futures = [pool.submit(ask, self.location(name)) for name in (LOCAL, REMOTE)]
            return {name: future.result() for name, future in zip((LOCAL, REMOTE), futures, strict=True)}

    def state(self) -> dict[str, object]:
        """The facts about both machines that may change while a campaign runs, and the relation of their
        clocks by NTP.
        """
        both = self._both(
            lambda location: replace(location.ask(CurrentHost, "host", "--brief"), qdisc=_qdiscs(location))
        )
        return {**to_data(both), "by_ntp": to_data(clocks.by_ntp(both[LOCAL].clock, both[REMOTE].clock))}

    # -- the path ----------------------------------------------------------------------------------

    def probe(self) -> None:
        """Examines the path between both."""
        settings = self.settings
        assert self._deployment
        address = their_address(self.connection, self._deployment, settings.address)
        self.path = path_probe.probe_path(
            self.local,
            self.remote,
            address,
            settings.ports,
            settings.our_address,
            settings.interface,
        )

    def rendezvous(self) -> Rendezvous:
        """The listening side; raises `UnavailableError` if nothing passes."""
        assert self.path is not None
        return rendezvous_of(self.path, self.name, self.settings)

    @property
    def rtt_ns(self) -> int:
        """The smallest round-trip time so far; `None` before the first."""
        return (self.path.rtt_ns if self.path is not None else None) or 0

    def clock_offset(self) -> path_probe.ClockOffset:
        """The difference of the clocks now; raises `UnavailableError` if no datagram passes."""
        assert self.path is not None
        passes = self.path.they_may_listen or self.path.we_may_listen
        result = path_probe.compare_clocks(self.local, self.remote, self.path) if passes else None
        if result is None:
            raise UnavailableError(
                f"{_nothing_passes(self.path, self.name, AUTO, self.settings.ports)}; without a tunnel the"
                " clocks are compared before each run, so that both ends start together"
            )
        return result

    def check_bare(self) -> None:
        """Raises `UnavailableError` if flows can't run without a tunnel."""
        assert self.path is not None
        if ":" in self.path.their_address:
            raise UnavailableError(
                f"{self.name} has the address {self.path.their_address}, and without a tunnel flows need"
                " IPv4; name one of IPv4 with real_path.address, or write tunnel: on"
            )
        self.clock_offset()

    def describe(self, rendezvous: Rendezvous | None) -> str:
        """A sentence that describes how both are connected."""
        rtt = f"round trip {self.rtt_ns / 1e6:.3g} ms" if self.rtt_ns else "round trip unknown"
        if rendezvous is None:
            return f"without a tunnel to {self.name}, {rtt}"
        who = self.name if rendezvous.listener == REMOTE else "this machine"
        return (
            f"tunnel to {self.name}: {who} listens at {socket_address(rendezvous.address, rendezvous.port)},"
            f" packets of up to {rendezvous.mtu} bytes, {rtt}"
        )

    def document(self) -> dict[str, object]:
        """The facts about both, for campaign.json."""
        return {**to_data(self.facts), "way": to_data(self.path)}

    # -- settings ----------------------------------------------------------------------------------

    def prepare(self) -> None:
        """Raises settings of both machines that are too low, until the end; does so again if no process holds
        them any more.
        """
        self._is_prepared = True
        for name in (LOCAL, REMOTE):
            override = self._overrides.get(name)
            needed = sysctls.plan_changes(self.facts[name]) or self.facts[name].left_behind
            if (override is None and needed) or (override is not None and not override.is_held):
                self._prepare_one(name)

    def _prepare_one(self, name: str) -> None:
        location = self.location(name)
        if before := self._overrides.pop(name, None):
            # The holding process has ended; the next one finds its leftovers in the journal.
            before.close()
        override = self._overrides[name] = sysctls.SysctlOverride(location).__enter__()
        for change in override.recovered:
            self.say(
                f"{location.name}: {change.name} is {change.before} again, as before a run that was killed"
            )
        for change in override.changed:
            self.say(f"{location.name}: {change} for the time of the campaign")

    def _put_back(self, name: str, override: sysctls.SysctlOverride) -> None:
        """Releases settings, and reports those that could not be restored."""
        override.__exit__(None, None, None)
        for change in override.not_restored:
            self.say(
                f"{self.location(name).name}: {change.name} was not put back to {change.before}, or this"
                f" is unknown; narrows hosts check {self.name} shows what is left behind"
            )


def _qdiscs(location: Location) -> list[str] | None:
    """The queueing disciplines of a machine's interfaces, in the notation of `tc`; None if `tc` is
    missing.
    """
    script = "if command -v tc >/dev/null 2>&1; then tc qdisc show; else echo none; fi"
    if location.ssh is not None:
        said = location.ssh.run(script).stdout
    else:
        done = subprocess.run(["sh", "-c", script], capture_output=True, timeout=30, check=False)
        said = done.stdout
    lines = [line.strip() for line in said.decode(errors="replace").splitlines() if line.strip()]
    return None if lines == ["none"] else lines


def rendezvous_of(path: path_probe.PathFacts, name: str, settings: RealPath) -> Rendezvous:
    """Chooses the listening side, by reachability and preference."""
    able: dict[str, Sequence[int]] = {REMOTE: path.they_may_listen, LOCAL: path.we_may_listen}
    wanted = settings.listener
    asked = (REMOTE, LOCAL) if wanted == AUTO else (wanted,)
    listener = next((text for text in asked if able[text]), None)
    if listener is None:
        raise UnavailableError(_nothing_passes(path, name, wanted, settings.ports))
    sizes = (path.mtu_there, path.mtu_back)
    # None means: the small packets of the first questions arrived, these did not.
    number = min(size or 0 for size in sizes)
    if settings.mtu is None and number < _LEAST_MTU:
        raise UnavailableError(
            f"packets of {_LEAST_MTU} bytes do not pass between here and {name} (to it: {sizes[0] or 'none'},"
            f" back: {sizes[1] or 'none'}); the tunnel needs them, so look what is on the way with: narrows"
            f" hosts check {name}"
        )
    address = path.their_address if listener == REMOTE else settings.our_address or path.seen_address
    return Rendezvous(
        listener=listener,
        port=able[listener][0],
        address=address or path.our_address,
        mtu=settings.mtu or min(number, _USUAL_MTU),
    )


def _nothing_passes(path: path_probe.PathFacts, name: str, wanted: str, ports: list[int]) -> str:
    whys = [why for port in path.ports for why in (port.why_there, port.why_here) if why]
    taken = f" ({whys[0]})" if whys else ""
    listed = ", ".join(map(str, ports))
    called = {REMOTE: name, LOCAL: "this machine"}
    if wanted != AUTO and (path.they_may_listen or path.we_may_listen):
        why = f"datagrams do not reach {called[wanted]} at any of the UDP ports {listed}{taken}"
        if wanted in path.in_use:
            why = f"all of the UDP ports {listed} are in use at {called[wanted]}"
        return f"{why}, but the other way they pass; write listener: auto"
    if path.in_use:
        others = [end for end in (REMOTE, LOCAL) if end not in path.in_use]
        blocked = f", and no datagram reaches {called[others[0]]}" if others else ""
        return (
            f"all of the UDP ports {listed} are in use at {' and '.join(called[end] for end in path.in_use)}"
            f"{blocked}; is another campaign running? Wait for its end, or name other ports with"
            " real_path.ports"
        )
    return (
        f"no datagram passes between here and {name} at any of the UDP ports {listed}{taken}; open one in the"
        f" firewalls of both machines, or name others with real_path.ports; narrows hosts check {name} tells"
        " more"
    )
