"""Names of hosts and routers, and settings of hosts."""

from __future__ import annotations

import re
from collections.abc import Iterable

from narrows.scenario.declarations.value import Context, Value
from narrows.scenario.network import Network
from narrows.scenario.problems import Problems
from narrows.scenario.registry import Registry
from narrows.scenario.yaml_tree import Mapping, Mark, Node, Scalar, Sequence
from narrows.text import shorten

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,31}")
#: Settings under this name apply to every host.
ALL_HOSTS = "all"
#: Settings under this name apply to hosts that only background flows use.
BACKGROUND_HOSTS = "background"
_MEANINGS = {ALL_HOSTS: "every host", BACKGROUND_HOSTS: "every host that only background flows use"}


def read_hosts(value: Node, problems: Problems) -> dict[str, Mark]:
    """Names as a list, or as the keys of a mapping, with their positions."""
    if isinstance(value, Mapping):
        listed = [(name, mark) for name, mark, _ in value]
    elif isinstance(value, Sequence):
        listed = []
        for item in value.items:
            if isinstance(item, Scalar):
                listed.append((item.text, item.mark))
            else:
                problems.add(item.mark, "must be a name")
    else:
        problems.add(value.mark, "must be a list of names such as [left, right]")
        return {}
    result: dict[str, Mark] = {}
    for name, mark in listed:
        if name in _MEANINGS:
            problems.add(mark, f'"{name}" means {_MEANINGS[name]}; choose another')
        elif not _NAME.fullmatch(name):
            problems.add(mark, f'"{shorten(name)}" can\'t be a name; use letters, digits, "-" and "_"')
        elif name in result:
            problems.add(mark, f'the name "{name}" is there twice')
        else:
            result[name] = mark
    if not result:
        problems.add(value.mark, "needs at least one name")
    return result


def add_hosts(network: Network, hosts: dict[str, Mark], problems: Problems) -> None:
    """Adds hosts whose names must be unused."""
    for name, mark in hosts.items():
        if name in network.hosts or name in network.routers:
            problems.add(mark.at(name), "another node has this name already")
        else:
            network.hosts[name] = mark


def read_settings(
    value: Mapping,
    network: Network,
    background: Iterable[str],
    registry: Registry,
    problems: Problems,
) -> None:
    """`hosts: {all: {tcp_sack: 0}, background: {window: 64 KiB}, left: {...}}`.

    `background` are the hosts that only background flows use.
    """
    groups = {ALL_HOSTS: list(network.hosts), BACKGROUND_HOSTS: list(background)}
    result: dict[str, dict[str, object]] = {}
    for name, mark, written in value:
        if name not in groups and name not in network.hosts:
            problems.unknown_key(mark, name, [*network.hosts, *groups])
            continue
        if name == BACKGROUND_HOSTS and not groups[name]:
            problems.add(mark, "no host is used by background flows alone; remove it")
        result[name] = host_settings(written, registry, problems)
    # Settings of one host override those of several hosts, in whatever order they are written.
    for name in (ALL_HOSTS, BACKGROUND_HOSTS, *network.hosts):
        for host in groups.get(name, [name]):
            if name in result:
                network.settings[host] = {**network.settings.get(host, {}), **result[name]}


def host_settings(value: Node, registry: Registry, problems: Problems) -> dict[str, object]:
    """The written settings of one host."""
    if isinstance(value, Scalar) and value.is_null:
        return {}
    known = {param.name: param for param in registry.host_settings}
    mapping = problems.expect_mapping(value, "{tcp_sack: 0}")
    result: dict[str, object] = {}
    for key, written in problems.check_keys(mapping, known):
        setting = Value(written, known[key], Context(problems)).read()
        if setting is not None:
            result[key] = setting
    return result
