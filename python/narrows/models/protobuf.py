"""Protocol buffers in the two forms of Remy's rule tables, binary and text, without a protobuf compiler.

A message becomes a dictionary from field numbers to lists of values. A `Shape` names the fields to read;
others are skipped.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from narrows.errors import DataError

Message = dict[int, list[Any]]

#: Deeper trees do not exist.
MOST_LEVELS = 60

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5


@dataclass(frozen=True)
class Shape:
    """The fields to read, by their numbers and their names in the text form."""

    messages: dict[str, int]
    doubles: dict[str, int]
    #: Whole numbers in zigzag form.
    signed: dict[str, int]


def varint(content: bytes, at: int) -> tuple[int, int]:
    """A variable-length number, and the position after it."""
    value = shift = 0
    while True:
        if at >= len(content) or shift > 63:
            raise DataError("it ends within a number, or is not a protocol buffer")
        byte = content[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def fields(content: bytes) -> Iterator[tuple[int, int, int | bytes]]:
    """Number, wire type and raw value of each field of a message in the binary form."""
    at = 0
    while at < len(content):
        tag, at = varint(content, at)
        number, wire = tag >> 3, tag & 7
        if number == 0:
            raise DataError("it has a field with the number 0, so it is not a protocol buffer")
        if wire == VARINT:
            value, at = varint(content, at)
            yield number, wire, value
            continue
        if wire == BYTES:
            length, at = varint(content, at)
        elif wire in (FIXED64, FIXED32):
            length = 8 if wire == FIXED64 else 4
        else:
            raise DataError(f"it has a field of the type {wire}, so it is not a protocol buffer")
        if at + length > len(content):
            raise DataError("it ends within a field, or is not a protocol buffer")
        yield number, wire, content[at : at + length]
        at += length


def parse(content: bytes, shape: Shape, level: int = 0) -> Message:
    """A message in the binary form."""
    if level > MOST_LEVELS:
        raise DataError(f"its messages lie more than {MOST_LEVELS} levels within each other")
    result: Message = {}
    nested, doubles, signed = (set(entry.values()) for entry in (shape.messages, shape.doubles, shape.signed))
    for number, wire, value in fields(content):
        if number in nested and wire == BYTES:
            assert isinstance(value, bytes)
            result.setdefault(number, []).append(parse(value, shape, level + 1))
        elif number in doubles and wire == FIXED64:
            assert isinstance(value, bytes)
            result.setdefault(number, []).append(struct.unpack("<d", value)[0])
        elif number in signed and wire == VARINT:
            assert isinstance(value, int)
            result.setdefault(number, []).append(value >> 1 if value % 2 == 0 else -(value >> 1) - 1)
        elif number in nested | doubles | signed:
            raise DataError(f"its field {number} is of another type than expected")
    return result


_TOKEN = re.compile(r"\s*(?:#[^\n]*\s*)*([A-Za-z_][A-Za-z_0-9]*|[-+.0-9][-+.0-9A-Za-z]*|[{}:<>,;]|\Z)")


def parse_text(text: str, shape: Shape) -> Message:
    """A message in the text form (`name: value`, `name { ... }`)."""
    return _message(_tokens(text), shape, "", 0)


def _tokens(text: str) -> Iterator[str]:
    at = 0
    while True:
        match = _TOKEN.match(text, at)
        if match is None:
            line = text.count("\n", 0, at) + 1
            raise DataError(f"line {line} is not a protocol buffer in text form")
        yield match[1]
        if not match[1]:
            return
        at = match.end()


def _message(tokens: Iterator[str], shape: Shape | None, end: str, level: int) -> Message:
    """The fields up to the token `end`; without a shape they are skipped."""
    if level > MOST_LEVELS:
        raise DataError(f"its messages lie more than {MOST_LEVELS} levels within each other")
    message: Message = {}
    for name in tokens:
        if name == end:
            return message
        if name in (",", ";"):
            continue
        if not name or not (name[0].isalpha() or name[0] == "_"):
            raise DataError(
                f'it has "{name}" where the name of a field should be' if name else "it ends too early"
            )
        token = next(tokens, "")
        if token == ":":
            token = next(tokens, "")
        if token in ("{", "<"):
            number = shape.messages.get(name) if shape else None
            inner = _message(tokens, shape if number else None, "}" if token == "{" else ">", level + 1)
            if number:
                message.setdefault(number, []).append(inner)
            continue
        if shape is None:
            continue
        try:
            if name in shape.doubles:
                message.setdefault(shape.doubles[name], []).append(float(token))
            elif name in shape.signed:
                message.setdefault(shape.signed[name], []).append(int(token))
        except ValueError:
            raise DataError(f'its field {name} has the value "{token}", which is not a number') from None
    raise DataError("it ends too early")
