"""The JSON Schema (draft-07) of scenario files, generated from the keys and the registry.

Editors use it for completion and first checks; `narrows run` itself checks more (sums, orders, names of
the kernel) and has the better messages.
"""

from __future__ import annotations

import json
from typing import Any

from narrows.scenario import matrix, measure, real_path
from narrows.scenario import schema_places as places
from narrows.scenario import schema_schedule as schedule
from narrows.scenario.keys import BY_NAME, KEYS, SCHEMA
from narrows.scenario.prefixes import KERNEL_PREFIX
from narrows.scenario.registry import Entry, Registry
from narrows.scenario.schema_values import (
    WITH_UNIT,
    entries_schema,
    entry_schema,
    param_schema,
    params_schema,
    quantity_schema,
)
from narrows.scenario.schemes import BPF_FILE, LONGEST_NAME, NAME, PROFILE, TRANSPORT, transport_of


def schema_text(registry: Registry) -> str:
    """The schema as it is committed and printed."""
    return json.dumps(schema(registry), indent=2, ensure_ascii=False) + "\n"


def schema(registry: Registry) -> dict[str, Any]:
    """The schema as data."""
    properties = {key.name: _key(key.name) for key in KEYS}
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Narrows scenario",
        "description": "One experiment: the question, the network, the schemes and the flows.",
        "type": "object",
        "additionalProperties": False,
        "required": [key.name for key in KEYS if key.required],
        "properties": properties,
        "definitions": {
            **{kind: quantity_schema(kind) for kind in WITH_UNIT},
            "queue": entries_schema(registry.queues, "What holds packets that wait for the bottleneck."),
            "rateServer": _rate(registry),
            "element": _element(registry),
            "elements": {"type": ["array", "null"], "items": {"$ref": "#/definitions/element"}},
            "schemeName": _scheme_name(registry),
            "ownName": _OWN_NAME,
            "scheme": _scheme(registry),
            "transport": params_schema(registry.transport),
            **places.definitions(registry),
            **schedule.definitions(registry),
        },
    }


def _key(name: str) -> dict[str, Any]:
    key = BY_NAME[name]
    content: dict[str, Any]
    if key.param is not None:
        content = param_schema(key.param)
    elif name == "schema":
        content = {"const": SCHEMA}
    elif name == "name":
        content = {"type": "string", "pattern": "^[a-z0-9][a-z0-9.+-]{0,59}$"}
    elif name == "path":
        content = {**places.directions(), "required": ["forward"]}
    elif name == "schemes":
        content = {"type": "array", "minItems": 1, "items": {"$ref": "#/definitions/scheme"}}
    elif name in ("topology", "network", "hosts", "flows", "background", "timeline", "expect"):
        content = {"$ref": f"#/definitions/{name}"}
    elif name == measure.KEY:
        content = measure.schema()
    elif name == real_path.KEY:
        content = places.real_path_schema()
    elif name == "transport":
        content = {"$ref": "#/definitions/transport"}
    elif name == "matrix":
        content = matrix.schema()
    elif name == "draw":
        content = schedule.draw()
    elif name == "report":
        content = {
            "type": "object",
            "additionalProperties": False,
            "properties": {"pdf": {"type": "boolean"}},
        }
    else:
        content = {"type": "string", "minLength": 1}
    if "$ref" in content:  # draft-07 ignores whatever stands beside a reference
        content = {"allOf": [content]}
    return {"description": key.doc, **content, "examples": [key.example]}


def _rate(registry: Registry) -> dict[str, Any]:
    content = entries_schema(
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
                    **{param.name: param_schema(param) for param in registry.bottleneck},
                    "name": places.NAME,
                },
            },
            *(
                {
                    "type": "object",
                    "additionalProperties": False,
                    "required": [name],
                    "properties": {name: entry_schema(entry), "name": places.NAME},
                }
                for name, entry in registry.links.items()
            ),
        ],
    }


def _scheme_name(registry: Registry) -> dict[str, Any]:
    return {
        "anyOf": [
            {"enum": [*(name for name, entry in registry.schemes.items() if not entry.model), *registry.bpf]},
            {"type": "string", "pattern": f"^{KERNEL_PREFIX}[a-z0-9_-]{{1,15}}$"},
        ]
    }


#: The name of a scheme with its settings.
_OWN_NAME = {
    "type": "string",
    "minLength": 1,
    "maxLength": LONGEST_NAME,
    "description": "Name in results, in place of the scheme with its parameters.",
}


def _beside(entry: Entry, ours: bool, registry: Registry) -> dict[str, Any]:
    """Keys beside the parameters of a scheme."""
    found: dict[str, Any] = {NAME: {"$ref": "#/definitions/ownName"}}
    if entry.profiles:
        docs = "; ".join(f"{one.name}: {one.doc}" for one in entry.profiles.values())
        found[PROFILE] = {
            "enum": list(entry.profiles),
            "description": f"A set-up that others have used. {docs}",
        }
    if ours and entry.media:
        settings = transport_of(entry, registry)
        found[TRANSPORT] = {
            "type": "object",
            "additionalProperties": False,
            "properties": {param.name: param_schema(param) for param in settings},
        }
    elif ours:
        found[TRANSPORT] = {"$ref": "#/definitions/transport"}
    return found


def _scheme(registry: Registry) -> dict[str, Any]:
    with_params = [
        {
            "type": "object",
            "additionalProperties": False,
            "required": ["scheme", *(param.name for param in entry.params if param.required)],
            "properties": {
                "scheme": {"const": name, "description": entry.summary},
                **_beside(entry, name in registry.schemes, registry),
                **{param.name: param_schema(param) for param in entry.params},
            },
        }
        for name, entry in (*registry.schemes.items(), *registry.bpf.items())
    ]
    with_model = [
        {
            "type": "object",
            "additionalProperties": False,
            "required": [name],
            "properties": {
                name: {**param_schema(entry.model), "description": f"{entry.summary}. {entry.model.doc}"},
                **_beside(entry, True, registry),
                **{param.name: param_schema(param) for param in entry.params if param is not entry.model},
            },
        }
        for name, entry in registry.schemes.items()
        if entry.model
    ]
    plain = {
        "type": "object",
        "additionalProperties": False,
        "required": ["scheme"],
        "properties": {
            "scheme": {"type": "string", "pattern": f"^{KERNEL_PREFIX}"},
            NAME: {"$ref": "#/definitions/ownName"},
        },
    }
    from_file = {
        "type": "object",
        "additionalProperties": False,
        "required": [BPF_FILE],
        "properties": {
            BPF_FILE: {
                "type": "string",
                "minLength": 1,
                "description": "Object file of a BPF congestion control of your own (my_cc.bpf.o).",
            },
            NAME: {"$ref": "#/definitions/ownName"},
        },
    }
    return {
        "description": "A scheme by name, or with parameters.",
        "anyOf": [{"$ref": "#/definitions/schemeName"}, *with_params, *with_model, plain, from_file],
    }
