"""Collects what is wrong in a scenario, so that one run of the program tells all of it."""

from __future__ import annotations

from collections.abc import Iterable

from narrows.errors import Problem, ScenarioError
from narrows.scenario.yaml_tree import Mapping, Mark, Node
from narrows.text import did_you_mean

#: After this many problems the rest is noise.
MOST_PROBLEMS = 20


class Problems:
    """The list of problems of one scenario."""

    def __init__(self) -> None:
        self.found: list[Problem] = []

    def add(self, mark: Mark, key: str, text: str) -> None:
        """Notes a problem with the value at `key`."""
        position = str(mark)
        # An option such as `--set path.forward.0.rate` or `--runs` already names the key.
        named = position.endswith(f" {key}") or position == f"--{key}"
        self.found.append(Problem(position, "" if named else key, text))

    def unknown_key(self, mark: Mark, path: str, key: str, known: Iterable[str]) -> None:
        """Notes a key that has no meaning at this place."""
        known = list(known)
        hint = did_you_mean(key, known) or f"; allowed here: {', '.join(known)}"
        self.add(mark, join(path, key), f"unknown key{hint}")

    def expect_mapping(self, value: Node, path: str, example: str) -> Mapping | None:
        """The value as a mapping, or a problem."""
        if isinstance(value, Mapping):
            return value
        self.add(value.mark, path, f"must be keys with values, such as {example}")
        return None

    def raise_if_any(self) -> None:
        """Ends the reading of the scenario when something is wrong in it."""
        if self.found:
            unique = list(dict.fromkeys(self.found))
            raise ScenarioError(unique[:MOST_PROBLEMS])


def join(path: str, key: str | int) -> str:
    """The address of a key below `path`, as `--set` takes it."""
    return f"{path}.{key}" if path else str(key)
