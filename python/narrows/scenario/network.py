"""A network as the scenario describes it: hosts, routers, directed links, routes, settings of hosts."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from narrows.scenario.elements import Link
from narrows.scenario.problems import Problems, any_of, did_you_mean, shorten
from narrows.scenario.quantity import NO_BDP, show
from narrows.scenario.written import Mark

#: The hosts and links of a plain `path`.
SENDER, RECEIVER = "sender", "receiver"
FORWARD, BACKWARD = "forward", "backward"

Pair = tuple[str, str]


@dataclass
class Network:
    """Who is connected to whom. A `dumbbell` is one path with two hosts, anything else a `graph`."""

    kind: str
    #: Hosts by name, with the place at which they are written.
    hosts: dict[str, Mark] = field(default_factory=dict)
    routers: list[str] = field(default_factory=list)
    links: list[Link] = field(default_factory=list)
    #: The hosts of flows that name none: flow k takes pair k, and they are taken again in turn.
    pairs: list[Pair] = field(default_factory=list)
    #: Routes that the scenario gives.
    given: dict[Pair, list[Link]] = field(default_factory=dict)
    #: What is set of hosts.
    settings: dict[str, dict[str, Any]] = field(default_factory=dict)
    #: Names under which directed links are cut and restored.
    cuts: dict[str, list[Link]] = field(default_factory=dict)
    #: What a flow without hosts of its own is, for the default number of flows.
    default_flows: int = 1

    # -- building --------------------------------------------------------------------------------

    def add(self, origin: str, target: str, names: Pair) -> tuple[Link, Link]:
        """A link between two nodes: both directions, as yet without elements."""
        both = (Link(names[0], origin, target), Link(names[1], target, origin))
        for link in both:
            self.links.append(link)
            self.cuts[link.name] = [link]
        return both

    def link(self, name: str) -> Link | None:
        """The directed link of that name."""
        return next((link for link in self.links if link.name == name), None)

    def between(self, one: str, other: str) -> list[Link]:
        """Both directions of all links between two nodes."""
        return [link for link in self.links if {link.origin, link.target} == {one, other}]

    # -- routes ----------------------------------------------------------------------------------

    def route(self, origin: str, target: str) -> list[Link] | None:
        """The links from host to host: the route that is given, or else the one with the least fixed
        delay; among equals that with the fewest links; among equals the first by the names of its nodes.
        Packets do not pass through other hosts."""
        if (origin, target) in self.given:
            return self.given[origin, target]
        queue: list[tuple[int, int, tuple[str, ...], tuple[str, ...]]] = [(0, 0, (origin,), ())]
        done: set[str] = set()
        while queue:
            delay, count, nodes, names = heapq.heappop(queue)
            here = nodes[-1]
            if here == target:
                return [link for name in names for link in self.cuts[name]]
            if here in done or (here != origin and here in self.hosts):
                continue
            done.add(here)
            for link in self.links:
                if link.origin == here and link.target not in done:
                    step = (delay + link.delay_ns, count + 1, (*nodes, link.target), (*names, link.name))
                    heapq.heappush(queue, step)
        return None

    def rtt_ns(self, pair: Pair) -> int:
        """The round-trip time between two hosts while nothing waits."""
        ways = (self.route(*pair) or [], self.route(pair[1], pair[0]) or [])
        return sum(link.delay_ns for way in ways for link in way)

    def bdp(self, link: Link, pairs: list[Pair]) -> tuple[Fraction | None, str]:
        """What `1 bdp` is on a link, in bytes: the slowest constant rate of the link times the round-trip
        time of the flows that pass it (by their data, else by their acknowledgements); or why it is not
        known. On a link that nobody uses it hardly matters: there the longest round trip counts."""
        over = [pair for pair in pairs if link in (self.route(*pair) or [])]
        over = over or [pair for pair in pairs if link in (self.route(pair[1], pair[0]) or [])]
        times = sorted({self.rtt_ns(pair) for pair in over})
        if not over:
            times = sorted({self.rtt_ns(pair) for pair in pairs})[-1:] or [0]
        if len(times) > 1:
            shown = " and ".join(show("span", time) for time in (times[0], times[-1]))
            return (
                None,
                f"is not one amount here, because flows with round-trip times of {shown} pass this link",
            )
        if not link.rates or not times[0]:
            return None, NO_BDP
        return Fraction(min(link.rates) * times[0], 8 * 10**9), ""

    # -- results ---------------------------------------------------------------------------------

    def to_json(self, pairs: list[Pair]) -> dict[str, Any]:
        """The network as cells have it, with the routes that these pairs of hosts need."""
        hosts = [
            {"name": name, **({"settings": self.settings[name]} if self.settings.get(name) else {})}
            for name in self.hosts
        ]
        if self.kind == "dumbbell":
            lists = {link.name: link.elements for link in self.links}
            named = {"hosts": hosts} if any(self.settings.values()) else {}
            return {"kind": "dumbbell", **lists, **named}
        ways = dict.fromkeys(way for pair in pairs for way in (pair, (pair[1], pair[0])))
        return {
            "kind": "graph",
            "hosts": hosts,
            "routers": self.routers,
            "links": [
                {"name": link.name, "from": link.origin, "to": link.target, "elements": link.elements}
                for link in self.links
            ],
            "routes": [
                {"from": way[0], "to": way[1], "links": [link.name for link in self.route(*way) or []]}
                for way in ways
            ],
        }

    def check_connected(self, problems: Problems) -> None:
        """Every host must be able to reach every other one."""
        first = next(iter(self.hosts), "")
        for name, mark in self.hosts.items():
            if name != first and (self.route(first, name) is None or self.route(name, first) is None):
                problems.add(
                    mark,
                    f"network.hosts.{name}",
                    f"the host can't be reached from {first}; add a link that joins it to the other nodes"
                    " (packets do not pass through hosts)",
                )

    def node_problem(self, name: str) -> str:
        """What to say about a node that does not exist."""
        known = [*self.hosts, *self.routers]
        return _unknown("node", name, known)

    def host_problem(self, name: str) -> str:
        """What to say about a host that does not exist."""
        return _unknown("host", name, list(self.hosts))


def _unknown(what: str, name: str, known: list[str]) -> str:
    hint = did_you_mean(name, known) or f"; there are {any_of(known)}".replace(" or ", " and ")
    return f'there is no {what} "{shorten(name)}"{hint}'
