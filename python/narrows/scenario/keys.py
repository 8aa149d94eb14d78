"""The keys of scenarios, from `format.yaml`: the source of the reader, the JSON Schema and the reference."""

from __future__ import annotations

from pathlib import Path

import msgspec

from narrows.scenario.declarations.declaration import read_format

FORMAT = read_format(Path(__file__).parent)
#: Keys of the top level, and of `real_path`.
KEYS = FORMAT.keys("keys")
REAL_PATH = FORMAT.keys("real_path")
SCHEMA = KEYS["schema"].example


class _Described(msgspec.Struct):
    description: str


class _Laws(msgspec.Struct):
    properties: dict[str, _Described]


class _Draw(msgspec.Struct):
    laws: _Laws = msgspec.field(name="additionalProperties")


#: The laws of `draw`, with their arguments.
LAWS = {
    name: law.description for name, law in msgspec.convert(KEYS["draw"].schema, _Draw).laws.properties.items()
}
