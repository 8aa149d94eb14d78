"""The declaration of a kind of file: its sections, and the keys of each.

    lab:                          # a section
      title:                      # a key
        doc: The title, a few words.
        example: High-speed TCP variants at NCSU
        required: true
        kind: text
      columns:
        doc: The columns that are measured and compared, by their names.
        example: "{jain: {metric: jain_index}}"
        named: column             # sections by names

A key has a `kind` (of `narrows.scenario.declarations.value`, or of the reader of its files), or it contains
sections: `of: SECTION` one, `list: SECTION` several in a list, `named: SECTION` several by names, which
match the pattern `names`. `choices` alone makes a kind. Defaults and limits are in base units (ns, bit/s,
bytes). A key without a kind has a separate reader. `schema` adds to the JSON Schema of sections, and
replaces that of other kinds.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from narrows.files import read_packaged
from narrows.scenario.registry import Param

#: A part of a JSON Schema.
Schema = dict[str, Any]
#: The ways in which a key may contain sections.
HOLDERS = ("of", "list", "named")
#: Members of a declaration that are not sections.
_OTHERS = ("parts", "definitions", "words")


class Key(Param, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One key of a section."""

    example: str = ""
    #: The section that it contains; `kind` is then one of `HOLDERS`.
    section: str = ""
    #: For sections by names: the pattern of the names.
    names: str = ""
    #: For sections by names: whether null is one without keys.
    nullable: bool = False
    #: Part of the JSON Schema, where it does not follow from the kind.
    schema: Schema = msgspec.field(default_factory=dict)
    #: Its values in words, for the reference, where they do not follow from the kind.
    values: str = ""


class Format(msgspec.Struct, frozen=True):
    """The declaration of a kind of file."""

    sections: dict[str, dict[str, Key]]
    #: Parts of JSON Schemas: those that others refer to, and those that are published as definitions.
    parts: dict[str, Schema]
    definitions: dict[str, Schema]
    #: Words that values may contain, with their meanings.
    words: dict[str, str]

    def keys(self, section: str) -> dict[str, Key]:
        """The keys of a section, by their names."""
        return self.sections[section]


def read_format(folder: Path) -> Format:
    """The declaration in a folder of the package."""
    content = read_packaged(folder / "format.yaml")
    others = {name: content.pop(name, {}) for name in _OTHERS}
    sections = {
        section: {name: _key(name, entry) for name, entry in keys.items()}
        for section, keys in content.items()
    }
    return msgspec.convert({"sections": sections, **others}, Format)


def _key(name: str, entry: dict[str, object]) -> dict[str, object]:
    """The declaration of a key in the form of its definition."""
    texts: dict[str, object] = {
        member: _in_yaml(entry[member]) for member in ("doc", "example") if member in entry
    }
    key: dict[str, object] = {"name": name, "kind": "choice" if "choices" in entry else "", **entry, **texts}
    for holder in HOLDERS:
        if holder in key:
            key |= {"kind": holder, "section": key.pop(holder)}
    return key


def _in_yaml(value: object) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(str, value))}]"
    return str(value).lower() if isinstance(value, bool) else " ".join(str(value).split())
