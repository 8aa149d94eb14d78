"""Names of hosts and routers, and what may be set of hosts."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from narrows.scenario.network import Network
from narrows.scenario.params import Context, read_value
from narrows.scenario.problems import Problems, join
from narrows.scenario.registry import Registry
from narrows.scenario.yaml_tree import Mapping, Mark, Node, Scalar, Sequence
from narrows.text import shorten

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,31}$")
#: Under this name settings are those of every host.
ALL_HOSTS = "all"
#: Under this one those of every host that only background flows use.
BACKGROUND_HOSTS = "background"
_MEANINGS = {ALL_HOSTS: "every host", BACKGROUND_HOSTS: "every host that only background flows use"}


def section(value: Node, path: str, known: Iterable[str], problems: Problems, example: str) -> Mapping | None:
    """A mapping with some of the known keys."""
    mapping = problems.expect_mapping(value, path, f"{{{example}}}")
    known = list(known)
    for key, mark, _ in mapping or ():
        if key not in known:
            problems.unknown_key(mark, path, key, known)
    return mapping


def named_hosts(value: Node, path: str, problems: Problems) -> dict[str, Mark]:
    """Names as a list, or as the keys of a mapping, with where they stand."""
    if isinstance(value, Mapping):
        listed = [(name, mark, join(path, name)) for name, mark, _ in value]
    elif isinstance(value, Sequence):
        listed = []
        for index, item in enumerate(value.items):
            if isinstance(item, Scalar):
                listed.append((item.text, item.mark, join(path, index)))
            else:
                problems.add(item.mark, join(path, index), "must be a name")
    else:
        problems.add(value.mark, path, "must be a list of names such as [left, right]")
        return {}
    found: dict[str, Mark] = {}
    for name, mark, at in listed:
        if name in _MEANINGS:
            problems.add(mark, at, f'"{name}" means {_MEANINGS[name]}; choose another')
        elif not _NAME.match(name):
            problems.add(mark, at, f'"{shorten(name)}" can\'t be a name; use letters, digits, "-" and "_"')
        elif name in found:
            problems.add(mark, at, f'the name "{name}" is there twice')
        else:
            found[name] = mark
    if not found:
        problems.add(value.mark, path, "needs at least one name")
    return found


def add_hosts(network: Network, hosts: dict[str, Mark], problems: Problems) -> None:
    """Adds hosts whose names must still be free."""
    for name, mark in hosts.items():
        if name in network.hosts or name in network.routers:
            problems.add(mark, name, "another node has this name already")
        else:
            network.hosts[name] = mark


def read_settings(
    value: Mapping,
    path: str,
    network: Network,
    background: Iterable[str],
    registry: Registry,
    problems: Problems,
) -> None:
    """`hosts: {all: {tcp_sack: 0}, background: {window: 64 KiB}, left: {...}}`.

    `background` are the hosts that only background flows use.
    """
    groups = {ALL_HOSTS: list(network.hosts), BACKGROUND_HOSTS: list(background)}
    found: dict[str, dict[str, Any]] = {}
    for name, mark, written in value:
        if name not in groups and name not in network.hosts:
            problems.unknown_key(mark, path, name, [*network.hosts, *groups])
            continue
        if name == BACKGROUND_HOSTS and not groups[name]:
            problems.add(mark, join(path, name), "no host is used by background flows alone; remove it")
        found[name] = host_settings(written, join(path, name), registry, problems)
    # What is said of one host weighs more than what is said of several, in whatever order.
    for name in (ALL_HOSTS, BACKGROUND_HOSTS, *network.hosts):
        for host in groups.get(name, [name]):
            if name in found:
                network.settings[host] = {**network.settings.get(host, {}), **found[name]}


def host_settings(value: Node, path: str, registry: Registry, problems: Problems) -> dict[str, Any]:
    """The settings of one host that are written."""
    if isinstance(value, Scalar) and value.is_null:
        return {}
    known = {param.name: param for param in registry.host_settings}
    mapping = problems.expect_mapping(value, path, "{tcp_sack: 0}")
    found: dict[str, Any] = {}
    for key, mark, written in mapping or ():
        if key not in known:
            problems.unknown_key(mark, path, key, known)
            continue
        setting = read_value(written, join(path, key), known[key], Context(problems))
        if setting is not None:
            found[key] = setting
    return found
