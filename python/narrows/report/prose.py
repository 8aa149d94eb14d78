"""Sentences of reports: the path and the workload, all derived from numbers."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

from narrows.documents.components import FIXED_DELAY, Component, Element
from narrows.documents.resolved import BULK, Cell, Flow, Resolved
from narrows.report import real_path, units
from narrows.report.data import Campaign
from narrows.scenario import registry
from narrows.scenario.real_path import KIND
from narrows.scenario.registry import Entry
from narrows.text import plural

_CONSTANT = "constant"


def params(entry: Entry | None, values: Mapping[str, Any], skip: tuple[str, ...] = ()) -> list[str]:
    """Parameters as `name value` with units, by their kinds in the registry; unset ones are omitted."""
    kinds = {param.name: param.kind for param in entry.params} if entry else {}
    known = {"delay": "span", "ratio": "ratio", "rate": "rate", "bytes": "bytes", "packets": "packets"}
    texts = []
    for key, value in values.items():
        if key in skip or value is None:
            continue
        text = units.parameter(kinds.get(key) or known.get(key), value)
        texts.append(
            text if key in known or (entry and key == entry.name) else f"{key.replace('_', ' ')} {text}"
        )
    return texts


def rate_text(rate: Component | None) -> str:
    """A link's rate: a number for a constant rate, kind and parameters for others."""
    if rate is None:
        return "no rate"
    listed = params(registry.load().rates.get(rate.kind), rate.params)
    is_constant = rate.kind == _CONSTANT and listed
    return listed[0] if is_constant else " ".join([rate.kind, ", ".join(listed)]).strip()


def queue_text(queue: Component | None) -> str:
    """A queue: its discipline and limits."""
    if queue is None:
        return "unlimited queue"
    listed = params(registry.load().queues.get(queue.kind), queue.params)
    return f"{queue.kind} {' / '.join(listed)}".strip()


def element_lines(element: Element) -> list[str]:
    """An element in a few short lines, as for a box in a picture."""
    if element.is_bottleneck:
        return [rate_text(element.rate), queue_text(element.queue)]
    return [element.kind, *params(registry.load().links.get(element.kind), element.params)[:3]]


def element_sentence(element: Element, rtt_ns: float) -> str:
    """An element in words, with the meaning of its numbers."""
    kind = element.kind
    if kind == FIXED_DELAY:
        return f"a fixed delay of {units.span(element.fixed_delay_ns)}"
    if kind == "loss":
        return f"independent random loss of {units.ratio(element.number('ratio') or 0)} of the packets"
    if kind == "path":
        listed = element_lines(element)[1:]
        return "a path of which the logs of its ends are all that is known" + (
            f" ({', '.join(listed)})" if listed else ""
        )
    if kind == "real":
        return "a real path, of which what was sent and what arrived is all that is known"
    if not element.is_bottleneck:
        return " ".join([f"an element “{kind}”", *([f"({', '.join(element_lines(element)[1:])})"])])
    queue, rate = element.queue, element.rate
    text = f"a bottleneck of {rate_text(rate)} with a queue ({queue_text(queue)}"
    limit = queue.number("bytes") if queue else None
    constant = rate.number("rate") if rate and rate.kind == _CONSTANT else None
    if limit and constant:
        text += f", at most {units.span(round(limit * 8e9 / constant, -4))} of waiting"
        if rtt_ns > 0:
            text += f", {units.trim(limit * 8e9 / constant / rtt_ns, 3)} × the bandwidth-delay product"
    return text + ")"


def path_sentences(settings: Cell | Resolved) -> list[str]:
    """The network of a cell, one sentence per direction and one about round-trip times."""
    network = settings.network
    if not network.is_dumbbell:
        return _graph_sentences(settings)
    rtt = network.longest_rtt_ns(settings.flows)
    texts = []
    for link in network.directed:
        listed = "; then ".join(element_sentence(element, rtt) for element in link.elements)
        ends = f"{link.name.capitalize()} ({link.origin} to {link.target})"
        texts.append(f"{ends}: {listed or 'nothing in between'}.")
    if any(element.kind in ("path", KIND) for element in network.elements):
        return texts  # Its delay is unknown.
    text = f"The smallest possible round trip takes {units.span(rtt)} (without serialization)"
    extra = [flow for flow in settings.flows if flow.extra_rtt_ns]
    if extra:
        text += "; " + ", ".join(f"flow {f.number} has {units.span(f.extra_rtt_ns)} more" for f in extra)
    texts.append(text + ".")
    return texts


MOST_LINKS = 12
"""Links that are described in sentences; larger networks are in the scenario."""


def _graph_sentences(settings: Cell | Resolved) -> list[str]:
    network = settings.network
    hosts, routers = network.hosts, network.routers or []
    between = f" and {plural(len(routers), 'router')}" if routers else ""
    graph_sentences = [f"A network of {plural(len(hosts), 'host')}{between}."]
    grouped: dict[str, list[str]] = {}
    for link in network.directed:
        listed = "; then ".join(element_sentence(element, 0) for element in link.elements)
        if listed:
            grouped.setdefault(listed, []).append(f"{link.origin} → {link.target}")
    for listed, ends in list(grouped.items())[:MOST_LINKS]:
        named = ", ".join(ends[:6]) + (f" and {len(ends) - 6} more" if len(ends) > 6 else "")
        graph_sentences.append(f"{named}: {listed}.")
    if len(grouped) > MOST_LINKS:
        graph_sentences.append(f"{len(grouped) - MOST_LINKS} more kinds of links are in the scenario below.")
    round_trips = sorted({network.rtt_ns(flow) for flow in settings.flows if not flow.background})
    if round_trips:
        low, high = units.span(round_trips[0]), units.span(round_trips[-1])
        text = low if low == high else f"{low} to {high}"
        graph_sentences.append(
            f"The smallest possible round trips of the flows take {text} (without serialization)."
        )
    return graph_sentences


