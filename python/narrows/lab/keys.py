"""The keys of laboratories, from `format.yaml`: the source of the reader, the JSON Schema and the
reference.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec

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


class _Entry(msgspec.Struct, frozen=True):
    """The declaration of a key."""

    doc: str
    example: object
    required: bool = False
    type: str = "choice"
    of: str = ""
    list: str = ""
    named: str = ""
    choice: tuple[str, ...] = ()
    default: Any = None


@lru_cache(maxsize=1)
def sections() -> dict[str, dict[str, Key]]:
    """The keys of all sections, by their names."""
    content = read_packaged(Path(__file__).with_name("format.yaml"))
    declared = msgspec.convert(content, dict[str, dict[str, _Entry]])
    return {name: {key: _key(key, entry) for key, entry in keys.items()} for name, keys in declared.items()}


def _key(name: str, entry: _Entry) -> Key:
    inner = dict(zip(HOLDERS, (entry.of, entry.list, entry.named), strict=True))
    kind, section = next(((holder, text) for holder, text in inner.items() if text), (entry.type, ""))
    doc, example = " ".join(entry.doc.split()), _example(entry.example)
    return Key(name, doc, example, entry.required, kind, section, entry.choice, entry.default)


def _example(value: object) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(str, value))}]"
    return str(value).lower() if isinstance(value, bool) else str(value)
