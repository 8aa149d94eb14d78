"""Collects the problems of a scenario, so that one run of the program reports all of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from typing import TypeVar

from narrows.errors import Problem, ScenarioError
from narrows.scenario.habits import suggest_key
from narrows.scenario.sections import Section
from narrows.scenario.yaml_tree import Mapping, Mark, Node
from narrows.text import did_you_mean

#: After this many problems the rest is noise.
MOST_PROBLEMS = 20
Kind = TypeVar("Kind", bound=Section)


class Wrong(Exception):  # noqa: N818 - found in what a user has written, and noted
    """A value that can't be read: its position, and the problem."""

    def __init__(self, mark: Mark, text: str, *, is_of_file: bool = False) -> None:
        super().__init__(text)
        self.mark = mark
        self.text = text
        #: True if the problem is in the file that the value names.
        self.is_of_file = is_of_file


class _Noted(AbstractContextManager[None, bool]):
    def __init__(self, problems: Problems) -> None:
        self._problems = problems

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> bool:
        if not isinstance(error, Wrong):
            return False
        self._problems.add(error.mark, error.text, is_of_file=error.is_of_file)
        return True


class Problems:
    """The list of problems of one scenario, or of another file with keys."""

    def __init__(self, *, is_scenario: bool = True) -> None:
        self.entries: list[Problem] = []
        #: Whether keys that users of other tools write are explained.
        self._is_scenario = is_scenario

    def add(self, mark: Mark, text: str, *, is_of_file: bool = False) -> None:
        """Notes a problem of the value at this position, or of the file that it names."""
        position, key = str(mark), mark.path
        # An option such as `--set path.forward.0.rate` or `--runs` already names the key.
        named = position.endswith(f" {key}") or position == f"--{key.rpartition('.')[2]}"
        self.entries.append(Problem(position, "" if named else key, text, is_of_file))

    def note(self) -> _Noted:
        """Notes a problem of a value; reading continues after it."""
        return _Noted(self)

    def unknown_key(self, mark: Mark, key: str, known: Iterable[str]) -> None:
        """Notes a key that has no meaning at this place."""
        self.add(mark, unknown_key(mark, key, known, is_scenario=self._is_scenario).text)

    def check_keys(self, mapping: Mapping | None, known: Iterable[str]) -> Iterator[tuple[str, Node]]:
        """The known keys of a mapping with their values; notes the others."""
        known = list(known)
        for key, mark, value in mapping or ():
            if key in known:
                yield key, value
            else:
                self.unknown_key(mark, key, known)

    def section(self, value: Node, kind: type[Kind], example: str) -> Kind:
        """A mapping with some of the known keys; notes the others. Raises `Wrong` if the value is not a
        mapping.
        """
        mapping = mapping_of(value, f"{{{example}}}")
        for _ in self.check_keys(mapping, kind.list_keys()):
            pass
        return kind.from_mapping(mapping)

    def expect_mapping(self, value: Node, example: str) -> Mapping | None:
        """The value as a mapping; raises `Wrong` with an example if it is not one."""
        with self.note():
            return mapping_of(value, example)
        return None

    def raise_if_any(self) -> None:
        """Ends the reading of the scenario if it has problems."""
        if self.entries:
            unique = list(dict.fromkeys(self.entries))
            raise ScenarioError(unique[:MOST_PROBLEMS])


def unknown_key(mark: Mark, key: str, known: Iterable[str], *, is_scenario: bool = True) -> Wrong:
    """The problem of a key that has no meaning at this place."""
    known = list(known)
    habit = suggest_key(mark.path) if is_scenario else ""
    hint = habit or did_you_mean(key, known) or f"; allowed here: {', '.join(known)}"
    return Wrong(mark, f"unknown key{hint}")


def mapping_of(value: Node, example: str) -> Mapping:
    """The value as a mapping; raises `Wrong` if it is not one."""
    if not isinstance(value, Mapping):
        raise Wrong(value.mark, f"must be keys with values, such as {example}")
    return value
