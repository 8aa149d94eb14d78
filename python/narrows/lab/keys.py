"""The declaration of laboratories and of the right answers to lessons, and its JSON Schema."""

from __future__ import annotations

from pathlib import Path

from narrows.scenario.declarations.declaration import Schema, read_format
from narrows.scenario.declarations.schema import document, in_json, section_schema

FORMAT = read_format(Path(__file__).parent)


def schema() -> Schema:
    """The schema of `lab.yaml`."""
    about = "A family of experiments with the published values that they are compared with."
    return document("Narrows laboratory", about, section_schema(FORMAT, "lab"))


def schema_text() -> str:
    """The schema in its committed and printed form."""
    return in_json(schema())
