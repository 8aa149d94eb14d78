"""A scenario's network and flows in words, for the terminal."""

from __future__ import annotations

from narrows.documents.components import Component, Element
from narrows.documents.resolved import Change, Flow
from narrows.scenario import registry as registries
from narrows.scenario.model import Scenario
from narrows.scenario.quantity import show
from narrows.scenario.real_path import KIND
from narrows.scenario.registry import Entry, Registry
from narrows.scenario.timeline import GATE


def network_in_words(scenario: Scenario) -> list[str]:
    """One line per direction, one for the flows."""
    registry = registries.load()
    links = scenario.network.directed
    width = max(8, *(len(link.name) for link in links)) if links else 8
    lines = []
    for link in links:
        # Gates exist only for the timeline, which is described below.
        shown = (element for element in link.elements if element.kind != GATE)
        parts = " -> ".join(element_in_words(element, registry) for element in shown)
        lines.append(f"  {link.name:{width}}  {parts or 'nothing on the way'}")
    for change in scenario.timeline:
        lines.append(f"  at {show('span', change.at_ns)}  {change_in_words(change)}")
    values: dict[str, dict[str, None]] = {}
    for row in scenario.schemes:
        for name, value in row.values.items():
            values.setdefault(name, {})[value] = None
    for name, listed in values.items():
        lines.append(f"  for each  {name}: {', '.join(listed)}")
    for name, law in scenario.draw.items():
        lines.append(f"  each run  {name}: {law}")
    flows = scenario.schemes[0].flows
    for what, some in (
        ("flows", [flow for flow in flows if not flow.background]),
        ("background", [flow for flow in flows if flow.background]),
    ):
        if some:
            lines.append(f"  {what:{width}}  {flows_in_words(some)}")
    round_trip = f"; round trip {show('span', scenario.base_rtt_ns)}" if not scenario.real_path else ""
    lines.append(f"  {'duration':{width}}  {show('span', scenario.duration_ns)}{round_trip}")
    return lines


def flows_in_words(flows: list[Flow]) -> str:
    """`2, right -> left, starting at 0 s, 3 s`: routes, start times and differences of the flows."""
    parts = [str(len(flows))]
    ways = list(dict.fromkeys(f"{flow.origin} -> {flow.target}" for flow in flows if flow.origin))
    if ways:
        parts.append(_some(ways))
    starts = [show("span", flow.start_ns) if flow.start_ns else "0 s" for flow in flows]
    parts.append(f"starting at {_some(starts if len(set(starts)) > 1 else starts[:1])}")
    if any(flow.extra_rtt_ns for flow in flows):
        parts.append(f"extra RTT {_some([show('span', flow.extra_rtt_ns) for flow in flows])}")
    kinds = list(dict.fromkeys(flow.traffic.kind for flow in flows if flow.traffic))
    if kinds:
        parts.append(f"traffic {', '.join(kinds)}")
    connections = sum(flow.connections for flow in flows)
    if connections > len(flows):
        parts.append(f"{connections} connections")
    return ", ".join(parts)


def _some(words: list[str], most: int = 6) -> str:
    return ", ".join(words[:most]) + (", ..." if len(words) > most else "")


def change_in_words(change: Change) -> str:
    """A change of the timeline: `forward.0: rate constant 5 Mbit/s`."""
    values = change.values.params
    if set(values) == {"open"}:
        link = change.element.rpartition(".")[0]
        return f"{link} {'works again' if change.values.flag('open') else 'is cut'}"
    parts = []
    registry = registries.load()
    for key, value in values.items():
        if isinstance(value, Component):
            parts.append(f"{key} {_in_words(value, registry.rates, hide='constant')}")
        else:
            parts.append(f"{key} {value}")
    return f"{change.element}: {', '.join(parts)}"


def element_in_words(element: Element, registry: Registry) -> str:
    """`12 Mbit/s with droptail 60 kB`, `delay 20 ms`."""
    if element.kind == KIND:
        return f"the real path from {element.text('from')} to {element.text('to')}"
    if element.rate and element.queue:
        rate = _in_words(element.rate, registry.rates, hide="constant")
        return f"{rate} with {_in_words(element.queue, registry.queues)}"
    return _in_words(element, registry.links)


def _in_words(component: Component, family: dict[str, Entry], hide: str = "") -> str:
    entry = family[component.kind]
    values = []
    for param in entry.params:
        value = component.params.get(param.name)
        if value is None:
            continue
        share = component.number(param.name) if param.kind == "ratio" else None
        text = show(param.kind, value) if share is None else f"{share * 100:g} %"
        values.append(text if param.name in entry.shorthand else f"{param.name} {text}")
    name = "" if component.kind == hide else component.kind
    return " ".join(part for part in (name, ", ".join(values)) if part)
