"""Shapes of JSON documents, checked on arrival.

A shape is a function that raises `ShapeError` if a value does not match it. Members that no reader here uses
may be anything.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from narrows.text import has_hidden, is_text

#: Takes a value and the words that describe its path.
Shape = Callable[[Any, str], None]

_MOST = 2**63


class ShapeError(Exception):
    """A value of the wrong shape; the message has no full stop."""


def scalar(fits: Callable[[Any], bool], words: str) -> Shape:
    """A single value that satisfies `fits`; `words` describe the expectation."""

    def shape(value: Any, at: str) -> None:
        if not fits(value):
            raise ShapeError(f"{at} is not {words}")

    return shape


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and -_MOST <= value < _MOST


def _is_number(value: Any) -> bool:
    # This also excludes infinities and NaN.
    return _is_integer(value) or (isinstance(value, float) and abs(value) < _MOST)


def _is_lines(value: Any) -> bool:
    """True for text of any length, in lines."""
    if not isinstance(value, str):
        return False
    return not any(map(has_hidden, re.split(r"\r?\n", value) if "\n" in value else [value]))


OBJECT = scalar(lambda value: isinstance(value, dict), "an object")
#: Kinds of single values, and of values that are not validated.
KINDS: dict[str, Shape] = {
    "integer": scalar(_is_integer, "a whole number"),
    "count": scalar(lambda value: _is_integer(value) and value >= 0, "a count"),
    "list": scalar(lambda value: isinstance(value, list), "a list"),
    "object": OBJECT,
    "number": scalar(_is_number, "a number"),
    "boolean": scalar(lambda value: isinstance(value, bool), "a truth value"),
    "string": scalar(_is_lines, "printable text"),
    "text": scalar(is_text, "printable text"),
    "anything": scalar(lambda value: isinstance(value, str), "text"),
}


def nullable(inner: Shape) -> Shape:
    """Also null."""

    def shape(value: Any, at: str) -> None:
        if value is not None:
            inner(value, at)

    return shape


def list_of(inner: Shape) -> Shape:
    """A list of these values."""

    def shape(value: Any, at: str) -> None:
        if not isinstance(value, list):
            raise ShapeError(f"{at} is not a list")
        for index, item in enumerate(value):
            inner(item, f"{at}[{index}]")

    return shape


def dict_of(key: Shape, inner: Shape) -> Shape:
    """A mapping from names of a kind to these values."""

    def shape(value: Any, at: str) -> None:
        if not isinstance(value, dict):
            raise ShapeError(f"{at} is not an object")
        for name, item in value.items():
            key(name, f"a name in {at}")
            inner(item, f"{at}.{name}")

    return shape


def record(members: dict[str, Shape], optional: dict[str, Shape]) -> Shape:
    """An object with these members; optional ones may be absent."""

    def shape(value: Any, at: str) -> None:
        if not isinstance(value, dict):
            raise ShapeError(f"{at} is not an object")
        for name, inner in members.items():
            if name not in value:
                raise ShapeError(f"{at}.{name} is missing")
            inner(value[name], f"{at}.{name}")
        for name, inner in optional.items():
            if name in value:
                inner(value[name], f"{at}.{name}")

    return shape


def read_shapes(path: Path, kinds: dict[str, Shape]) -> dict[str, Shape]:
    """The shapes that a file describes, each in terms of `kinds` and of earlier shapes:

    "text", "text | null", ["text"] a list, {name = "text", "other?" = "text"} an object (? marks optional
    members), {"<text>" = "count"} an object with any members of these kinds, "..." the members of another
    object.
    """
    # Commands that read results must be quick, and so avoid YAML.
    document = tomllib.loads(path.read_text(encoding="utf-8"))
    named = dict(kinds)

    def members(node: dict[str, Any]) -> dict[str, Any]:
        others = document.get(node.get("...", ""), {})
        return {**(members(others) if others else {}), **{k: v for k, v in node.items() if k != "..."}}

    def shape(node: Any) -> Shape:
        if isinstance(node, list):
            return list_of(shape(node[0]))
        if isinstance(node, dict):
            node = members(node)
            (first, inner), *_ = node.items()
            if first.startswith("<"):
                return dict_of(named[first[1:-1]], shape(inner))
            shapes = {name: shape(item) for name, item in node.items()}
            optional = {name[:-1]: item for name, item in shapes.items() if name.endswith("?")}
            return record({name: item for name, item in shapes.items() if not name.endswith("?")}, optional)
        name, _, null = node.partition(" | ")
        return nullable(named[name]) if null else named[name]

    for name, node in document.items():
        named[name] = shape(node)
    return named
