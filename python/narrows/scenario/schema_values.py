"""Parts of the JSON Schema for values and for things of the registry."""

from __future__ import annotations

from typing import Any

from narrows.scenario.params import STEPS
from narrows.scenario.quantity import EXAMPLES, UNITS
from narrows.scenario.registry import Entry, Param

_NUMBER = r"[0-9]+(\.[0-9]*)?([eE][-+]?[0-9]+)?"
WITH_UNIT = ("rate", "span", "bytes", "packets", "ratio")


def quantity_schema(kind: str) -> dict[str, Any]:
    """A number with a unit."""
    own = {unit for unit, (unit_kind, _) in UNITS.items() if unit_kind == kind}
    if kind == "bytes":
        own |= {"bdp", "BDP"}
    units = "|".join(sorted(own, key=lambda unit: (-len(unit), unit)))
    return {"type": "string", "pattern": rf"^\s*{_NUMBER}\s*({units})\s*$", "description": EXAMPLES[kind]}


def param_schema(param: Param) -> dict[str, Any]:
    """A value of a parameter."""
    described: dict[str, Any] = {}
    if param.doc:
        source = f" ({param.source})" if param.source else ""
        described["description"] = f"{param.doc}{source}"
    bounds = {
        key: limit for key, limit in (("minimum", param.low), ("maximum", param.high)) if limit is not None
    }
    if param.kind == "counts":
        number = {"type": "integer", **bounds}
        return {**described, "anyOf": [number, {"type": "array", "minItems": 1, "items": number}]}
    if param.kind in STEPS:
        step = [{"$ref": "#/definitions/span"}, {"$ref": f"#/definitions/{STEPS[param.kind]}"}]
        pair = {"type": "array", "items": step, "minItems": 2, "maxItems": 2}
        return {**described, "type": "array", "minItems": 1, "items": pair}
    if param.kind == "file":
        return {**described, "type": "string", "minLength": 1}
    if param.kind == "ratio":
        return {**described, "anyOf": [{"$ref": "#/definitions/ratio"}, {"type": "number", **bounds}]}
    if param.kind in WITH_UNIT:
        return {**described, "allOf": [{"$ref": f"#/definitions/{param.kind}"}]}
    if param.kind == "flag":
        return {**described, "type": "boolean"}
    if param.kind == "choice":
        return {**described, "enum": list(param.choices)}
    return {**described, "type": "integer" if param.kind == "count" else "number", **bounds}


def params_schema(params: tuple[Param, ...]) -> dict[str, Any]:
    """Parameters by name."""
    required = [param.name for param in params if param.required]
    return {
        "type": "object",
        "additionalProperties": False,
        **({"required": required} if required else {}),
        "properties": {param.name: param_schema(param) for param in params},
    }


def _short(param: Param) -> dict[str, Any]:
    if param.kind in WITH_UNIT:
        return {"$ref": f"#/definitions/{param.kind}"}
    if param.kind == "counts" or param.kind in STEPS:
        return param_schema(param)
    return {"type": ["number", "boolean", "string"]}


def entry_schema(entry: Entry) -> dict[str, Any]:
    """The value after the name of an entry: its parameters, or one quantity."""
    short = [_short(param) for name in entry.shorthand if (param := entry.param(name))]
    empty = [] if any(param.required for param in entry.params) else [{"type": "null"}]
    source = f" ({entry.source})" if entry.source else ""
    return {"description": f"{entry.summary}{source}", "anyOf": [*short, params_schema(entry.params), *empty]}


def entries_schema(family: dict[str, Entry], doc: str) -> dict[str, Any]:
    """One thing of a family of the registry."""
    alone = [name for name, entry in family.items() if not any(param.required for param in entry.params)]
    return {
        "description": doc,
        "anyOf": [
            *([{"enum": alone}] if alone else []),
            {
                "type": "object",
                "minProperties": 1,
                "maxProperties": 1,
                "additionalProperties": False,
                "properties": {name: entry_schema(entry) for name, entry in family.items()},
            },
        ],
    }
