"""Collects what is wrong in a scenario, so that one run of the program tells all of it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from narrows.errors import Problem, ScenarioError
from narrows.scenario.written import Mapping, Mark, Written

#: After this many problems the rest is noise.
MOST_PROBLEMS = 20


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`; did you mean "..."?` if one of the known words is close, or nothing."""
    known = list(known)
    lowered = {name.lower(): name for name in known}
    if word.lower() in lowered:
        return f'; did you mean "{lowered[word.lower()]}"?'
    close = difflib.get_close_matches(word, known, n=1, cutoff=0.6)
    return f'; did you mean "{close[0]}"?' if close else ""


def shorten(text: str, most: int = 60) -> str:
    """The text as it can stand inside a sentence."""
    text = " ".join(text.split())
    return text if len(text) <= most else text[: most - 1] + "…"


def any_of(words: Iterable[str]) -> str:
    """`a, b or c`."""
    listed = list(words)
    if len(listed) < 2:
        return "".join(listed)
    return f"{', '.join(listed[:-1])} or {listed[-1]}"


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

    def expect_mapping(self, value: Written, path: str, example: str) -> Mapping | None:
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
