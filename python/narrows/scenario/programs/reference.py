"""The reference of manifests as Markdown, generated from `format.yaml` and the shipped manifests."""

from __future__ import annotations

from pathlib import Path

from narrows.files import find_shipped_programs
from narrows.scenario.keys import Key
from narrows.scenario.programs.keys import (
    BUILD,
    END,
    LIMITS,
    MANIFEST,
    PARAMETER,
    PLACEHOLDERS,
    REPORT,
    SIDE,
    VARIANT,
)
from narrows.scenario.programs.manifest import read
from narrows.scenario.quantity import show
from narrows.scenario.reference import cell, describe_values, fill_template
from narrows.text import markdown_table

_TEMPLATE = Path(__file__).with_name("reference.md.in")


def markdown() -> str:
    """The whole page."""
    tables = {
        "manifest": MANIFEST,
        "side": SIDE,
        "variant": VARIANT,
        "parameter": PARAMETER,
        "build": BUILD,
        "report": REPORT,
    }
    parts = {name: _texts(keys) for name, keys in tables.items()}
    parts |= {"end": _values(END), "limits": _values(LIMITS), "shipped": _list_manifests()}
    words = ((f"`{{{name}}}`", cell(doc)) for name, doc in PLACEHOLDERS.items())
    parts["placeholders"] = markdown_table(("placeholder", "meaning"), words)
    return fill_template(_TEMPLATE, parts)


def _texts(keys: dict[str, Key]) -> str:
    rows = (
        (f"`{key.name}`", "required" if key.required else "", cell(key.doc), f"`{cell(key.example)}`")
        for key in keys.values()
    )
    return markdown_table(("key", "", "meaning", "example"), rows)


def _values(keys: dict[str, Key]) -> str:
    rows = []
    for key in keys.values():
        assert key.param is not None
        default = key.param.default
        shown = "none" if default is None else f"`{show(key.param.kind, default)}`"
        rows.append((f"`{key.name}`", shown, describe_values(key.param), cell(key.doc)))
    return markdown_table(("key", "default", "allowed", "meaning"), rows)


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
