"""The key `measure.requirement`: the requirement of an application, for quality of outcome."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

from narrows.documents.resolved import DelayBounds, Requirement, ScoreBounds
from narrows.scenario.declarations.value import Context, Value
from narrows.scenario.problems import Problems, Wrong, mapping_of
from narrows.scenario.quantity import show
from narrows.scenario.registry import Param
from narrows.scenario.sections import Section
from narrows.scenario.yaml_tree import Node, Sequence
from narrows.text import shorten

EXAMPLE = "{throughput: 4 Mbit/s, loss: [1 %, 5 %], delay: {p99: [200 ms, 500 ms]}}"
MOST_PERCENTILES = 20
#: Decimals that the core takes exactly.
_PERCENTILE = re.compile(r"p([0-9]{1,2}(?:\.[0-9]{1,4})?)")

_THROUGHPUT = Param("", "rate", low=1)
_LOSS = Param("", "ratio", low=0, high=1)
_DELAY = Param("", "span", low=0)
_PAIRS = {"ratio": "[1 %, 5 %]", "span": "[200 ms, 500 ms]"}


class RequirementKeys(Section, frozen=True, kw_only=True):
    """The keys of `measure.requirement`."""

    throughput: Node | None = None
    loss: Node | None = None
    delay: Node | None = None


def read_requirement(value: Node, problems: Problems) -> Requirement | None:
    """The key in base units; None after noting a problem. Raises `Wrong` if it has no known key."""
    before = len(problems.entries)
    keys = problems.section(value, RequirementKeys, EXAMPLE[1:-1])
    throughput = loss = None
    delays: list[DelayBounds] = []
    if keys.throughput is not None:
        throughput = Value(keys.throughput, _THROUGHPUT, Context(problems)).read()
    if keys.loss is not None:
        with problems.note():
            loss = _pair(keys.loss, _LOSS, problems)
    if keys.delay is not None:
        with problems.note():
            delays = _delays(keys.delay, problems)
    if len(problems.entries) > before:
        return None
    if throughput is None and loss is None and not delays:
        raise Wrong(keys.mark, f"needs throughput, loss or delay; write for example {EXAMPLE}")
    return Requirement(
        throughput_bps=throughput,
        loss=None if loss is None else ScoreBounds(optimal=loss[0], unacceptable=loss[1]),
        delays=delays,
    )


def _pair(value: Node, param: Param, problems: Problems) -> tuple[Any, Any] | None:
    """The optimal and the unacceptable value."""
    if not isinstance(value, Sequence) or len(value.items) != 2:
        example = _PAIRS[param.kind]
        raise Wrong(value.mark, f"must be the optimal and the unacceptable value, such as {example}")
    optimal, unacceptable = (Value(item, param, Context(problems)).read() for item in value.items)
    if optimal is None or unacceptable is None:
        return None
    if optimal >= unacceptable:
        first, second = (_in_words(bound, param.kind) for bound in (optimal, unacceptable))
        raise Wrong(value.mark, f"the unacceptable value ({second}) must be above the optimal one ({first})")
    return optimal, unacceptable


def _delays(value: Node, problems: Problems) -> list[DelayBounds]:
    """The bounds of percentiles of delay, in their order."""
    mapping = mapping_of(value, "{p99: [200 ms, 500 ms]}")
    if len(mapping.entries) > MOST_PERCENTILES:
        raise Wrong(value.mark, f"has more than {MOST_PERCENTILES} percentiles")
    result: dict[float, DelayBounds] = {}
    for name, mark, node in mapping:
        with problems.note():
            match = _PERCENTILE.fullmatch(name)
            share = float(Fraction(match[1]) / 100) if match else 0.0
            if not share:
                raise Wrong(
                    mark,
                    f'"{shorten(name)}" is not a percentile above p0 and below p100 with at most four'
                    " decimals, such as p99 or p99.9",
                )
            if share in result:
                raise Wrong(mark, f'"{name}" is there twice')
            if pair := _pair(node, _DELAY, problems):
                result[share] = DelayBounds(share=share, optimal_ns=pair[0], unacceptable_ns=pair[1])
    return [result[share] for share in sorted(result)]


def _in_words(value: float, kind: str) -> str:
    return f"{100 * value:.12g} %" if kind == "ratio" else show(kind, value)


def requirement_sentence(requirement: Requirement | None) -> str:
    """A sentence about the requirement of a scenario; empty without one."""
    if requirement is None:
        return ""
    words = requirement_in_words(requirement)
    return f"Quality of outcome is scored against the scenario's requirement: {words}."


def requirement_in_words(requirement: Requirement | None) -> str:
    """The requirement, with the optimal and the unacceptable value of each part."""
    if requirement is None:
        return "the draft's example"
    parts = []
    if requirement.throughput_bps is not None:
        parts.append(f"throughput of at least {show('rate', requirement.throughput_bps)}")
    if (loss := requirement.loss) is not None:
        optimal, unacceptable = (_in_words(bound, "ratio") for bound in (loss.optimal, loss.unacceptable))
        parts.append(f"loss {optimal} to {unacceptable}")
    for delay in requirement.delays:
        optimal, unacceptable = (show("span", bound) for bound in (delay.optimal_ns, delay.unacceptable_ns))
        parts.append(f"p{100 * delay.share:.6g} of one-way delay {optimal} to {unacceptable}")
    bounds = " (optimal to unacceptable)" if requirement.loss is not None or requirement.delays else ""
    return f"{', '.join(parts)}{bounds}"
