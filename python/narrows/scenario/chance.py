"""Randomness in simulations: the parts of a scenario that can make runs with different seeds differ.

Parts that are not known to be deterministic count as random.
"""

from __future__ import annotations

import tomllib
from pathlib import Path

from narrows.documents.components import Element
from narrows.scenario.flows import Flows
from narrows.scenario.model import SchemeRow
from narrows.scenario.network import Network

#: Names of deterministic parts, by families of the registry.
WITHOUT: dict[str, list[str]] = tomllib.loads(
    Path(__file__).with_name("without_chance.toml").read_text(encoding="utf-8")
)


def is_in(network: Network, rows: list[SchemeRow], flows: Flows) -> bool:
    """True if the runs of a scenario may differ from each other."""
    if any(flow.spread_ns or flow.traffic.kind not in WITHOUT["traffic"] for flow in flows.items):
        return True
    names = {name for row in rows for name in row.scheme_names}
    if not names <= set(WITHOUT["schemes"]):
        return True
    return any(_has_chance(element) for link in network.links for element in link.elements)


def _has_chance(element: Element) -> bool:
    rate, queue = element.rate, element.queue
    if rate and queue:
        return rate.kind not in WITHOUT["rates"] or queue.kind not in WITHOUT["queues"]
    return element.kind not in WITHOUT["links"]
