"""The findings of `narrows hosts check` about another host, as a table for people and a document for
programs."""

from __future__ import annotations

import ipaddress
import socket
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path

from narrows.agent.location import ROOT, SUDO, Location, with_best_rights
from narrows.documents.agent import HostFacts
from narrows.documents.data import to_data
from narrows.errors import NarrowsError, UnavailableError, UsageError
from narrows.hosts import agent_binary, clocks, deploy, path_probe, sysctls
from narrows.hosts.deploy import Deployment
from narrows.hosts.ssh import Ssh
from narrows.scenario.real_path import PORTS

FORMAT = "narrows/hosts-check/1"
#: Outcomes of a row: works; works with a drawback; a run between the hosts would not work.
OK, NOTE, NO = "ok", "note", "no"
#: A tunnel adds its header to packets of 1500 bytes, but video and TCP work with less: RFC 8200's minimum.
_SMALL_MTU = 1280
#: A clock with a larger estimated error causes a remark about one-way delays.
_GOOD_CLOCK_NS = 10_000_000
_GOOD_SOURCES = ("tsc", "kvm-clock", "arch_sys_counter", "hyperv_clocksource_tsc_page")
_RIGHTS = {ROOT: "root", SUDO: "root by sudo without a password"}


@dataclass(frozen=True)
class Row:
    """One check: here, there, or between both."""

    name: str
    state: str
    here: str = ""
    there: str = ""
    #: Remedy.
    remedy: str | None = None


@dataclass(frozen=True)
class CheckOptions:
    """The options of the command."""

    ports: tuple[int, ...] = PORTS
    #: The other host's address for datagrams, and ours from its point of view.
    address: str | None = None
    our_address: str | None = None
    agent: Path | None = None
    folder: str | None = None
    prepare: bool = False


@dataclass
class Report:
    """All findings about one host."""

    host: str
    rows: list[Row] = field(default_factory=list)
    #: Findings after the login: `here`, `there`, `by_ntp`, `way`.
    facts: dict[str, object] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """True if runs between the two hosts would work."""
        return all(row.state != NO for row in self.rows)

    def document(self) -> dict[str, object]:
        """For programs."""
        return {
            "format": FORMAT,
            "host": self.host,
            "ok": self.ok,
            "rows": [asdict(row) for row in self.rows],
            **to_data(self.facts),
        }


def check(host: str, options: CheckOptions, ssh: list[str], say: Callable[[str], None]) -> Report:
    """Examines a host. `say` receives the current step.

    An obstacle to all further checks (no login, another architecture) is also a row, so that a table of
    several hosts is complete.
    """
    report = Report(host)
    if options.agent is not None:
        agent_binary.examine(options.agent)
    if options.our_address is not None:
        try:
            ipaddress.ip_address(options.our_address)
        except ValueError:
            raise UsageError(
                f"--our-address: {options.our_address!r} is not an address; write it in figures, such as"
                " 192.0.2.7"
            ) from None
    local = with_best_rights()
    try:
        began = time.monotonic()
        with Ssh(host, ssh) as connection:
            login = time.monotonic() - began
            say(f"{host}: connected, looking for the agent")
            deployment = deploy.deploy(connection, options.agent, options.folder)
            report.rows.append(Row("login", OK, "", f"ssh took {login:.1f} s"))
            report.rows.append(_agent_row(local, deployment))
            say(f"{host}: what both machines can do")
            ours, theirs = (location.ask(HostFacts, "host") for location in (local, deployment.location))
            report.facts = {"here": ours, "there": theirs, "by_ntp": clocks.by_ntp(ours.clock, theirs.clock)}
            report.rows += _machines(local, deployment.location, ours, theirs)
            if options.prepare:
                report.rows += _try_settings(local, deployment.location, ours, theirs, say)
            say(f"{host}: which datagrams pass")
            report.rows += _way(report, connection, local, deployment, options)
    except NarrowsError as error:
        report.rows.append(Row("failed", NO, "", str(error)))
    return report


