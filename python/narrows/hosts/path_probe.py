"""The path between this machine and another: the UDP ports that pass, the largest packets, the round-trip
time, and the clock offset.

We control both ends, so nothing has to be inferred: a datagram passes if the other end reports its arrival.
Questions go from an ephemeral port to the examined ports, like those of a tunnel whose other end listens
there.
"""

from __future__ import annotations

import ipaddress
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from narrows.addresses import socket_address, split_address
from narrows.agent.location import Location
from narrows.documents.agent import Exchange
from narrows.errors import UnavailableError
from narrows.hosts.prober import Prober
from narrows.scenario.real_path import LOCAL, REMOTE

#: Each question is sent this often, so that single losses do not look like a closed port.
_COPIES = 4
_GAP_US = 20_000
#: Time to wait for answers that may never arrive: a satellite link behind a full buffer.
_PATIENCE_S = 2.0
#: For clocks: the more exchanges, the shorter the shortest one.
_EXCHANGES = 32
#: Sizes per step of the search for the largest packet; from 9000 bytes four steps suffice.
_SIZES = 16
#: Every path of IPv4 should take this, every path of IPv6 must (RFC 791, RFC 8200).
_LEAST_MTU = {4: 576, 6: 1280}
#: No path of the Internet carries more.
_MOST_MTU = 9216
#: Smallest questions: 80 bytes of data.
_SMALL = {4: 108, 6: 128}
#: Two clocks drift apart by at most this much per second: quartz is better than 100 ppm.
_DRIFT_PPB = 200_000
#: How long all ports may be in use by others, and the pause between attempts: another campaign needs some
#: seconds to examine its path, and some more until its tunnel has chosen a port.
_BUSY_S = 20.0
_AGAIN_S = 3.0
_ANY = {4: "0.0.0.0", 6: "::"}


@dataclass
class Port:
    """One port number: what passes to it, in both directions; None if it was not examined."""

    port: int
    #: True if datagrams from here arrive there, and answers come back.
    there: bool | None = None
    there_answered: bool | None = None
    #: True if datagrams from there arrive here unsolicited, and answers get back.
    here: bool | None = None
    here_answered: bool | None = None
    #: Why it could not be opened there or here.
    why_there: str | None = None
    why_here: str | None = None


@dataclass
class PathFacts:
    """All findings about the path."""

    our_address: str
    their_address: str
    #: Our address from the other end's view; a different one means address translation.
    seen_address: str | None = None
    ports: list[Port] = field(default_factory=list)
    #: Largest IP packets that arrive.
    mtu_there: int | None = None
    mtu_back: int | None = None
    #: The shortest round trip, and the other clock minus ours, with an error of at most half of it.
    rtt_ns: int | None = None
    offset_ns: int | None = None
    #: Datagrams of third parties that reached our ports.
    strangers: int = 0

    @property
    def translated(self) -> bool | None:
        """True if a router translates our address."""
        if self.seen_address is None:
            return None
        return ipaddress.ip_address(self.seen_address) != ipaddress.ip_address(self.our_address)

    @property
    def in_use(self) -> list[str]:
        """The ends, of `there` and `here`, at which other programs use all ports."""
        whys = {
            REMOTE: [port.why_there or "" for port in self.ports],
            LOCAL: [port.why_here or "" for port in self.ports],
        }
        return [
            end for end, of_ports in whys.items() if of_ports and all("in use" in why for why in of_ports)
        ]

    @property
    def they_may_listen(self) -> list[int]:
        """Ports on which the other host can wait for us."""
        return [port.port for port in self.ports if port.there and port.there_answered]

    @property
    def we_may_listen(self) -> list[int]:
        """Ports on which we can wait for the other host."""
        return [port.port for port in self.ports if port.here and port.here_answered]


@dataclass(frozen=True)
class ClockOffset:
    """The difference of two clocks, measured by an exchange of datagrams."""

    #: The other host's clock minus ours, and the maximum error at that time.
    offset_ns: int
    bound_ns: int
    #: The time of the measurement, by `time.monotonic`.
    at: float = field(default_factory=time.monotonic)

    def error_ns(self) -> int:
        """The maximum error now."""
        return self.bound_ns + int((time.monotonic() - self.at) * _DRIFT_PPB)


@dataclass
class _End:
    """One end with its open ports."""

    prober: Prober
    #: The source port of questions.
    asks: int
    #: Index of each examined port that could be opened.
    listens: dict[int, int]
    refused: dict[int, str]


