"""The keys of scenarios, from `format.yaml`: the source of the reader, the JSON Schema and the reference."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from narrows.files import read_packaged
from narrows.scenario.registry import Param

#: A part of a JSON Schema.
Schema = dict[str, Any]


class KeyEntry(msgspec.Struct, frozen=True):
    """The declaration of a key in a format."""

    doc: str
    example: str = ""
    required: bool = False
    schema: Schema = msgspec.field(default_factory=dict)
    values: str = ""
    #: The kind, choices and limits of a single value.
    kind: str | None = None
    choices: tuple[str, ...] = ()
    default: Any = None
    low: int | float | None = None
    high: int | float | None = None


class _Format(msgspec.Struct, frozen=True):
    parts: dict[str, Schema]
    keys: dict[str, KeyEntry]
    real_path: dict[str, KeyEntry]
    definitions: dict[str, Schema]


FORMAT = msgspec.convert(read_packaged(Path(__file__).with_name("format.yaml")), _Format)


@dataclass(frozen=True)
class Key:
    """One key. Keys with a `param` are single values; the others have separate readers and a schema."""

    name: str
    doc: str
    example: str = ""
    required: bool = False
    param: Param | None = None
    #: Part of the JSON Schema, if it does not follow from the parameter.
    schema: Schema = field(default_factory=dict)
    #: Its values, for the reference, if they do not follow from the parameter.
    values: str = ""


def by_type(**schemas: Schema) -> Schema:
    """The JSON Schema of a value of several types, with a schema for each type, so that validators report
    problems of the value and not of alternatives.
    """
    cases = [{"if": {"type": name}, "then": schema} for name, schema in schemas.items() if schema]
    return {"type": list(schemas), **({"allOf": cases} if cases else {})}


def keys_of(section: dict[str, KeyEntry]) -> dict[str, Key]:
    """The keys of a section of a format, by name."""
    return {name: _key(name, entry) for name, entry in section.items()}


def _key(name: str, entry: KeyEntry) -> Key:
    param = None
    if entry.kind is not None:
        limits = entry.default, entry.low, entry.high
        param = Param(name, entry.kind, entry.choices, *limits, doc=entry.doc)
    return Key(name, entry.doc, entry.example, entry.required, param, entry.schema, entry.values)


#: Keys of the top level, and of `real_path`.
KEYS = keys_of(FORMAT.keys)
REAL_PATH = keys_of(FORMAT.real_path)
SCHEMA = KEYS["schema"].example


class _Described(msgspec.Struct):
    description: str


class _Laws(msgspec.Struct):
    properties: dict[str, _Described]


class _Draw(msgspec.Struct):
    laws: _Laws = msgspec.field(name="additionalProperties")


#: The laws of `draw`, with their arguments.
LAWS = {
    name: law.description for name, law in msgspec.convert(KEYS["draw"].schema, _Draw).laws.properties.items()
}
