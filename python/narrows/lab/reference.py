"""The reference of `lab.yaml` as Markdown, generated from `format.yaml`."""

from __future__ import annotations

from pathlib import Path

from narrows.files import SHIPPED
from narrows.lab.keys import FORMAT
from narrows.lab.store import list_families
from narrows.scenario.declarations.reference import cell, fill_template, keys_table
from narrows.text import markdown_table

_TEMPLATE = Path(__file__).with_name("reference.md.in")


def markdown() -> str:
    """The whole page."""
    columns = ("takes", "default", "meaning", "example")
    parts = {name: keys_table(keys.values(), *columns) for name, keys in FORMAT.sections.items()}
    return fill_template(_TEMPLATE, {**parts, "shipped": _list_labs()})


def _list_labs() -> str:
    from narrows.lab.reading import read

    rows = []
    for family in list_families():
        if family.origin == SHIPPED:
            lab = read(family.path)
            rows.append((f"`{lab.name}`", "lesson" if lab.lesson else "laboratory", cell(lab.question)))
    return markdown_table(("name", "kind", "question"), rows)
