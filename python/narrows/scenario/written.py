"""Step one: a scenario as it is written, with the position of every key and value.

YAML 1.2 is read into a small tree of our own. Scalars keep their text: what `12 Mbit/s` or `no`
means is decided later, by the key they stand under, so nothing is ever converted by accident.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError, YAMLStreamError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from narrows.errors import DataError, Problem, ScenarioError

#: More values than any honest scenario has; stops files that expand aliases without end.
MOST_VALUES = 100_000
#: Deeper nesting than any key of the format needs.
MOST_LEVELS = 50
#: The longest file that is read at all.
MOST_BYTES = 4_000_000

_NULL = re.compile(r"(?:~|null|Null|NULL|)$")
_TRUE = re.compile(r"(?:true|True|TRUE)$")
_FALSE = re.compile(r"(?:false|False|FALSE)$")
_INTEGER = re.compile(r"[-+]?[0-9]{1,40}$")
_NUMBER = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]{1,3})?$")


@dataclass(frozen=True)
class Mark:
    """Where something was written: a line of a file, or an option of the command line."""

    source: str
    line: int | None = None
    column: int | None = None

    def __str__(self) -> str:
        if self.line is None:
            return self.source
        return f"{self.source}:{self.line}:{self.column}"


@dataclass(frozen=True)
class Scalar:
    """A single value, as text."""

    mark: Mark
    text: str
    quoted: bool = False

    @property
    def is_null(self) -> bool:
        """Whether nothing (or `null`) was written."""
        return not self.quoted and bool(_NULL.match(self.text))

    @property
    def flag(self) -> bool | None:
        """`true` or `false`, if it is one of them."""
        if self.quoted:
            return None
        return True if _TRUE.match(self.text) else False if _FALSE.match(self.text) else None

    @property
    def integer(self) -> int | None:
        """The whole number without unit that was written, if it is one."""
        return int(self.text) if not self.quoted and _INTEGER.match(self.text) else None

    @property
    def number(self) -> float | None:
        """The number without unit that was written, if it is one."""
        return float(self.text) if not self.quoted and _NUMBER.match(self.text) else None


@dataclass(frozen=True)
class Sequence:
    """A list of values."""

    mark: Mark
    items: list[Written] = field(default_factory=list)


@dataclass(frozen=True)
class Mapping:
    """Keys with values, in the order in which they were written."""

    mark: Mark
    entries: dict[str, Written] = field(default_factory=dict)
    key_marks: dict[str, Mark] = field(default_factory=dict)

    def __iter__(self) -> Iterator[tuple[str, Mark, Written]]:
        for key, value in self.entries.items():
            yield key, self.key_marks[key], value


Written = Scalar | Sequence | Mapping


def read_file(path: Path) -> tuple[str, Mapping]:
    """Reads a scenario file; gives its text and its tree."""
    try:
        with path.open("rb") as stream:
            data = stream.read(MOST_BYTES + 1)
    except FileNotFoundError:
        raise DataError(f"{path}: there is no such file; narrows scenarios lists the shipped ones") from None
    except IsADirectoryError:
        raise DataError(f"{path}: is a folder; name a scenario file in it") from None
    except OSError as error:
        raise DataError(f"{path}: can't be read: {(error.strerror or str(error)).lower()}") from None
    if len(data) > MOST_BYTES:
        raise DataError(f"{path}: is larger than {MOST_BYTES // 1_000_000} MB, so it is no scenario")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise DataError(f"{path}:{line}: is not UTF-8 text; save the file as UTF-8") from None
    return text, parse(text, str(path))


def parse(text: str, source: str) -> Mapping:
    """Reads the text of a scenario; `source` is what messages call it."""
    tree = parse_value(text, source)
    if tree is None:
        raise ScenarioError(
            [Problem(f"{source}:1:1", "", "the scenario is empty; it starts with schema: narrows/scenario/1")]
        )
    if not isinstance(tree, Mapping):
        raise ScenarioError(
            [Problem(str(tree.mark), "", "a scenario is keys with values, such as duration: 30 s")]
        )
    return tree


def parse_value(text: str, source: str, *, is_option: bool = False) -> Written | None:
    """Reads any YAML value; an option of the command line has no line numbers in its messages."""
    try:
        node = YAML(typ="safe", pure=True).compose(text)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        position = source if is_option else f"{source}:{line}:{column}"
        reason = (error.problem or "is not YAML").replace("\n", " ")
        raise ScenarioError([Problem(position, "", f"is not valid YAML: {reason}")]) from None
    except (YAMLError, YAMLStreamError, ValueError, RecursionError) as error:
        reason = str(error).split("\n")[0] or "it nests too deeply"
        position = source if is_option else f"{source}:1:1"
        raise ScenarioError([Problem(position, "", f"is not valid YAML: {reason}")]) from None
    except (AttributeError, TypeError, IndexError, KeyError, AssertionError):
        # The YAML library fails in these ways on some malformed directives and escapes.
        position = source if is_option else f"{source}:1:1"
        raise ScenarioError([Problem(position, "", "is not valid YAML")]) from None
    if node is None:
        return None
    return _Builder(source, is_option).build(node)


class _Builder:
    """Turns the nodes of the YAML library into our tree."""

    def __init__(self, source: str, is_option: bool) -> None:
        self.source = source
        self.is_option = is_option
        self.values = 0
        self.inside: list[int] = []

    def mark(self, node: Node) -> Mark:
        if self.is_option:
            return Mark(self.source)
        return Mark(self.source, node.start_mark.line + 1, node.start_mark.column + 1)

    def fail(self, node: Node, text: str) -> ScenarioError:
        return ScenarioError([Problem(str(self.mark(node)), "", text)])

    def build(self, node: Node) -> Written:
        self.values += 1
        if self.values > MOST_VALUES:
            raise self.fail(node, f"the scenario has more than {MOST_VALUES} values")
        if id(node) in self.inside:
            raise self.fail(node, "this alias contains itself; write the value out")
        if len(self.inside) > MOST_LEVELS:
            raise self.fail(node, f"values are nested more than {MOST_LEVELS} deep")
        tag = str(node.tag) if node.tag is not None else ""
        if tag.startswith("!") or (tag and not tag.startswith("tag:yaml.org,2002:")):
            raise self.fail(node, f"the tag {tag} has no meaning in a scenario; remove it")
        if isinstance(node, ScalarNode):
            return Scalar(self.mark(node), str(node.value).strip(), node.style in ("'", '"'))
        self.inside.append(id(node))
        try:
            if isinstance(node, SequenceNode):
                return Sequence(self.mark(node), [self.build(item) for item in node.value])
            assert isinstance(node, MappingNode)
            return self.mapping(node)
        finally:
            self.inside.pop()

    def mapping(self, node: MappingNode) -> Mapping:
        result = Mapping(self.mark(node))
        for key_node, value_node in node.value:
            if not isinstance(key_node, ScalarNode):
                raise self.fail(key_node, "a key must be a word")
            key = str(key_node.value)
            if key in result.entries:
                first = result.key_marks[key]
                raise self.fail(
                    key_node,
                    f"the key {key} is written twice (first in line {first.line}); remove one of them",
                )
            result.key_marks[key] = self.mark(key_node)
            result.entries[key] = self.build(value_node)
        return result
