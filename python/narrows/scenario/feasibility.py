"""Impossible combinations: packets that never arrive, acknowledgements that never return.

Each value may be valid by itself; combinations that cannot work are refused, and those that are probably
unintended are warnings. Quantities are in base units.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from narrows.documents.components import Component, Element, Values
from narrows.documents.resolved import Change, Params, SchemeRow
from narrows.documents.resolved import Flow as PlannedFlow
from narrows.errors import Problem
from narrows.scenario import chance
from narrows.scenario.elements import Link
from narrows.scenario.flows import BULK, Flow, Flows
from narrows.scenario.network import Network
from narrows.scenario.problems import Problems
from narrows.scenario.quantity import QuantityError, parse, show
from narrows.scenario.registry import Registry
from narrows.scenario.sections import ScenarioKeys
from narrows.scenario.yaml_tree import Mapping, Mark, Node, Scalar, Sequence

#: Default size of a full packet, and size of an acknowledgement, in bytes.
FULL_PACKET, ACK = 1500, 64
#: Parameters of queues that limit the waiting bytes.
_CAPACITIES = ("bytes", "memory")


@dataclass(frozen=True)
class Findings:
    """Combinations that cannot work, and those that are probably unintended."""

    problems: list[Problem]
    warnings: list[Problem]


@dataclass(frozen=True)
class _Use:
    """How a flow uses its path; flows with the same use are checked once."""

    hosts: tuple[str, str]
    packet: int
    start_ns: int
    stop_ns: int
    extra_rtt_ns: int
    #: True for datagrams, which work without acknowledgements.
    datagrams: bool
    #: True if all data packets are full, so that nothing passes if a full packet does not.
    full: bool


@dataclass
class Check:
    """Checks one resolved scenario; notes impossible combinations as problems, and odd ones as warnings."""

    tree: Mapping
    network: Network
    flows: Flows
    rows: list[SchemeRow]
    duration_ns: int
    #: Settings of the transport for all flows.
    transport: Params
    timeline: list[Change]
    registry: Registry
    #: True for one of several combinations, for some of which an amount in bdp may be too small.
    is_combination: bool

    def __post_init__(self) -> None:
        self._problems = Problems()
        self._warnings = Problems()
        self._written = {item.name: item.written for link in self.network.links for item in link.items}
        self._changed = {change.element for change in self.timeline}

    def run(self, where: str, runs: int) -> Findings:
        """All checks, for a plane and a number of runs."""
        for number, use in self._uses():
            self._check_times(number, use)
            there = self.network.route(*use.hosts) or []
            self._check_way(use, there, use.packet, f"no packet of flow {number} arrives")
            if not use.datagrams:
                back = self.network.route(use.hosts[1], use.hosts[0]) or []
                self._check_way(use, back, ACK, f"no acknowledgement of flow {number} comes back")
        self._check_bdp()
        written = ScenarioKeys.from_mapping(self.tree).runs
        if (
            written is not None
            and where == "simulate"
            and runs > 1
            and not chance.is_in(self.network, self.rows, self.flows)
        ):
            text = f"nothing here depends on chance, so that all {runs} runs of a scheme are equal"
            self._warnings.add(written.mark, f"{text}; write runs: 1, or add chance, such as {{loss: 0.1 %}}")
        return Findings(
            *(list(dict.fromkeys(problems.entries)) for problems in (self._problems, self._warnings))
        )

    def _uses(self) -> Iterator[tuple[int, _Use]]:
        """The distinct uses, each with the number of its first flow."""
        seen: set[_Use] = set()
        for row in self.rows:
            for number, (flow, cell) in enumerate(zip(self.flows.items, row.flows, strict=False), 1):
                use = self._use(flow, cell)
                if use not in seen:
                    seen.add(use)
                    yield number, use

    def _use(self, flow: Flow, planned: PlannedFlow) -> _Use:
        kind = flow.traffic.kind
        traffic = self.registry.traffic.get(kind)
        datagrams = traffic is not None and traffic.datagram
        scheme = self.registry.schemes.get(planned.scheme)
        ours = scheme is not None and not scheme.media
        settings = Values({**self.transport, **planned.transport})
        if datagrams:
            packet = flow.traffic.integer("packet") or FULL_PACKET
        elif ours:
            packet = settings.integer("packet_size") or FULL_PACKET
        else:
            hosts = (Values(self.network.settings.get(host, {})) for host in flow.hosts)
            packet = min(host.integer("mtu") or FULL_PACKET for host in hosts)
        full = datagrams or (kind == BULK.kind and not planned.program and (scheme is None or ours))
        times = flow.start_ns, min(flow.stop_ns, self.duration_ns)
        return _Use(flow.hosts, packet, *times, flow.extra_rtt_ns, datagrams, full)

    # -- time ------------------------------------------------------------------------------------

    def _check_times(self, number: int, use: _Use) -> None:
        mark = self.tree.entries["duration"].mark
        delay = sum(map(_least_delay, self.network.route(*use.hosts) or []))
        rtt = delay + sum(map(_least_delay, self.network.route(use.hosts[1], use.hosts[0]) or []))
        rtt += use.extra_rtt_ns
        since = f", which starts at {show('span', use.start_ns)}," if use.start_ns else ""
        if delay >= self.duration_ns - use.start_ns:
            text = (
                f"the scenario is over before a packet of flow {number}{since} arrives: the delays on its way"
            )
            text = f"{text} are {show('span', delay)}; write a longer duration or shorter delays"
            self._problems.add(mark, text)
        elif rtt >= use.stop_ns - use.start_ns and not use.datagrams:
            what = "the scenario is over" if use.stop_ns == self.duration_ns else "it stops"
            text = f"{what} before an acknowledgement of flow {number}{since} comes back: its round-trip time"
            text = f"{text} is {show('span', rtt)}; write a longer duration or shorter delays"
            if use.stop_ns - use.start_ns == self.duration_ns:
                self._problems.add(mark, text)
            else:
                self._warnings.add(mark, text)

    # -- elements --------------------------------------------------------------------------------

    def _check_way(self, use: _Use, way: list[Link], size: int, outcome: str) -> None:
        """Notes elements that no packet of a size passes, with the consequence for the flow."""
        for link in way:
            for element in link.elements:
                name = element.name
                if name in self._changed or name not in self._written:
                    continue
                pair = self._obstacle(element, size)
                if pair is None:
                    continue
                key, why, remedy = pair
                mark = _mark_of(self._written[name], key)
                text = f"{why}, so that {outcome}; {remedy}" if "so that" not in why else f"{why}; {remedy}"
                # Loss that depends on the size may let smaller packets pass.
                small = key in ("queue", "policer", "mtu") and not use.full
                relative = self.is_combination and _bdp_in(self._written[name]) is not None
                # Kernels may search for a size that passes.
                odd = small or relative or key == "mtu"
                (self._warnings if odd else self._problems).add(mark, text)

    def _obstacle(self, element: Element, size: int) -> tuple[str, str, str] | None:
        """The key that blocks all packets of a size, the reason, and the remedy."""
        if element.rate and element.queue:
            return self._obstacle_of_bottleneck(element.rate, element.queue, size)
        kind, number, packet = element.kind, element.number, show("bytes", size)
        if kind == "outage" and number("start") == 0 and (number("length") or 0) >= self.duration_ns:
            return kind, "the outage lasts as long as the scenario", "write a shorter one, or a later start"
        burst, most = number("burst"), number("bytes")
        if kind == "policer" and element.text("action") == "drop" and burst is not None and burst < size:
            why = f"packets of {packet} never fit into the bucket of {show('bytes', burst)}"
            return kind, why, f"write a burst of {packet} or more"
        if kind == "mtu" and most is not None and most < size:
            why = f"packets of {packet} are larger than {show('bytes', most)} and are dropped"
            return kind, why, "write a larger one, or let the hosts know it with their setting mtu"
        if (drops := _drops_all(element)) is not None:
            return kind, drops, "write less, or let a timeline change it"
        return None

    def _obstacle_of_bottleneck(
        self, rate: Component, queue: Component, size: int
    ) -> tuple[str, str, str] | None:
        packet, rate_bps = show("bytes", size), rate.integer("rate")
        if rate_bps and size * 8 * 10**9 >= rate_bps * self.duration_ns:
            why = f"at {show('rate', rate_bps)} a packet of {packet} takes longer than the whole scenario"
            return "rate", why, "write a higher rate or a longer duration"
        for name in _CAPACITIES:
            capacity = queue.integer(name)
            if capacity is not None and capacity < size:
                why = f"the queue has room for {show('bytes', capacity)} and packets have {packet}"
                return "queue", why, f"write {packet} or more, or a number of packets"
        return None

    # -- words -----------------------------------------------------------------------------------

    def _check_bdp(self) -> None:
        """Names the round-trip time behind `1 bdp` where flows have extra RTTs."""
        if self.flows.extra_rtt_mark is None:
            return
        for link in self.network.links:
            mark = next((mark for item in link.items if (mark := _bdp_in(item.written))), None)
            if mark is None:
                continue
            rtt = show("span", self.network.rtt_ns(self.network.pairs[0]))
            text = (
                f"an amount in bdp is by the path's round-trip time of {rtt}, without the extra_rtt of flows"
            )
            self._warnings.add(mark, f"{text}; write an amount in kB if another one is meant")
            return


def _least_delay(link: Link) -> int:
    """The smallest delay of a link's elements."""
    return sum(
        min((delay for _, delay in element.steps("steps")), default=0)
        if element.kind == "delaysteps"
        else element.fixed_delay_ns
        for element in link.elements
    )


