"""The keys of scenarios, from `format.yaml`: the source of the reader, the JSON Schema and the reference."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from narrows.files import read_packaged
from narrows.scenario.registry import Param

FORMAT: dict[str, Any] = read_packaged(Path(__file__).with_name("format.yaml"))


@dataclass(frozen=True)
class Key:
    """One key. Keys with a `param` are single values; the others have separate readers and a schema."""

    name: str
    doc: str
    example: str = ""
    required: bool = False
    param: Param | None = None
    #: Part of the JSON Schema, if it does not follow from the parameter.
    schema: dict[str, Any] = field(default_factory=dict)
    #: Its values, for the reference, if they do not follow from the parameter.
    values: str = ""


def by_type(**schemas: dict[str, Any]) -> dict[str, Any]:
    """The JSON Schema of a value of several types, with a schema for each type, so that validators report
    problems of the value and not of alternatives.
    """
    cases = [{"if": {"type": name}, "then": schema} for name, schema in schemas.items() if schema]
    return {"type": list(schemas), **({"allOf": cases} if cases else {})}


def keys_of(section: dict[str, Any]) -> dict[str, Key]:
    """The keys of a section of a format, by name."""
    keys = {}
    for name, entry in section.items():
        own = {key: entry[key] for key in ("doc", "example", "required", "schema", "values") if key in entry}
        if "kind" in entry:
            choices = tuple(entry.get("choices", ()))
            limits = entry.get("default"), entry.get("low"), entry.get("high")
            own["param"] = Param(name, entry["kind"], choices, *limits, doc=entry["doc"])
        keys[name] = Key(name, **own)
    return keys


#: Keys of the top level, and of `real_path`.
KEYS = keys_of(FORMAT["keys"])
REAL_PATH = keys_of(FORMAT["real_path"])
SCHEMA = KEYS["schema"].example
#: The laws of `draw`, with their arguments.
LAWS = {
    name: str(law["description"])
    for name, law in KEYS["draw"].schema["additionalProperties"]["properties"].items()
}
