"""Schemes and flows of a scenario.

`flows: {count: 3, interval: 10 s}` starts flow k at (k-1) x interval and stops all flows together at
the end, as Pantheon does. A list of flows says all of it one by one, and may give each flow a scheme.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from narrows.scenario.params import Context, read_params, read_value
from narrows.scenario.problems import Problems, did_you_mean, join, shorten
from narrows.scenario.registry import Param, Registry
from narrows.scenario.written import Mapping, Mark, Scalar, Sequence, Written

#: The kernel's schemes are named by this prefix and the kernel's own name.
KERNEL_PREFIX = "linux:"
#: Flows are numbered in 16 bits in the record.
MOST_FLOWS = 1000

_KERNEL_NAME = re.compile(r"[a-z0-9_-]{1,15}$")
_SPAN = Param("", "span", (), None, 0, None, False, "", "")
_COUNT = Param("", "count", (), None, 1, MOST_FLOWS, False, "", "")
_DIRECTION = Param("", "choice", ("forward", "backward"), "forward", None, None, False, "", "")


@dataclass(frozen=True)
class Scheme:
    """A scheme with its parameters (defaults filled in), and the label it has in results."""

    name: str
    params: dict[str, Any]
    label: str


@dataclass
class Flow:
    """One flow; without a scheme of its own it runs the scheme under test."""

    scheme: Scheme | None
    start_ns: int
    stop_ns: int
    direction: str = "forward"
    extra_rtt_ns: int = 0


@dataclass
class Flows:
    """All flows, and where the extra RTT was written (for messages)."""

    items: list[Flow] = field(default_factory=list)
    extra_rtt_mark: Mark | None = None


def read_scheme(value: Written, path: str, registry: Registry, problems: Problems) -> Scheme | None:
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


def read_flows(value: Written, duration_ns: int | None, registry: Registry, problems: Problems) -> Flows:
    """The key `flows`, in either form."""
    if isinstance(value, Mapping):
        return _staggered(value, duration_ns, problems)
    if isinstance(value, Sequence):
        if not value.items:
            problems.add(value.mark, "flows", "needs at least one flow")
        if len(value.items) > MOST_FLOWS:
            problems.add(value.mark, "flows", f"has more than {MOST_FLOWS} flows")
            return Flows()
        flows = Flows()
        for index, item in enumerate(value.items):
            _listed(flows, item, join("flows", index), duration_ns, registry, problems)
        return flows
    problems.add(value.mark, "flows", "must be keys such as {count: 3, interval: 10 s}, or a list of flows")
    return Flows()


def _staggered(value: Mapping, duration_ns: int | None, problems: Problems) -> Flows:
    known = ("count", "interval", "extra_rtt")
    for key, mark, _ in value:
        if key not in known:
            problems.unknown_key(mark, "flows", key, known)
    context = Context(problems)
    count, interval = 1, 0
    if "count" in value.entries:
        count = read_value(value.entries["count"], "flows.count", _COUNT, context) or 0
    if "interval" in value.entries:
        interval = read_value(value.entries["interval"], "flows.interval", _SPAN, context) or 0
    if duration_ns is None:
        return Flows()
    last = (count - 1) * interval
    if count and last >= duration_ns:
        mark = value.entries["interval"].mark if "interval" in value.entries else value.mark
        problems.add(
            mark,
            "flows.interval",
            f"flow {count} would start at {last / 1e9:g} s but the duration is"
            f" {duration_ns / 1e9:g} s; use a shorter interval, fewer flows or a longer duration",
        )
        return Flows()
    extras, mark_of_extra = _extra_rtts(value, count, context)
    items = [
        Flow(None, index * interval, duration_ns, extra_rtt_ns=extras[index] if index < len(extras) else 0)
        for index in range(count)
    ]
    return Flows(items, mark_of_extra)


def _extra_rtts(value: Mapping, count: int, context: Context) -> tuple[list[int], Mark | None]:
    written = value.entries.get("extra_rtt")
    if written is None:
        return [0] * count, None
    if isinstance(written, Sequence):
        if len(written.items) != count:
            context.problems.add(
                written.mark,
                "flows.extra_rtt",
                f"lists {len(written.items)} values for {count} flows;"
                " write one value for each flow, or one value for all",
            )
        listed = [
            read_value(item, join("flows.extra_rtt", index), _SPAN, context) or 0
            for index, item in enumerate(written.items)
        ]
        return listed, written.mark
    extra = read_value(written, "flows.extra_rtt", _SPAN, context) or 0
    return [extra] * count, written.mark


def _listed(
    flows: Flows, item: Written, path: str, duration_ns: int | None, registry: Registry, problems: Problems
) -> None:
    mapping = problems.expect_mapping(item, path, "{scheme: cubic, start: 0 s}")
    if mapping is None:
        return
    known = ("scheme", "start", "stop", "direction", "extra_rtt")
    for key, mark, _ in mapping:
        if key not in known:
            problems.unknown_key(mark, path, key, known)
    context = Context(problems)

    def value(key: str, param: Param, default: Any) -> Any:
        if key not in mapping.entries:
            return default
        found = read_value(mapping.entries[key], join(path, key), param, context)
        return default if found is None else found

    scheme = None
    if "scheme" in mapping.entries:
        scheme = read_scheme(mapping.entries["scheme"], join(path, "scheme"), registry, problems)
    start = value("start", _SPAN, 0)
    stop = value("stop", _SPAN, duration_ns)
    extra = value("extra_rtt", _SPAN, 0)
    if extra:
        flows.extra_rtt_mark = mapping.entries["extra_rtt"].mark
    if duration_ns is None or stop is None:
        return

    def mark_of(key: str) -> Mark:
        return mapping.entries[key].mark if key in mapping.entries else mapping.mark

    if start >= duration_ns:
        problems.add(
            mark_of("start"),
            join(path, "start"),
            f"the flow starts at {start / 1e9:g} s, but the scenario ends"
            f" at {duration_ns / 1e9:g} s (duration)",
        )
    elif start >= stop:
        problems.add(
            mark_of("start"),
            join(path, "start"),
            f"the flow starts at {start / 1e9:g} s, which is not before it stops at {stop / 1e9:g} s",
        )
    if stop > duration_ns:
        problems.add(
            mark_of("stop"),
            join(path, "stop"),
            f"the flow stops at {stop / 1e9:g} s, after the end of the"
            f" scenario at {duration_ns / 1e9:g} s (duration)",
        )
    flows.items.append(Flow(scheme, start, stop, value("direction", _DIRECTION, "forward"), extra))