def probe_path(
    local: Location,
    remote: Location,
    their_address: str,
    ports: list[int],
    our_address: str | None = None,
    interfaces: Mapping[str, str] | None = None,
) -> PathFacts:
    """Examines the path to an address of another host, and back to us at `our_address` or at the source of
    our questions; through the named network `interfaces`, `here` and `there`.

    If nothing passes because all ports are in use, the attempt is repeated for a while.
    """
    limit = time.monotonic() + _BUSY_S
    while True:
        path = _probe(local, remote, their_address, ports, our_address, interfaces or {})
        passes = path.they_may_listen or path.we_may_listen
        if passes or not path.in_use or time.monotonic() > limit:
            return path
        time.sleep(_AGAIN_S)


def _probe(
    local: Location,
    remote: Location,
    their_address: str,
    ports: list[int],
    our_address: str | None,
    by: Mapping[str, str],
) -> PathFacts:
    token = secrets.token_hex(16)
    version = ipaddress.ip_address(their_address).version
    with (
        Prober(local, token, by.get(LOCAL)) as local_end,
        Prober(remote, token, by.get(REMOTE)) as remote_end,
    ):
        source = _source(local_end, their_address)
        path = PathFacts(source, their_address, ports=[Port(port) for port in ports])
        ours, theirs = _open_both(local_end, remote_end, version, ports)
        for item in path.ports:
            item.why_here, item.why_there = ours.refused.get(item.port), theirs.refused.get(item.port)
        asked = _ask(ours, theirs, their_address, version)
        for entry in path.ports:
            if entry.port in theirs.listens:
                entry.there, entry.there_answered = asked[entry.port]
        best = local_end.at(ours.asks).best
        path.seen_address = our_address or (split_address(best.seen)[0] if best else None)
        target = path.seen_address or source
        if ipaddress.ip_address(target).version == version:
            asked = _ask(theirs, ours, target, version)
            for element in path.ports:
                if element.port in ours.listens:
                    element.here, element.here_answered = asked[element.port]
        _measure(path, ours, theirs, target, version)
        path.strangers = local_end.strangers + remote_end.strangers
    return path


