"""Topologies in short form, and explicit networks.

`path:` alone connects two hosts. `topology:` names a shape and its settings; `network:` lists hosts, routers
and links. Each becomes a `Network` whose links have their elements as written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from narrows.scenario import real_path
from narrows.scenario.elements import Link, list_items
from narrows.scenario.graph import read_free_network
from narrows.scenario.network import BACKWARD, FORWARD, RECEIVER, SENDER, Network
from narrows.scenario.nodes import add_hosts, named_hosts
from narrows.scenario.params import Context as _Context
from narrows.scenario.params import read_value
from narrows.scenario.problems import Problems, Wrong, unknown_key
from narrows.scenario.registry import Param, Registry
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
_ACCESS = ("access", "up", "down")
_EXAMPLE = "forward: [{rate: 12 Mbit/s}, {delay: 20 ms}]"


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

    def access(self, host: str, router: str, scopes: list[Mapping]) -> None:
        """The link of a host to its router; for each direction the first scope that describes it counts."""
        self.join(host, router, _first(scopes, ("up", "access")), _first(scopes, ("down", "access")))


def _first(scopes: list[Mapping], keys: tuple[str, str]) -> _Lists | None:
    for number, mapping in enumerate(scopes):
        for key in keys:
            if key in mapping.entries:
                return _Lists(mapping.entries[key], number > 0 or key == "access")
    return None


def read_network(tree: Mapping, registry: Registry, problems: Problems) -> tuple[str, Network]:
    """The network of a scenario and the name of its topology."""
    written = tree.entries.get("topology")
    if "network" in tree.entries:
        for key in ("topology", "path"):
            if key in tree.entries:
                text = "the key network describes all links; remove one of the two"
                problems.add(tree.key_marks[key], text)
        return "network", read_free_network(tree.entries["network"], registry, problems)
    name = "dumbbell"
    reader = _Reader(Network("graph"), problems)
    with problems.note():
        if isinstance(written, Mapping) and len(written.entries) == 1:
            ((name, mark, settings),) = written
            if name not in SHAPES:
                raise unknown_key(mark, name, SHAPES)
            if name != "dumbbell" and "path" in tree.entries:
                text = f"a {name} has its links under topology.{name}; remove path"
                problems.add(tree.key_marks["path"], text)
            _READERS[name](reader, settings, tree)
        elif written is None or (isinstance(written, Scalar) and written.text in PLAIN):
            return written.text if written else name, _plain(tree, problems)
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


def _plain(tree: Mapping, problems: Problems) -> Network:
    network = Network("dumbbell", pairs=[(SENDER, RECEIVER)])
    network.hosts = {SENDER: tree.mark, RECEIVER: tree.mark}
    _shared_path(_Reader(network, problems), tree, SENDER, RECEIVER)
    network.cuts["path"] = list(network.links)
    return network


def _shared_path(reader: _Reader, tree: Mapping, word: str, other: str) -> None:
    """The key `path`, as the link between two nodes."""
    if "path" not in tree.entries and real_path.is_wanted(tree):
        reader.join(word, other, None, None, FORWARD, BACKWARD)
        return
    if "path" not in tree.entries:
        text = f"the key path is missing; write for example path: {{{_EXAMPLE}}}, or describe a network"
        reader.problems.add(tree.mark, f"{text} with the key network")
        reader.join(word, other, None, None, FORWARD, BACKWARD)
        return
    mapping = Mapping(Mark("", path="path"))
    with reader.problems.note():
        mapping = reader.problems.section(tree.entries["path"], (FORWARD, BACKWARD), _EXAMPLE)
    if FORWARD not in mapping.entries and tree.entries["path"] is mapping:
        text = "needs the key forward: the elements from sender to receiver"
        reader.problems.add(mapping.mark, text)
    reader.join(word, other, *_directions(mapping), FORWARD, BACKWARD)


def _directions(mapping: Mapping, *, shared: bool = False) -> tuple[_Lists | None, _Lists | None]:
    pairs = [
        _Lists(mapping.entries[key], shared) if key in mapping.entries else None
        for key in (FORWARD, BACKWARD)
    ]
    return pairs[0], pairs[1]


def _dumbbell(reader: _Reader, settings: Node, tree: Mapping) -> None:
    known = ("pairs", "left", "right", "hosts", *_ACCESS)
    network, problems = reader.network, reader.problems
    mapping = problems.section(settings, known, "pairs: 2, access: [{rate: 1 Gbit/s}]")
    network.routers = ["router1", "router2"]
    _shared_path(reader, tree, *network.routers)
    network.cuts["path"] = list(network.links)
    sides: list[dict[str, Mark]] = []
    if "pairs" in mapping.entries:
        for key in ("left", "right"):
            if key in mapping.entries:
                text = "write either pairs, or left and right"
                problems.add(mapping.key_marks[key], text)
        pairs = read_value(mapping.entries["pairs"], _COUNT, _Context(problems)) or 1
        mark = mapping.entries["pairs"].mark
        sides = [{f"{kind}{k}": mark for k in range(1, pairs + 1)} for kind in (SENDER, RECEIVER)]
    else:
        for key in ("left", "right"):
            if key not in mapping.entries:
                text = f"needs the key {key}: the hosts of that side; or pairs: how many hosts each side has"
                raise Wrong(mapping.mark, text)
            sides.append(named_hosts(mapping.entries[key], problems))
    for side in sides:
        add_hosts(network, side, problems)
    own = _own_access(mapping, network.hosts, problems)
    for side, router in zip(sides, network.routers, strict=True):
        for host in side:
            reader.access(host, router, [*own(host), mapping])
    left, right = (list(side) for side in sides)
    if left and right:
        most = max(len(left), len(right))
        network.pairs = [(left[k % len(left)], right[k % len(right)]) for k in range(most)]


def _star(reader: _Reader, settings: Node, _tree: Mapping) -> None:
    network, problems = reader.network, reader.problems
    example = "access: [{rate: 100 Mbit/s}, {delay: 1 ms}]"
    mapping = problems.section(settings, ("center", "hosts", *_ACCESS), example)
    center = mapping.entries.get("center")
    network.routers = [read_label(center, "must be a name", 32) if center is not None else "center"]
    hosts = dict.fromkeys(STAR_HOSTS, mapping.mark)
    written = mapping.entries.get("hosts")
    if written is not None and not (isinstance(written, Mapping) and _are_usual(written)):
        hosts = named_hosts(written, problems)
    add_hosts(network, hosts, problems)
    own = _own_access(mapping, network.hosts, problems)
    for host in network.hosts:
        reader.access(host, network.routers[0], [*own(host), mapping])
    if {"right", "left"} <= set(network.hosts):
        network.pairs = [("right", "left")]
    elif len(network.hosts) == 2:
        first, second = network.hosts
        network.pairs = [(first, second)]


def _are_usual(hosts: Mapping) -> bool:
    """True if a mapping refers to the usual hosts of a star (perhaps with a typo), not to others."""
    return any(name in STAR_HOSTS or did_you_mean(name, STAR_HOSTS) for name in hosts.entries)


def _parking_lot(reader: _Reader, settings: Node, _tree: Mapping) -> None:
    known = ("hops", FORWARD, BACKWARD, "links", "hosts", *_ACCESS)
    example = "hops: 3, forward: [{rate: 100 Mbit/s}, {delay: 10 ms}]"
    mapping = reader.problems.section(settings, known, example)
    network = reader.network
    hops = _hops(reader, mapping)
    network.routers = [f"router{number}" for number in range(1, len(hops) + 2)]
    for number, (there, back) in enumerate(hops):
        reader.join(network.routers[number], network.routers[number + 1], there, back)
    network.pairs = [("source", "sink"), *((f"source{k}", f"sink{k}") for k in range(1, len(hops) + 1))]
    network.default_flows = len(network.pairs)
    add_hosts(network, {host: mapping.mark for pair in network.pairs for host in pair}, reader.problems)
    own = _own_access(mapping, network.hosts, reader.problems)
    ends = [(0, len(hops)), *((number, number + 1) for number in range(len(hops)))]
    for pair, places in zip(network.pairs, ends, strict=True):
        for host, place in zip(pair, places, strict=True):
            reader.access(host, network.routers[place], [*own(host), mapping])


def _chain(reader: _Reader, settings: Node, _tree: Mapping) -> None:
    example = "links: [{forward: [{rate: 12 Mbit/s}]}, {forward: [{delay: 20 ms}]}]"
    mapping = reader.problems.section(settings, ("hops", FORWARD, BACKWARD, "links"), example)
    network = reader.network
    hops = _hops(reader, mapping)
    network.routers = [f"router{number}" for number in range(1, len(hops))]
    network.hosts = {SENDER: mapping.mark, RECEIVER: mapping.mark}
    nodes = [SENDER, *network.routers, RECEIVER]
    for number, (there, back) in enumerate(hops):
        reader.join(nodes[number], nodes[number + 1], there, back)
    network.pairs = [(SENDER, RECEIVER)]


def _hops(reader: _Reader, mapping: Mapping) -> list[tuple[_Lists | None, _Lists | None]]:
    """The links of a row of routers: `links` one by one, or `hops` with the same `forward` and `backward`."""
    problems = reader.problems
    if "links" in mapping.entries:
        for key in ("hops", FORWARD, BACKWARD):
            if key in mapping.entries:
                text = "links lists every hop by itself; remove one of the two"
                problems.add(mapping.key_marks[key], text)
        written = mapping.entries["links"]
        if not isinstance(written, Sequence) or not written.items or len(written.items) > MOST_NODES:
            raise Wrong(written.mark, f"must be a list of 1 to {MOST_NODES} links such as [{{{_EXAMPLE}}}]")
        hops = []
        for item in written.items:
            with problems.note():
                hops.append(_directions(problems.section(item, (FORWARD, BACKWARD), _EXAMPLE)))
        return hops
    if "hops" not in mapping.entries or FORWARD not in mapping.entries:
        text = "needs the keys hops and forward: how many links there are, and the elements of each; or links"
        raise Wrong(mapping.mark, text)
    count = read_value(mapping.entries["hops"], _COUNT, _Context(problems)) or 1
    return [_directions(mapping, shared=True)] * count


_READERS = {"dumbbell": _dumbbell, "star": _star, "parking-lot": _parking_lot, "chain": _chain}


def _own_access(mapping: Mapping, hosts: Iterable[str], problems: Problems) -> Callable[[str], list[Mapping]]:
    """The access of single hosts, from `hosts:` of a topology."""
    known, result = list(hosts), dict[str, Mapping]()
    written = mapping.entries.get("hosts")
    if isinstance(written, Mapping):
        for name, mark, value in written:
            if name not in known:
                problems.unknown_key(mark, name, known)
            elif not (isinstance(value, Scalar) and value.is_null):
                with problems.note():
                    result[name] = problems.section(value, _ACCESS, "access: [{delay: 5 ms}]")
    elif written is not None and not isinstance(written, Sequence):
        problems.add(written.mark, "must be hosts with their access, such as {left: {down: [...]}}")
    return lambda host: [result[host]] if host in result else []
