"""Reads sections of a laboratory's files by their keys, as strictly as scenarios: an unknown key, a missing
one or a value of another type is an error with line and column.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, TypeVar

from msgspec import convert

from narrows.errors import DataError, Problem, ScenarioError
from narrows.files import read_whole
from narrows.lab.keys import Key, sections
from narrows.scenario.derived import quantity_of
from narrows.scenario.problems import Problems, Wrong, mapping_of
from narrows.scenario.yaml_tree import Mapping, Node, Scalar, Sequence, parse_value
from narrows.text import any_of, did_you_mean, shorten

Content = TypeVar("Content")
#: A file that is longer was named by mistake.
MOST_BYTES = 1_000_000
#: Names of experiments, columns and tasks are parts of paths and of `TASK.QUESTION`.
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}$")
#: Names of sections of these kinds must match; all other names are free.
_FREE = ("case", "answer")


def read_section(
    path: Path, section: str, what: str, kind: type[Content]
) -> tuple[Content, Mapping, Problems]:
    """The content of a YAML file by the keys of a section, its tree, and a list for errors.

    Raises `DataError` for a file that can't be read, holds no keys with values, or does not fit the section.
    """
    try:
        text = read_whole(path, what, MOST_BYTES).decode("utf-8-sig")
    except DataError as error:
        raise DataError(f"{path}: {error}") from None
    except UnicodeDecodeError:
        raise DataError(f"{path}: is not UTF-8 text; save the file as UTF-8") from None
    tree = parse_value(text, str(path))
    if not isinstance(tree, Mapping):
        schema = sections()[section]["schema"].example
        wrong = f"a {what} is keys with values, and starts with schema: {schema}"
        raise ScenarioError([Problem(f"{path}:1:1", "", wrong)])
    problems = Problems()
    content = Reader(problems, path.parent).section(tree, section)
    problems.raise_if_any()
    return convert(content, kind), tree, problems


class Reader:
    """Reads sections, and notes errors."""

    def __init__(self, problems: Problems, folder: Path) -> None:
        self.problems = problems
        self.folder = folder

    def section(self, mapping: Mapping, name: str) -> dict[str, object]:
        """A section as plain data, with the default of each missing key."""
        keys = sections()[name]
        result: dict[str, object] = {key.name: self._default(key) for key in keys.values()}
        for key, value in self.problems.check_keys(mapping, keys):
            with self.problems.note():
                result[key] = self._value(value, keys[key])
        for item in keys.values():
            if item.required and item.name not in mapping.entries:
                text = f"the key {item.name} is missing; write for example {item.name}: {item.example}"
                self.problems.add(mapping.mark, text)
        return result

    def _default(self, key: Key) -> Any:
        if key.default is not None:
            return key.default
        if key.type in ("texts", "list"):
            return []
        if key.type in ("values", "choices", "named"):
            return {}
        return None

    def _value(self, value: Node, key: Key) -> Any:
        if key.type == "of":
            return self.section(mapping_of(value, key.example), key.section)
        if key.type == "list":
            return [
                self.section(mapping_of(item, key.example), key.section)
                for item in _items(value, key.example)
            ]
        if key.type == "named":
            return self._read_named(mapping_of(value, key.example), key)
        if key.type == "choice":
            text = _text(value)
            if text not in key.choices:
                hint = did_you_mean(text, key.choices) if len(key.choices) > 1 else ""
                raise Wrong(value.mark, f'"{shorten(text)}" is not {any_of(key.choices)}{hint}')
            return text
        return getattr(self, f"_{key.type}")(value, key)

    def _read_named(self, mapping: Mapping, key: Key) -> dict[str, dict[str, object]]:
        if not mapping.entries:
            raise Wrong(mapping.mark, f"needs at least one, such as {key.example}")
        result = {}
        for name, mark, value in mapping:
            with self.problems.note():
                if key.section not in _FREE and not NAME.match(name):
                    raise Wrong(mark, f'"{shorten(name)}" is not a name; use letters, digits, "-" and "_"')
                result[name] = self.section(mapping_of(value, "{...}"), key.section)
        return result

    def _text(self, value: Node, _key: Key) -> str:
        return _text(value)

    def _texts(self, value: Node, key: Key) -> list[str]:
        return [_text(item) for item in _items(value, key.example)]

    def _flag(self, value: Node, _key: Key) -> bool:
        flag = value.flag if isinstance(value, Scalar) else None
        if flag is None:
            raise Wrong(value.mark, "must be true or false")
        return flag

    def _number(self, value: Node, key: Key) -> float:
        quantity = quantity_of(_text(value))
        if quantity is None:
            raise Wrong(value.mark, f"must be a number, such as {key.example}")
        return float(quantity.value)

    def _file(self, value: Node, _key: Key) -> str:
        text = _text(value)
        if Path(text).is_absolute() or ".." in Path(text).parts:
            raise Wrong(
                value.mark, "must be a file in the folder of the family, which is passed on as a whole"
            )
        return text

    def _values(self, value: Node, key: Key) -> dict[str, str]:
        return {name: _text(item) for name, _, item in mapping_of(value, key.example)}

    def _choices(self, value: Node, key: Key) -> dict[str, list[str]]:
        choices = {}
        for name, _, sequence in mapping_of(value, key.example):
            listed = sequence.items if isinstance(sequence, Sequence) else [sequence]
            choices[name] = [
                item.text if isinstance(item, Scalar) and item.is_null else _text(item) for item in listed
            ]
        return choices


def _text(value: Node) -> str:
    if not isinstance(value, Scalar) or not value.text.strip() or value.is_null:
        raise Wrong(value.mark, "must be a text")
    return " ".join(value.text.split())


def _items(value: Node, example: str) -> list[Node]:
    if not isinstance(value, Sequence):
        raise Wrong(value.mark, f"must be a list, such as {example}")
    return value.items
