"""Parts of the JSON Schema for what happens in a run: flows, background, timeline, expectations."""

from __future__ import annotations

from typing import Any

from narrows.scenario import draws, dscp, expect, timeline
from narrows.scenario.flows import MOST_FLOWS
from narrows.scenario.registry import Registry
from narrows.scenario.schema_values import entries_schema

_SPAN: dict[str, Any] = {"$ref": "#/definitions/span"}
_WORD: dict[str, Any] = {"type": "string", "minLength": 1}


def _span(doc: str) -> dict[str, Any]:
    return {"description": doc, "allOf": [_SPAN]}


def draw() -> dict[str, Any]:
    """Laws by the addresses of the values that follow them."""
    any_list = {"type": "array", "minItems": 1}
    pair = {"type": "array", "minItems": 2, "maxItems": 2}
    kinds = {"choice": any_list, "same": _WORD}
    laws = {name: {"description": doc, **kinds.get(name, pair)} for name, doc in draws.LAWS.items()}
    law = {
        "type": "object",
        "minProperties": 1,
        "maxProperties": 1,
        "additionalProperties": False,
        "properties": laws,
    }
    return {"type": "object", "minProperties": 1, "additionalProperties": law}


def _flow_keys(registry: Registry) -> dict[str, Any]:
    return {
        "from": {**_WORD, "description": "Host that sends the data. Default: of the topology."},
        "to": {**_WORD, "description": "Host that receives the data."},
        "start": _span("When the flow starts. Default: 0 s."),
        "stop": _span("When the flow stops. Default: the end."),
        "direction": {"enum": ["forward", "backward"], "description": "Way of the data. Default: forward."},
        "traffic": entries_schema(registry.traffic, "What the application does. Default: bulk."),
        "connections": {
            "type": "integer",
            "minimum": 1,
            "maximum": 1000,
            "description": "Connections side by side in one flow. Default: 1.",
        },
        "dscp": {
            "description": "Differentiated services code point. Default: 0.",
            "anyOf": [
                {"type": "integer", "minimum": 0, "maximum": dscp.LARGEST},
                {"enum": list(dscp.NAMES)},
            ],
        },
        "count": {
            "type": "integer",
            "minimum": 1,
            "maximum": MOST_FLOWS,
            "description": "Number of such flows.",
        },
        "interval": {
            "description": "Time from the start of one flow to that of the next; +- how far each start is"
            " off it at most, drawn in each run.",
            "anyOf": [_SPAN, {"type": "string", "pattern": r"^[^+±]+(\+-|±)[^+±]+$"}],
        },
        "extra_rtt": {
            "description": "Round-trip time beyond that of the path, for all flows or for each.",
            "anyOf": [_SPAN, {"type": "array", "items": _SPAN}],
        },
        "label": {"type": "string", "minLength": 1, "maxLength": 40, "description": "Name for people."},
    }


def definitions(registry: Registry) -> dict[str, Any]:
    """Schemas of the keys `flows`, `background`, `timeline` and `expect`."""
    flow = {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "scheme": {"anyOf": [{"$ref": "#/definitions/scheme"}, {"const": "udp"}]},
            **_flow_keys(registry),
        },
    }
    one = {"$ref": "#/definitions/flow"}
    link = {"anyOf": [_WORD, {"type": "array", "items": _WORD, "minItems": 2, "maxItems": 2}]}
    which = {"anyOf": [_WORD, {"type": "integer", "minimum": 1}]}
    change = {
        "at": _SPAN,
        "set": {"type": "object", "description": "New values of elements, by their names."},
        "cut": {"description": "A link from now on lets nothing through.", **link},
        "restore": {"description": "A link that was cut works again.", **link},
        "start": {"description": "A flow starts: its number or label.", **which},
        "stop": {"description": "A flow stops: its number or label.", **which},
    }
    amount = {"type": ["string", "number"]}
    expectation = {
        "metric": {**_WORD, "description": "Name of the metric, as in results.json."},
        "mode": {**_WORD, "description": "A mode of a scheme (probe_bw stands for probe_bw_up, too)."},
        "value": {**_WORD, "description": "A column of the states, or a value that a scheme shows."},
        "measure": {
            "enum": list(dict.fromkeys([*expect.OF_MODE, *expect.OF_VALUE])),
            "description": "What of the mode or value.",
        },
        "from": {"description": "States before do not count.", **_SPAN},
        "until": {"description": "States after do not count.", **_SPAN},
        "scheme": {**_WORD, "description": "Label of the scheme. Default: each."},
        "flow": {"description": "Number or label of a flow. Default: all.", **which},
        "of": {"enum": list(expect.STATISTICS), "description": "Of the valid runs. Default: median."},
        "at_least": amount,
        "at_most": amount,
    }
    return {
        "flow": flow,
        "flows": {
            "anyOf": [one, {"type": "array", "minItems": 1, "maxItems": MOST_FLOWS, "items": one}],
        },
        "background": {"type": "array", "maxItems": MOST_FLOWS, "items": one},
        "timeline": {
            "type": "array",
            "items": {
                "type": "object",
                "additionalProperties": False,
                "required": ["at"],
                "anyOf": [{"required": [action]} for action in timeline.ACTIONS],
                "properties": change,
            },
        },
        "expect": {
            "type": "array",
            "items": {
                "type": "object",
                "additionalProperties": False,
                "allOf": [
                    {"anyOf": [{"required": ["at_least"]}, {"required": ["at_most"]}]},
                    {
                        "oneOf": [
                            {"required": ["metric"]},
                            {"required": ["mode", "measure"]},
                            {"required": ["value", "measure"]},
                        ]
                    },
                ],
                "properties": expectation,
            },
        },
    }
