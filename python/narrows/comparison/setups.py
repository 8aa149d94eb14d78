"""Differences between the set-ups of campaigns, and which of them make their numbers incomparable.

A difference is of one of three kinds. *Conditions* are network, flows, duration and the measured part.
Numbers from other conditions say nothing about a scheme, a version or a place, so they are refused unless the
user names the conditions that may differ. *Schemes* are their parameters and settings of the transport;
*circumstances* are versions, kernel, machine, plane, seed and number of runs. The last two are usually the
subject of a comparison, and are only reported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import structs

from narrows.analysis.prose import change_in_words, element_in_words, flows_in_words
from narrows.comparison.sides import Pairing, Side
from narrows.documents.agent import MachineFacts
from narrows.documents.campaign import Versions
from narrows.documents.comparison import Difference
from narrows.documents.data import to_data
from narrows.documents.extensions import labels
from narrows.documents.resolved import Change, Flow, Measure, Network, Resolved
from narrows.errors import DataError
from narrows.scenario import registry as registries
from narrows.scenario.measure import part_in_words
from narrows.scenario.quantity import show
from narrows.scenario.requirement import requirement_in_words
from narrows.text import any_of, shorten

CONDITION, SCHEME, CIRCUMSTANCE = "condition", "scheme", "circumstance"
#: The conditions, by their names for `--across`.
CONDITIONS = ("network", "flows", "duration", "timeline", "measure", "draw", "metrics")
ALL = "all"

NOTHING = "none"
#: An error message names up to this many differences.
_MOST_NAMED = 3
#: Members of a resolved scenario that are shown elsewhere, or do not affect the runs.
_TOLD = (
    *("format", "name", "title", "question", "topology", "network", "base_rtt_ns", "schemes", "duration_ns"),
    *("timeline", "measure", "draw", "drawn", "report", "expect", "where", "runs", "seed", "transport"),
)


def differences(sides: Sequence[Side], pairings: Sequence[Pairing]) -> list[Difference]:
    """All differences between the first campaign and each other one that concern the pairings."""
    result: list[Difference] = []
    if len(sides) == 1:
        # Two rows of one campaign with different matrix values.
        result += _of_rows(sides[0], sides[0], pairings)
    for side in sides[1:]:
        mine = [pairing for pairing in pairings if pairing.other.side is side]
        result += _circumstances(sides[0], side)
        result += _of_rows(sides[0], side, mine)
        result += _definitions(sides[0], side)
    return result


def _difference(
    kind: str,
    what: str,
    base: str,
    other: str,
    sides: tuple[str, str],
    schemes: Sequence[str] = (),
    group: str | None = None,
    rows: tuple[str, str] | None = None,
) -> Difference:
    return Difference(
        kind=kind,
        what=what,
        base=base,
        other=other,
        sides=sides,
        schemes=list(schemes),
        group=group,
        rows=rows,
    )


def check(sides: Sequence[Side], differences: Sequence[Difference], across: Sequence[str]) -> None:
    """Raises `DataError` if conditions differ that `across` does not name."""
    barred = [
        difference
        for difference in differences
        if difference.kind == CONDITION and not {difference.group, ALL} & set(across)
    ]
    if not barred:
        return
    named = [
        f"{difference.what} is {shorten(difference.base, 70)} {difference.places[0]} and"
        f" {shorten(difference.other, 70)} {difference.places[1]}"
        for difference in barred[:_MOST_NAMED]
    ]
    more = len(barred) - _MOST_NAMED
    rest = f", and {more} more" if more > 0 else ""
    groups = dict.fromkeys(str(difference.group) for difference in barred)
    options = " ".join(f"--across {group}" for group in groups)
    paths = {side.name: side.path for side in sides}
    first, second = (paths[name] for name in barred[0].sides)
    compared = f"{first}: the rows are not comparable, since they"
    if barred[0].rows is None:
        compared = f"{first} and {second} are not comparable, since their schemes"
    raise DataError(
        f"{compared} met different conditions: {'; '.join(named)}{rest};"
        f" if that is what you compare, say {options}"
    )


def _circumstances(base: Side, other: Side) -> Iterator[Difference]:
    """Scenario as a whole, plane, randomness, versions, machine."""
    sides = (base.name, other.name)
    for what, read in _FACTS:
        first, second = read(base), read(other)
        if first != second:
            yield _difference(CIRCUMSTANCE, what, first or NOTHING, second or NOTHING, sides)
    keys = dict.fromkeys([*base.settings, *other.settings])
    for key in keys:
        # A member that only one version writes has its default; the other version did not have it yet.
        if key in _TOLD or key not in base.settings or key not in other.settings:
            continue
        first, second = base.settings[key], other.settings[key]
        if first != second:
            for what, mine, theirs in _compare_nested(key, first, second):
                yield _difference(CIRCUMSTANCE, what, mine, theirs, sides)


def _version(side: Side) -> str:
    versions = side.header.versions or Versions()
    git = versions.agent and versions.agent.git
    extensions = labels(versions.agent.extensions) if versions.agent else ""
    own = f" with {extensions}" if extensions else ""
    return f"{versions.narrows or 'unknown'}{f' ({git})' if git else ''}{own}"


def _machine(side: Side) -> str:
    host = _host(side)
    return ", ".join(part for part in (host.cpu_model, _cpus(host), host.machine) if part)


def _host(side: Side) -> MachineFacts:
    return side.header.host or MachineFacts()


def _cpus(host: MachineFacts) -> str:
    return f"{host.cpus} processors" if host.cpus else ""


def _there(side: Side) -> str:
    """The other host of a real path, as described by the last session."""
    known = [session.hosts for session in side.header.sessions if session.hosts]
    host = (known and known[-1].there) or MachineFacts()
    kernel = f"kernel {host.kernel}" if host.kernel else ""
    return ", ".join(part for part in (kernel, host.cpu_model, _cpus(host)) if part)


def _setting(name: str) -> Callable[[Side], str]:
    return lambda side: str(side.settings.get(name, ""))


_FACTS: tuple[tuple[str, Callable[[Side], str]], ...] = (
    ("scenario", lambda side: side.header.name),
    ("plane", lambda side: side.where),
    ("seed", _setting("seed")),
    ("runs", _setting("runs")),
    ("narrows", _version),
    ("kernel", lambda side: _host(side).kernel or ""),
    ("machine", _machine),
    ("other host", _there),
    ("clock source", lambda side: _host(side).clocksource or ""),
)


def _of_rows(base: Side, other: Side, pairings: Sequence[Pairing]) -> list[Difference]:
    """The conditions of the rows of the pairings, and their schemes; differences common to several rows are
    stated once.
    """
    grouped: dict[Entry, list[Pairing]] = {}
    for pairing in pairings:
        mine, theirs = base.settings_of(pairing.base.scheme), other.settings_of(pairing.other.scheme)
        if not mine.flows or not theirs.flows:
            continue
        for kind, what, first, second, group in (
            *_conditions(mine, theirs, described=not {base.where, other.where} & {"hosts", "import"}),
            *_schemes(mine, theirs, pairing.base.scheme == pairing.other.scheme),
        ):
            grouped.setdefault((kind, what, first, second, group), []).append(pairing)
    every = len(pairings)
    return [
        _difference(
            kind,
            what,
            first,
            second,
            (base.name, other.name),
            [] if len(own) == every else list(dict.fromkeys(pairing.title for pairing in own)),
            group,
            (own[0].base.scheme, own[0].other.scheme) if base is other else None,
        )
        for (kind, what, first, second, group), own in grouped.items()
    ]


Entry = tuple[str, str, str, str, str | None]


def _conditions(mine: Resolved, theirs: Resolved, *, described: bool) -> Iterator[Entry]:
    """The conditions in which two rows differ; networks are compared only if both planes describe one."""
    if described and mine.network != theirs.network:
        for what, first, second in _networks(mine.network, theirs.network):
            yield CONDITION, what, first, second, "network"
    if mine.duration_ns != theirs.duration_ns:
        first, second = (show("span", entry.duration_ns) for entry in (mine, theirs))
        yield CONDITION, "duration", first, second, "duration"
    yield from _flows(mine, theirs)
    if mine.timeline != theirs.timeline:
        yield CONDITION, "timeline", _changes(mine.timeline), _changes(theirs.timeline), "timeline"
    if mine.draw != theirs.draw:
        yield CONDITION, "draw", _laws(mine.draw), _laws(theirs.draw), "draw"
    first, second = (_part_to_measure(entry.measure) for entry in (mine, theirs))
    if first != second:
        yield CONDITION, "part measured", first, second, "measure"
    first, second = (requirement_in_words(entry.measure.requirement) for entry in (mine, theirs))
    if first != second:
        yield CONDITION, "requirement for quality of outcome", first, second, "measure"


def _part_to_measure(measure: Measure) -> str:
    links = ", ".join(measure.links)
    part = part_in_words(measure).removesuffix(".") or "the whole run"
    return f"{part}, with links {links}" if links else part


def _flows(mine: Resolved, theirs: Resolved) -> Iterator[Entry]:
    first, second = ([_without_scheme(flow) for flow in entry.flows] for entry in (mine, theirs))
    # A flow that lasts as long as its run differs only with the duration.
    if first == second or _without_ends(first, mine) == _without_ends(second, theirs):
        return
    words = [flows_in_words(entry.flows) for entry in (mine, theirs)]
    if words[0] != words[1]:
        yield CONDITION, "flows", words[0], words[1], "flows"
        return
    for what, text, two in _compare_nested("flows", to_data(first), to_data(second)):
        yield CONDITION, what, text, two, "flows"


def _without_scheme(flow: Flow) -> Flow:
    return structs.replace(flow, scheme="", params={})


def _without_ends(flows: Sequence[Flow], settings: Resolved) -> list[Flow]:
    end = settings.duration_ns
    return [structs.replace(flow, stop_ns=None) if flow.stop_ns == end else flow for flow in flows]


def _changes(timeline: Sequence[Change]) -> str:
    changes = (f"at {show('span', item.at_ns)} {change_in_words(item)}" for item in timeline)
    return "; ".join(changes) or NOTHING


def _laws(draw: dict[str, str]) -> str:
    return ", ".join(f"{name} {law}" for name, law in draw.items()) or NOTHING


def _networks(mine: Network, theirs: Network) -> Iterator[tuple[str, str, str]]:
    """Element by element where the links are the same, else link by link."""
    registry = registries.load()
    first, second = ({link.name: link.elements for link in network.directed} for network in (mine, theirs))
    flag = False
    for name in dict.fromkeys([*first, *second]):
        one, two = first.get(name), second.get(name)
        if one == two:
            continue
        flag = True
        if one is not None and two is not None and [e.kind for e in one] == [e.kind for e in two]:
            for mine_of, theirs_of in zip(one, two, strict=True):
                if mine_of != theirs_of:
                    yield (
                        mine_of.name or name,
                        element_in_words(mine_of, registry),
                        element_in_words(theirs_of, registry),
                    )
            continue
        words = [
            NOTHING
            if link is None
            else " -> ".join(element_in_words(e, registry) for e in link) or "no elements"
            for link in (one, two)
        ]
        yield name, words[0], words[1]
    if not flag:
        yield from _compare_nested("network", to_data(mine), to_data(theirs))


def _schemes(mine: Resolved, theirs: Resolved, same_name: bool) -> Iterator[Entry]:
    """Parameters of the schemes, if they have the same name, and settings of the transport."""
    if same_name:
        told: dict[tuple[str, str, str], None] = {}
        for flow, two in zip(mine.flows, theirs.flows, strict=False):
            if flow.background:
                continue
            if flow.scheme != two.scheme:
                told["scheme", flow.scheme, two.scheme] = None
            if flow.params != two.params:
                told |= dict.fromkeys(_compare_nested("", flow.params, two.params))
        yield from ((SCHEME, *entry, None) for entry in told)
    if mine.transport != theirs.transport:
        for entry in _compare_nested("transport", mine.transport, theirs.transport, only_both=True):
            yield SCHEME, *entry, None


def _compare_nested(
    key: str, mine: Any, theirs: Any, *, only_both: bool = False
) -> Iterator[tuple[str, str, str]]:
    """The differences between plain data, by the path to them."""
    if isinstance(mine, dict) and isinstance(theirs, dict):
        for name in dict.fromkeys([*mine, *theirs]):
            if only_both and not (name in mine and name in theirs):
                continue
            if mine.get(name) != theirs.get(name):
                path = f"{key}.{name}" if key else str(name)
                yield from _compare_nested(path, mine.get(name), theirs.get(name), only_both=only_both)
    elif isinstance(mine, list) and isinstance(theirs, list) and len(mine) == len(theirs):
        for number, (item, two) in enumerate(zip(mine, theirs, strict=True)):
            if item != two:
                yield from _compare_nested(f"{key}.{number}", item, two, only_both=only_both)
    else:
        yield key, _value(key, mine), _value(key, theirs)


def _value(key: str, value: Any) -> str:
    if value is None:
        return NOTHING
    if isinstance(value, int) and not isinstance(value, bool):
        for end, kind in (("_ns", "span"), ("_bps", "rate"), ("_bytes", "bytes")):
            if key.endswith(end):
                return show(kind, value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_value(name, inner)}" for name, inner in value.items()) or NOTHING
    if isinstance(value, list):
        return "; ".join(_value(key, inner) for inner in value) or NOTHING
    return shorten(str(value), 100)


def _definitions(base: Side, other: Side) -> Iterator[Difference]:
    """Metrics that two versions define differently; numbers by different definitions are not compared."""
    first, second = ({metric.name: metric for metric in side.results.metrics} for side in (base, other))
    changed = [
        name
        for name in first.keys() & second.keys()
        if (first[name].definition, first[name].unit) != (second[name].definition, second[name].unit)
    ]
    if changed:
        names = any_of(sorted(changed)).replace(" or ", " and ")
        yield _difference(
            CONDITION, f"definition of {names}", f"as in {_version(base)}", f"as in {_version(other)}",
            (base.name, other.name), [], "metrics",
        )  # fmt: skip
