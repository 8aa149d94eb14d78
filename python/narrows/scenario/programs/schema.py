"""The JSON Schema (draft-07) of manifests, generated from `format.yaml`."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from narrows.documents.programs import CONNECTOR
from narrows.scenario.keys import Key, Schema
from narrows.scenario.programs.keys import BUILD, END, LIMITS, MANIFEST, PARAMETER, REPORT, SIDE, VARIANT
from narrows.scenario.programs.manifest import NAME
from narrows.scenario.programs.recipe import DEBIAN, LOCKED, THEN
from narrows.scenario.programs.reports import MOST
from narrows.scenario.schema import key_schema, object_schema, quantity_schema

#: Exactly one kind of sources, with or without packages; or packages alone.
_RECIPES: Schema = {
    "oneOf": [
        *({"required": [kind]} for kind in LOCKED),
        {"required": [DEBIAN], "not": {"anyOf": [{"required": [key]} for key in (*LOCKED, THEN)]}},
    ]
}
#: The key of the sign that a process is ready.
READY = "ready"
_PARTS = {"build": BUILD, "end": END, "limits": LIMITS}


def schema_text() -> str:
    """The schema in its committed and printed form."""
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"


def schema() -> Schema:
    """The schema as data."""
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Narrows program",
        "description": "A program of others as a scheme: how its two processes start and how they end.",
        **_object(MANIFEST),
        "definitions": {kind: quantity_schema(kind) for kind in ("span", "bytes")},
    }


def _object(keys: dict[str, Key]) -> Schema:
    properties = {name: _key(key) for name, key in keys.items()}
    return object_schema(properties, (name for name, key in keys.items() if key.required))


class _Order(msgspec.Struct, frozen=True):
    """Completes a part of `format.yaml`."""

    side: str | None = msgspec.field(name="$side", default=None)
    keys: str | None = msgspec.field(name="$keys", default=None)
    variants: Any = msgspec.field(name="$variants", default=None)
    parameters: Any = msgspec.field(name="$parameters", default=None)
    reports: Any = msgspec.field(name="$reports", default=None)


class _Forms(msgspec.Struct, frozen=True):
    """The forms of the key `ready`: a word, and an object."""

    forms: tuple[Schema, Schema] = msgspec.field(name="anyOf")


class _Signs(msgspec.Struct, frozen=True):
    line: Schema


class _ReadyObject(msgspec.Struct, frozen=True):
    properties: _Signs


def _side(*, connects: bool) -> Schema:
    """A process; the connecting one listens on nothing."""
    properties = {name: _key(key) for name, key in SIDE.items()}
    required = [name for name, key in SIDE.items() if key.required]
    if not connects:
        return object_schema(properties, [*required, READY])
    ready = SIDE[READY]
    _, form = msgspec.convert(ready.schema, _Forms).forms
    line = msgspec.convert(form, _ReadyObject).properties.line
    sign = {**form, "properties": {"line": line}, "description": ready.doc}
    return object_schema({**properties, READY: sign}, required)


def _key(key: Key) -> Schema:
    order = msgspec.convert(key.schema, _Order)
    if order.side is not None:
        return {"description": key.doc, **_side(connects=order.side == CONNECTOR)}
    if order.keys is not None:
        forms = _RECIPES if order.keys == "build" else {}
        return {"description": key.doc, **_object(_PARTS[order.keys]), **forms}
    if order.variants:
        return _by_name(key, {"anyOf": [_object(VARIANT), {"type": "null"}]})
    if order.parameters:
        return _by_name(key, _object(PARAMETER))
    if order.reports:
        return {**_by_name(key, _object(REPORT)), "maxProperties": MOST}
    return {**key_schema(key), "examples": [key.example]}


def _by_name(key: Key, entry: Schema) -> Schema:
    """A mapping from names to entries."""
    names = {"pattern": f"^{NAME.pattern}"}
    return {
        "description": key.doc,
        "type": "object",
        "minProperties": 1,
        "propertyNames": names,
        "additionalProperties": entry,
    }
