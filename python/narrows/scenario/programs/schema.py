"""The JSON Schema (draft-07) of manifests, generated from `format.yaml`."""

from __future__ import annotations

import json
from typing import Any

from narrows.documents.programs import CONNECTOR
from narrows.scenario.keys import Key
from narrows.scenario.programs.keys import BUILD, END, LIMITS, MANIFEST, PARAMETER, REPORT, SIDE, VARIANT
from narrows.scenario.programs.manifest import NAME
from narrows.scenario.programs.recipe import DEBIAN, LOCKED, THEN
from narrows.scenario.programs.reports import MOST
from narrows.scenario.schema import Schema, key_schema, object_schema, quantity_schema

#: Exactly one kind of sources, with or without packages; or packages alone.
_RECIPES: Schema = {
    "oneOf": [
        *({"required": [kind]} for kind in LOCKED),
        {"required": [DEBIAN], "not": {"anyOf": [{"required": [key]} for key in (*LOCKED, THEN)]}},
    ]
}
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


def _object(keys: dict[str, Key], without: tuple[str, ...] = ()) -> Schema:
    listed = {name: key for name, key in keys.items() if name not in without}
    properties = {name: _key(key) for name, key in listed.items()}
    return object_schema(properties, (name for name, key in listed.items() if key.required))


def _key(key: Key) -> Schema:
    part = key.schema
    if "$side" in part:
        side = _object(SIDE)
        if part["$side"] == CONNECTOR:
            ready = side["properties"]["ready"]
            # The connecting process listens on nothing.
            side["properties"]["ready"] = {**ready["anyOf"][1], "description": ready["description"]}
            side["properties"]["ready"]["properties"] = {"line": ready["anyOf"][1]["properties"]["line"]}
        else:
            side["required"] = [*side["required"], "ready"]
        return {"description": key.doc, **side}
    if "$keys" in part:
        one = _RECIPES if part["$keys"] == "build" else {}
        return {"description": key.doc, **_object(_PARTS[part["$keys"]]), **one}
    if "$variants" in part:
        return _by_name(key, {"anyOf": [_object(VARIANT), {"type": "null"}]})
    if "$parameters" in part:
        return _by_name(key, _object(PARAMETER))
    if "$reports" in part:
        return {**_by_name(key, _object(REPORT)), "maxProperties": MOST}
    return {**key_schema(key), "examples": [key.example]}


def _by_name(key: Key, entry: dict[str, Any]) -> Schema:
    """A mapping from names to entries."""
    names = {"pattern": f"^{NAME.pattern}"}
    return {
        "description": key.doc,
        "type": "object",
        "minProperties": 1,
        "propertyNames": names,
        "additionalProperties": entry,
    }