# -- the machines ----------------------------------------------------------------------------------


def _agent_row(local: Location, deployment: Deployment) -> Row:
    program = deployment.program
    how = "copied" if deployment.copied else "was there already"
    kind = "static" if program.static else "needs the host's C library"
    return Row(
        "agent",
        OK,
        local.prefix[-1],
        f"{how}, {program.size / 1e6:.1f} MB, {kind}, SHA-256 {program.sha256[:12]}",
    )


def _machines(local: Location, remote: Location, ours: HostFacts, theirs: HostFacts) -> list[Row]:
    pair = (ours, theirs)

    def row(
        name: str,
        text: Callable[[HostFacts], str],
        state: Callable[[HostFacts], str] = lambda _: OK,
        remedy: str | None = None,
    ) -> Row:
        states = [state(host) for host in pair]
        worst = NO if NO in states else NOTE if NOTE in states else OK
        where = [name for name, each in zip(("here", remote.name), states, strict=True) if each != OK]
        advice = f"{' and '.join(where)}: {remedy}" if where and remedy else None
        return Row(name, worst, text(ours), text(theirs), advice)

    def namespaces(host: HostFacts) -> str:
        return f"as {host.namespaces.how}" if host.namespaces.ok else str(host.namespaces.why)

    def devices(host: HostFacts) -> str:
        devices = (("TUN", host.tunnel_device), ("packet sockets on veth", host.packet_socket))
        return ", ".join(name for name, device in devices if device.ok) or str(host.tunnel_device.why)

    def has_device(host: HostFacts) -> str:
        return OK if host.tunnel_device.ok or host.packet_socket.ok else NO

    def clock(host: HostFacts) -> str:
        clock = host.clock
        bound = f", at most {_duration(clock.bound_ns)} wrong by its own account" if clock.bound_ns else ""
        shift = f", SHIFTED by {_duration(clock.shift_ns)} for a test" if clock.shift_ns else ""
        return f"{clock.source}, {clock.keeper_in_words}{bound}{shift}"

    def good_clock(host: HostFacts) -> str:
        kept = host.clock.synchronized and (host.clock.bound_ns or 0) <= _GOOD_CLOCK_NS
        return OK if kept and host.clock.source in _GOOD_SOURCES else NOTE

    def processors(host: HostFacts) -> str:
        load = host.load[0] if host.load else 0
        guest = ", virtual" if host.virtual else ""
        return f"{host.cpus} x {host.cpu_model}{guest}, load {load:.2f}"

    def free_processor(host: HostFacts) -> str:
        load = host.load[0] if host.load else 0
        return OK if host.cpus >= 2 and load <= host.cpus / 2 else NOTE

    def buffers(host: HostFacts) -> str:
        kinds = (("receive", "net.core.rmem_max"), ("send", "net.core.wmem_max"))
        return ", ".join(f"{kind} {_size(host.sysctls.get(name))}" for kind, name in kinds)

    def large_buffers(host: HostFacts) -> str:
        # Root of the machine exceeds the limits by socket option.
        return NOTE if sysctls.plan_changes(host) and not host.root else OK

    def leftovers(host: HostFacts) -> str:
        changes = (f"{item.name} is {item.now}, was {item.before}" for item in host.left_behind)
        return ", ".join(changes) or "none"

    rows = [
        Row("rights", OK, _RIGHTS.get(local.rights, "no root"), _RIGHTS.get(remote.rights, "no root")),
        row(
            "system",
            lambda host: f"{host.system or 'Linux'}, kernel {host.kernel}, {host.machine}",
        ),
        row(
            "processors",
            processors,
            free_processor,
            "at least two processors, and not more than half of them busy, keep the measurement's own delay"
            " small",
        ),
        row(
            "memory",
            lambda host: f"{_size(host.available_bytes)} of {_size(host.memory_bytes)} free",
        ),
        row(
            "network namespaces",
            namespaces,
            lambda host: OK if host.namespaces.ok else NO,
            "log in as root, allow sudo without a password, or allow unprivileged user namespaces",
        ),
        row("devices", devices, has_device, "make /dev/net/tun accessible, or log in as root"),
        row(
            "kernel's schemes",
            lambda host: ", ".join(host.congestion_controls) or "none",
            lambda host: OK if host.congestion_controls else NOTE,
            "load the modules of those that you want to compare, such as: modprobe tcp_bbr",
        ),
        Row(
            "programs for the kernel",
            OK,
            *("can be loaded" if host.bpf.ok else str(host.bpf.why) for host in pair),
        ),
        row(
            "clock",
            clock,
            good_clock,
            "let chrony or another NTP client keep it; delays in one direction are uncertain otherwise",
        ),
        row(
            "socket buffers",
            buffers,
            large_buffers,
            f"raise net.core.rmem_max and net.core.wmem_max to {sysctls.LEAST['net.core.rmem_max']} as root",
        ),
    ]
    if ours.left_behind or theirs.left_behind:
        rows.append(
            row(
                "left behind",
                leftovers,
                lambda host: NOTE if host.left_behind else OK,
                "a run was killed; --prepare puts these settings back when it ends",
            )
        )
    return rows


