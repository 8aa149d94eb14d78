"""The key `sweep`: reads it, and turns it into points.

    sweep:
      path.forward.0.rate: {loguniform: [1 Mbit/s, 100 Mbit/s], label: rate}
      path.forward.1.delay: {uniform: [5 ms, 100 ms]}
      path.forward.0.queue.droptail: [0.5 bdp, 1 bdp, 4 bdp]
      design: sobol
      points: 256
      constraints: [rate x delay < 500 kB]
      until: {metric: delay_p95_ns, within: 5 %, most: 30}

A key has a list of values or a law of `draw`. Every point is resolved as if its values had been written in
place.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from narrows.documents.sweep import Until
from narrows.errors import Problem, ScenarioError, UsageError
from narrows.scenario import draws, overrides
from narrows.scenario.derived import evaluate, quantity_of
from narrows.scenario.draws import Law
from narrows.scenario.keys import LAWS
from narrows.scenario.matrix import FIXED, in_words, last_word
from narrows.scenario.problems import Problems, Wrong
from narrows.scenario.quantity import QuantityError
from narrows.scenario.sections import Section
from narrows.scenario.yaml_tree import Mapping, Node, Scalar, Sequence
from narrows.sweep import designs
from narrows.text import did_you_mean, shorten, suggest

KEY = "sweep"
#: Words of the sweep that are not addresses.
DESIGN, POINTS, CONSTRAINTS, UNTIL, STEPS, LABEL = (
    "design",
    "points",
    "constraints",
    "until",
    "steps",
    "label",
)
WORDS = (DESIGN, POINTS, CONSTRAINTS, UNTIL)
MOST_POINTS = 1_000_000
#: A constraint that fewer than one in this many points satisfies is considered a mistake.
RAREST = 1000
DEFAULT_POINTS = 100
DEFAULT_STEPS = 5
_COMPARES = re.compile(r"(<=|>=|<|>)")
_EXAMPLE = "{path.forward.0.rate: {loguniform: [1 Mbit/s, 100 Mbit/s]}, design: latin-hypercube, points: 100}"


@dataclass(frozen=True)
class Parameter:
    """One key of a sweep: its address, its display name, its name in results, and the law of its values."""

    key: str
    name: str
    law: Law
    #: Values of the design `grid`, as shares of the law.
    shares: tuple[float, ...]

    def at(self, share: float) -> tuple[Node, str]:
        """The value at a quantile of the law, and its exact written form, so that a point can be repeated
        from the results.
        """
        node, shown = self.law.at(share)
        given, said = quantity_of(in_words(node)), quantity_of(shown)
        exact = given is None or (said is not None and said.value == given.value)
        return node, shown if exact else in_words(node)


@dataclass(frozen=True)
class Point:
    """The values of one point: nodes by the addresses of keys, and words by parameter names."""

    number: int
    nodes: dict[str, Node]
    words: dict[str, str]


@dataclass(frozen=True)
class Sweep:
    """A sweep as written."""

    parameters: list[Parameter]
    design: str
    count: int
    constraints: list[str]
    until: Until | None
    seed: int

    def points(self) -> Iterator[Point]:
        """The points that satisfy all constraints, numbered from 0 without gaps."""
        number = tried = 0
        for shares in self._shares():
            tried += 1
            values = {
                parameter.name: parameter.at(share)
                for parameter, share in zip(self.parameters, shares, strict=True)
            }
            words = {name: text for name, (_, text) in values.items()}
            if not all(_holds(constraint, words) for constraint in self.constraints):
                if tried > RAREST * (number + 1):
                    raise ScenarioError(
                        [Problem(KEY, CONSTRAINTS, f"not one in {RAREST} points keeps them; widen the laws")]
                    )
                continue
            yield Point(
                number, {parameter.key: values[parameter.name][0] for parameter in self.parameters}, words
            )
            number += 1
            if self.design in (designs.RANDOM, designs.SOBOL) and number == self.count:
                return

    def _shares(self) -> Iterator[tuple[float, ...]]:
        names = [parameter.key for parameter in self.parameters]
        if self.design == designs.GRID:
            return itertools.product(*(parameter.shares for parameter in self.parameters))
        if self.design == designs.LIST:
            return zip(*(parameter.shares for parameter in self.parameters), strict=True)
        if self.design == designs.LATIN:
            return designs.latin_hypercube(names, self.seed, self.count)
        if self.design == designs.SOBOL:
            return designs.sobol(names, self.seed, self.count * RAREST)
        return designs.random_points(names, self.seed)


def read(tree: Mapping, seed: int, runs: int) -> Sweep:
    """The sweep of a written scenario; raises `ScenarioError` with all of its errors."""
    problems = Problems()
    mapping = problems.expect_mapping(tree.entries[KEY], _EXAMPLE)
    problems.raise_if_any()
    assert mapping is not None
    parameters: list[Parameter] = []
    for key, mark, written in mapping:
        if key in WORDS:
            continue
        with problems.note():
            if key.split(".")[0] in (*FIXED, KEY, "draw"):
                raise Wrong(mark, f"{key.split('.')[0]} is the same for a whole sweep; remove it")
            parameters.append(_parameter(key, written))
    if not parameters and not problems.entries:
        problems.add(mapping.mark, f"needs a key with values, such as {_EXAMPLE}")
    parameters = _find_metric(parameters)
    names = [parameter.name for parameter in parameters]
    for name in {name for name in names if names.count(name) > 1}:
        problems.add(mapping.mark, f'two keys are called "{shorten(name)}"; give one another label')
    sweep = Sweep(parameters, designs.GRID, DEFAULT_POINTS, [], None, seed)
    with problems.note():
        sweep = replace(sweep, design=_design(mapping, parameters))
    with problems.note():
        sweep = replace(sweep, count=_count(mapping, sweep.design))
    with problems.note():
        sweep = replace(sweep, constraints=_constraints(mapping, parameters))
    with problems.note():
        sweep = replace(sweep, until=_until(mapping, runs))
    problems.raise_if_any()
    return sweep


def _find_metric(parameters: list[Parameter]) -> list[Parameter]:
    last = [parameter.name or last_word(parameter.key) for parameter in parameters]
    return [
        replace(parameter, name=word if last.count(word) == 1 or parameter.name else parameter.key)
        for parameter, word in zip(parameters, last, strict=True)
    ]


def _parameter(key: str, written: Node) -> Parameter:
    label, steps = "", DEFAULT_STEPS
    if isinstance(written, Mapping) and ("values" in written.entries or written.entries.keys() & set(LAWS)):
        own = dict(written.entries)
        if (result := own.pop(LABEL, None)) is not None:
            label = in_words(result)
        if (result := own.pop(STEPS, None)) is not None:
            steps = _number(result, 2, 1000)
        inner = own["values"] if list(own) == ["values"] else Mapping(written.mark, own, written.key_marks)
    else:
        inner = written
    if isinstance(inner, Sequence):
        if not inner.items:
            raise Wrong(inner.mark, "must have a value at least")
        law = Law(key, f"choice {in_words(inner)}", inner, "choice", tuple(inner.items))
    else:
        law = draws.read_law(inner, key)
    if law.name == "same":
        raise Wrong(inner.mark, "same is for draw; leave the key out and let its value follow in constraints")
    if law.name == "choice":
        count = len(law.values)
        return Parameter(key, label, law, tuple((at + 0.5) / count for at in range(count)))
    # A normal law has no limits.
    low, high = (0.025, 0.975) if law.name == "normal" else (0.0, 1.0)
    shares = tuple(low + (high - low) * at / (steps - 1) for at in range(steps))
    return Parameter(key, label, law, shares)


def _number(node: Node, low: int, high: int) -> int:
    text = node.text if isinstance(node, Scalar) else ""
    if not text.isdecimal() or not low <= int(text) <= high:
        raise Wrong(node.mark, f"must be a number from {low} to {high}")
    return int(text)


def _design(mapping: Mapping, parameters: list[Parameter]) -> str:
    node = mapping.entries.get(DESIGN)
    text = in_words(node) if node is not None else designs.GRID
    if node is not None and text not in designs.DESIGNS:
        hint = suggest(text, designs.DESIGNS, "design")
        raise Wrong(node.mark, f'design "{shorten(text)}" does not exist{hint}')
    if node is not None and text == designs.LIST:
        counts = {
            parameter.name: len(parameter.shares)
            for parameter in parameters
            if parameter.law.name == "choice"
        }
        if len(counts) < len(parameters):
            raise Wrong(node.mark, "every key needs a list of values, which go together one by one")
        if len(set(counts.values())) > 1:
            listed = ", ".join(f"{count} of {name}" for name, count in counts.items())
            raise Wrong(node.mark, f"values go together one by one, and their numbers differ: {listed}")
    if text == designs.GRID and math.prod(len(parameter.shares) for parameter in parameters) > MOST_POINTS:
        raise Wrong((node or mapping).mark, f"the grid has more than {MOST_POINTS} points")
    return text


def _count(mapping: Mapping, design: str) -> int:
    node = mapping.entries.get(POINTS)
    if node is None:
        return DEFAULT_POINTS
    if design in (designs.GRID, designs.LIST):
        raise Wrong(node.mark, f"the number of points of a {design} follows from its values; remove it")
    return _number(node, 1, MOST_POINTS)


def _constraints(mapping: Mapping, parameters: list[Parameter]) -> list[str]:
    node = mapping.entries.get(CONSTRAINTS)
    if node is None:
        return []
    items = node.items if isinstance(node, Sequence) else [node]
    middle = {parameter.name: parameter.at(0.5)[1] for parameter in parameters}
    for item in items:
        try:
            _holds(in_words(item), middle)
        except QuantityError as error:
            raise Wrong(item.mark, str(error)) from None
    return [in_words(item) for item in items]


def _holds(constraint: str, words: dict[str, str]) -> bool:
    """True if the values satisfy a constraint such as `rate x delay < 1 MB`. Raises `QuantityError`."""
    parts = _COMPARES.split(constraint)
    if len(parts) != 3:
        raise QuantityError("must compare two expressions, such as rate x delay < 1 MB")
    left, right = (quantity_of(evaluate(part.strip(), words)) for part in (parts[0], parts[2]))
    if left is None or right is None or left.kind != right.kind:
        raise QuantityError(f"{parts[0].strip()} and {parts[2].strip()} are not of one kind")
    return {
        "<": left.value < right.value,
        "<=": left.value <= right.value,
        ">": left.value > right.value,
        ">=": left.value >= right.value,
    }[parts[1]]


class _UntilKeys(Section, frozen=True, kw_only=True):
    metric: Node | None = None
    flow: Node | None = None
    within: Node | None = None
    most: Node | None = None


def _until(mapping: Mapping, runs: int) -> Until | None:
    from narrows.campaign.measurement import list_metrics
    from narrows.statistics.runs import FEWEST_FOR_INTERVAL

    node = mapping.entries.get(UNTIL)
    if node is None:
        return None
    example = "{metric: delay_p95_ns, within: 5 %, most: 30}"
    if not isinstance(node, Mapping):
        raise Wrong(node.mark, f"must be keys with values, such as {example}")
    for key, mark, _ in node:
        if key not in _UntilKeys.list_keys():
            raise Wrong(mark, f"unknown key{did_you_mean(key, _UntilKeys.list_keys())}")
    keys = _UntilKeys.from_mapping(node)
    if keys.metric is None or keys.within is None:
        raise Wrong(node.mark, f"needs metric and within, such as {example}")
    metric = in_words(keys.metric)
    known = [metric.name for metric in list_metrics()]
    if metric not in known:
        raise Wrong(
            keys.metric.mark, f'metric "{shorten(metric)}" does not exist{did_you_mean(metric, known)}'
        )
    share = quantity_of(in_words(keys.within))
    if share is None or share.kind not in ("ratio", "number") or not 0 < share.value < 1:
        raise Wrong(keys.within.mark, "must be a share of the median such as 5 %")
    most = 30 if keys.most is None else _number(keys.most, FEWEST_FOR_INTERVAL, 10_000)
    if runs < FEWEST_FOR_INTERVAL or runs > most:
        low = FEWEST_FOR_INTERVAL
        raise Wrong(node.mark, f"an interval needs {low} runs; write runs: {low}, or more up to {most}")
    flow = "all" if keys.flow is None else in_words(keys.flow)
    if keys.flow is not None and flow != "all" and not flow.isdecimal():
        raise Wrong(keys.flow.mark, "must be the number of a flow, or all")
    return Until(metric=metric, flow=flow, within=float(share.value), most=most)


def place(base: Mapping, point: Point) -> Mapping:
    """The scenario as it would be written for a point."""
    changed = base.copy("")
    for key, node in point.nodes.items():
        option = str(node.mark)
        try:
            overrides.place(changed, key, node, option)
        except UsageError as error:
            text = str(error).removeprefix(f"{option}: ")
            raise ScenarioError([Problem(option, f"{KEY}.{key}", text)]) from None
    return changed
