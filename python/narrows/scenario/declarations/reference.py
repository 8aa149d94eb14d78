"""Tables of the Markdown reference of a kind of file, generated from its declaration."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from narrows.scenario.declarations.declaration import Key
from narrows.scenario.declarations.value import STEPS
from narrows.scenario.quantity import EXAMPLES, show
from narrows.scenario.registry import Param
from narrows.text import markdown_table

#: Kinds of values in words.
_KINDS = {
    "text": "text",
    "texts": "list of texts",
    "quantity": "number, with or without a unit",
    "neighbour": "file in the folder",
    "values": "names with values",
    "choices": "names with a value or a list of values",
}


def fill_template(template: Path, parts: Mapping[str, str]) -> str:
    """A page from its template, in which a line `@NAME@` is replaced by each part."""
    text = template.read_text(encoding="utf-8")
    return re.sub(r"^@([a-z]+)@$", lambda match: parts[match[1]].strip(), text, flags=re.MULTILINE)


def keys_table(keys: Iterable[Key], *columns: str) -> str:
    """A table of keys: `key`, then the columns `takes`, `default`, `allowed`, `meaning`, `example`."""
    rows = []
    for key in keys:
        # Without a column of values the text explains keys without a default.
        has_default = "allowed" in columns or _is_given(key.default)
        cells = {
            "key": f"`{key.name}`",
            "takes": _takes(key),
            "default": "required" if key.required else describe_default(key) if has_default else "",
            "allowed": cell(key.values or describe_values(key)),
            "meaning": cell(key.doc),
            "example": f"`{cell(key.example)}`",
        }
        rows.append([cells[column] for column in ("key", *columns)])
    return markdown_table(("key", *columns), rows)


def _takes(key: Key) -> str:
    link = f"[{key.section.replace('_', ' ')}](#{key.section.replace('_', '-')})"
    holders = {"of": link, "list": f"list of {link}", "named": f"names with {link}"}
    return holders.get(key.kind) or _KINDS.get(key.kind) or describe_values(key)


def describe_default(param: Param) -> str:
    """The default of a key or parameter in words."""
    if not _is_given(param.default):
        return "none"
    value = ", ".join(map(str, param.default)) if param.kind == "ports" else show(param.kind, param.default)
    return f"`{value}`"


def _is_given(default: Any) -> bool:
    """False for no default, and for empty ones."""
    return bool(default) or isinstance(default, bool | int | float)


def describe_values(param: Param) -> str:
    """The values that a parameter takes."""
    if param.choices:
        return ", ".join(f"`{choice}`" for choice in param.choices)
    if param.kind == "flag":
        return "`true`, `false`"
    if param.kind in ("counts", "file", *STEPS):
        return EXAMPLES[param.kind]
    low = show(param.kind, param.low) if param.low is not None else None
    high = show(param.kind, param.high) if param.high is not None else None
    if low is not None and high is not None:
        return f"{low} to {high}"
    return f"{low or 'any'} or more" if low is not None else "any"


def cell(text: str) -> str:
    """Text in a form that is safe inside a table."""
    return text.replace("|", "\\|")
