"""The JSON Schema (draft-07) of scenario files, generated from the keys and the registry.

Editors use it for completion and first checks; `narrows run` itself checks more (sums, orders, names of
the kernel) and has the better messages.
"""

from __future__ import annotations

import json
from typing import Any

from narrows.scenario.flows import KERNEL_PREFIX, MOST_FLOWS
from narrows.scenario.keys import BY_NAME, KEYS, SCHEMA
from narrows.scenario.quantity import EXAMPLES, UNITS
from narrows.scenario.registry import Entry, Param, Registry

_NUMBER = r"[0-9]+(\.[0-9]*)?([eE][-+]?[0-9]+)?"
_WITH_UNIT = ("rate", "span", "bytes", "packets", "ratio")


def schema_text(registry: Registry) -> str:
    """The schema as it is committed and printed."""
    return json.dumps(schema(registry), indent=2, ensure_ascii=False) + "\n"


def schema(registry: Registry) -> dict[str, Any]:
    """The schema as data."""
    properties = {key.name: _key(key.name, registry) for key in KEYS}
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Narrows scenario",
        "description": "One experiment: the question, the network, the schemes and the flows.",
        "type": "object",
        "additionalProperties": False,
        "required": [key.name for key in KEYS if key.required],
        "properties": properties,
        "definitions": {
            **{kind: _quantity(kind) for kind in _WITH_UNIT},
            "queue": _entries(registry.queues, "What holds packets that wait for the bottleneck."),
            "rateServer": _rate(registry),
            "element": _element(registry),
            "elements": {"type": ["array", "null"], "items": {"$ref": "#/definitions/element"}},
            "schemeName": _scheme_name(registry),
            "scheme": _scheme(registry),
            "flow": _flow(),
        },
    }


def _key(name: str, registry: Registry) -> dict[str, Any]:
    key = BY_NAME[name]
    content: dict[str, Any]
    if key.param is not None:
        content = _param(key.param)
    elif name == "schema":
        content = {"const": SCHEMA}
    elif name == "name":
        content = {"type": "string", "pattern": "^[a-z0-9][a-z0-9.+-]{0,59}$"}
    elif name == "path":
        content = {
            "type": "object",
            "additionalProperties": False,
            "required": ["forward"],
            "properties": {
                direction: {"$ref": "#/definitions/elements"} for direction in ("forward", "backward")
            },
        }
    elif name == "schemes":
        content = {"type": "array", "minItems": 1, "items": {"$ref": "#/definitions/scheme"}}
    elif name == "flows":
        content = _flows()
    elif name == "transport":
        content = _params(registry.transport)
    elif name == "report":
        content = {
            "type": "object",
            "additionalProperties": False,
            "properties": {"pdf": {"type": "boolean"}},
        }
    else:
        content = {"type": "string", "minLength": 1}
    return {"description": key.doc, **content, "examples": [key.example]}


def _quantity(kind: str) -> dict[str, Any]:
    own = {unit for unit, (unit_kind, _) in UNITS.items() if unit_kind == kind}
    if kind == "bytes":
        own |= {"bdp", "BDP"}
    units = "|".join(sorted(own, key=lambda unit: (-len(unit), unit)))
    return {"type": "string", "pattern": rf"^\s*{_NUMBER}\s*({units})\s*$", "description": EXAMPLES[kind]}


def _param(param: Param) -> dict[str, Any]:
    described: dict[str, Any] = {}
    if param.doc:
        source = f" ({param.source})" if param.source else ""
        described["description"] = f"{param.doc}{source}"
    bounds = {
        key: limit for key, limit in (("minimum", param.low), ("maximum", param.high)) if limit is not None
    }
    if param.kind == "ratio":
        return {**described, "anyOf": [{"$ref": "#/definitions/ratio"}, {"type": "number", **bounds}]}
    if param.kind in _WITH_UNIT:
        return {**described, "allOf": [{"$ref": f"#/definitions/{param.kind}"}]}
    if param.kind == "flag":
        return {**described, "type": "boolean"}
    if param.kind == "choice":
        return {**described, "enum": list(param.choices)}
    return {**described, "type": "integer" if param.kind == "count" else "number", **bounds}


