"""The JSON Schema (draft-07) of scenario files, generated from `format.yaml` and the registry.

Editors use it for completion and first checks; `narrows run` itself checks more (sums, orders, names of
the kernel) and has the better messages.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from narrows.scenario import dscp, expect, matrix
from narrows.scenario.keys import FORMAT, KEYS, REAL_PATH, Key
from narrows.scenario.params import STEPS
from narrows.scenario.prefixes import KERNEL_PREFIX
from narrows.scenario.quantity import EXAMPLES, UNITS
from narrows.scenario.registry import Entry, Param, Registry
from narrows.scenario.schemes import BPF_FILE, LONGEST_NAME, NAME, PROFILE, PROGRAM, TRANSPORT, transport_of

Schema = dict[str, Any]

_NUMBER = r"[0-9]+(\.[0-9]*)?([eE][-+]?[0-9]+)?"
WITH_UNIT = ("rate", "span", "bytes", "packets", "ratio")
#: Lists of words that `format.yaml` names.
_WORDS = {"$dscp": list(dscp.NAMES), "$measures": list(dict.fromkeys([*expect.OF_MODE, *expect.OF_VALUE]))}


def schema_text(registry: Registry) -> str:
    """The schema as it is committed and printed."""
    return json.dumps(schema(registry), indent=2, ensure_ascii=False) + "\n"


def schema(registry: Registry) -> Schema:
    """The schema as data."""
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Narrows scenario",
        "description": "One experiment: the question, the network, the schemes and the flows.",
        **object_schema(
            {name: _top_key(key, registry) for name, key in KEYS.items()},
            (name for name, key in KEYS.items() if key.required),
        ),
        "definitions": {
            **{kind: quantity_schema(kind) for kind in WITH_UNIT},
            **_filled(FORMAT["definitions"], registry),
            "element": _element(registry),
            "schemeName": _scheme_name(registry),
            "ownName": _OWN_NAME,
            "scheme": _scheme(registry),
        },
    }


def object_schema(properties: Schema, required: Iterable[str] = ()) -> Schema:
    """An object with these keys and no others."""
    needed = {"required": listed} if (listed := list(required)) else {}
    return {"type": "object", "additionalProperties": False, **needed, "properties": properties}


def _filled(part: Any, registry: Registry) -> Any:
    """A part of `format.yaml` with what the registry and the reader know."""
    if isinstance(part, list):
        return [_filled(item, registry) for item in part]
    if not isinstance(part, dict):
        return _WORDS.get(part, part) if isinstance(part, str) else part
    if "$matrix" in part:
        return matrix.schema()
    if "$params" in part:
        return _params(getattr(registry, part["$params"]))
    if "$real_path" in part:
        return object_schema({name: _key(key, registry) for name, key in REAL_PATH.items()})
    if "$entries" in part:
        return _entries(getattr(registry, part["$entries"]), part)
    return {key: _filled(value, registry) for key, value in part.items()}


def _key(key: Key, registry: Registry) -> Schema:
    return key_schema(replace(key, schema=_filled(key.schema, registry)))


def key_schema(key: Key) -> Schema:
    """The value of a key, described; of a key without a schema by its parameter."""
    content = key.schema if key.schema or key.param is None else _param(key.param)
    if "$ref" in content:  # draft-07 ignores whatever stands beside a reference
        content = {"allOf": [content]}
    return {"description": key.doc, **content}


def _top_key(key: Key, registry: Registry) -> Schema:
    return {**_key(key, registry), "examples": [key.example]}


# -- values --------------------------------------------------------------------------------------


def quantity_schema(kind: str) -> Schema:
    """A number with a unit, as a definition of that name."""
    own = {unit for unit, (unit_kind, _) in UNITS.items() if unit_kind == kind}
    if kind == "bytes":
        own |= {"bdp", "BDP"}
    units = "|".join(sorted(own, key=lambda unit: (-len(unit), unit)))
    return {"type": "string", "pattern": rf"^\s*{_NUMBER}\s*({units})\s*$", "description": EXAMPLES[kind]}


def _described(text: str, source: str) -> Schema:
    return {"description": f"{text} ({source})" if source else text} if text else {}


def _param(param: Param) -> Schema:
    """A value of a parameter."""
    return {**_described(param.doc, param.source), **_value(param)}


def _value(param: Param) -> Schema:
    limits = (("minimum", param.low), ("maximum", param.high))
    bounds = {key: limit for key, limit in limits if limit is not None}
    if param.kind in STEPS:
        step = [{"$ref": "#/definitions/span"}, {"$ref": f"#/definitions/{STEPS[param.kind]}"}]
        pair = {"type": "array", "items": step, "minItems": 2, "maxItems": 2}
        return {"type": "array", "minItems": 1, "items": pair}
    if param.kind == "counts":
        number = {"type": "integer", **bounds}
        return {"anyOf": [number, {"type": "array", "minItems": 1, "items": number}]}
    if param.kind == "ratio":
        return {"anyOf": [{"$ref": "#/definitions/ratio"}, {"type": "number", **bounds}]}
    if param.kind in WITH_UNIT:
        return {"allOf": [{"$ref": f"#/definitions/{param.kind}"}]}
    if param.kind == "choice":
        return {"enum": list(param.choices)}
    if param.kind == "file":
        return {"type": "string", "minLength": 1}
    if param.kind == "flag":
        return {"type": "boolean"}
    return {"type": "integer" if param.kind == "count" else "number", **bounds}


def _properties(params: Iterable[Param]) -> Schema:
    return {param.name: _param(param) for param in params}


def _params(params: tuple[Param, ...]) -> Schema:
    """Parameters by name."""
    return object_schema(_properties(params), (param.name for param in params if param.required))


def _short(param: Param) -> Schema:
    if param.kind in WITH_UNIT:
        return {"$ref": f"#/definitions/{param.kind}"}
    if param.kind == "counts" or param.kind in STEPS:
        return _param(param)
    return {"type": ["number", "boolean", "string"]}


# -- things of the registry ----------------------------------------------------------------------


def _entry(entry: Entry) -> Schema:
    """The value after the name of an entry: its parameters, or one quantity."""
    short = [_short(param) for name in entry.shorthand if (param := entry.param(name))]
    empty = [] if any(param.required for param in entry.params) else [{"type": "null"}]
    described = _described(entry.summary, entry.source)
    return {**described, "anyOf": [*short, _params(entry.params), *empty]}


def _entries(family: dict[str, Entry], part: Schema) -> Schema:
    """One thing of a family of the registry; a rate alone is constant."""
    alone = [name for name, entry in family.items() if not any(param.required for param in entry.params)]
    one = {
        **object_schema({name: _entry(entry) for name, entry in family.items()}),
        "minProperties": 1,
        "maxProperties": 1,
    }
    bare = [{"$ref": "#/definitions/rate"}] if part["$entries"] == "rates" else []
    names = [{"enum": alone}] if alone else []
    return {"description": part["description"], "anyOf": [*bare, *names, one]}


def _element(registry: Registry) -> Schema:
    name = FORMAT["parts"]["element_name"]
    bottleneck = {
        "rate": {"$ref": "#/definitions/rateServer"},
        "queue": {"$ref": "#/definitions/queue"},
        **_properties(registry.bottleneck),
        "name": name,
    }
    links = (
        object_schema({one: _entry(entry), "name": name}, (one,)) for one, entry in registry.links.items()
    )
    return {
        "description": "One element of the path: a bottleneck (rate with queue), or a link element.",
        "oneOf": [object_schema(bottleneck, ("rate",)), *links],
    }


def _scheme_name(registry: Registry) -> Schema:
    ours = [name for name, entry in registry.schemes.items() if not entry.model]
    kernels = {"type": "string", "pattern": f"^{KERNEL_PREFIX}[a-z0-9_-]{{1,15}}$"}
    return {"anyOf": [{"enum": [*ours, *registry.bpf]}, kernels, _PROGRAM_NAME]}


#: The name of a scheme that is a program: of its manifest, and of the variant.
_PROGRAM_NAME: Schema = {
    "type": "string",
    "pattern": "^(?!linux:|bpf:)[a-z0-9][a-z0-9._-]{0,39}:[a-z0-9][a-z0-9._-]{0,39}$",
}
#: The name of a scheme with its settings.
_OWN_NAME: Schema = {
    "type": "string",
    "minLength": 1,
    "maxLength": LONGEST_NAME,
    "description": "Name in results, in place of the scheme with its parameters.",
}
_NAMED: Schema = {NAME: {"$ref": "#/definitions/ownName"}}


def _beside(entry: Entry, ours: bool, registry: Registry) -> Schema:
    """Keys beside the parameters of a scheme."""
    found: Schema = dict(_NAMED)
    if entry.profiles:
        docs = "; ".join(f"{one.name}: {one.doc}" for one in entry.profiles.values())
        described = {"description": f"A set-up that others have used. {docs}"}
        found[PROFILE] = {"enum": list(entry.profiles), **described}
    if ours and entry.media:
        found[TRANSPORT] = object_schema(_properties(transport_of(entry, registry)))
    elif ours:
        found[TRANSPORT] = {"$ref": "#/definitions/transport"}
    return found


def _scheme(registry: Registry) -> Schema:
    forms = []
    for name, entry in (*registry.schemes.items(), *registry.bpf.items()):
        named = {"scheme": {"const": name, "description": entry.summary}}
        beside = _beside(entry, name in registry.schemes, registry)
        required = ["scheme", *(param.name for param in entry.params if param.required)]
        forms.append(object_schema({**named, **beside, **_properties(entry.params)}, required))
    for name, entry in registry.schemes.items():
        if entry.model:
            model = {**_param(entry.model), "description": f"{entry.summary}. {entry.model.doc}"}
            others = _properties(param for param in entry.params if param is not entry.model)
            forms.append(object_schema({name: model, **_beside(entry, True, registry), **others}, (name,)))
    kernel = {"type": "string", "pattern": f"^{KERNEL_PREFIX}"}
    forms.append(object_schema({"scheme": kernel, **_NAMED}, ("scheme",)))
    described = {"description": "Object file of a BPF congestion control of your own (my_cc.bpf.o)."}
    forms.append(
        object_schema({BPF_FILE: {"type": "string", "minLength": 1, **described}, **_NAMED}, (BPF_FILE,))
    )
    parameters = {"additionalProperties": {"type": ["string", "number"]}}
    forms.append({**object_schema({"scheme": _PROGRAM_NAME, **_NAMED}, ("scheme",)), **parameters})
    described = {"description": "Name of a program, or its manifest (program.yaml)."}
    program: Schema = {
        PROGRAM: {"type": "string", "minLength": 1, **described},
        "variant": {"type": "string"},
    }
    forms.append({**object_schema({**program, **_NAMED}, (PROGRAM,)), **parameters})
    return {
        "description": "A scheme by name, or with parameters.",
        "anyOf": [{"$ref": "#/definitions/schemeName"}, *forms],
    }