def _try_settings(
    local: Location,
    remote: Location,
    ours: HostFacts,
    theirs: HostFacts,
    say: Callable[[str], None],
) -> list[Row]:
    """Tries the changes of settings that runs would make, and their restoration."""
    columns = []
    state = OK
    remedies = []
    for location, host in ((local, ours), (remote, theirs)):
        plan = sysctls.plan_changes(host)
        if not plan and not host.left_behind:
            columns.append("nothing to change")
            continue
        for change in plan:
            say(f"{location.name}: changes {change}, and back afterwards")
        try:
            with sysctls.SysctlOverride(location) as held:
                pass
        except UnavailableError as error:
            columns.append(str(error))
            state = NO
            remedies.append(f"{location.name}: set them as root, once and for all: sysctl -w NAME=VALUE")
            continue
        words = [f"{change}, and back" for change in held.changed if change in held.restored]
        words += [f"an earlier run's {change.name} back to {change.before}" for change in held.recovered]
        if held.not_restored:
            state = NO
            words += [f"{change.name} was NOT put back to {change.before}" for change in held.not_restored]
            remedies.append(f"{location.name}: put them back as root: sysctl -w NAME=VALUE")
        columns.append("; ".join(words))
    return [Row("preparation", state, columns[0], columns[1], "; ".join(remedies) or None)]


# -- the way between them --------------------------------------------------------------------------


def their_address(connection: Ssh, deployment: Deployment, wished: str | None) -> str:
    """The other host's address for datagrams: the named one, the one that ssh connects to, or the host's own
    if ssh goes through another host.
    """
    configuration = connection.configuration()
    jumps = any(configuration.get(key, "none") != "none" for key in ("proxyjump", "proxycommand"))
    own = deployment.connection[2] if len(deployment.connection) == 4 else None
    name = wished or (own if jumps and own else configuration.get("hostname", connection.host))
    try:
        pairs = socket.getaddrinfo(name, None, type=socket.SOCK_DGRAM)
    except (OSError, UnicodeError) as error:
        raise UnavailableError(
            f"{name} has no address here ({getattr(error, 'strerror', None) or error}); name the address of"
            f" {connection.host} with --address"
        ) from None
    addresses = [str(entry[4][0]).partition("%")[0] for entry in pairs]
    # The address that ssh reached, if a name has several.
    return own if own in addresses and own is not None else addresses[0]


