"""The JSON Schema (draft-07) of laboratories, generated from `format.yaml`."""

from __future__ import annotations

import json

from narrows.lab.keys import Key, sections
from narrows.scenario.keys import Schema
from narrows.scenario.schema import object_schema

_SCALAR: Schema = {"type": ["string", "number", "boolean"]}
_TYPES: dict[str, Schema] = {
    "text": _SCALAR,
    "texts": {"type": "array", "items": _SCALAR},
    "flag": {"type": "boolean"},
    "number": {"type": ["number", "string"]},
    "file": {"type": "string"},
    "values": {"type": "object", "additionalProperties": _SCALAR},
    "choices": {
        "type": "object",
        "additionalProperties": {
            "anyOf": [
                *({"type": t} for t in ("string", "number", "boolean", "null")),
                {"type": "array", "items": {"type": ["string", "number", "boolean", "null"]}},
            ]
        },
    },
}


def schema_text() -> str:
    """The schema in its committed and printed form."""
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"


def schema() -> Schema:
    """The schema as data."""
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Narrows laboratory",
        "description": "A family of experiments with the published values that they are compared with.",
        **_section("lab"),
    }


def _section(name: str) -> Schema:
    keys = sections()[name]
    properties = {key.name: _key(key) for key in keys.values()}
    return object_schema(properties, (key.name for key in keys.values() if key.required))


def _key(key: Key) -> Schema:
    result: Schema = {"description": key.doc}
    if key.type == "of":
        return {**result, **_section(key.section)}
    if key.type == "list":
        return {**result, "type": "array", "items": _section(key.section)}
    if key.type == "named":
        return {**result, "type": "object", "minProperties": 1, "additionalProperties": _section(key.section)}
    if key.type == "choice":
        return {**result, "enum": list(key.choices)}
    return {**result, **_TYPES[key.type], "examples": [key.example]}