def compare_clocks(local: Location, remote: Location, path: PathFacts) -> ClockOffset | None:
    """Compares the clocks of both ends of a path again, over a port that passes; None if none passes now."""
    token = secrets.token_hex(16)
    version = ipaddress.ip_address(path.their_address).version
    ports = (path.they_may_listen or path.we_may_listen)[:1]
    limit = time.monotonic() + _BUSY_S
    while ports:
        with Prober(local, token) as local_end, Prober(remote, token) as remote_end:
            ours, theirs = _open_both(local_end, remote_end, version, ports)
            round_trip = _round_trip(path, ours, theirs, path.seen_address or path.our_address, version)
        if round_trip is not None:
            return ClockOffset(round_trip.offset_ns, round_trip.rtt_ns // 2)
        listener = theirs if path.they_may_listen else ours
        if not listener.refused or time.monotonic() > limit:
            return None
        time.sleep(_AGAIN_S)
    return None


def _open_both(local: Prober, remote: Prober, version: int, ports: list[int]) -> tuple[_End, _End]:
    return _open(local, LOCAL, version, ports), _open(remote, REMOTE, version, ports)


def _source(local: Prober, to: str) -> str:
    """Our address towards another."""
    try:
        return local.source(to)
    except UnavailableError as error:
        raise UnavailableError(f"{error}{_name_interface(local, LOCAL)}") from None


def _name_interface(prober: Prober, end: str) -> str:
    """Names the interface that all datagrams use, if there is one."""
    return f"; look at real_path.interface.{end}" if prober.interface else ""


def _open(prober: Prober, end: str, version: int, ports: list[int]) -> _End:
    opened = prober.open(_ANY[version], [0, *ports])
    own = opened[0]
    if own.index is None:
        by = f" on the interface {prober.interface}" if prober.interface else ""
        raise UnavailableError(
            f"{prober.location.name}: no UDP port can be opened{by} ({own.why}){_name_interface(prober, end)}"
        )
    listens = {item.asked: item.index for item in opened[1:] if item.index is not None}
    refused = {item.asked: item.why or "" for item in opened[1:] if item.index is None}
    return _End(prober, own.index, listens, refused)


def _ask(asker: _End, listener: _End, address: str, version: int) -> dict[int, tuple[bool, bool]]:
    """Asks at each port of the listener; returns whether questions arrived, and whether any answer
    came back.
    """
    listener.prober.forget()
    asker.prober.forget()
    for port in listener.listens:
        _send(asker, socket_address(address, port), version, _COPIES)

    def state(port: int) -> tuple[bool, bool]:
        arrived = listener.prober.at(listener.listens[port]).packets > 0
        return arrived, asker.prober.at(asker.asks).answers.get(port, 0) > 0

    def come() -> bool:
        listener.prober.update()
        asker.prober.update()
        return all(state(port) == (True, True) for port in listener.listens)

    _wait(come)
    return {port: state(port) for port in listener.listens}


def _send(end: _End, to: str, version: int, copies: int) -> None:
    end.prober.send(end.asks, to, [_SMALL[version]], copies=copies, gap_us=_GAP_US)


@dataclass(frozen=True)
class _RoundTrip:
    """The shortest round trip, and the sockets at both ends with the address at which each reaches
    the other.
    """

    rtt_ns: int
    #: The other clock minus ours.
    offset_ns: int
    our_end: tuple[_End, int]
    their_end: tuple[_End, int]
    #: None if nothing has arrived from there.
    to_them: str | None
    to_us: str | None


def _round_trip(path: PathFacts, ours: _End, theirs: _End, target: str, version: int) -> _RoundTrip | None:
    """The shortest round trip over a port that passes, preferably one of theirs."""
    if path.they_may_listen:
        port = path.they_may_listen[0]
        if port not in theirs.listens:
            return None
        to = socket_address(path.their_address, port)
        best, returns = _exchange(ours, theirs, port, to, version)
        ends = (ours, ours.asks), (theirs, theirs.listens[port])
        return _RoundTrip(best.rtt_ns, best.offset_ns, *ends, to, returns) if best else None
    if path.we_may_listen:
        port = path.we_may_listen[0]
        if port not in ours.listens:
            return None
        to = socket_address(target, port)
        best, returns = _exchange(theirs, ours, port, to, version)
        ends = (ours, ours.listens[port]), (theirs, theirs.asks)
        # They asked, so the difference is our clock minus theirs.
        return _RoundTrip(best.rtt_ns, -best.offset_ns, *ends, returns, to) if best else None
    return None


def _measure(path: PathFacts, ours: _End, theirs: _End, target: str, version: int) -> None:
    """Round-trip time, clocks and sizes."""
    round_trip = _round_trip(path, ours, theirs, target, version)
    if round_trip is None:
        return
    path.rtt_ns, path.offset_ns = round_trip.rtt_ns, round_trip.offset_ns
    if round_trip.to_them is not None:
        path.mtu_there = _largest(
            round_trip.our_end, round_trip.their_end, round_trip.to_them, version, round_trip.rtt_ns
        )
    if round_trip.to_us is not None:
        path.mtu_back = _largest(
            round_trip.their_end, round_trip.our_end, round_trip.to_us, version, round_trip.rtt_ns
        )


def _exchange(
    asker: _End, listener: _End, port: int, to: str, version: int
) -> tuple[Exchange | None, str | None]:
    """The shortest of many exchanges, and the source of the questions: a router may have opened the way back
    only for that address.
    """
    asker.prober.forget()
    listener.prober.forget()
    _send(asker, to, version, _EXCHANGES)

    def come() -> bool:
        asker.prober.update()
        return asker.prober.at(asker.asks).answers.get(port, 0) >= _EXCHANGES

    _wait(come)
    listener.prober.update()
    return asker.prober.at(asker.asks).best, listener.prober.at(listener.listens[port]).from_


def _largest(
    sender: tuple[_End, int], receiver: tuple[_End, int], to: str, version: int, rtt_ns: int
) -> int | None:
    """The largest IP packet that arrives (None: not even small ones), searched in steps of many sizes at
    once. Packets are never fragmented.
    """
    from_end, from_index = sender
    to_end, to_index = receiver
    above = _MOST_MTU + 1
    passes = None
    below = _LEAST_MTU[version] - 1
    while above - below > 1:
        sizes = _between(below, above)
        to_end.prober.forget()
        refused = from_end.prober.send(from_index, to, sizes, copies=2, gap_us=2000, answer=False)
        # Sizes that the local interface refuses require no waiting.
        above = min([above, *refused])
        largest_sent = max((size for size in sizes if size not in refused), default=0)

        def has_arrived(largest: int = largest_sent) -> bool:
            to_end.prober.update()
            return to_end.prober.at(to_index).largest >= largest

        # Packets that are too large never arrive; others arrive about as fast as small ones.
        _wait(has_arrived, 0.25 + 3 * rtt_ns / 1e9)
        number = to_end.prober.at(to_index).largest
        above = min([above, *(size for size in sizes if size > number)])
        if number > below:
            passes = below = number
    return passes


def _between(below: int, above: int) -> list[int]:
    """Sizes above `below` and under `above`, evenly spread and including the last one."""
    whole = list(range(below + 1, above))
    if len(whole) <= _SIZES:
        return whole
    return sorted({whole[number * (len(whole) - 1) // (_SIZES - 1)] for number in range(_SIZES)})


def _wait(holds: Callable[[], bool], seconds: float = _PATIENCE_S) -> None:
    """Waits until a condition holds, up to the time limit."""
    limit = time.monotonic() + seconds
    while not holds() and time.monotonic() < limit:
        time.sleep(0.02)