def _drops_all(element: Element) -> str | None:
    """Why an element lets no packet of any size pass; None if it does."""

    def number(name: str) -> float:
        return element.number(name) or 0

    match element.kind:
        case "loss" if number("ratio") >= 1:
            return "every packet is lost"
        case "corrupt" if number("ratio") >= 1:
            return "every packet is damaged, and receivers discard those"
        case "gilbert" if number("bad") >= 1 and number("good") >= 1:
            return "every packet is lost, in good times and in bad ones"
        case "gilbert" if number("bad") >= 1 and number("p") >= 1 and number("r") <= 0:
            return "the bad time begins at once and never ends, so that all packets after the first are lost"
        case "periodicloss" if number("every") == 1 and not number("offset"):
            return "every packet is lost"
        case "gate" if element.flag("open") is False:
            return "the gate is closed"
    return None


def _mark_of(written: Node, key: str) -> Mark:
    """The position of a key of an element."""
    value = written.entries.get(key) if isinstance(written, Mapping) else None
    return value.mark if value is not None else written.mark


def _bdp_in(node: Node) -> Mark | None:
    """The position of the first amount in bdp below a value."""
    if isinstance(node, Scalar):
        try:
            return node.mark if parse(node.text).kind == "bdp" else None
        except QuantityError:
            return None
    inner = node.items if isinstance(node, Sequence) else node.entries.values()
    return next((mark for value in inner if (mark := _bdp_in(value))), None)
