"""The network of a cell in a common form: dumbbells and graphs alike."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Json = dict[str, Any]

FORWARD, BACKWARD = "forward", "backward"


def is_dumbbell(network: Mapping[str, Any]) -> bool:
    """True if it is written as two lists of elements."""
    return isinstance(network.get(FORWARD), list)


def elements(network: Mapping[str, Any]) -> list[tuple[str, Json]]:
    """All elements with the name of their link (or direction), in the order of the description."""
    if is_dumbbell(network):
        return [(d, e) for d in (FORWARD, BACKWARD) for e in network.get(d) or []]
    return [
        (str(link.get("name")), e) for link in network.get("links") or [] for e in link.get("elements") or []
    ]


def _links(network: Mapping[str, Any], start: str, end: str) -> list[str]:
    for route in network.get("routes") or []:
        if (route.get("from"), route.get("to")) == (start, end):
            return [str(name) for name in route.get("links") or []]
    return []


def flow_elements(network: Mapping[str, Any], flow: Mapping[str, Any]) -> list[list[Json]]:
    """The elements that the data of a flow pass, and those that its acknowledgements pass."""
    if is_dumbbell(network):
        both = [list(network.get(FORWARD) or []), list(network.get(BACKWARD) or [])]
        return both if flow.get("direction", FORWARD) == FORWARD else both[::-1]
    own = {str(link.get("name")): list(link.get("elements") or []) for link in network.get("links") or []}
    hosts = [str(host.get("name")) for host in network.get("hosts") or []]
    ends = [str(flow.get("from") or (hosts or ["?"])[0]), str(flow.get("to") or (hosts or ["?"])[-1])]
    ways = [_links(network, *ends), _links(network, *ends[::-1])]
    return [[e for name in way for e in own.get(name, [])] for way in ways]


def rtt_ns(network: Mapping[str, Any], flow: Mapping[str, Any]) -> float:
    """The sum of the fixed delays of a flow's round trip."""
    fixed = sum(
        float(e.get("delay") or 0)
        for way in flow_elements(network, flow)
        for e in way
        if e.get("kind") == "delay"
    )
    return fixed + float(flow.get("extra_rtt_ns") or 0)


def longest_rtt_ns(settings: Mapping[str, Any]) -> float:
    """The longest fixed round trip among the flows; for a dumbbell, that of the path alone."""
    network = settings.get("network") or {}
    if is_dumbbell(network):
        return float(sum(e.get("delay") or 0 for _, e in elements(network) if e.get("kind") == "delay"))
    return max((rtt_ns(network, flow) for flow in settings.get("flows") or []), default=0.0)
