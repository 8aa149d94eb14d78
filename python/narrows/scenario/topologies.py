"""Topologies in short form, and explicit networks.

`path:` alone connects two hosts. `topology:` names a shape and its settings; `network:` lists hosts, routers
and links. Each becomes a `Network` whose links have their elements as written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from narrows.scenario import real_path
from narrows.scenario.declarations.value import Context, Value
from narrows.scenario.elements import Link, list_items
from narrows.scenario.graph import read_free_network
from narrows.scenario.network import BACKWARD, FORWARD, RECEIVER, SENDER, Network
from narrows.scenario.nodes import add_hosts, read_hosts
from narrows.scenario.problems import Problems, Wrong, unknown_key
from narrows.scenario.registry import Param, Registry
from narrows.scenario.sections import ScenarioKeys, Section
from narrows.scenario.words import read_label
from narrows.scenario.yaml_tree import Mapping, Mark, Node, Scalar, Sequence
from narrows.text import any_of, did_you_mean, shorten

#: Topologies without settings: the path between two hosts. They differ in whether flows may have an extra
#: RTT.
PLAIN = ("dumbbell", "path")
SHAPES = ("dumbbell", "star", "parking-lot", "chain")
#: The default hosts of a star: those of the GENI exercise.
STAR_HOSTS = ("top", "bottom", "left", "right")
MOST_NODES = 200

_COUNT = Param("", "count", (), None, 1, MOST_NODES, False, "", "")
_EXAMPLE = "forward: [{rate: 12 Mbit/s}, {delay: 20 ms}]"


class _Ways(Section, frozen=True, kw_only=True):
    forward: Node | None = None
    backward: Node | None = None


class _Access(Section, frozen=True, kw_only=True):
    access: Node | None = None
    up: Node | None = None
    down: Node | None = None


class _Dumbbell(Section, frozen=True, kw_only=True):
    pairs: Node | None = None
    left: Node | None = None
    right: Node | None = None
    hosts: Node | None = None
    access: Node | None = None
    up: Node | None = None
    down: Node | None = None


class _Star(Section, frozen=True, kw_only=True):
    center: Node | None = None
    hosts: Node | None = None
    access: Node | None = None
    up: Node | None = None
    down: Node | None = None


class _Chain(Section, frozen=True, kw_only=True):
    hops: Node | None = None
    forward: Node | None = None
    backward: Node | None = None
    links: Node | None = None


class _ParkingLot(_Chain, frozen=True, kw_only=True):
    hosts: Node | None = None
    access: Node | None = None
    up: Node | None = None
    down: Node | None = None


class _Lists(NamedTuple):
    """A list of elements as written; `shared` if it serves several links."""

    value: Node
    shared: bool


@dataclass
class _Reader:
    network: Network
    problems: Problems

    def fill(self, link: Link, written: _Lists | None) -> None:
        if written is not None:
            link.items = list_items(written.value, link.name, self.problems, shared=written.shared)

    def join(self, text: str, other: str, there: _Lists | None, back: _Lists | None, *names: str) -> None:
        """Adds a link between two nodes, with the written elements of both directions."""
        pair = (names[0], names[1]) if names else (f"{text}-{other}", f"{other}-{text}")
        link, reverse = self.network.add(text, other, pair)
        self.fill(link, there)
        self.fill(reverse, back)
        if back is None:
            reverse.mirrors = link
        elif there is None:
            link.mirrors = reverse

    def access(self, host: str, router: str, scopes: list[_Access]) -> None:
        """The link of a host to its router; for each direction the first scope that describes it counts."""
        up, down = ([(own.up, own.access) for own in scopes], [(own.down, own.access) for own in scopes])
        self.join(host, router, _first(up), _first(down))


def _first(scopes: list[tuple[Node | None, Node | None]]) -> _Lists | None:
    for number, (one_way, both_ways) in enumerate(scopes):
        if one_way is not None:
            return _Lists(one_way, number > 0)
        if both_ways is not None:
            return _Lists(both_ways, True)
    return None


def read_network(tree: Mapping, registry: Registry, problems: Problems) -> tuple[str, Network]:
    """The network of a scenario and the name of its topology."""
    keys = ScenarioKeys.from_mapping(tree)
    written = keys.topology
    if keys.network is not None:
        for other in (keys.topology, keys.path):
            if other is not None:
                text = "the key network describes all links; remove one of the two"
                problems.add(keys.key_mark(other), text)
        return "network", read_free_network(keys.network, registry, problems)
    name = "dumbbell"
    reader = _Reader(Network("graph"), problems)
    with problems.note():
        if isinstance(written, Mapping) and len(written.entries) == 1:
            ((name, mark, settings),) = written
            if name not in SHAPES:
                raise unknown_key(mark, name, SHAPES)
            if name != "dumbbell" and keys.path is not None:
                text = f"a {name} has its links under topology.{name}; remove path"
                problems.add(keys.key_mark(keys.path), text)
            _READERS[name](reader, settings, keys)
        elif written is None or (isinstance(written, Scalar) and written.text in PLAIN):
            return written.text if written else name, _plain(keys, problems)
        else:
            raise Wrong(written.mark, _refusal(written))
    return name, reader.network


def _refusal(written: Node) -> str:
    known = [*dict.fromkeys((*PLAIN, *SHAPES))]
    if isinstance(written, Scalar) and written.text in SHAPES:
        example = f"topology: {{{written.text}: {{access: [{{rate: 100 Mbit/s}}]}}}}"
        return f"{written.text} needs settings, such as {example}"
    if isinstance(written, Scalar):
        hint = did_you_mean(written.text, known)
        return f'"{shorten(written.text)}" is not one of {any_of(known)}{hint}'
    return f"must name one of {any_of(known)}"


def _plain(tree: ScenarioKeys, problems: Problems) -> Network:
    network = Network("dumbbell", pairs=[(SENDER, RECEIVER)])
    network.hosts = {SENDER: tree.mark, RECEIVER: tree.mark}
    _read_path(_Reader(network, problems), tree, SENDER, RECEIVER)
    network.cuts["path"] = list(network.links)
    return network


def _read_path(reader: _Reader, tree: ScenarioKeys, word: str, other: str) -> None:
    """The key `path`, as the link between two nodes."""
    if tree.path is None and real_path.is_wanted(tree.written):
        reader.join(word, other, None, None, FORWARD, BACKWARD)
        return
    if tree.path is None:
        text = f"the key path is missing; write for example path: {{{_EXAMPLE}}}, or describe a network"
        reader.problems.add(tree.mark, f"{text} with the key network")
        reader.join(word, other, None, None, FORWARD, BACKWARD)
        return
    ways = _Ways(written=Mapping(Mark("", path="path")))
    with reader.problems.note():
        ways = reader.problems.section(tree.path, _Ways, _EXAMPLE)
    if ways.forward is None and tree.path is ways.written:
        text = "needs the key forward: the elements from sender to receiver"
        reader.problems.add(ways.mark, text)
    reader.join(word, other, *_directions(ways), FORWARD, BACKWARD)


def _directions(ways: _Ways, *, shared: bool = False) -> tuple[_Lists | None, _Lists | None]:
    there = None if ways.forward is None else _Lists(ways.forward, shared)
    return there, None if ways.backward is None else _Lists(ways.backward, shared)


def _dumbbell(reader: _Reader, settings: Node, tree: ScenarioKeys) -> None:
    network, problems = reader.network, reader.problems
    keys = problems.section(settings, _Dumbbell, "pairs: 2, access: [{rate: 1 Gbit/s}]")
    network.routers = ["router1", "router2"]
    _read_path(reader, tree, *network.routers)
    network.cuts["path"] = list(network.links)
    sides: list[dict[str, Mark]] = []
    if keys.pairs is not None:
        for written in (keys.left, keys.right):
            if written is not None:
                text = "write either pairs, or left and right"
                problems.add(keys.key_mark(written), text)
        pairs = Value(keys.pairs, _COUNT, Context(problems)).read() or 1
        mark = keys.pairs.mark
        sides = [{f"{kind}{k}": mark for k in range(1, pairs + 1)} for kind in (SENDER, RECEIVER)]
    else:
        for key, written in (("left", keys.left), ("right", keys.right)):
            if written is None:
                text = f"needs the key {key}: the hosts of that side; or pairs: how many hosts each side has"
                raise Wrong(keys.mark, text)
            sides.append(read_hosts(written, problems))
    for side in sides:
        add_hosts(network, side, problems)
    own = _own_access(keys.hosts, keys.written, network.hosts, problems)
    for side, router in zip(sides, network.routers, strict=True):
        for host in side:
            reader.access(host, router, own(host))
    left, right = (list(side) for side in sides)
    if left and right:
        most = max(len(left), len(right))
        network.pairs = [(left[k % len(left)], right[k % len(right)]) for k in range(most)]


def _star(reader: _Reader, settings: Node, _tree: ScenarioKeys) -> None:
    network, problems = reader.network, reader.problems
    example = "access: [{rate: 100 Mbit/s}, {delay: 1 ms}]"
    keys = problems.section(settings, _Star, example)
    network.routers = [read_label(keys.center, "must be a name", 32) if keys.center is not None else "center"]
    hosts = dict.fromkeys(STAR_HOSTS, keys.mark)
    written = keys.hosts
    if written is not None and not (isinstance(written, Mapping) and _are_usual(written)):
        hosts = read_hosts(written, problems)
    add_hosts(network, hosts, problems)
    own = _own_access(written, keys.written, network.hosts, problems)
    for host in network.hosts:
        reader.access(host, network.routers[0], own(host))
    if {"right", "left"} <= set(network.hosts):
        network.pairs = [("right", "left")]
    elif len(network.hosts) == 2:
        first, second = network.hosts
        network.pairs = [(first, second)]


def _are_usual(hosts: Mapping) -> bool:
    """True if a mapping refers to the usual hosts of a star (perhaps with a typo), not to others."""
    return any(name in STAR_HOSTS or did_you_mean(name, STAR_HOSTS) for name in hosts.entries)


def _parking_lot(reader: _Reader, settings: Node, _tree: ScenarioKeys) -> None:
    example = "hops: 3, forward: [{rate: 100 Mbit/s}, {delay: 10 ms}]"
    keys = reader.problems.section(settings, _ParkingLot, example)
    network = reader.network
    hops = _hops(reader, keys)
    network.routers = [f"router{number}" for number in range(1, len(hops) + 2)]
    for number, (there, back) in enumerate(hops):
        reader.join(network.routers[number], network.routers[number + 1], there, back)
    network.pairs = [("source", "sink"), *((f"source{k}", f"sink{k}") for k in range(1, len(hops) + 1))]
    network.default_flows = len(network.pairs)
    add_hosts(network, {host: keys.mark for pair in network.pairs for host in pair}, reader.problems)
    own = _own_access(keys.hosts, keys.written, network.hosts, reader.problems)
    ends = [(0, len(hops)), *((number, number + 1) for number in range(len(hops)))]
    for pair, places in zip(network.pairs, ends, strict=True):
        for host, place in zip(pair, places, strict=True):
            reader.access(host, network.routers[place], own(host))


def _chain(reader: _Reader, settings: Node, _tree: ScenarioKeys) -> None:
    example = "links: [{forward: [{rate: 12 Mbit/s}]}, {forward: [{delay: 20 ms}]}]"
    keys = reader.problems.section(settings, _Chain, example)
    network = reader.network
    hops = _hops(reader, keys)
    network.routers = [f"router{number}" for number in range(1, len(hops))]
    network.hosts = {SENDER: keys.mark, RECEIVER: keys.mark}
    nodes = [SENDER, *network.routers, RECEIVER]
    for number, (there, back) in enumerate(hops):
        reader.join(nodes[number], nodes[number + 1], there, back)
    network.pairs = [(SENDER, RECEIVER)]


def _hops(reader: _Reader, keys: _Chain) -> list[tuple[_Lists | None, _Lists | None]]:
    """The links of a row of routers: `links` one by one, or `hops` with the same `forward` and `backward`."""
    problems = reader.problems
    if keys.links is not None:
        for other in (keys.hops, keys.forward, keys.backward):
            if other is not None:
                text = "links lists every hop by itself; remove one of the two"
                problems.add(keys.key_mark(other), text)
        written = keys.links
        if not isinstance(written, Sequence) or not written.items or len(written.items) > MOST_NODES:
            raise Wrong(written.mark, f"must be a list of 1 to {MOST_NODES} links such as [{{{_EXAMPLE}}}]")
        hops = []
        for item in written.items:
            with problems.note():
                hops.append(_directions(problems.section(item, _Ways, _EXAMPLE)))
        return hops
    if keys.hops is None or keys.forward is None:
        text = "needs the keys hops and forward: how many links there are, and the elements of each; or links"
        raise Wrong(keys.mark, text)
    count = Value(keys.hops, _COUNT, Context(problems)).read() or 1
    return [_directions(_Ways.from_mapping(keys.written), shared=True)] * count


_READERS = {"dumbbell": _dumbbell, "star": _star, "parking-lot": _parking_lot, "chain": _chain}


def _own_access(
    written: Node | None, topology: Mapping, hosts: Iterable[str], problems: Problems
) -> Callable[[str], list[_Access]]:
    """The access of single hosts, from `hosts:` of a topology, and that of all hosts."""
    shared = _Access.from_mapping(topology)
    known, result = list(hosts), dict[str, _Access]()
    if isinstance(written, Mapping):
        for name, mark, value in written:
            if name not in known:
                problems.unknown_key(mark, name, known)
            elif not (isinstance(value, Scalar) and value.is_null):
                with problems.note():
                    result[name] = problems.section(value, _Access, "access: [{delay: 5 ms}]")
    elif written is not None and not isinstance(written, Sequence):
        problems.add(written.mark, "must be hosts with their access, such as {left: {down: [...]}}")
    return lambda host: [result[host], shared] if host in result else [shared]
