"""The declaration of program manifests, its JSON Schema, and values that are numbers and words."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import msgspec

from narrows.scenario.declarations.declaration import Schema, read_format
from narrows.scenario.declarations.schema import document, in_json, quantity_schema, section_schema

FORMAT = read_format(Path(__file__).parent)
SCHEMA = FORMAT.keys("manifest")["schema"].example
#: Placeholders that need no parameter, with their meanings.
PLACEHOLDERS = FORMAT.words

#: Signs of readiness that are an open port: TCP, UDP, or either.
LISTENS = ("tcp", "udp", "port")
PORT = "{port}"
#: The placeholder for the folder of the build.
BUILT = "built"
#: The placeholder for the folder of the manifest.
HERE = "here"
_PLACEHOLDER = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")


def placeholders(text: str) -> list[str]:
    """The placeholders in a text."""
    return _PLACEHOLDER.findall(text)


@dataclass(frozen=True)
class End:
    """How the processes end."""

    when: str
    signal: str
    grace: int

    @classmethod
    def default(cls) -> End:
        """The end of a manifest that says nothing of it."""
        return msgspec.convert(_defaults("end"), cls)


@dataclass(frozen=True)
class Limits:
    """The limits of the processes and of their files."""

    ready: int
    memory: int | None
    cpu: int | None
    time: int | None
    files: int
    output: int

    @classmethod
    def default(cls) -> Limits:
        """The limits of a manifest that names none."""
        return msgspec.convert(_defaults("limits"), cls)


def _defaults(section: str) -> dict[str, object]:
    return {name: key.default for name, key in FORMAT.keys(section).items()}


def schema() -> Schema:
    """The JSON Schema of manifests."""
    about = "A program of others as a scheme: how its two processes start and how they end."
    definitions = {kind: quantity_schema(kind) for kind in ("span", "bytes")}
    return document("Narrows program", about, section_schema(FORMAT, "manifest"), definitions)


def schema_text() -> str:
    """The schema in its committed and printed form."""
    return in_json(schema())
