"""The key `measure`: the part of a run that metrics cover, and the links with separate metrics."""

from __future__ import annotations

from typing import Any

from narrows.scenario.keys import MEASURE
from narrows.scenario.network import Network
from narrows.scenario.params import Context, read_value
from narrows.scenario.problems import Problems, Wrong
from narrows.scenario.quantity import show
from narrows.scenario.registry import Param
from narrows.scenario.yaml_tree import Node, Scalar, Sequence
from narrows.text import did_you_mean, shorten

KEY = "measure"
EXAMPLE = "{from: 10 s, links: [forward.0]}"
#: Each named link requires examining every packet.
MOST_LINKS = 100

_SPAN = Param("", "span", (), None, 0, None, False, "", "")


def read_measure(
    value: Node, duration_ns: int | None, network: Network, problems: Problems
) -> dict[str, Any]:
    """The key in base units, without unwritten members."""
    mapping = problems.expect_mapping(value, EXAMPLE)
    result: dict[str, Any] = {}
    for key, written in problems.known_keys(mapping, MEASURE):
        if key == "links":
            with problems.note():
                result[key] = _links(written, network, problems)
        else:
            time = read_value(written, _SPAN, Context(problems))
            if time is not None:
                result[f"{key}_ns"] = time
    if mapping is None or duration_ns is None:
        return result
    start, end = result.get("from_ns", 0), result.get("to_ns", duration_ns)
    if end > duration_ns:
        text = f"is after the end of the scenario at {show('span', duration_ns)} (duration)"
        problems.add(mapping.entries["to"].mark, text)
    elif start >= end:
        key = "from" if "from" in mapping.entries else "to"
        what = "to" if "to" in mapping.entries else "the end of the scenario"
        text = f"must be before {what} ({show('span', end)})" if key == "from" else "must be after 0 s"
        problems.add(mapping.entries[key].mark, text)
    return result


def _links(value: Node, network: Network, problems: Problems) -> list[str]:
    """Names of bottlenecks, without duplicates."""
    if not isinstance(value, Sequence) or not value.items:
        raise Wrong(value.mark, "must be a list of names of bottlenecks such as [forward.0]")
    if len(value.items) > MOST_LINKS:
        raise Wrong(value.mark, f"has more than {MOST_LINKS} names")
    elements = [element for link in network.links for element in link.elements]
    bottlenecks = [str(element["name"]) for element in elements if element["kind"] == "bottleneck"]
    links: list[str] = []
    for item in value.items:
        name = item.text if isinstance(item, Scalar) else ""
        if name in links:
            problems.add(item.mark, f'"{shorten(name)}" is there twice')
        elif name not in bottlenecks:
            hint = did_you_mean(name, bottlenecks)
            problems.add(item.mark, f'there is no bottleneck "{shorten(name)}"{hint}')
        else:
            links.append(name)
    return links


def part_in_words(measure: dict[str, Any]) -> str:
    """A sentence about the measured part of the run; empty if it is the whole."""
    since = f"from {show('span', measure['from_ns'])}" if "from_ns" in measure else ""
    until = f"to {show('span', measure['to_ns'])}" if "to_ns" in measure else ""
    bounds = " ".join(bound for bound in (since, until) if bound)
    return f"Only the part of each run {bounds} is measured." if bounds else ""