def timeline_sentences(settings: Cell | Resolved) -> list[str]:
    """The changes of the timeline, one sentence per time."""
    grouped: dict[float, list[str]] = {}
    for change in settings.timeline:
        parts = [_change(name, value) for name, value in change.values.params.items()]
        grouped.setdefault(change.at_ns, []).append(f"{change.element}: {', '.join(parts)}")
    listed = [f"At {units.span(at)}, {'; '.join(changes)}." for at, changes in sorted(grouped.items())]
    if len(listed) > MOST_LINKS:
        rest = len(listed) - MOST_LINKS
        listed = [*listed[:MOST_LINKS], f"{plural(rest, 'more instant')} of change: see the scenario."]
    return listed


def _change(name: str, value: object) -> str:
    if isinstance(value, Component):
        return f"rate {rate_text(value)}"
    if name == "open":
        return "restored" if value else "cut"
    if name == "queue" and isinstance(value, Mapping):
        return "queue " + ", ".join(params(None, value))
    return ", ".join(params(None, {name: value})) or name


def workload_sentences(campaign: Campaign) -> list[str]:
    """The numbers of schemes, runs and flows, their duration, and the plane."""
    settings = campaign.settings
    schemes = len(campaign.schemes)
    rows = list(campaign.rows.values())
    names = len({row.scheme for row in rows})
    combinations = len({row.values for row in rows})
    counts = {s: len(campaign.of_scheme(s)) for s in campaign.schemes}
    each = next(iter(counts.values()), 0)
    same = len(set(counts.values())) <= 1
    texts = []
    if schemes:
        times = plural(each, "run") + (" each" if schemes > 1 else "")
        amount = times if same else f"{sum(counts.values())} runs in all"
        under = f" under {plural(combinations, 'combination')} of conditions" if combinations > 1 else ""
        texts.append(f"{plural(names, 'scheme')}{under}, {amount}.")
    if settings:
        every = settings.flows
        flows = [flow for flow in every if not flow.background]
        length = units.span(settings.duration_ns)
        text = f"Each run lasts {length} with {plural(len(flows), 'flow')}"
        starts = sorted(flow.start_ns for flow in flows)
        gaps = {b - a for a, b in itertools.pairwise(starts)}
        if len(flows) > 1 and gaps == {0}:
            text += " that start together"
        elif len(flows) > 1 and len(gaps) == 1:
            text += f" that start {units.span(float(gaps.pop()))} apart"
        kinds = {_traffic_text(flow) for flow in flows} - {""}
        if kinds:
            text += f" ({'; '.join(sorted(kinds))})"
        if len(every) > len(flows):
            text += f", beside {plural(len(every) - len(flows), 'background flow')}"
            kinds = {_traffic_text(flow) for flow in every if flow.background} - {""}
            text += f" ({'; '.join(sorted(kinds))})" if kinds else ""
        texts.append(text + ".")
        texts += timeline_sentences(settings)
    places = {
        "simulate": "simulated (virtual clock, repeatable bit for bit)",
        "emulate": "emulated (real time, on the machine below)",
        "hosts": "made between two real hosts, through a tunnel that logs every packet at both ends",
        "import": f"made and logged by {_tool(campaign)}, and imported",
    }
    if real_path.only_ends(campaign):
        places["hosts"] = (
            "made between two real hosts, without a tunnel: what the ends of the flows counted is all that is"
            " known, and nothing compared the clocks of the hosts while they ran"
        )
    if campaign.planes:
        texts.append("The runs were " + " and ".join(places.get(p, p) for p in campaign.planes) + ".")
    return texts


def _tool(campaign: Campaign) -> str:
    """The tool that measured the runs of an imported campaign."""
    origins = [run.record and run.record.origin for run in campaign.runs]
    tools = {(origin and origin.tool) or "Pantheon" for origin in origins}
    return " and ".join(sorted(tools)) or "others"


def _traffic_text(flow: Flow) -> str:
    """The application of a flow; empty for bulk transfers over one connection."""
    traffic = flow.traffic
    listed: list[str] = []
    if traffic and traffic.kind != BULK:
        entry = registry.load().traffic.get(traffic.kind)
        listed.append(f"{traffic.kind} {', '.join(params(entry, traffic.params))}".strip())
    if flow.connections > 1:
        listed.append(f"{flow.connections} connections per flow")
    return ", ".join(listed)


def problem_counts(campaign: Campaign) -> str:
    """`1 invalid run, 2 failed runs, 1 skipped scheme`, or empty."""
    invalid = sum(1 for r in campaign.runs if r.state == "finished" and not r.valid)
    failed = sum(1 for r in campaign.runs if r.state == "failed")
    other = sum(1 for r in campaign.runs if r.state not in ("finished", "failed"))
    parts = [
        plural(invalid, "invalid run") if invalid else "",
        plural(failed, "failed run") if failed else "",
        plural(other, "unfinished run") if other else "",
        plural(len(campaign.skipped), "skipped scheme") if campaign.skipped else "",
    ]
    return ", ".join(p for p in parts if p)
