"""The layout of a network in a picture: routers in a row, hosts around them.

Positions are in a unit square: routers lie on the middle line from left to right along the longest path
between two of them; the hosts of the outermost routers to the left and right, those of the others above and
below. A single router is surrounded by its hosts. The layout is deterministic.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence

Place = tuple[float, float]


def neighbours(nodes: Sequence[str], links: Sequence[tuple[str, str]]) -> dict[str, list[str]]:
    """The neighbours of each node, in the order of the description, along both directions of links."""
    result: dict[str, list[str]] = {node: [] for node in nodes}
    for ends in links:
        for text, other in (ends, ends[::-1]):
            if text in result and other in result and other not in result[text]:
                result[text].append(other)
    return result


def _farthest(start: str, near: Mapping[str, Sequence[str]], allowed: set[str]) -> list[str]:
    """The path from a node to the node farthest from it."""
    before: dict[str, str | None] = {start: None}
    queue, last = deque([start]), start
    while queue:
        last = queue.popleft()
        for other in near[last]:
            if other in allowed and other not in before:
                before[other] = last
                queue.append(other)
    way, node = [last], before[last]
    while node is not None:
        way.append(node)
        node = before[node]
    return way


def _spread(count: int, low: float, high: float) -> list[float]:
    if count == 1:
        return [(low + high) / 2]
    return [low + (high - low) * i / (count - 1) for i in range(count)]


def _around(nodes: Sequence[str], centre: Place, start: float, radius: Place) -> dict[str, Place]:
    around = {}
    for i, node in enumerate(nodes):
        angle = start - 2 * math.pi * i / len(nodes)
        around[node] = (centre[0] + radius[0] * math.cos(angle), centre[1] + radius[1] * math.sin(angle))
    return around


_SIDES = {"left": 180.0, "right": 0.0, "top": 90.0, "bottom": 270.0, "up": 90.0, "down": 270.0}


def places(
    hosts: Sequence[str], routers: Sequence[str], links: Sequence[tuple[str, str]]
) -> dict[str, Place]:
    """A position for every node."""
    near = neighbours([*hosts, *routers], links)
    inner = set(routers)
    if not routers:
        return _without_routers(hosts, near)
    if len(routers) == 1:
        result = {routers[0]: (0.5, 0.5)}
        if set(hosts) <= set(_SIDES):  # named after the group that they belong to
            for host in hosts:
                angle = math.radians(_SIDES[host])
                result[host] = (0.5 + 0.5 * math.cos(angle), 0.5 + 0.5 * math.sin(angle))
            return result
        return result | _around(hosts, (0.5, 0.5), math.pi, (0.5, 0.5))
    row = _farthest(_farthest(routers[0], near, inner)[0], near, inner)
    if routers.index(row[0]) > routers.index(row[-1]):
        row.reverse()
    result = {}
    side = 0.2 if len(row) > 2 else 0.28
    for x, router in zip(_spread(len(row), side, 1 - side), row, strict=True):
        result[router] = (x, 0.5)
    rest = [router for router in routers if router not in result]
    for index, router in enumerate(rest):  # Off the longest path: above it, near their neighbours.
        linked = [result[n][0] for n in near[router] if n in result]
        result[router] = (sum(linked) / len(linked) if linked else 0.5, 0.8 if index % 2 == 0 else 0.2)
    own: dict[str, list[str]] = {}
    for host in hosts:
        home = next((n for n in near[host] if n in inner), row[0])
        own.setdefault(home, []).append(host)
    for router, mine in own.items():
        x, y = result[router]
        if router in (row[0], row[-1]):
            edge = 0.0 if router == row[0] else 1.0
            for level, host in zip(_spread(len(mine), 1.0, 0.0), mine, strict=True):
                result[host] = (edge, level)
            continue
        above, below = mine[::2], mine[1::2]
        half = 0.42 / len(row)
        for group, level in ((above, 1.0), (below, 0.0)):
            for offset, host in zip(_spread(len(group), -half, half) if group else [], group, strict=True):
                result[host] = (x + offset, level if y == 0.5 else y)
    return result


def _without_routers(hosts: Sequence[str], near: Mapping[str, Sequence[str]]) -> dict[str, Place]:
    if len(hosts) <= 4 and all(len(others) <= 2 for others in near.values()):
        ends = [host for host in hosts if len(near[host]) == 1]
        row = _farthest((ends or list(hosts))[0], near, set(hosts))[::-1]
        row += [host for host in hosts if host not in row]
        return {host: (x, 0.5) for x, host in zip(_spread(len(row), 0.0, 1.0), row, strict=True)}
    return _around(hosts, (0.5, 0.5), math.pi, (0.5, 0.5))