def _params(params: tuple[Param, ...]) -> dict[str, Any]:
    required = [param.name for param in params if param.required]
    return {
        "type": "object",
        "additionalProperties": False,
        **({"required": required} if required else {}),
        "properties": {param.name: _param(param) for param in params},
    }


def _entry(entry: Entry) -> dict[str, Any]:
    """The value after the name of an entry: its parameters, or one quantity."""
    kinds = [param.kind for name in entry.shorthand if (param := entry.param(name))]
    short = [
        {"$ref": f"#/definitions/{kind}"} if kind in _WITH_UNIT else {"type": ["number", "boolean", "string"]}
        for kind in kinds
    ]
    empty = [] if any(param.required for param in entry.params) else [{"type": "null"}]
    source = f" ({entry.source})" if entry.source else ""
    return {"description": f"{entry.summary}{source}", "anyOf": [*short, _params(entry.params), *empty]}


def _entries(family: dict[str, Entry], doc: str) -> dict[str, Any]:
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
                "properties": {name: _entry(entry) for name, entry in family.items()},
            },
        ],
    }


def _rate(registry: Registry) -> dict[str, Any]:
    content = _entries(
        registry.rates, "How fast the bottleneck serves; a plain rate such as 12 Mbit/s is constant."
    )
    content["anyOf"].insert(0, {"$ref": "#/definitions/rate"})
    return content


def _element(registry: Registry) -> dict[str, Any]:
    return {
        "description": "One element of the path: a bottleneck (rate with queue), or a link element.",
        "oneOf": [
            {
                "type": "object",
                "additionalProperties": False,
                "required": ["rate"],
                "properties": {
                    "rate": {"$ref": "#/definitions/rateServer"},
                    "queue": {"$ref": "#/definitions/queue"},
                },
            },
            *(
                {
                    "type": "object",
                    "additionalProperties": False,
                    "required": [name],
                    "properties": {name: _entry(entry)},
                }
                for name, entry in registry.links.items()
            ),
        ],
    }


def _scheme_name(registry: Registry) -> dict[str, Any]:
    return {
        "anyOf": [
            {"enum": list(registry.schemes)},
            {"type": "string", "pattern": f"^{KERNEL_PREFIX}[a-z0-9_-]{{1,15}}$"},
        ]
    }


def _scheme(registry: Registry) -> dict[str, Any]:
    with_params = [
        {
            "type": "object",
            "additionalProperties": False,
            "required": ["scheme"],
            "properties": {
                "scheme": {"const": name, "description": entry.summary},
                **{param.name: _param(param) for param in entry.params},
            },
        }
        for name, entry in registry.schemes.items()
    ]
    plain = {
        "type": "object",
        "additionalProperties": False,
        "required": ["scheme"],
        "properties": {"scheme": {"type": "string", "pattern": f"^{KERNEL_PREFIX}"}},
    }
    return {
        "description": "A scheme by name, or with parameters.",
        "anyOf": [{"$ref": "#/definitions/schemeName"}, *with_params, plain],
    }


def _flow() -> dict[str, Any]:
    span = {"$ref": "#/definitions/span"}
    return {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "scheme": {"$ref": "#/definitions/scheme"},
            "start": {"description": "When the flow starts. Default: 0 s.", "allOf": [span]},
            "stop": {"description": "When the flow stops. Default: the end.", "allOf": [span]},
            "direction": {
                "enum": ["forward", "backward"],
                "description": "Way of the data. Default: forward.",
            },
            "extra_rtt": {
                "description": "Round-trip time of the flow beyond that of the path.",
                "allOf": [span],
            },
        },
    }


def _flows() -> dict[str, Any]:
    span = {"$ref": "#/definitions/span"}
    return {
        "anyOf": [
            {
                "type": "object",
                "additionalProperties": False,
                "properties": {
                    "count": {
                        "type": "integer",
                        "minimum": 1,
                        "maximum": MOST_FLOWS,
                        "description": "Number of flows.",
                    },
                    "interval": {
                        "description": "Time from the start of one flow to that of the next.",
                        "allOf": [span],
                    },
                    "extra_rtt": {
                        "description": "Round-trip time beyond that of the path, for all flows or for each.",
                        "anyOf": [span, {"type": "array", "items": span}],
                    },
                },
            },
            {"type": "array", "minItems": 1, "maxItems": MOST_FLOWS, "items": {"$ref": "#/definitions/flow"}},
        ]
    }
