"""Step one: a scenario as written, with the position of every key and value.

YAML 1.2 is read into a small tree. Scalars keep their text: the meaning of `12 Mbit/s` or `no` depends on the
key above them, so nothing is ever converted by accident.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from msgspec import Struct
from msgspec.structs import replace

from narrows.errors import DataError, Problem, ScenarioError
from narrows.files import read_whole
from narrows.text import shorten

#: More values than any legitimate scenario has; stops files that expand aliases without end.
MOST_VALUES = 100_000
#: Deeper nesting than any key of the format needs.
MOST_LEVELS = 50
#: The longest file that is read.
MOST_BYTES = 4_000_000

#: Remedies for problems that the YAML library reports.
_HINTS = {
    "mapping values are not allowed": "put a text with a colon in it in quotes",
    "cannot start any token": "put a text that begins with such a character in quotes",
    "expected <block end>": "lines of one list or mapping begin in one column",
}

# The C implementation, which is ten times as fast; a build of the library without it reads the same files.
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_NULL = re.compile(r"(?:~|null|Null|NULL|)$")
_TRUE = re.compile(r"(?:true|True|TRUE)$")
_FALSE = re.compile(r"(?:false|False|FALSE)$")
_INTEGER = re.compile(r"[-+]?[0-9]{1,40}$")
_NUMBER = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]{1,3})?$")
#: Texts that need no quotes in any place.
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._/%+-]*$")


class Mark(Struct, frozen=True):
    """The origin of a value: a line of a file or an option of the command line, and its address in the tree,
    in the notation of `--set`.
    """

    source: str
    line: int | None = None
    column: int | None = None
    path: str = ""

    def at(self, path: str) -> Mark:
        """The same place under another address."""
        return replace(self, path=path)

    def below(self, key: str | int) -> str:
        """The address of a key or an item below this one."""
        return f"{self.path}.{key}" if self.path else str(key)

    def __str__(self) -> str:
        if self.line is None:
            return self.source
        return f"{self.source}:{self.line}:{self.column}"


class Scalar(Struct, frozen=True):
    """A single value, as text."""

    mark: Mark
    text: str
    quoted: bool = False

    def copy(self, path: str) -> Scalar:
        """A copy at another address."""
        return replace(self, mark=self.mark.at(path))

    @property
    def is_null(self) -> bool:
        """True if nothing (or `null`) was written."""
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


class Sequence(Struct, frozen=True):
    """A list of values."""

    mark: Mark
    items: list[Node] = []

    def copy(self, path: str) -> Sequence:
        """A copy at another address that can be changed independently."""
        mark = self.mark.at(path)
        return Sequence(mark, [item.copy(mark.below(index)) for index, item in enumerate(self.items)])


class Mapping(Struct, frozen=True):
    """Keys with values, in the order in which they were written."""

    mark: Mark
    entries: dict[str, Node] = {}
    key_marks: dict[str, Mark] = {}

    def copy(self, path: str) -> Mapping:
        """A copy at another address that can be changed independently."""
        mark = self.mark.at(path)
        entries = {key: value.copy(mark.below(key)) for key, value in self.entries.items()}
        return Mapping(mark, entries, {key: item.at(mark.below(key)) for key, item in self.key_marks.items()})

    def __iter__(self) -> Iterator[tuple[str, Mark, Node]]:
        for key, value in self.entries.items():
            yield key, self.key_marks[key], value


Node = Scalar | Sequence | Mapping


def size(value: Node) -> int:
    """The number of values in a value, including itself."""
    if isinstance(value, Scalar):
        return 1
    inner = value.items if isinstance(value, Sequence) else value.entries.values()
    return 1 + sum(map(size, inner))


def in_yaml(value: Node) -> str:
    """A value on one line in YAML, shortened for a message."""
    return shorten(to_flow(value))


def to_flow(value: Node) -> str:
    """A value on one line in YAML, which reads as the same value."""
    if isinstance(value, Scalar):
        return _write(value.text, value.quoted)
    if isinstance(value, Sequence):
        return f"[{', '.join(map(to_flow, value.items))}]"
    return f"{{{', '.join(f'{_write(key)}: {to_flow(inner)}' for key, _, inner in value)}}}"


def _write(text: str, quoted: bool = False) -> str:
    """A text, in quotes if it was in quotes or would not be read as the same one without."""
    plain = not quoted and (_PLAIN.match(text) or _NUMBER.match(text) or _NULL.match(text))
    return text if plain else f"""'{text.replace("'", "''")}'"""


def read_file(path: Path) -> tuple[str, Mapping]:
    """Reads a scenario file; returns its text and its tree."""
    try:
        data = read_whole(path, "scenario", MOST_BYTES)
    except DataError as error:
        if not path.exists():
            raise DataError(f"{path}: does not exist; narrows scenarios lists the shipped ones") from None
        raise DataError(f"{path}: {error}") from None
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise DataError(f"{path}:{line}: is not UTF-8 text; save the file as UTF-8") from None
    return text, parse(text, str(path))


def parse(text: str, source: str) -> Mapping:
    """Reads the text of a scenario; messages call it `source`."""
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


