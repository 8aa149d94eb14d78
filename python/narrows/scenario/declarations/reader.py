"""Reads files by their declaration: an unknown key, a missing one or a wrong value is an error with file,
line, column and key, and all errors of a file are reported at once.
"""

from __future__ import annotations

import re
from collections.abc import Mapping as Names
from pathlib import Path
from typing import Any, Generic, TypeVar

from msgspec import convert

from narrows.errors import DataError, Problem, ScenarioError
from narrows.files import read_whole
from narrows.scenario.declarations.declaration import Format, Key
from narrows.scenario.declarations.value import Context, Value
from narrows.scenario.problems import Problems, Wrong, mapping_of
from narrows.scenario.yaml_tree import Mapping, Mark, Node, Scalar, Sequence, in_yaml, parse_value
from narrows.text import shorten

Content = TypeVar("Content")
#: The values of a section by its keys.
Section = dict[str, Any]
#: A file that is longer was named by mistake.
MOST_BYTES = 1_000_000


def read_text(path: Path, what: str, most: int = MOST_BYTES) -> str:
    """The text of a file; raises `DataError` with its path."""
    try:
        return read_whole(path, what, most).decode("utf-8-sig")
    except DataError as error:
        raise DataError(f"{path}: {error}") from None
    except UnicodeDecodeError:
        raise DataError(f"{path}: is not UTF-8 text; save the file as UTF-8") from None


def parse_file(text: str, source: str, what: str, format_name: str = "") -> Mapping:
    """The tree of a file, which must have keys; raises `ScenarioError`."""
    tree = parse_value(text, source)
    if not isinstance(tree, Mapping):
        starts = f", and starts with schema: {format_name}" if format_name else ""
        wrong = f"a {what} is keys with values{starts}"
        raise ScenarioError([Problem(f"{source}:1:1", "", wrong)])
    return tree


class Reader:
    """Reads sections, and notes errors. A kind of files with other kinds of values derives from it: the
    method `read_KIND` reads them.
    """

    def __init__(self, form: Format, problems: Problems) -> None:
        self.format = form
        self.problems = problems
        self.context = Context(problems)

    def section(self, mapping: Mapping, name: str) -> Section:
        """A section as plain data, with the default of each missing key; a key whose value is wrong has its
        default too.
        """
        keys = self.format.keys(name)
        written = dict(self.problems.check_keys(mapping, keys))
        note_missing(mapping, keys, self.problems)
        result: Section = {}
        for key in keys.values():
            result[key.name] = self.default(mapping, key)
            if key.name in written:
                with self.problems.note():
                    result[key.name] = self.value(written[key.name], key)
        return result

    def default(self, mapping: Mapping, key: Key) -> Any:
        """The value of a key that is absent."""
        if key.kind == "of" and key.default is not None:
            return self.section(Mapping(mapping.mark), key.section)
        if key.default is None and key.kind in ("texts", "list"):
            return []
        if key.default is None and key.kind in ("values", "choices", "named"):
            return {}
        return key.default

    def value(self, node: Node, key: Key) -> Any:
        """The value of a key; raises `Wrong`."""
        if (read := getattr(self, f"read_{key.kind}", None)) is not None:
            return read(node, key)
        return Value(node, key, self.context).require()

    def read_of(self, node: Node, key: Key) -> Section:
        """One section."""
        return self.section(mapping_of(node, key.example), key.section)

    def read_list(self, node: Node, key: Key) -> list[Section]:
        """Sections in a list."""
        return [self.read_of(item.node, key) for item in Value(node, key, self.context).items()]

    def read_named(self, node: Node, key: Key) -> Section:
        """Sections by names."""
        mapping = mapping_of(node, key.example)
        if not mapping.entries:
            raise Wrong(mapping.mark, f"needs at least one, such as {key.example}")
        result = {}
        for name, mark, value in mapping:
            with self.problems.note():
                self.check_name(name, mark, key)
                result[name] = self.read_entry(name, value, key)
        return result

    def check_name(self, name: str, mark: Mark, key: Key) -> None:
        """Raises `Wrong` if a section can't have that name."""
        if key.names and not re.match(key.names, name):
            raise Wrong(mark, f'"{shorten(name)}" is not a name; use letters, digits, "-" and "_"')

    def read_entry(self, _name: str, node: Node, key: Key) -> Any:
        """One of several sections by names."""
        return self.section(self.mapping_of_entry(node, key), key.section)

    def mapping_of_entry(self, node: Node, key: Key) -> Mapping:
        """The mapping of a section with a name, which may be null for some."""
        if key.nullable and isinstance(node, Scalar) and node.is_null:
            return Mapping(node.mark)
        example = parse_value(key.example, "")
        assert isinstance(example, Mapping)
        return mapping_of(node, in_yaml(next(iter(example.entries.values()))))


def note_missing(mapping: Mapping, keys: Names[str, Key], problems: Problems) -> None:
    """Notes the required keys that a section lacks."""
    for key in keys.values():
        if key.required and key.name not in mapping.entries:
            text = f"the key {key.name} is missing; write for example {key.name}: {key.example}"
            problems.add(mapping.mark, text)


def read_key(mapping: Mapping, key: Key, problems: Problems) -> Any:
    """The value of a key with a single value in base units; the default if it is absent or wrong."""
    value = mapping.entries.get(key.name)
    result = None if value is None else Value(value, key, Context(problems)).read()
    return key.default if result is None else result


class File(Generic[Content]):
    """A file that fits its declaration, for checks beyond it."""

    def __init__(self, content: Content, tree: Mapping, problems: Problems) -> None:
        self.content = content
        self.tree = tree
        self.problems = problems

    def note(self, path: str, text: str) -> None:
        """Notes an error of the value at an address, such as `columns.jain`."""
        self.problems.add(find_mark(self.tree, path), text)


def find_mark(tree: Mapping, path: str) -> Mark:
    """The position of the key at an address, or of the nearest key above it."""
    here: Node = tree
    mark = tree.mark
    for part in path.split("."):
        if isinstance(here, Mapping) and part in here.entries:
            mark, here = here.key_marks[part], here.entries[part]
        elif isinstance(here, Sequence) and part.isdecimal():
            here = here.items[int(part)]
            mark = here.mark
        else:
            break
    return mark


def read_file(
    path: Path,
    form: Format,
    section: str,
    what: str,
    kind: type[Content],
    reader: type[Reader] = Reader,
) -> File[Content]:
    """A YAML file whose keys are those of a section. Raises `DataError` for a file that can't be read, has no
    keys, or does not fit the section.
    """
    schema = form.keys(section).get("schema")
    tree = parse_file(read_text(path, what), str(path), what, schema.example if schema else "")
    problems = Problems(is_scenario=False)
    content = reader(form, problems).section(tree, section)
    problems.raise_if_any()
    return File(convert(content, kind), tree, problems)
