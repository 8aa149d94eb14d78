"""The keys of laboratories, from `format.yaml`: the source of the reader, the JSON Schema and the
reference.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from narrows.files import read_packaged

#: The types of single values and plain collections.
TYPES = ("text", "texts", "name", "flag", "number", "file", "values", "choices")
#: The ways in which a key may contain sections.
HOLDERS = ("of", "list", "named")


@dataclass(frozen=True)
class Key:
    """One key of a section."""

    name: str
    doc: str
    example: str
    required: bool
    #: One of `TYPES` or `HOLDERS`, or `choice`.
    type: str
    #: The section that it contains.
    section: str = ""
    choices: tuple[str, ...] = ()
    default: Any = None


@lru_cache(maxsize=1)
def sections() -> dict[str, dict[str, Key]]:
    """The keys of all sections, by their names."""
    content = read_packaged(Path(__file__).with_name("format.yaml"))
    return {name: {key: _key(key, entry) for key, entry in keys.items()} for name, keys in content.items()}


def _key(name: str, entry: dict[str, Any]) -> Key:
    holder = next((text for text in HOLDERS if text in entry), None)
    kind = holder or ("choice" if "choice" in entry else entry["type"])
    return Key(
        name,
        " ".join(entry["doc"].split()),
        _example(entry["example"]),
        entry.get("required", False),
        kind,
        entry.get(holder, "") if holder else "",
        tuple(entry.get("choice", ())),
        entry.get("default"),
    )


def _example(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(str, value))}]"
    return str(value).lower() if isinstance(value, bool) else str(value)
