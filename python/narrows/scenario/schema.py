"""The JSON Schema (draft-07) of scenario files, generated from `format.yaml` and the registry.

Editors use it for completion and first checks; `narrows run` itself checks more (sums, orders, names of
the kernel) and has the better messages.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec import structs

from narrows.scenario import dscp, expect, matrix
from narrows.scenario.declarations.declaration import Key, Schema
from narrows.scenario.declarations.schema import (
    WITH_UNIT,
    by_type,
    description,
    document,
    in_json,
    key_schema,
    object_schema,
    param_schema,
    quantity_schema,
    units_pattern,
    value_schema,
)
from narrows.scenario.declarations.value import STEPS
from narrows.scenario.keys import FORMAT, KEYS, REAL_PATH
from narrows.scenario.prefixes import KERNEL_PREFIX
from narrows.scenario.registry import Entry, Param, Registry
from narrows.scenario.schemes import BPF_FILE, LONGEST_NAME, NAME, PROFILE, PROGRAM, TRANSPORT, transport_of

#: Lists of words that `format.yaml` names.
_WORDS = {"$dscp": list(dscp.NAMES), "$measures": list(dict.fromkeys([*expect.OF_MODE, *expect.OF_VALUE]))}


def schema_text(registry: Registry) -> str:
    """The schema in its committed and printed form."""
    return in_json(schema(registry), indent=1)


def schema(registry: Registry) -> Schema:
    """The schema as data."""
    about = "One experiment: the question, the network, the schemes and the flows."
    properties = {name: _key(key, registry) for name, key in KEYS.items()}
    content = object_schema(properties, (name for name, key in KEYS.items() if key.required))
    definitions = {
        **{kind: quantity_schema(kind) for kind in WITH_UNIT},
        **_fill(FORMAT.definitions, registry),
        "element": _element(registry),
        "schemeName": _scheme_name(registry),
        "ownName": _OWN_NAME,
        "scheme": _scheme(registry),
    }
    return document("Narrows scenario", about, content, definitions)


class _Order(msgspec.Struct, frozen=True):
    """Completes a part of `format.yaml`; a property of a schema may have the name of a member."""

    by_type: dict[str, Any] | None = msgspec.field(name="$by_type", default=None)
    params: str | None = msgspec.field(name="$params", default=None)
    entries: str | None = msgspec.field(name="$entries", default=None)
    matrix: Any = msgspec.field(name="$matrix", default=None)
    real_path: Any = msgspec.field(name="$real_path", default=None)
    description: Any = None


def _fill(part: Any, registry: Registry) -> Any:
    """A part of `format.yaml`, completed from the registry and the reader."""
    if isinstance(part, list):
        return [_fill(item, registry) for item in part]
    if not isinstance(part, dict):
        return _WORDS.get(part, part) if isinstance(part, str) else part
    order = msgspec.convert(part, _Order)
    if order.by_type is not None:
        beside = {key: _fill(value, registry) for key, value in part.items() if key != "$by_type"}
        return {**beside, **by_type(**_fill(order.by_type, registry))}
    if order.matrix:
        return matrix.schema()
    if order.params is not None:
        return _params(getattr(registry, order.params))
    if order.real_path:
        return object_schema({name: _key(key, registry) for name, key in REAL_PATH.items()})
    if order.entries is not None:
        return {"description": order.description, **_entries(getattr(registry, order.entries), order.entries)}
    return {key: _fill(value, registry) for key, value in part.items()}


def _key(key: Key, registry: Registry) -> Schema:
    return key_schema(structs.replace(key, schema=_fill(key.schema, registry)), FORMAT)


def _properties(params: Iterable[Param]) -> Schema:
    return {param.name: param_schema(param) for param in params}


def _model(param: Param) -> Schema:
    """A parameter that names a model."""
    name = {"minLength": 1}
    names = {"minItems": 1, "uniqueItems": True, "items": {"type": "string", **name}}
    default = {} if param.default is None else {"default": param.default}
    return {**description(param.doc, param.source), **by_type(string=name, array=names), **default}


def _of_scheme(entry: Entry) -> Schema:
    """The parameters of a scheme."""
    return {
        param.name: _model(param) if param is entry.model else param_schema(param) for param in entry.params
    }


def _params(params: tuple[Param, ...]) -> Schema:
    """Parameters by name."""
    return object_schema(_properties(params), (param.name for param in params if param.required))


def _short(params: Iterable[Param]) -> dict[str, Schema]:
    """The schemas of a value that one of several parameters accepts, by value type."""
    short: dict[str, Schema] = {}
    kinds = []
    for param in params:
        if param.kind in WITH_UNIT:
            kinds.append(param.kind)
        elif param.kind in STEPS:
            short |= {"array": {key: value for key, value in value_schema(param).items() if key != "type"}}
        elif param.kind == "counts":
            short |= {"integer": {}, "array": {"items": {"type": "integer"}}}
        else:
            short |= {"number": {}, "boolean": {}, "string": {}}
    if kinds and "string" not in short:
        short |= {
            "string": {"pattern": f"^{units_pattern(*kinds)}$"},
            **({"number": {}} if "ratio" in kinds else {}),
        }
    return short


# -- entries of the registry --------------------------------------------------------------------


def _entry(entry: Entry) -> Schema:
    """The value after the name of an entry: its parameters, or one quantity."""
    short = _short(param for name in entry.shorthand if (param := entry.param(name)))
    alone: Schema = {} if any(param.required for param in entry.params) else {"null": {}}
    types = {**short, "object": _params(entry.params), **alone}
    return {**description(entry.summary, entry.source), **by_type(**types)}


def _entries(family: dict[str, Entry], name: str) -> Schema:
    """An entry of a family of the registry; a bare rate is constant."""
    alone = [name for name, entry in family.items() if not any(param.required for param in entry.params)]
    one = {**object_schema({name: _entry(entry) for name, entry in family.items()}), "minProperties": 1}
    word = "|".join(map(re.escape, alone))
    if name == "rates":
        named: Schema = {
            "pattern": f"^({units_pattern('rate')}|{word})$" if word else f"^{units_pattern('rate')}$"
        }
    else:
        named = {"enum": alone}
    types = {"string": named, "object": {**one, "maxProperties": 1}}
    return by_type(**types)


def _element(registry: Registry) -> Schema:
    name = FORMAT.parts["element_name"]
    bottleneck = {
        "rate": {"$ref": "#/definitions/rateServer"},
        "queue": {"$ref": "#/definitions/queue"},
        **_properties(registry.bottleneck),
        "name": name,
    }
    kinds: dict[str, Schema] = {"rate": object_schema(bottleneck)}
    for kind, entry in registry.links.items():
        kinds[kind] = object_schema({kind: _entry(entry), "name": name})
    return {
        "description": "One element of the path: a bottleneck (rate with queue), or a link element.",
        "type": "object",
        "allOf": _by_key(kinds, object_schema(dict.fromkeys(kinds, True))),
    }


def _by_key(forms: dict[str, Schema], otherwise: Schema) -> list[Schema]:
    """Alternatives of a mapping by their identifying key; the first key that is present decides."""
    cases: list[Schema] = []
    before: list[Schema] = []
    for key, form in forms.items():
        here = {"required": [key]}
        condition = {"allOf": [here, {"not": {"anyOf": [*before]}}]} if before else here
        cases.append({"if": condition, "then": form})
        before.append(here)
    return [*cases, {"if": {"not": {"anyOf": before}}, "then": {**otherwise, "minProperties": 1}}]


def _scheme_name(registry: Registry) -> Schema:
    ours = [name for name, entry in registry.schemes.items() if not entry.needs_model]
    return {
        "type": "string",
        "if": {"pattern": f"^{KERNEL_PREFIX}"},
        "then": {"pattern": f"^{KERNEL_PREFIX}[a-z0-9_-]{{1,15}}$"},
        "else": {"if": _PROGRAM_NAME, "then": True, "else": {"enum": [*ours, *registry.bpf]}},
    }


#: The name of a scheme that is a program: its manifest and the variant, or the path of a Pantheon wrapper.
_PROGRAM_PATTERN = "^pantheon:.|^(?!linux:|bpf:)[a-z0-9][a-z0-9._-]{0,39}:[a-z0-9][a-z0-9._-]{0,39}$"
_PROGRAM_NAME: Schema = {"type": "string", "pattern": _PROGRAM_PATTERN}
#: The name of a scheme with its settings.
_OWN_NAME: Schema = {
    "type": "string",
    "minLength": 1,
    "maxLength": LONGEST_NAME,
    "description": "Name in results, in place of the scheme with its parameters.",
}
_NAMED: Schema = {NAME: {"$ref": "#/definitions/ownName"}}


def _beside(entry: Entry, ours: bool, registry: Registry) -> Schema:
    """Keys that may accompany the parameters of a scheme."""
    beside: Schema = dict(_NAMED)
    if entry.profiles:
        docs = "; ".join(f"{profile.name}: {profile.doc}" for profile in entry.profiles.values())
        described = {"description": f"A set-up that others have used. {docs}"}
        beside[PROFILE] = {"enum": list(entry.profiles), **described}
    if ours and entry.media:
        beside[TRANSPORT] = object_schema(_properties(transport_of(entry, registry)))
    elif ours:
        beside[TRANSPORT] = {"$ref": "#/definitions/transport"}
    return beside


def _scheme(registry: Registry) -> Schema:
    named = []
    for name, entry in (*registry.schemes.items(), *registry.bpf.items()):
        scheme = {"scheme": {"const": name, "description": entry.summary}}
        beside = _beside(entry, name in registry.schemes, registry)
        required = ["scheme", *(param.name for param in entry.params if param.required)]
        form = object_schema({**scheme, **beside, **_of_scheme(entry)}, required)
        named.append({"if": {"properties": {"scheme": {"const": name}}}, "then": form})
    kernel = {"scheme": {"type": "string", "pattern": f"^{KERNEL_PREFIX}"}}
    named.append({"if": {"properties": kernel}, "then": object_schema({**kernel, **_NAMED})})
    # The parameters of a program are in its manifest.
    parameters = {"additionalProperties": {"type": ["string", "number"]}}
    ours = {"scheme": _PROGRAM_NAME}
    named.append({"if": {"properties": ours}, "then": {**object_schema({**ours, **_NAMED}), **parameters}})
    known = [*registry.schemes, *registry.bpf]
    foreign = f"^{KERNEL_PREFIX}|{_PROGRAM_PATTERN}"
    any_of_them = {"if": {"pattern": foreign}, "then": True, "else": {"enum": known}}
    forms: dict[str, Schema] = {"scheme": {"properties": {"scheme": any_of_them}, "allOf": named}}
    for name, entry in registry.schemes.items():
        if entry.model:
            model = {**_model(entry.model), "description": f"{entry.summary}. {entry.model.doc}"}
            others = _properties(param for param in entry.params if param is not entry.model)
            forms[name] = object_schema({name: model, **_beside(entry, True, registry), **others})
    described = {"description": "Object file of a BPF congestion control of your own (my_cc.bpf.o)."}
    forms[BPF_FILE] = object_schema({BPF_FILE: {"type": "string", "minLength": 1, **described}, **_NAMED})
    described = {"description": "Name of a program, or its manifest (program.yaml)."}
    program: Schema = {
        PROGRAM: {"type": "string", "minLength": 1, **described},
        "variant": {"type": "string"},
    }
    forms[PROGRAM] = {**object_schema({**program, **_NAMED}), **parameters}
    return {
        "description": "A scheme by name, or with parameters.",
        **by_type(
            string={"$ref": "#/definitions/schemeName"},
            object={"allOf": _by_key(forms, {"required": ["scheme"]})},
        ),
    }
