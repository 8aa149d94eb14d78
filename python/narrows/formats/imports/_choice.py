"""The connections of a capture that count as flows of the run.

A capture usually contains more than the measurement: the control connection of iperf3, name lookups, a login.
Such connections carry little data, and would count in totals and shares as much as the others.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from narrows.errors import DataError
from narrows.formats.runs import Unread, note

if TYPE_CHECKING:
    from collections.abc import Sequence

    from narrows._native import Connection
    from narrows.formats.imports._capture import Capture

#: Maximum number of flows of a run: a capture of a scan has very many connections.
MOST_FLOWS = 4096
#: A connection is small if it has less than this share of the data of the largest one, and fewer bytes than
#: this.
SMALL_SHARE, SMALL_BYTES = 0.01, 100_000
#: A control connection spans a larger one between the same hosts, has less than this share of its data, and
#: fewer bytes than this.
CONTROL_SHARE, CONTROL_BYTES = 0.1, 64_000
#: Small connections that together carry more than this share of all data are the measurement.
MANY_SHARE = 0.05
_MOST_NAMED = 3
_TCP = 6


@dataclass(frozen=True)
class Choice:
    """The user's selection of connections: those with one of the ports, or by number; an empty one selects
    all.
    """

    ports: Sequence[int] = ()
    flows: Sequence[int] = ()


@dataclass
class Chosen:
    """The connections that count as flows, by their indices in the capture, and sentences about the
    others.
    """

    places: list[int]
    reasons: list[dict[str, str]] = field(default_factory=list)
    unread: list[Unread] = field(default_factory=list)


def choose_connections(capture: Capture, choice: Choice) -> Chosen:
    """Chooses among the connections of a capture; raises `DataError` if none matches the selection."""
    connections = capture.connections
    if choice.flows:
        for number in choice.flows:
            if not 1 <= number <= len(connections):
                raise DataError(
                    f"{capture.file}: the capture has no connection {number}; it has"
                    f" {_name_largest(connections)}"
                )
        return _rest(connections, sorted({number - 1 for number in choice.flows}), [], "")
    places = list(range(len(connections)))
    if choice.ports:
        wanted = set(choice.ports)
        places = [place for place in places if wanted & {port for _, port in connections[place].ends}]
        if not places:
            ports = " or ".join(str(port) for port in sorted(wanted))
            raise DataError(
                f"{capture.file}: no connection of the capture has port {ports}; it has"
                f" {_name_largest(connections)}"
            )
    small = _small(connections, places)
    return _rest(
        connections,
        [place for place in places if place not in small],
        [place for place in places if place in small],
        f"Connections with less than {SMALL_SHARE:.0%} of the data of the largest one and less than"
        f" {SMALL_BYTES // 1000} kB, and control connections that span a larger one, do not count as flows;"
        " --flow NUMBER selects any.",
    )


def name_of(connection: Connection) -> str:
    """A connection in terms of its ends, such as `10.0.0.1:40000 > 10.0.0.2:5201`."""
    ends = [f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in connection.ends]
    return " > ".join(ends)


def _rest(connections: Sequence[Connection], places: list[int], small: list[int], rule: str) -> Chosen:
    """The choice, and sentences about the omitted connections."""
    chosen = Chosen(places)
    if len(places) > MOST_FLOWS:
        largest = sorted(places, key=lambda place: sum(connections[place].payload), reverse=True)
        chosen.places = sorted(largest[:MOST_FLOWS])
        chosen.unread.append(
            Unread("connections beyond the largest 4096", len(places) - MOST_FLOWS, matters=True)
        )
    if small:
        texts = [_describe(connections, place) for place in small[:_MOST_NAMED]]
        more = len(small) - len(texts)
        names = ", ".join(texts) + (f" and {more} more" if more else "")
        chosen.reasons.append(note("small_connections", f"Not counted: {names}. {rule}"))
        chosen.unread.append(Unread("small connections, such as control connections", len(small)))
    others = len(connections) - len(places) - len(small)
    if others:
        chosen.unread.append(Unread("connections that were not selected", others))
    return chosen


def _describe(connections: Sequence[Connection], place: int) -> str:
    return f"{name_of(connections[place])} (connection {place + 1}, {sum(connections[place].payload)} bytes)"


def _name_largest(connections: Sequence[Connection]) -> str:
    """The largest connections, for a message."""
    order = sorted(range(len(connections)), key=lambda place: sum(connections[place].payload), reverse=True)
    texts = [_describe(connections, place) for place in order[:_MOST_NAMED]]
    more = len(order) - len(texts)
    return ", ".join(texts) + (f" and {more} more" if more else "")


def _small(connections: Sequence[Connection], places: list[int]) -> set[int]:
    """The indices of connections that do not count beside larger ones."""
    sizes = {place: sum(connections[place].payload) for place in places}
    most = max(sizes.values(), default=0)
    small = {place for place in places if sizes[place] < min(SMALL_SHARE * most, SMALL_BYTES)}
    if sum(sizes[place] for place in small) > MANY_SHARE * sum(sizes.values()):
        small = set()
    spans: dict[frozenset[str], list[int]] = {}
    for place in places:
        if place not in small:
            spans.setdefault(_hosts(connections[place]), []).append(place)
    for place in places:
        own = connections[place]
        if place in small or own.protocol != _TCP or sizes[place] >= CONTROL_BYTES:
            continue
        # Largest first: the first one usually decides.
        for other in sorted(spans.get(_hosts(own), []), key=lambda number: sizes[number], reverse=True)[:16]:
            other_one = connections[other]
            spanned = own.first_ns <= other_one.first_ns and own.last_ns >= other_one.last_ns
            if other != place and spanned and sizes[place] < CONTROL_SHARE * sizes[other]:
                small.add(place)
                break
    return small


def _hosts(connection: Connection) -> frozenset[str]:
    return frozenset(host for host, _ in connection.ends)
