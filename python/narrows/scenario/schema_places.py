"""Parts of the JSON Schema for networks: topologies, hosts, routers, links."""

from __future__ import annotations

from typing import Any

from narrows.scenario import real_path
from narrows.scenario.registry import Param, Registry
from narrows.scenario.schema_values import param_schema, params_schema
from narrows.scenario.topologies import PLAIN, STAR_HOSTS

#: The key `name` of an element.
NAME: dict[str, Any] = {
    "type": "string",
    "pattern": "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$",
    "description": "Name of the element, for the timeline. Default: its link and place, such as forward.0.",
}

_NODE: dict[str, Any] = {"type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9_-]{0,31}$"}
_ELEMENTS: dict[str, Any] = {"$ref": "#/definitions/elements"}
_COUNT: dict[str, Any] = {"type": "integer", "minimum": 1, "maximum": 200}


def _object(properties: dict[str, Any], required: tuple[str, ...] = ()) -> dict[str, Any]:
    needed = {"required": list(required)} if required else {}
    return {"type": "object", "additionalProperties": False, **needed, "properties": properties}


def directions() -> dict[str, Any]:
    """Elements of either direction."""
    return _object(dict.fromkeys(("forward", "backward"), _ELEMENTS))


def _names(values: dict[str, Any]) -> dict[str, Any]:
    """Hosts as a list of names, or with something said of each."""
    by_name = {"type": "object", "propertyNames": _NODE, "additionalProperties": values}
    return {"anyOf": [{"type": "array", "minItems": 1, "items": _NODE}, by_name]}


def real_path_schema() -> dict[str, Any]:
    """Schema of the key `real_path`."""
    return _object({param.name: _of_real_path(param) for param in real_path.PARAMS})


def _of_real_path(param: Param) -> dict[str, Any]:
    port = {"anyOf": [{"type": "integer", "minimum": 1, "maximum": 65535}, {"type": "string"}]}
    name = {"type": "string", "minLength": 1, "maxLength": 15}
    own: dict[str, dict[str, Any]] = {
        "text": {"type": "string", "pattern": r"^[^-\s]\S*$"},
        "address": {"type": "string", "minLength": 2},
        "ports": {"anyOf": [*port["anyOf"], {"type": "array", "minItems": 1, "items": port}]},
        "interfaces": _object(dict.fromkeys((real_path.LOCAL, real_path.REMOTE), name)),
    }
    if param.kind not in own:
        return param_schema(param)
    return {"description": param.doc, **own[param.kind]}


def definitions(registry: Registry) -> dict[str, Any]:
    """Schemas of the keys `topology`, `network` and `hosts`."""
    access = {
        "access": {"description": "Elements of an access link, the same both ways.", "allOf": [_ELEMENTS]},
        "up": {"description": "Elements from the host to its router.", "allOf": [_ELEMENTS]},
        "down": {"description": "Elements from the router to the host.", "allOf": [_ELEMENTS]},
    }
    own = {"anyOf": [_object(access), {"type": "null"}]}
    hosts = _names(own)
    row = {
        "hops": {**_COUNT, "description": "Number of links in a row."},
        "forward": {"description": "Elements of each link.", "allOf": [_ELEMENTS]},
        "backward": {"description": "Elements of each link, the other way.", "allOf": [_ELEMENTS]},
        "links": {
            "description": "Instead: the links one by one.",
            "type": "array",
            "minItems": 1,
            "items": directions(),
        },
    }
    shapes = {
        "dumbbell": _object(
            {
                "pairs": {**_COUNT, "description": "Number of hosts on each side."},
                "left": {"type": "array", "items": _NODE, "description": "Hosts of the left side."},
                "right": {"type": "array", "items": _NODE, "description": "Hosts of the right side."},
                "hosts": hosts,
                **access,
            }
        ),
        "star": _object(
            {
                "center": {**_NODE, "description": "Name of the router in the middle."},
                "hosts": {"description": f"Default: {', '.join(STAR_HOSTS)}.", **hosts},
                **access,
            }
        ),
        "parking-lot": _object({**row, "hosts": hosts, **access}),
        "chain": _object(row),
    }
    settings = {"anyOf": [params_schema(registry.host_settings), {"type": "null"}]}
    link = {
        "between": {"type": "array", "items": _NODE, "minItems": 2, "maxItems": 2},
        "name": {"type": "string", "minLength": 1},
        "elements": {"description": "Elements of both directions.", "allOf": [_ELEMENTS]},
        "forward": _ELEMENTS,
        "backward": {
            "description": "Default: the fixed delays of the other direction.",
            "allOf": [_ELEMENTS],
        },
    }
    via = {"anyOf": [_NODE, {"type": "array", "items": _NODE}]}
    route = _object({"from": _NODE, "to": _NODE, "via": via}, ("from", "to"))
    return {
        "topology": {
            "anyOf": [
                {"enum": list(PLAIN)},
                *(_object({name: shape}, (name,)) for name, shape in shapes.items()),
            ]
        },
        "network": _object(
            {
                "hosts": _names(settings),
                "routers": {"type": "array", "items": _NODE},
                "links": {"type": "array", "minItems": 1, "items": _object(link, ("between",))},
                "routes": {"type": "array", "items": route},
            },
            ("hosts", "links"),
        ),
        "hosts": {"type": "object", "propertyNames": _NODE, "additionalProperties": settings},
    }