def _way(
    report: Report, connection: Ssh, local: Location, deployment: Deployment, options: CheckOptions
) -> list[Row]:
    address = their_address(connection, deployment, options.address)
    path = path_probe.probe_path(
        local, deployment.location, address, list(options.ports), options.our_address
    )
    report.facts["way"] = asdict(path) | {
        "translated": path.translated,
        "they_may_listen": path.they_may_listen,
        "we_may_listen": path.we_may_listen,
    }
    rows = [_addresses(path), *(_port(port) for port in path.ports), _verdict(report.host, path)]
    if path.rtt_ns is not None and path.offset_ns is not None:
        # Half of the round trip, because its split between the directions is unknown.
        bound = path.rtt_ns // 2
        rows.append(Row("round trip", OK, "", f"{_duration(path.rtt_ns)} at least"))
        ahead = "ahead of" if path.offset_ns >= 0 else "behind"
        certain = abs(path.offset_ns) > bound
        text = f"{_duration(abs(path.offset_ns))} {ahead} ours, give or take {_duration(bound)}"
        rows.append(Row("its clock", NOTE if certain else OK, "", text, _CLOCK if certain else None))
        rows += [_size_row("to it", path.mtu_there), _size_row("back", path.mtu_back)]
    return rows


_CLOCK = "nothing need be done: runs estimate this difference and remove it; NTP at both ends makes it small"


def _addresses(path: path_probe.PathFacts) -> Row:
    ours = path.our_address
    if path.translated:
        ours += f", which arrives as {path.seen_address}"
    return Row("addresses", OK, ours, path.their_address)


def _port(port: path_probe.Port) -> Row:
    def text(passes: bool | None, answered: bool | None, why: str | None) -> str:
        if why:
            return f"not tried: {why}"
        if passes is None:
            return "not tried"
        return "arrives" + ("" if answered else ", but no answer comes back") if passes else "does not arrive"

    there, back = port.there and port.there_answered, port.here and port.here_answered
    return Row(
        f"UDP port {port.port}",
        OK if there and back else NOTE,
        f"from it: {text(port.here, port.here_answered, port.why_here)}",
        f"to it: {text(port.there, port.there_answered, port.why_there)}",
    )


def _verdict(host: str, path: path_probe.PathFacts) -> Row:
    they, we = path.they_may_listen, path.we_may_listen
    if they and we:
        text, state, remedy = "either side may wait for the other", OK, None
    elif they:
        text, state, remedy = f"{host} must be the one that waits for us", OK, None
    elif we:
        text, state, remedy = f"we must be the ones that wait for {host}", OK, None
    else:
        text, state = "nothing passes", NO
        remedy = (
            "open one of these UDP ports in a firewall on the way (the machine's own and the provider's), or"
            " name another with --ports; behind address translation, forward it"
        )
    return Row("who listens", state, "", text, remedy)


def _size_row(direction: str, size: int | None) -> Row:
    if size is None:
        return Row(
            f"packets {direction}",
            NO,
            "",
            "not even small ones arrive",
            "look what drops datagrams on the way",
        )
    small = size < _SMALL_MTU
    remedy = "packets must be made smaller than usual (mtu of a tunnel)" if small else None
    return Row(f"packets {direction}", NOTE if small else OK, "", f"up to {size} bytes", remedy)


# -- words -----------------------------------------------------------------------------------------


def _duration(ns: int) -> str:
    for unit, scale in (("s", 10**9), ("ms", 10**6), ("µs", 10**3)):
        if abs(ns) >= scale:
            return f"{ns / scale:.3g} {unit}" if abs(ns) < 1000 * scale else f"{ns / scale:.0f} {unit}"
    return f"{ns} ns"


def _size(value: str | int | None) -> str:
    text = str(value if value is not None else "")
    if not text.isdecimal():
        return "unknown"
    number = float(text)
    for unit in ("B", "KiB", "MiB"):
        if number < 1024:
            return f"{number:.3g} {unit}"
        number /= 1024
    return f"{number:.3g} GiB"
