"""The reference of manifests as Markdown, generated from `format.yaml` and the shipped manifests."""

from __future__ import annotations

from pathlib import Path

from narrows.files import find_shipped_programs
from narrows.scenario.declarations.reference import cell, fill_template, keys_table
from narrows.scenario.programs.keys import FORMAT, PLACEHOLDERS
from narrows.scenario.programs.manifest import read
from narrows.text import markdown_table

_TEMPLATE = Path(__file__).with_name("reference.md.in")


def markdown() -> str:
    """The whole page."""
    columns = dict.fromkeys(("end", "limits"), ("default", "allowed", "meaning"))
    parts = {
        name: keys_table(keys.values(), *columns.get(name, ("default", "meaning", "example")))
        for name, keys in FORMAT.sections.items()
    }
    words = ((f"`{{{name}}}`", cell(doc)) for name, doc in PLACEHOLDERS.items())
    placeholders = markdown_table(("placeholder", "meaning"), words)
    return fill_template(_TEMPLATE, {**parts, "shipped": _list_manifests(), "placeholders": placeholders})


def _list_manifests() -> str:
    folder = find_shipped_programs()
    text = ""
    for path in sorted(folder.glob("*.yaml")) if folder else ():
        program = read(path)
        licence = f" Licence: {program.licence}." if program.licence else ""
        text += f"### `{program.name}`\n\n{program.what}. Source: {program.source}.{licence}\n\n"
        rows = (
            (f"`{program.name}:{variant.name}`", cell(variant.what)) for variant in program.variants.values()
        )
        text += markdown_table(("scheme", "what it is"), rows) + "\n"
        if program.parameters:
            values = program.parameters.values()
            listed = ((f"`{value.name}`", f"`{value.default}`", cell(value.what)) for value in values)
            text += markdown_table(("parameter", "default", "meaning"), listed) + "\n"
        if program.reports:
            metrics = (
                (f"`reported_{report.name}`", f"`{report.unit}`", cell(report.what))
                for report in program.reports
            )
            text += markdown_table(("it reports", "unit", "meaning"), metrics) + "\n"
    return text
