"""Collects what is wrong in a scenario, so that one run of the program tells all of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from narrows.errors import Problem, ScenarioError
from narrows.scenario.yaml_tree import Mapping, Mark, Node
from narrows.text import did_you_mean

#: After this many problems the rest is noise.
MOST_PROBLEMS = 20


class Problems:
    """The list of problems of one scenario."""

    def __init__(self) -> None:
        self.found: list[Problem] = []

    def add(self, mark: Mark, text: str) -> None:
        """Notes a problem with what was written there."""
        position, key = str(mark), mark.path
        # An option such as `--set path.forward.0.rate` or `--runs` already names the key.
        named = position.endswith(f" {key}") or position == f"--{key}"
        self.found.append(Problem(position, "" if named else key, text))

    def unknown_key(self, mark: Mark, key: str, known: Iterable[str]) -> None:
        """Notes a key that has no meaning at this place."""
        known = list(known)
        hint = did_you_mean(key, known) or f"; allowed here: {', '.join(known)}"
        self.add(mark, f"unknown key{hint}")

    def known_keys(self, mapping: Mapping | None, known: Iterable[str]) -> Iterator[tuple[str, Node]]:
        """The known keys of a mapping with their values; notes the others."""
        known = list(known)
        for key, mark, value in mapping or ():
            if key in known:
                yield key, value
            else:
                self.unknown_key(mark, key, known)

    def expect_mapping(self, value: Node, example: str) -> Mapping | None:
        """The value as a mapping, or a problem."""
        if isinstance(value, Mapping):
            return value
        self.add(value.mark, f"must be keys with values, such as {example}")
        return None

    def raise_if_any(self) -> None:
        """Ends the reading of the scenario when something is wrong in it."""
        if self.found:
            unique = list(dict.fromkeys(self.found))
            raise ScenarioError(unique[:MOST_PROBLEMS])
