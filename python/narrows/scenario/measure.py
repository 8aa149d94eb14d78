"""The key `measure`: the part of a run that metrics cover, separate links, and the requirement."""

from __future__ import annotations

from msgspec import field

from narrows.documents.resolved import WHOLE_RUN, Measure
from narrows.scenario.declarations.value import Context, Value
from narrows.scenario.network import Network
from narrows.scenario.problems import Problems, Wrong
from narrows.scenario.quantity import show
from narrows.scenario.registry import Param
from narrows.scenario.requirement import read_requirement, requirement_sentence
from narrows.scenario.sections import Section
from narrows.scenario.yaml_tree import Node, Scalar, Sequence
from narrows.text import did_you_mean, shorten

KEY = "measure"
EXAMPLE = "{from: 10 s, links: [forward.0]}"
#: Each named link requires examining every packet.
MOST_LINKS = 100

_SPAN = Param("", "span", (), None, 0, None, False, "", "")


class MeasureKeys(Section, frozen=True, kw_only=True):
    """The keys of `measure`."""

    start: Node | None = field(name="from", default=None)
    end: Node | None = field(name="to", default=None)
    links: Node | None = None
    requirement: Node | None = None


def read_measure(value: Node, duration_ns: int | None, network: Network, problems: Problems) -> Measure:
    """The key in base units."""
    keys = None
    with problems.note():
        keys = problems.section(value, MeasureKeys, EXAMPLE.strip("{}"))
    if keys is None:
        return WHOLE_RUN
    links: list[str] = []
    if keys.links is not None:
        with problems.note():
            links = _links(keys.links, network, problems)
    requirement = None
    if keys.requirement is not None:
        with problems.note():
            requirement = read_requirement(keys.requirement, problems)
    context = Context(problems)
    result = Measure(
        from_ns=None if keys.start is None else Value(keys.start, _SPAN, context).read(),
        to_ns=None if keys.end is None else Value(keys.end, _SPAN, context).read(),
        links=links,
        requirement=requirement,
    )
    if duration_ns is None or result == WHOLE_RUN:
        return WHOLE_RUN
    start = result.from_ns or 0
    end = duration_ns if result.to_ns is None else result.to_ns
    if keys.end is not None and end > duration_ns:
        text = f"is after the end of the scenario at {show('span', duration_ns)} (duration)"
        problems.add(keys.end.mark, text)
    elif start >= end and keys.start is not None:
        what = "the end of the scenario" if keys.end is None else "to"
        problems.add(keys.start.mark, f"must be before {what} ({show('span', end)})")
    elif start >= end and keys.end is not None:
        problems.add(keys.end.mark, "must be after 0 s")
    return result


def _links(value: Node, network: Network, problems: Problems) -> list[str]:
    """Names of bottlenecks, without duplicates."""
    if not isinstance(value, Sequence) or not value.items:
        raise Wrong(value.mark, "must be a list of names of bottlenecks such as [forward.0]")
    if len(value.items) > MOST_LINKS:
        raise Wrong(value.mark, f"has more than {MOST_LINKS} names")
    elements = [element for link in network.links for element in link.elements]
    bottlenecks = [element.name for element in elements if element.is_bottleneck]
    links: list[str] = []
    for item in value.items:
        name = item.text if isinstance(item, Scalar) else ""
        if name in links:
            problems.add(item.mark, f'"{shorten(name)}" is there twice')
        elif name not in bottlenecks:
            hint = did_you_mean(name, bottlenecks)
            problems.add(item.mark, f'bottleneck "{shorten(name)}" does not exist{hint}')
        else:
            links.append(name)
    return links


def measure_in_words(measure: Measure) -> str:
    """Sentences about the measured part of the run and the requirement; empty for the whole without one."""
    sentences = (part_in_words(measure), requirement_sentence(measure.requirement))
    return " ".join(filter(None, sentences))


def part_in_words(measure: Measure) -> str:
    """A sentence about the measured part of the run; empty if it is the whole."""
    since = "" if measure.from_ns is None else f"from {show('span', measure.from_ns)}"
    until = "" if measure.to_ns is None else f"to {show('span', measure.to_ns)}"
    bounds = " ".join(bound for bound in (since, until) if bound)
    return f"Only the part of each run {bounds} is measured." if bounds else ""
