"""The network of a scenario: hosts, routers, directed links, routes, settings of hosts."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

from narrows.scenario.elements import Link
from narrows.scenario.problems import Problems
from narrows.scenario.quantity import NO_BDP, show
from narrows.scenario.routes import Pair, Routes
from narrows.scenario.yaml_tree import Mark
from narrows.text import shorten, suggest

if TYPE_CHECKING:
    from narrows.documents import resolved

#: The hosts and links of a plain `path`.
SENDER, RECEIVER = "sender", "receiver"
FORWARD, BACKWARD = "forward", "backward"
DUMBBELL, GRAPH = "dumbbell", "graph"


@dataclass
class Network:
    """The topology. A `dumbbell` is one path with two hosts, everything else a `graph`."""

    kind: str
    #: Hosts by name, with the position of their definition.
    hosts: dict[str, Mark] = field(default_factory=dict)
    routers: list[str] = field(default_factory=list)
    links: list[Link] = field(default_factory=list)
    #: The hosts of flows that name none: flow k uses pair k, cyclically.
    pairs: list[Pair] = field(default_factory=list)
    #: Routes of the scenario.
    given: dict[Pair, list[Link]] = field(default_factory=dict)
    #: Settings of hosts.
    settings: dict[str, dict[str, object]] = field(default_factory=dict)
    #: Names under which directed links are cut and restored.
    cuts: dict[str, list[Link]] = field(default_factory=dict)
    #: Default number of flows.
    default_flows: int = 1

    # -- building --------------------------------------------------------------------------------

    def add(self, origin: str, target: str, names: Pair) -> tuple[Link, Link]:
        """A link between two nodes: both directions, without elements yet."""
        both = (Link(names[0], origin, target), Link(names[1], target, origin))
        for link in both:
            self.links.append(link)
            self.cuts[link.name] = [link]
        return both

    def link(self, name: str) -> Link | None:
        """The directed link of that name."""
        return next((link for link in self.links if link.name == name), None)

    def between(self, text: str, other: str) -> list[Link]:
        """Both directions of all links between two nodes."""
        return [link for link in self.links if {link.origin, link.target} == {text, other}]

    # -- routes ----------------------------------------------------------------------------------

    def route(self, origin: str, target: str) -> list[Link] | None:
        """The links from host to host; `None` if there is no route. Links and delays must not change after
        the first call."""
        return self._routes.find(origin, target)

    @cached_property
    def _routes(self) -> Routes:
        return Routes(self.links, self.hosts, self.given)

    def rtt_ns(self, pair: Pair) -> int:
        """The round-trip time between two hosts without queueing."""
        ways = (self.route(*pair) or [], self.route(pair[1], pair[0]) or [])
        return sum(link.delay_ns for way in ways for link in way)

    def bdps(self, pairs: list[Pair]) -> list[tuple[Fraction | None, str]]:
        """The value of `1 bdp` on each link, in bytes: the slowest constant rate of the link times the
        round-trip time of the flows that pass it (with their data, else with their acknowledgements); or the
        reason why it is unknown. On an unused link the value hardly matters: it uses the longest round trip.
        """
        pairs = list(dict.fromkeys(pairs))
        times = {pair: self.rtt_ns(pair) for pair in pairs}
        data, acks = self._passing(times), self._passing({(to, at): ns for (at, to), ns in times.items()})
        longest = {max(times.values(), default=0)}
        over = (data.get(link.name) or acks.get(link.name) or longest for link in self.links)
        return [_bdp(link, sorted(times)) for link, times in zip(self.links, over, strict=True)]

    def _passing(self, times: dict[Pair, int]) -> dict[str, set[int]]:
        """The round-trip times of the paths over a link, by its name."""
        passing: dict[str, set[int]] = {}
        for pair, time in times.items():
            for link in self.route(*pair) or []:
                passing.setdefault(link.name, set()).add(time)
        return passing

    # -- results ---------------------------------------------------------------------------------

    def resolve(self, pairs: list[Pair]) -> resolved.Network:
        """The network in the form of cells, with the routes that these pairs of hosts need."""
        from narrows.documents import resolved

        hosts = [resolved.Host(name=name, settings=self.settings.get(name) or {}) for name in self.hosts]
        if self.kind == DUMBBELL:
            forward, backward = (link.elements for link in self.links)
            named = hosts if any(self.settings.values()) else []
            return resolved.Network(kind=DUMBBELL, forward=forward, backward=backward, hosts=named)
        ways = dict.fromkeys(way for pair in pairs for way in (pair, (pair[1], pair[0])))
        return resolved.Network(
            kind=GRAPH,
            hosts=hosts,
            routers=self.routers,
            links=[
                resolved.Link(name=link.name, origin=link.origin, target=link.target, elements=link.elements)
                for link in self.links
            ],
            routes=[
                resolved.Route(
                    origin=way[0], target=way[1], links=[link.name for link in self.route(*way) or []]
                )
                for way in ways
            ],
        )

    def check_connected(self, problems: Problems) -> None:
        """Checks that every host can reach every other one."""
        first = next(iter(self.hosts), "")
        there, back = self._routes.reachable_from(first), self._routes.reaching(first)
        for name, mark in self.hosts.items():
            if name not in there or name not in back:
                problems.add(
                    mark.at(f"network.hosts.{name}"),
                    f"the host can't be reached from {first}; add a link that joins it to the other nodes"
                    " (packets do not pass through hosts)",
                )

    def node_problem(self, name: str) -> str:
        """The message about a node that does not exist."""
        known = [*self.hosts, *self.routers]
        return _unknown("node", name, known)

    def host_problem(self, name: str) -> str:
        """The message about a host that does not exist."""
        return _unknown("host", name, list(self.hosts))


def _bdp(link: Link, times: list[int]) -> tuple[Fraction | None, str]:
    """The product for a link whose flows have these round-trip times, or the reason why it is unknown."""
    if len(times) > 1:
        shown = " and ".join(show("span", time) for time in (times[0], times[-1]))
        return (
            None,
            f"is not one amount here, because flows with round-trip times of {shown} pass this link",
        )
    if not link.rates or not times[0]:
        return None, NO_BDP
    return Fraction(min(link.rates) * times[0], 8 * 10**9), ""


def _unknown(what: str, name: str, known: list[str]) -> str:
    hint = suggest(name, known, what)
    return f'{what} "{shorten(name)}" does not exist{hint}'
