"""The JSON Schema (draft-07) of a kind of file, generated from its declaration."""

from __future__ import annotations

import json
from collections.abc import Iterable

from narrows.scenario.declarations.declaration import Format, Key, Schema
from narrows.scenario.declarations.value import STEPS
from narrows.scenario.quantity import EXAMPLES, SPELLINGS, show
from narrows.scenario.registry import Param

WITH_UNIT = ("rate", "span", "bytes", "packets", "ratio")
_NUMBER = r"[0-9]+(\.[0-9]*)?([eE][-+]?[0-9]+)?"
_SCALAR: Schema = {"type": ["string", "number", "boolean"]}
_OR_NULL: Schema = {"type": ["string", "number", "boolean", "null"]}
#: Kinds of values without limits.
_KINDS: dict[str, Schema] = {
    "text": _SCALAR,
    "texts": {"type": "array", "items": _SCALAR},
    "flag": {"type": "boolean"},
    "quantity": {"type": ["number", "string"]},
    "neighbour": {"type": "string"},
    "file": {"type": "string", "minLength": 1},
    "values": {"type": "object", "additionalProperties": _SCALAR},
    "choices": {
        "type": "object",
        "additionalProperties": {
            "anyOf": [
                *({"type": t} for t in ("string", "number", "boolean", "null")),
                {"type": "array", "items": _OR_NULL},
            ]
        },
    },
}


def in_json(schema: Schema, indent: int = 2) -> str:
    """A schema in its committed and printed form."""
    return json.dumps(schema, indent=indent, ensure_ascii=False) + "\n"


def document(title: str, description: str, content: Schema, definitions: Schema | None = None) -> Schema:
    """The schema of a kind of file."""
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": title,
        "description": description,
        **content,
        **({"definitions": definitions} if definitions else {}),
    }


def object_schema(properties: Schema, required: Iterable[str] = ()) -> Schema:
    """An object with these keys and no others."""
    needed = {"required": listed} if (listed := list(required)) else {}
    return {"type": "object", "additionalProperties": False, **needed, "properties": properties}


def section_schema(form: Format, name: str) -> Schema:
    """The schema of a section."""
    keys = form.keys(name).values()
    properties = {key.name: key_schema(key, form) for key in keys}
    return object_schema(properties, (key.name for key in keys if key.required))


def key_schema(key: Key, form: Format) -> Schema:
    """The schema of a key and its value."""
    content = key.schema if key.schema and key.kind not in ("of", "list", "named") else _content(key, form)
    if "$ref" in content:  # draft-07 ignores the siblings of a reference.
        content = {"allOf": [content]}
    examples = {"examples": [key.example]} if key.example else {}
    return {"description": key.doc, **content, **examples}


def _content(key: Key, form: Format) -> Schema:
    if key.kind == "of":
        return {**section_schema(form, key.section), **key.schema}
    if key.kind == "list":
        return {"type": "array", "items": section_schema(form, key.section), **key.schema}
    if key.kind == "named":
        names = {"propertyNames": {"pattern": f"^{key.names}"}} if key.names else {}
        inner = section_schema(form, key.section)
        inner = {"anyOf": [inner, {"type": "null"}]} if key.nullable else inner
        return {"type": "object", "minProperties": 1, **names, "additionalProperties": inner, **key.schema}
    return {**value_schema(key), **_default(key)}


def by_type(**schemas: Schema) -> Schema:
    """The JSON Schema of a value of several types, with a schema for each type, so that validators report
    problems of the value and not of alternatives.
    """
    cases = [{"if": {"type": name}, "then": schema} for name, schema in schemas.items() if schema]
    return {"type": list(schemas), **({"allOf": cases} if cases else {})}


# -- values --------------------------------------------------------------------------------------


def units_pattern(*kinds: str) -> str:
    """A pattern of quantities of these kinds."""
    own = {unit for unit, (unit_kind, _) in SPELLINGS.items() if unit_kind in kinds}
    if "bytes" in kinds:
        own |= {unit for unit, (unit_kind, _) in SPELLINGS.items() if unit_kind == "bdp"}
    units = "|".join(sorted(own, key=lambda unit: (-len(unit), unit)))
    return rf"\s*{_NUMBER}\s*({units})\s*"


def quantity_schema(kind: str) -> Schema:
    """A number with a unit, as a definition of that name."""
    example = EXAMPLES[kind].partition(" such as ")[2]
    return {
        "type": "string",
        "pattern": f"^{units_pattern(kind)}$",
        "description": EXAMPLES[kind],
        "examples": [example],
    }


def description(text: str, source: str) -> Schema:
    """The description of a parameter or an entry of the registry."""
    return {"description": f"{text} ({source})" if source else text} if text else {}


def param_schema(param: Param) -> Schema:
    """A parameter of the registry."""
    return {**description(param.doc, param.source), **value_schema(param), **_default(param)}


def _default(param: Param) -> Schema:
    """The default of a parameter, in written form."""
    if param.default is None or param.kind in ("file", *STEPS):
        return {}
    written = show(param.kind, param.default) if param.kind in ("rate", "span", "bytes", "packets") else None
    return {"default": written or param.default}


def value_schema(param: Param) -> Schema:
    """A value of a parameter."""
    limits = (("minimum", param.low), ("maximum", param.high))
    bounds = {key: limit for key, limit in limits if limit is not None}
    if param.kind in STEPS:
        step = [{"$ref": "#/definitions/span"}, {"$ref": f"#/definitions/{STEPS[param.kind]}"}]
        pair = {"type": "array", "items": step, "minItems": 2, "maxItems": 2}
        return {"type": "array", "minItems": 1, "items": pair}
    if param.kind == "counts":
        number = {"type": "integer", **bounds}
        return by_type(integer=bounds, array={"minItems": 1, "items": number})
    if param.kind == "ratio":
        return by_type(string={"$ref": "#/definitions/ratio"}, number=bounds)
    if param.kind in WITH_UNIT:
        return {"allOf": [{"$ref": f"#/definitions/{param.kind}"}]}
    if param.kind == "choice":
        return {"enum": list(param.choices)}
    if param.kind == "format":
        return {"const": param.choices[0]}
    if param.kind in _KINDS:
        return _KINDS[param.kind]
    return {"type": "integer" if param.kind == "count" else "number", **bounds}
