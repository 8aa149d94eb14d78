"""The routes of packets through a network whose links have known fixed delays."""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Container, Iterable

from narrows.scenario.elements import Link

Pair = tuple[str, str]


class Routes:
    """Routes from host to host, each computed once: the given one, or else the one with the least fixed
    delay; among equals the one with the fewest links; among these the first by the names of its nodes.
    Packets do not pass through other hosts.
    """

    def __init__(self, links: Iterable[Link], hosts: Container[str], given: dict[Pair, list[Link]]) -> None:
        self._given = given
        self._hosts = hosts
        #: Links out of a node: to routers, and by destination host.
        self._onward: dict[str, list[Link]] = defaultdict(list)
        self._last: dict[Pair, list[Link]] = defaultdict(list)
        #: Links by destination node.
        self._inward: dict[str, list[Link]] = defaultdict(list)
        for link in links:
            if link.target in hosts:
                self._last[link.origin, link.target].append(link)
            else:
                self._onward[link.origin].append(link)
            self._inward[link.target].append(link)
        self._found: dict[Pair, list[Link] | None] = {}

    def find(self, origin: str, target: str) -> list[Link] | None:
        """The links from host to host; `None` if there is no route."""
        pair = (origin, target)
        if pair in self._given:
            return self._given[pair]
        if pair not in self._found:
            self._found[pair] = self._search(origin, target)
        return self._found[pair]

    def _search(self, origin: str, target: str) -> list[Link] | None:
        # Names precede links: equal routes are distinguished before links would be compared.
        queue: list[tuple[int, int, tuple[str, ...], tuple[str, ...], tuple[Link, ...]]]
        queue = [(0, 0, (origin,), (), ())]
        done: set[str] = set()
        while queue:
            delay, count, nodes, names, way = heapq.heappop(queue)
            here = nodes[-1]
            if here == target:
                return list(way)
            if here in done:
                continue
            done.add(here)
            for link in (*self._onward[here], *self._last[here, target]):
                if link.target not in done:
                    heapq.heappush(
                        queue,
                        (
                            delay + link.delay_ns,
                            count + 1,
                            (*nodes, link.target),
                            (*names, link.name),
                            (*way, link),
                        ),
                    )
        return None

    def reachable_from(self, host: str) -> set[str]:
        """All nodes that packets of this host can reach, including itself."""
        texts = {host} | {target for origin, target in self._given if origin == host}
        routers = [host]
        last: dict[str, list[str]] = defaultdict(list)
        for origin, target in self._last:
            last[origin].append(target)
        while routers:
            here = routers.pop()
            texts.update(last[here])
            new = {link.target for link in self._onward[here]} - texts
            texts |= new
            routers.extend(new)
        return texts

    def reaching(self, host: str) -> set[str]:
        """All nodes from which packets can reach this host, including itself."""
        texts = {host} | {origin for origin, target in self._given if target == host}
        routers = [host]
        while routers:
            new = {link.origin for link in self._inward[routers.pop()]} - texts
            texts |= new
            # A host sends, but does not forward.
            routers.extend(node for node in new if node not in self._hosts)
        return texts
