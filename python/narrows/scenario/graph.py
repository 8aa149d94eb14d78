"""The key `network`: hosts, routers, links with their elements, and routes other than the shortest."""

from __future__ import annotations

import itertools

from msgspec import field

from narrows.scenario.elements import Link, list_items
from narrows.scenario.network import BACKWARD, FORWARD, Network
from narrows.scenario.nodes import add_hosts, host_settings, read_hosts
from narrows.scenario.problems import Problems, Wrong
from narrows.scenario.registry import Registry
from narrows.scenario.sections import Section
from narrows.scenario.words import read_label
from narrows.scenario.yaml_tree import Mapping, Mark, Node, Scalar, Sequence
from narrows.text import shorten

_EXAMPLE = "hosts: [a, b], links: [{between: [a, b], forward: [{rate: 12 Mbit/s}, {delay: 20 ms}]}]"
_LINK = "between: [a, b], forward: [{rate: 12 Mbit/s}, {delay: 20 ms}]"
_ROUTE = "from: a, to: b, via: [router1]"
_LONGEST_NAME = 64
_LINK_NAME = f"must be a name of at most {_LONGEST_NAME} letters, such as name: uplink"


class _Network(Section, frozen=True, kw_only=True):
    hosts: Node | None = None
    routers: Node | None = None
    links: Node | None = None
    routes: Node | None = None


class _Link(Section, frozen=True, kw_only=True):
    between: Node | None = None
    name: Node | None = None
    elements: Node | None = None
    forward: Node | None = None
    backward: Node | None = None


class _Route(Section, frozen=True, kw_only=True):
    origin: Node | None = field(name="from", default=None)
    target: Node | None = field(name="to", default=None)
    via: Node | None = None


def read_free_network(value: Node, registry: Registry, problems: Problems) -> Network:
    """Resolves the key `network`."""
    network = Network("graph")
    with problems.note():
        _read(network, value, registry, problems)
    return network


def _read(network: Network, value: Node, registry: Registry, problems: Problems) -> None:
    keys = problems.section(value, _Network, _EXAMPLE)
    hosts = keys.hosts
    if hosts is None or keys.links is None:
        key = "hosts" if hosts is None else "links"
        raise Wrong(keys.mark, f"needs the key {key}, such as {{{_EXAMPLE}}}")
    add_hosts(network, read_hosts(hosts, problems), problems)
    if isinstance(hosts, Mapping):
        for name, _, settings in hosts:
            result = host_settings(settings, registry, problems)
            if result and name in network.hosts:
                network.settings[name] = result
    if keys.routers is not None:
        for name, mark in read_hosts(keys.routers, problems).items():
            if name in network.hosts:
                problems.add(mark.at("network.routers"), f'there is a host with the name "{name}" already')
            else:
                network.routers.append(name)
    for written, example, read in ((keys.links, _LINK, _link), (keys.routes, _ROUTE, _route)):
        if written is not None:
            with problems.note():
                for item in _items(written, example):
                    with problems.note():
                        read(network, item, problems)
    if len(network.hosts) == 2:
        first, second = network.hosts
        network.pairs = [(first, second)]
    elif len(network.hosts) == 1:
        problems.add(hosts.mark, "needs at least two hosts")


def _items(value: Node, example: str) -> list[Node]:
    if not isinstance(value, Sequence) or not value.items:
        raise Wrong(value.mark, f"must be a list such as [{{{example}}}]")
    return value.items


def _link(network: Network, item: Node, problems: Problems) -> None:
    keys = problems.section(item, _Link, _LINK)
    between = keys.between
    if not isinstance(between, Sequence) or len(between.items) != 2:
        raise Wrong((between or keys).mark, "must be the two nodes of the link: [a, b]")
    one, other = (_node(network, node, node.mark) for node in between.items)
    if one == other:
        raise Wrong(between.mark, f"joins {one} with itself; name two nodes")
    names = (f"{one}-{other}", f"{other}-{one}")
    name = read_label(keys.name, _LINK_NAME, _LONGEST_NAME) if keys.name is not None else None
    if name is not None:
        names = (f"{name}.{FORWARD}", f"{name}.{BACKWARD}")
    if taken := next((name for name in names if name in network.cuts), None):
        text = f'another link is called "{shorten(taken)}" already; give this one another name'
        raise Wrong(keys.mark, f"{text} with the key name")
    there, back = network.add(one, other, names)
    if name is not None:
        network.cuts[name] = [there, back]
    if keys.elements is not None:
        for written in (keys.forward, keys.backward):
            if written is not None:
                text = "elements are those of both directions; remove one of the two"
                problems.add(keys.key_mark(written), text)
        for link in (there, back):
            link.items = list_items(keys.elements, link.name, problems, shared=True)
        return
    for link, written in ((there, keys.forward), (back, keys.backward)):
        if written is not None:
            link.items = list_items(written, link.name, problems)
    if keys.backward is None:
        back.mirrors = there
    elif keys.forward is None:
        there.mirrors = back


def _node(network: Network, value: Node, mark: Mark) -> str:
    if not isinstance(value, Scalar):
        raise Wrong(mark, "must be the name of a node")
    if value.text not in network.hosts and value.text not in network.routers:
        raise Wrong(mark, network.node_problem(value.text))
    return value.text


def _route(network: Network, item: Node, problems: Problems) -> None:
    keys = problems.section(item, _Route, _ROUTE)
    nodes: list[str] = []
    for key, written in (("from", keys.origin), ("via", keys.via), ("to", keys.target)):
        if written is None and key != "via":
            raise Wrong(keys.mark, f"needs the key {key}, such as {{{_ROUTE}}}")
        for value in written.items if isinstance(written, Sequence) else [written] if written else ():
            mark = value.mark.at(keys.mark.below(key))
            node = _node(network, value, mark)
            if (node in network.hosts) == (key == "via"):
                what = "a host, and packets do not pass through hosts" if key == "via" else "not a host"
                raise Wrong(mark, f"{node} is {what}")
            if node in nodes:
                raise Wrong(mark, f"the route passes {node} twice")
            nodes.append(node)
    links: list[Link] = []
    for here, there in itertools.pairwise(nodes):
        steps = [link for link in network.links if (link.origin, link.target) == (here, there)]
        if not steps:
            raise Wrong(keys.mark, f"there is no link from {here} to {there}")
        links.append(steps[0])
    network.given[nodes[0], nodes[-1]] = links
