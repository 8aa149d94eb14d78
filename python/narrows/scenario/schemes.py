"""Schemes: the congestion controls that a scenario names, with their parameters."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from narrows.scenario.params import Context, read_params
from narrows.scenario.problems import Problems, did_you_mean, join, shorten
from narrows.scenario.registry import Param, Registry
from narrows.scenario.written import Mapping, Scalar, Sequence, Written

#: The kernel's schemes are named by this prefix and the kernel's own name.
KERNEL_PREFIX = "linux:"
#: What datagrams run over that no congestion control governs.
UDP = "udp"

_KERNEL_NAME = re.compile(r"[a-z0-9_-]{1,15}$")


@dataclass(frozen=True)
class Scheme:
    """A scheme with its parameters (defaults filled in), and the label it has in results."""

    name: str
    params: dict[str, Any]
    label: str


def read_scheme(
    value: Written, path: str, registry: Registry, problems: Problems, *, datagrams: bool = False
) -> Scheme | None:
    """A scheme: `cubic`, `linux:bbr`, or `{scheme: cubic, beta: 0.7}`."""
    given = Mapping(value.mark)
    name_value: Written = value
    if isinstance(value, Mapping):
        if "scheme" not in value.entries:
            problems.add(value.mark, path, "needs the key scheme, such as {scheme: cubic, beta: 0.7}")
            return None
        name_value, given = value.entries["scheme"], value
    if not isinstance(name_value, Scalar) or name_value.is_null:
        problems.add(name_value.mark, path, "must be the name of a scheme; narrows schemes lists them")
        return None
    name = name_value.text
    if name.startswith(KERNEL_PREFIX):
        if not _KERNEL_NAME.match(name.removeprefix(KERNEL_PREFIX)):
            problems.add(
                name_value.mark,
                path,
                f'"{shorten(name)}" is not a kernel scheme; write linux: and the'
                " kernel's name, such as linux:cubic",
            )
            return None
        params: tuple[Param, ...] = ()
    elif name in registry.schemes:
        params = registry.schemes[name].params
    elif name == UDP and datagrams:
        params = ()
    elif name == UDP:
        problems.add(
            name_value.mark,
            path,
            "udp is for traffic of datagrams, such as {traffic: {cbr: 20 Mbit/s}}, which no scheme governs;"
            " write it in a flow with such traffic",
        )
        return None
    else:
        known = [*registry.schemes, *(KERNEL_PREFIX + known for known in registry.schemes)]
        hint = did_you_mean(name, known) or f"; known: {', '.join(registry.schemes)} and linux:NAME"
        problems.add(name_value.mark, path, f'unknown scheme "{shorten(name)}"{hint}')
        return None
    values = read_params(given, path, params, name, Context(problems), ignore=("scheme",))
    written = [f"{key}={_plain(item)}" for key, _, item in given if key != "scheme"]
    return Scheme(name, values, f"{name} {' '.join(written)}" if written else name)


def _plain(value: Written) -> str:
    return value.text.replace(" ", "") if isinstance(value, Scalar) else "?"


def read_schemes(value: Written, registry: Registry, problems: Problems) -> list[Scheme]:
    """The list of schemes under test."""
    if not isinstance(value, Sequence) or not value.items:
        problems.add(value.mark, "schemes", "must be a list of schemes such as [cubic, reno]")
        return []
    schemes: list[Scheme] = []
    for index, item in enumerate(value.items):
        path = join("schemes", index)
        scheme = read_scheme(item, path, registry, problems)
        if scheme is None:
            continue
        if any(scheme.label == other.label for other in schemes):
            problems.add(
                item.mark, path, f"{scheme.label} is in the list already; remove it (runs: repeats a scheme)"
            )
        schemes.append(scheme)
    return schemes
