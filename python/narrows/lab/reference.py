"""The reference of `lab.yaml` as Markdown, generated from `format.yaml`."""

from __future__ import annotations

from pathlib import Path

from narrows.files import SHIPPED
from narrows.lab.keys import Key, sections
from narrows.lab.store import list_families
from narrows.scenario.reference import cell, fill_template
from narrows.text import markdown_table

_TEMPLATE = Path(__file__).with_name("reference.md.in")
#: Descriptions of the types of values.
_TYPES = {
    "text": "text",
    "texts": "list of texts",
    "flag": "`true` or `false`",
    "number": "number, with or without a unit",
    "file": "file in the folder",
    "values": "names with values",
    "choices": "names with a value or a list of values",
}


def markdown() -> str:
    """The whole page."""
    parts = {name: _table(keys) for name, keys in sections().items()}
    return fill_template(_TEMPLATE, {**parts, "shipped": _list_labs()})


def _table(keys: dict[str, Key]) -> str:
    rows = (
        (f"`{key.name}`", _type(key), _default(key), cell(key.doc), f"`{cell(key.example)}`")
        for key in keys.values()
    )
    return markdown_table(("key", "takes", "default", "meaning", "example"), rows)


def _type(key: Key) -> str:
    if key.type == "choice":
        return ", ".join(f"`{word}`" for word in key.choices)
    link = f"[{key.section.replace('_', ' ')}](#{key.section.replace('_', '-')})"
    return {"of": link, "list": f"list of {link}", "named": f"names with {link}"}.get(key.type) or _TYPES[
        key.type
    ]


def _default(key: Key) -> str:
    if key.required:
        return "required"
    if key.default is None:
        return ""
    return f"`{str(key.default).lower() if isinstance(key.default, bool) else key.default}`"


def _list_labs() -> str:
    from narrows.lab.reading import read

    rows = []
    for family in list_families():
        if family.origin == SHIPPED:
            lab = read(family.path)
            rows.append((f"`{lab.name}`", "lesson" if lab.lesson else "laboratory", cell(lab.question)))
    return markdown_table(("name", "kind", "question"), rows)
