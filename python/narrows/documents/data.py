"""Reading and writing documents: from plain JSON data to typed values and back.

A member that the definition lacks is ignored: a newer minor version may have added it. A member at its
default is not written. Whole numbers and fractions keep their form, so that reading and writing a document
preserves its bytes.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, TypeVar

import msgspec
from msgspec import Meta

from narrows.documents.components import Values
from narrows.text import has_hidden, is_hidden

#: Larger numbers are not measurements; infinities and NaN are not numbers either.
_LIMIT = 2**63
Integer = Annotated[int, Meta(ge=-_LIMIT, le=_LIMIT - 1)]
Count = Annotated[int, Meta(ge=0, le=_LIMIT - 1)]
#: A whole number or a fraction, written as it was read.
Number = Integer | Annotated[float, Meta(gt=-float(_LIMIT), lt=float(_LIMIT))]
#: A value of a table: set by a matrix or a parameter.
Value = bool | Integer | Annotated[float, Meta(gt=-float(_LIMIT), lt=float(_LIMIT))] | str | None


class Part(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A document, or an object in one."""

    #: Members that are not validated: arbitrary text, or data of other programs.
    UNCHECKED: ClassVar[frozenset[str]] = frozenset()


Kind = TypeVar("Kind")


class DamagedError(Exception):
    """Data that does not match its definition; the message has no full stop."""


def from_data(data: object, kind: type[Kind], root: str = "the file") -> Kind:
    """The typed value of plain data. Raises `DamagedError` with the path of the mismatch, below `root`, and
    the expected form.
    """
    _read_definition(kind)
    try:
        value = msgspec.convert(data, kind, dec_hook=_read_values)
    except msgspec.ValidationError as error:
        raise DamagedError(_explain(str(error), data, kind, root)) from None
    if _may_hide(value):
        for place in _hidden_texts(value, root):
            raise DamagedError(f"{place} is not printable text")
    return value


_definitions: set[Any] = set()
_reading = threading.Lock()


def _read_definition(kind: Any) -> None:
    """Lets msgspec read a definition before its first use, in one thread at a time: two that read the same
    definition at once end the process (msgspec 0.22)."""
    if kind not in _definitions:
        with _reading:
            msgspec.json.Decoder(kind)
            _definitions.add(kind)


def _read_values(kind: type[Any], data: Any) -> Any:
    """The values of parameters that the registry declares, which msgspec does not know."""
    if kind is object:
        return data
    if issubclass(kind, Values) and isinstance(data, Mapping):
        return kind.from_members(data)
    raise ValueError("Expected `object`")


def to_data(value: object) -> Any:
    """Plain data of a typed value, or of plain data that contains typed values."""
    return msgspec.to_builtins(value, enc_hook=_write_plain)


def _write_plain(value: object) -> float | dict[str, object]:
    """A numpy number, which is also a float, or values of parameters."""
    if isinstance(value, float):
        return float(value)
    if isinstance(value, Values):
        return value.to_members()
    raise TypeError(f"{type(value).__name__} is not plain data")


def find_unknown(data: object, value: object, root: str = "the file") -> Iterator[str]:
    """The paths of the members of plain data that its typed value lacks: those of newer versions."""
    if isinstance(value, Part) and isinstance(data, dict):
        members = value.__struct_encode_fields__
        yield from (f"{root}.{name}" for name in data if name not in members)
        for name, member in zip(value.__struct_fields__, members, strict=True):
            yield from find_unknown(data.get(member), getattr(value, name), f"{root}.{member}")
    elif isinstance(value, list) and isinstance(data, list):
        for number, (item, inner) in enumerate(zip(data, value, strict=True)):
            yield from find_unknown(item, inner, f"{root}[{number}]")
    elif isinstance(value, Mapping) and isinstance(data, dict):
        for name, inner in value.items():
            yield from find_unknown(data.get(name), inner, f"{root}.{name}")


# -- error messages ------------------------------------------------------------------------------

