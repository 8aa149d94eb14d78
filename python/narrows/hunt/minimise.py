"""Minimises a path: leaves out elements that are not needed, and rounds the remaining values.

A change stays if the objective still holds in each of several runs. After every omission the others are tried
again, since two elements may substitute for each other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from narrows.hunt.evaluate import Evaluator
from narrows.hunt.search import holds
from narrows.hunt.space import Values, plainer


@dataclass
class Minimal:
    """A small scenario, and the number of attempts."""

    values: Values
    removed: list[str] = field(default_factory=list)
    tried: int = 0


def minimise(
    evaluator: Evaluator, values: Values, wanted: float, told: Callable[[Minimal], None] = lambda _: None
) -> Minimal:
    """The point without the elements that its value does not need, in round numbers."""
    space = evaluator.question.space
    minimal = Minimal(space.tidy(values))

    def keeps(changed: Values) -> bool:
        changed = space.tidy(changed)
        if changed == minimal.values:
            return False
        minimal.tried += 1
        held = holds(evaluator, changed, wanted)
        if held:
            minimal.values = changed
        told(minimal)
        return held

    removable = [gene.name for gene in space.genes if gene.optional and not gene.of]
    again = True
    while again:
        again = False
        for name in removable:
            if minimal.values.get(name) is not None and keeps(minimal.values | {name: None}):
                minimal.removed.append(name)
                again = True
    for gene in space.genes:
        value = minimal.values.get(gene.name)
        if value is None or gene.fixed:
            continue
        for plain in plainer(value):
            inside = gene.low <= plain <= gene.high
            if plain == value or (inside and keeps(minimal.values | {gene.name: gene.fit(plain)})):
                break
    return minimal
