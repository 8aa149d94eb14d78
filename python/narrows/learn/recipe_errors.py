"""Errors of the reader in Rust as sentences about lines of a recipe.

The reader gets one value per line of JSON, so that the line at which it stopped leads to the value in the
recipe.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from narrows.scenario.yaml_tree import Mapping, Mark, Node, Scalar, Sequence
from narrows.text import did_you_mean

_PLACE = re.compile(r" at line (\d+) column \d+$")
_MISSING = re.compile(r"missing field `(\w+)`")
_UNKNOWN = re.compile(r"unknown field `(.+)`, (?:expected (?:one of )?(.+)|there are no fields)")
_INVALID = re.compile(r"invalid (?:type|value|length)[: ]+(.+), expected (.+)", re.DOTALL)
#: Types of the reader, and the words for them in a recipe.
_ALLOWED = (
    (r"[ui](8|16|32|64|size)|a nonzero [ui]\d+", "a whole number of at least 0"),
    (r"f(32|64)", "a number"),
    (r"a boolean", "true or false"),
    (r"a string", "a name"),
    (r"a sequence", "a list"),
    (r"(?:struct|internally tagged enum) .*|a map", "keys with values"),
    (r"(?:an array of length|a tuple of size) (\d+)", r"a list of \1 numbers"),
)


def to_lines(tree: Node) -> list[tuple[str, Mark]]:
    """JSON of the tree, one value per line, and the mark of each line in the recipe."""
    return list(_lines(tree, ""))


def locate(problem: str, tree: Mapping) -> str:
    """The problem with file, line and column: those at which the reader stopped, or of the first key that it
    names.
    """
    if place := _PLACE.search(problem):
        mark = to_lines(tree)[int(place[1]) - 1][1]
        return f"{mark}: {_reword(problem[: place.start()], mark.path)}"
    for word in re.findall(r"[A-Za-z_]\w*", problem):
        for mark in _marks(tree, word):
            return f"{mark}: {problem}"
    return f"{tree.mark.source}: {problem}"


def _lines(node: Node, after: str) -> Iterator[tuple[str, Mark]]:
    if isinstance(node, Mapping):
        yield "{", node.mark
        for number, (key, mark, value) in enumerate(node, 1):
            yield f"{json.dumps(key)}:", mark
            yield from _lines(value, "," if number < len(node.entries) else "")
        yield f"}}{after}", node.mark
    elif isinstance(node, Sequence):
        yield "[", node.mark
        for number, item in enumerate(node.items, 1):
            yield from _lines(item, "," if number < len(node.items) else "")
        yield f"]{after}", node.mark
    else:
        yield f"{json.dumps(_plain(node))}{after}", node.mark


def _plain(node: Scalar) -> str | int | float | bool | None:
    if node.is_null:
        return None
    if node.flag is not None:
        return node.flag
    if node.integer is not None:
        return node.integer
    return node.text if node.number is None else node.number


def _reword(problem: str, path: str) -> str:
    """The reader's sentence in the words of recipes."""
    key = path or "a recipe"
    if missing := _MISSING.match(problem):
        return f"{path + ': ' if path else ''}{missing[1]} is missing"
    if unknown := _UNKNOWN.match(problem):
        known = re.findall(r"`(\w+)`", unknown[2] or "")
        keys = f"; keys are {', '.join(known)}" if known else ""
        return f"{unknown[1]}: this key does not exist{did_you_mean(unknown[1], known) or keys}"
    if invalid := _INVALID.match(problem):
        value = re.sub(r"^(?:string|integer|floating point|boolean) ", "", invalid[1]).strip("`")
        value = {"map": "a mapping", "sequence": "a list", "null": "empty"}.get(value, value)
        for pattern, allowed in _ALLOWED:
            if expected := re.match(pattern, invalid[2]):
                return f"{key} is {value}; use {expected.expand(allowed)}"
        return f"{key} is {value}; use {invalid[2]}"
    return f"{key}: {problem}"


def _marks(tree: Node, key: str) -> Iterator[Mark]:
    if isinstance(tree, Mapping):
        for name, _, value in tree:
            if name == key:
                yield value.mark
            yield from _marks(value, key)
    elif isinstance(tree, Sequence):
        for item in tree.items:
            yield from _marks(item, key)