def parse_value(text: str, source: str, *, is_option: bool = False) -> Node | None:
    """Reads any YAML value; an option of the command line has no line numbers in its messages."""
    try:
        return _Builder(text, source, is_option).document()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        position = source if is_option else f"{source}:{line}:{column}"
        reason = (error.problem or "is not YAML").replace("\n", " ")
        if (tab := _tab_before(text, line, column)) is not None:
            position = source if is_option else f"{source}:{line}:{tab}"
            text = "a tab begins or separates what is written here, and YAML takes spaces only; replace it"
            raise ScenarioError([Problem(position, "", text)]) from None
        reason += next((f"; {hint}" for words, hint in _HINTS.items() if words in reason), "")
        raise ScenarioError([Problem(position, "", f"is not valid YAML: {reason}")]) from None
    except (yaml.YAMLError, ValueError) as error:
        reason = str(error).split("\n")[0]
        position = source if is_option else f"{source}:1:1"
        raise ScenarioError([Problem(position, "", f"is not valid YAML: {reason}")]) from None


def _tab_before(text: str, line: int, column: int) -> int | None:
    """The column of a tab in the white space at an invalid place, or at the beginning of its line."""
    lines = text.split("\n")
    here = lines[line - 1] if line <= len(lines) else ""
    indent = len(here) - len(here.lstrip())
    for start, end in ((0, indent), (column - 1, column)):
        if (at := here.find("\t", start, end)) >= 0:
            return at + 1
    return None


class _Builder:
    """Turns the events of the YAML library into our tree, so that a file that is too large or too deep is
    refused early, before it has been read completely.
    """

    def __init__(self, text: str, source: str, is_option: bool) -> None:
        self.source = source
        self.is_option = is_option
        self.values = 0
        self.levels = 0
        #: Values of anchors; None while one is being read.
        self.anchors: dict[str, Node | None] = {}
        self.events = iter(yaml.parse(text, Loader=_LOADER))

    def mark(self, event: Any, path: str = "") -> Mark:
        if self.is_option:
            return Mark(self.source, path=path)
        return Mark(self.source, event.start_mark.line + 1, event.start_mark.column + 1, path)

    def fail(self, event: yaml.Event, text: str) -> ScenarioError:
        return ScenarioError([Problem(str(self.mark(event)), "", text)])

    def document(self) -> Node | None:
        """The only document of the text; None if there is none."""
        result = None
        for event in self.events:
            if isinstance(event, yaml.DocumentStartEvent):
                if result is not None:
                    raise self.fail(event, "a second document begins here; a scenario is one document")
                result = self.build(next(self.events), "")
        return result

    def count(self, event: yaml.Event, more: int = 1) -> None:
        self.values += more
        if self.values > MOST_VALUES:
            raise self.fail(event, f"the scenario has more than {MOST_VALUES} values")

    def build(self, event: Any, path: str) -> Node:
        if isinstance(event, yaml.AliasEvent):
            return self.alias(event, path)
        self.count(event)
        if self.levels > MOST_LEVELS:
            raise self.fail(event, f"values are nested more than {MOST_LEVELS} deep")
        tag = event.tag or ""
        if tag.startswith("!") or (tag and not tag.startswith("tag:yaml.org,2002:")):
            raise self.fail(event, f"the tag {tag} has no meaning in a scenario; remove it")
        if event.anchor is not None:
            self.anchors[event.anchor] = None
        result: Node
        if isinstance(event, yaml.ScalarEvent):
            result = Scalar(self.mark(event, path), event.value.strip(), event.style in ("'", '"'))
        else:
            self.levels += 1
            read = self.sequence if isinstance(event, yaml.SequenceStartEvent) else self.mapping
            result = read(self.mark(event, path))
            self.levels -= 1
        if event.anchor is not None:
            self.anchors[event.anchor] = result
        return result

    def alias(self, event: yaml.AliasEvent, path: str) -> Node:
        if event.anchor not in self.anchors:
            raise self.fail(event, f"nothing before has the anchor &{event.anchor}")
        named = self.anchors[event.anchor]
        if named is None:
            raise self.fail(event, "this alias contains itself; write the value out")
        self.count(event, size(named))
        return named.copy(path)

    def sequence(self, mark: Mark) -> Sequence:
        result = Sequence(mark)
        while not isinstance(event := next(self.events), yaml.SequenceEndEvent):
            result.items.append(self.build(event, mark.below(len(result.items))))
        return result

    def mapping(self, mark: Mark) -> Mapping:
        result = Mapping(mark)
        while not isinstance(event := next(self.events), yaml.MappingEndEvent):
            key = self.build(event, mark.path)
            if not isinstance(key, Scalar):
                raise self.fail(event, "a key must be a word")
            if key.text in result.entries:
                first = result.key_marks[key.text]
                raise self.fail(
                    event,
                    f"the key {key.text} is written twice (first in line {first.line}); remove one of them",
                )
            path = mark.below(key.text)
            result.key_marks[key.text] = self.mark(event, path)
            result.entries[key.text] = self.build(next(self.events), path)
        return result