_MESSAGE = re.compile(r"(?P<said>.*?)(?: - at `(?:key in )?\$?(?P<path>.*)`)?")
_MISSING = re.compile(r"Object missing required field `(.*)`")
#: The expectations of msgspec in our words; the first match applies.
_WORDS = (
    (re.compile(r"Expected `int` >= 0"), "a count"),
    (re.compile(r"Expected `(?:int \| float|float)\b"), "a number"),
    (re.compile(r"Expected `(?:int|float)\b.*`"), "a whole number"),
    (re.compile(r"Expected `str\b"), "printable text"),
    (re.compile(r"Expected `bool\b"), "a truth value"),
    (re.compile(r"Expected `array\b"), "a list"),
    (re.compile(r"Expected `object\b"), "an object"),
)


def _explain(said: str, data: object, kind: type[Any], root: str) -> str:
    """Translates a message of msgspec into our words: `the file.rows[3].metrics.loss_ratio is not a
    number`.
    """
    match = _MESSAGE.fullmatch(said)
    assert match is not None
    path = match["path"] or ""
    while "[...]" in path:
        # msgspec does not name the refused member of a mapping.
        before, _, after = path.partition("[...]")
        path = f"{before}.{_find_refused(data, before, kind)}{after}"
    place = root + path
    if missing := _MISSING.fullmatch(match["said"]):
        return f"{place}.{missing[1]} is missing"
    for pattern, words in _WORDS:
        if pattern.match(match["said"]):
            return f"{place} is not {words}"
    if "{}" in match["said"]:
        # A rule of a definition (`__post_init__`), which does not know where its object is.
        return match["said"].replace("{}", place)
    return f"{place} is wrong: {match['said']}"


_STEP = re.compile(r"\.([^.\[]+)|\[(\d+)\]")


def _find_refused(data: object, path: str, kind: type[Any]) -> str:
    """The member of the mapping at a path that causes the error: without it the data has none there."""
    steps: list[str | int] = [name if name else int(index) for name, index in _STEP.findall(path)]
    names: list[str] = list(_at(data, steps))
    while len(names) > 1:
        half = names[: len(names) // 2]
        names = half if _fails(_replace(data, steps, half), kind, path) else names[len(half) :]
    return names[0]


def _at(data: Any, steps: list[str | int]) -> Any:
    for step in steps:
        data = data[step]
    return data


def _replace(data: Any, steps: list[str | int], names: list[str]) -> Any:
    """A copy of the data in which the mapping at a path has only these members."""
    if not steps:
        return {name: data[name] for name in names}
    copied: Any = dict(data) if isinstance(data, dict) else list(data)
    copied[steps[0]] = _replace(data[steps[0]], steps[1:], names)
    return copied


def _fails(data: object, kind: type[Any], path: str) -> bool:
    try:
        msgspec.convert(data, kind, dec_hook=_read_values)
    except msgspec.ValidationError as error:
        return f"`${path}[...]" in str(error) or f"`key in ${path}" in str(error)
    return False


#: Characters that JSON escapes, except line endings.
_ESCAPES = re.compile(r"\\[bfrtu]")


def _may_hide(value: object) -> bool:
    """False if no text in a value has a hidden character; a quick check without looking at single texts."""
    try:
        text = msgspec.json.encode(value, enc_hook=_write_plain).decode()
    except UnicodeEncodeError:
        # Half of a surrogate pair.
        return True
    if _ESCAPES.search(text) is not None:
        return True
    # JSON escapes the hidden characters of ASCII, but for DEL.
    return "\x7f" in text if text.isascii() else any(map(is_hidden, set(text)))


def _hidden_texts(value: object, at: str) -> Iterator[str]:
    """The paths of texts with control characters that a terminal would execute; line endings are allowed."""
    if isinstance(value, str):
        if any(map(has_hidden, re.split(r"\r?\n", value))):
            yield at
    elif isinstance(value, Part):
        for name, member in zip(value.__struct_fields__, value.__struct_encode_fields__, strict=True):
            if name not in value.UNCHECKED:
                inner = getattr(value, name)
                if inner is not None and not isinstance(inner, (int, float)):
                    yield from _hidden_texts(inner, f"{at}.{member}")
    elif isinstance(value, Values):
        yield from _hidden_texts(value.to_members(), at)
    elif isinstance(value, (list, tuple)):
        for number, inner in enumerate(value):
            yield from _hidden_texts(inner, f"{at}[{number}]")
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            if has_hidden(name):
                yield f"a name in {at}"
            if inner is not None and not isinstance(inner, (int, float)):
                yield from _hidden_texts(inner, f"{at}.{name}")
