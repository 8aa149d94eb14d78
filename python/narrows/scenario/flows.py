"""Flows of a scenario, and the background traffic beside them.

`flows: {count: 3, interval: 10 s}` starts flow k at (k-1) x interval and stops all flows together at
the end, as Pantheon does. A list describes each flow by itself, optionally with a scheme.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from msgspec import field as key

from narrows.documents.components import Component
from narrows.scenario.declarations.value import Context, Value
from narrows.scenario.dscp import read_dscp
from narrows.scenario.files import Files
from narrows.scenario.network import BACKWARD, FORWARD, GRAPH, RECEIVER, SENDER, Network
from narrows.scenario.params import read_entry
from narrows.scenario.prefixes import UDP
from narrows.scenario.problems import Problems, Wrong
from narrows.scenario.quantity import show
from narrows.scenario.registry import Entry, Param, Registry
from narrows.scenario.routes import Pair
from narrows.scenario.schemes import Scheme, read_scheme
from narrows.scenario.sections import Section
from narrows.scenario.words import read_label
from narrows.scenario.yaml_tree import Mapping, Mark, Node, Scalar, Sequence
from narrows.text import shorten

if TYPE_CHECKING:
    from narrows.documents import resolved

#: Flows are numbered in 16 bits in the record.
MOST_FLOWS = 10_000
#: The default traffic of a flow: as much as the scheme allows.
BULK = Component("bulk", {})

#: The separator between an amount and its tolerance.
_PLUS_MINUS = re.compile(r"\+-|±")
_SPAN = Param("", "span", (), None, 0, None, False, "", "")
_COUNT = Param("", "count", (), None, 1, MOST_FLOWS, False, "", "")
_CONNECTIONS = Param("", "count", (), None, 1, 1000, False, "", "")
_DIRECTION = Param("", "choice", (FORWARD, BACKWARD), FORWARD, None, None, False, "", "")


class FlowKeys(Section, frozen=True, kw_only=True):
    """The keys of an entry of flows."""

    scheme: Node | None = None
    origin: Node | None = key(name="from", default=None)
    target: Node | None = key(name="to", default=None)
    start: Node | None = None
    stop: Node | None = None
    direction: Node | None = None
    traffic: Node | None = None
    connections: Node | None = None
    dscp: Node | None = None
    count: Node | None = None
    interval: Node | None = None
    extra_rtt: Node | None = None
    label: Node | None = None


@dataclass
class Flow:
    """One flow; without an explicit scheme it runs the scheme under test."""

    scheme: Scheme | None
    start_ns: int
    stop_ns: int
    direction: str = FORWARD
    extra_rtt_ns: int = 0
    #: The host that sends the data and the host that receives them.
    hosts: Pair = (SENDER, RECEIVER)
    traffic: Component = BULK
    connections: int = 1
    dscp: int = 0
    background: bool = False
    #: Its label, and the label that it shares with the other flows of its entry.
    label: str | None = None
    group: str | None = None
    #: The maximum deviation of the start in either direction, drawn in each run.
    spread_ns: int = 0
    #: The members `start` and `stop` that the timeline sets, in place of the entry.
    changed: tuple[str, ...] = ()
    #: The position of traffic other than one bulk transfer, by the name of the key.
    special: dict[str, Mark] = field(default_factory=dict)

    def resolve(self, number: int, scheme: Scheme, network: Network) -> resolved.Flow:
        """The flow in the form of cells."""
        from narrows.documents import resolved

        graph = network.kind == GRAPH
        return resolved.Flow(
            number=number,
            scheme=scheme.name,
            params=scheme.params,
            object_file=scheme.object_file,
            program=scheme.program,
            transport=scheme.transport,
            origin=self.hosts[0] if graph else None,
            target=self.hosts[1] if graph else None,
            start_ns=self.start_ns,
            start_spread_ns=self.spread_ns,
            stop_ns=self.stop_ns,
            direction=FORWARD if graph else self.direction,
            extra_rtt_ns=self.extra_rtt_ns,
            traffic=None if self.traffic == BULK else self.traffic,
            connections=self.connections,
            dscp=self.dscp,
            background=self.background,
            label=self.label,
        )


@dataclass
class Flows:
    """All flows, those under test first, and the position of an extra RTT (for messages)."""

    items: list[Flow] = field(default_factory=list)
    extra_rtt_mark: Mark | None = None

    @property
    def pairs(self) -> list[Pair]:
        """The pairs of hosts between which flows run, without duplicates."""
        return list(dict.fromkeys(flow.hosts for flow in self.items))

    @property
    def background_hosts(self) -> list[str]:
        """The hosts that only background flows use."""
        tested = {host for flow in self.items if not flow.background for host in flow.hosts}
        others = (host for flow in self.items if flow.background for host in flow.hosts)
        return [host for host in dict.fromkeys(others) if host not in tested]


@dataclass
class FlowReader:
    """Reads the keys `flows` and `background`."""

    duration_ns: int | None
    network: Network
    registry: Registry
    problems: Problems
    #: The files that schemes name.
    files: Files = field(default_factory=Files)
    result: Flows = field(default_factory=Flows)
    #: The number of flows under test, when those in the background are read.
    tested: int = 0
    #: The labels of entries so far.
    groups: set[str] = field(default_factory=set)

    def flows(self, value: Node) -> None:
        """The key `flows`, in either form."""
        with self.problems.note():
            if isinstance(value, Mapping):
                self._entry(value, background=False, most=self.network.default_flows)
            elif not isinstance(value, Sequence):
                text = "must be keys such as {count: 3, interval: 10 s}, or a list of flows"
                raise Wrong(value.mark, text)
            elif not value.items:
                raise Wrong(value.mark, "needs at least one flow")
            else:
                self._list(value, background=False)

    def background(self, value: Node) -> None:
        """The key `background`: flows that are not under test."""
        self.tested = len(self.result.items)
        with self.problems.note():
            if not isinstance(value, Sequence):
                raise Wrong(value.mark, "must be a list of flows such as [{scheme: reno, count: 12}]")
            self._list(value, background=True)

    def _list(self, value: Sequence, *, background: bool) -> None:
        if len(value.items) > MOST_FLOWS:
            raise Wrong(value.mark, f"has more than {MOST_FLOWS} flows")
        for item in value.items:
            with self.problems.note():
                self._entry(item, background=background)

    def _entry(self, item: Node, *, background: bool, most: int = 1) -> None:
        problems, duration = self.problems, self.duration_ns
        keys = problems.section(item, FlowKeys, "scheme: cubic, start: 0 s")
        context = Context(problems)

        def value(written: Node | None, param: Param, default: Any) -> Any:
            if written is None:
                return default
            result = Value(written, param, context).read()
            return default if result is None else result

        count = value(keys.count, _COUNT, most)
        interval, spread = self._interval(keys.interval, context)
        traffic, entry = self._traffic(keys.traffic)
        scheme = self._scheme(keys, entry, background)
        connections = self._connections(value(keys.connections, _CONNECTIONS, 1), keys.connections, entry)
        dscp = 0
        if keys.dscp is not None:
            with problems.note():
                dscp = read_dscp(keys.dscp)
        label = None
        if keys.label is not None:
            with problems.note():
                label = self._label(keys.label)
        direction = value(keys.direction, _DIRECTION, FORWARD)
        extras = self._extra_rtts(keys.extra_rtt, count, context)
        first, stop = value(keys.start, _SPAN, 0), value(keys.stop, _SPAN, duration)
        odd = {"traffic": traffic != BULK, "connections": connections != 1, "dscp": dscp != 0}
        special = {key: keys.written.key_marks[key] for key, is_odd in odd.items() if is_odd}
        if len(self.result.items) + count > MOST_FLOWS:
            raise Wrong(keys.mark, f"makes more than {MOST_FLOWS} flows in all")
        if duration is None or stop is None:
            return
        if not self._times(keys.written, first, stop, count, interval, spread):
            return
        if not self.network.hosts:
            # The problem has already been reported.
            return
        common = Flow(
            scheme,
            first,
            stop,
            traffic=traffic,
            connections=connections,
            dscp=dscp,
            background=background,
            group=label,
            special=special,
        )
        for k in range(count):
            hosts = self._hosts(keys, direction, background, k)
            backward = hosts == (RECEIVER, SENDER) and self.network.kind == "dumbbell"
            flow = replace(
                common,
                start_ns=first + k * interval,
                direction=BACKWARD if backward else FORWARD,
                extra_rtt_ns=extras[k] if k < len(extras) else 0,
                hosts=hosts,
                label=f"{label} {k + 1}" if label and count > 1 else label,
                spread_ns=spread if k else 0,
            )
            self.result.items.append(flow)

    def _interval(self, written: Node | None, context: Context) -> tuple[int, int]:
        """The time between starts, and the tolerance of each: `10 s +- 500 ms`."""
        if written is None:
            return 0, 0
        parts = _PLUS_MINUS.split(written.text) if isinstance(written, Scalar) else []
        if len(parts) != 2:
            return Value(written, _SPAN, context).read() or 0, 0
        result = [Value(Scalar(written.mark, part.strip()), _SPAN, context).read() for part in parts]
        if None in result:
            return 0, 0
        interval, spread = (int(item or 0) for item in result)
        if 2 * spread > interval:
            text = (
                f"varies by more than half of itself; write at most {show('span', interval // 2)} behind +-"
            )
            context.problems.add(written.mark, text)
            return interval, 0
        return interval, spread

    def _traffic(self, written: Node | None) -> tuple[Component, Entry | None]:
        family = self.registry.traffic
        if written is None:
            return BULK, family.get(BULK.kind)
        if not family:
            text = "this version of the core has no traffic but bulk; remove it"
            self.problems.add(written.mark, text)
            return BULK, None
        context = Context(self.problems)
        entry = read_entry(written, family, "kind of traffic", context)
        if entry is None:
            return BULK, None
        return entry, family[entry.kind]

    def _scheme(self, keys: FlowKeys, traffic: Entry | None, background: bool) -> Scheme | None:
        datagrams = traffic is not None and traffic.datagram
        written = keys.scheme
        if written is None:
            if datagrams:
                return Scheme(UDP, {}, UDP)
            if background:
                text = "needs the key scheme: background traffic is the same whatever is tested"
                self.problems.add(keys.mark, f"{text}; write for example scheme: reno")
            return None
        scheme = read_scheme(written, self.registry, self.problems, datagrams=datagrams, files=self.files)
        if scheme is not None and datagrams and scheme.name != UDP:
            text = f"{traffic.name if traffic else ''} sends datagrams, which no scheme governs; leave it out"
            self.problems.add(written.mark, text)
        return scheme

    def _connections(self, number: int, written: Node | None, traffic: Entry | None) -> int:
        if number > 1 and written is not None and traffic is not None and not traffic.parallel:
            self.problems.add(written.mark, f"{traffic.name} makes its own connections; leave it out")
        return number

    def _label(self, written: Node) -> str:
        text = read_label(written, "must be a short name of at most 40 letters", 40)
        if text.isdecimal():
            raise Wrong(written.mark, "must be a word; flows have numbers anyway")
        if text in self.groups:
            raise Wrong(written.mark, f'the label "{shorten(text)}" is that of another flow')
        self.groups.add(text)
        return text

    def _extra_rtts(self, written: Node | None, count: int, context: Context) -> list[int]:
        if written is None:
            return [0] * count
        if isinstance(written, Sequence):
            if len(written.items) != count:
                context.problems.add(
                    written.mark,
                    f"lists {len(written.items)} values for {count} flows;"
                    " write one value for each flow, or one value for all",
                )
            extra_rtts = [Value(item, _SPAN, context).read() or 0 for index, item in enumerate(written.items)]
        else:
            extra_rtts = [Value(written, _SPAN, context).read() or 0] * count
        if any(extra_rtts):
            self.result.extra_rtt_mark = written.mark
        return extra_rtts

    def _times(self, mapping: Mapping, start: int, stop: int, count: int, interval: int, spread: int) -> bool:
        """True if all flows of an entry have time to run; notes problems."""
        assert self.duration_ns is not None
        end = self.duration_ns
        before = len(self.problems.entries)

        def add(key: str, text: str) -> None:
            mark = mapping.entries[key].mark if key in mapping.entries else mapping.mark
            self.problems.add(mark.at(mapping.mark.below(key)), text)

        if start >= end:
            add(
                "start",
                f"the flow starts at {start / 1e9:g} s, but the scenario ends at {end / 1e9:g} s (duration)",
            )
        elif start >= stop:
            add(
                "start",
                f"the flow starts at {start / 1e9:g} s, which is not before it stops at {stop / 1e9:g} s",
            )
        elif (last := start + (count - 1) * interval + (spread if count > 1 else 0)) >= min(stop, end):
            what = "the duration is" if stop >= end else "it stops at"
            add(
                "interval",
                f"flow {count} would start at {last / 1e9:g} s but {what}"
                f" {min(stop, end) / 1e9:g} s; use a shorter interval, fewer flows or a longer duration",
            )
        if stop > end:
            add(
                "stop",
                f"the flow stops at {stop / 1e9:g} s, after the end of the"
                f" scenario at {end / 1e9:g} s (duration)",
            )
        return len(self.problems.entries) == before

    def _hosts(self, keys: FlowKeys, direction: str, background: bool, k: int) -> Pair:
        """The hosts of the k-th flow of an entry: the named ones, else a pair of the topology."""
        origin, target = self._host(keys.origin), self._host(keys.target)
        if (origin or target) and keys.direction is not None:
            text = "from and to say it already; remove one of the two"
            self.problems.add(keys.key_mark(keys.direction), text)
        if origin is None or target is None:
            fitting = self._fitting(origin, target)
            if not fitting:
                text = (
                    "needs the keys from and to: the host that sends the data and the one that receives them"
                )
                raise Wrong(keys.mark, text)
            # Flows under test come first, whatever the background.
            mine = len(self.result.items) - (self.tested if background else 0)
            pair = fitting[(k if origin or target else mine) % len(fitting)]
            return pair if direction == FORWARD else (pair[1], pair[0])
        if origin == target and keys.target is not None:
            raise Wrong(keys.target.mark, "must be another host than from")
        return origin, target

    def _host(self, written: Node | None) -> str | None:
        """The name of a host of the network; None if none is written."""
        if written is None:
            return None
        name = written.text if isinstance(written, Scalar) else ""
        if name not in self.network.hosts:
            raise Wrong(written.mark, self.network.host_problem(name))
        return name

    def _fitting(self, origin: str | None, target: str | None) -> list[Pair]:
        """The pairs of the topology that match the named hosts."""
        if not (origin or target):
            return self.network.pairs
        pairs = [*self.network.pairs, *((to, first) for first, to in self.network.pairs)]
        return [(a, b) for a, b in pairs if (origin or a) == a and (target or b) == b]
