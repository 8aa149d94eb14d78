"""The reference of scenario files as Markdown, generated from the keys and the registry."""

from __future__ import annotations

from pathlib import Path

from narrows.scenario.declarations.reference import (
    cell,
    describe_default,
    describe_values,
    fill_template,
    keys_table,
)
from narrows.scenario.keys import KEYS, REAL_PATH
from narrows.scenario.quantity import EXAMPLES
from narrows.scenario.registry import Entry, Param, Registry
from narrows.text import markdown_table

#: The values of a parameter of a scheme that names a model.
MODELS = "a model, or a list of models of which the first at hand is used"
_TEMPLATE = Path(__file__).with_name("reference.md.in")


def markdown(registry: Registry) -> str:
    """The whole page."""
    parts = {
        "keys": keys_table(KEYS.values(), "default", "meaning", "example"),
        "realpath": keys_table(REAL_PATH.values(), "default", "allowed", "meaning"),
        "settings": parameters(registry.host_settings),
        "traffic": _family(registry.traffic, "traffic"),
        "bottleneck": parameters(registry.bottleneck),
        "links": _family(registry.links, "link element"),
        "rates": _family(registry.rates, "rate"),
        "queues": _family(registry.queues, "queue"),
        "schemes": _family(registry.schemes, "scheme"),
        "programs": _programs(registry),
        "transport": parameters(registry.transport),
    }
    return fill_template(_TEMPLATE, parts)


def _family(family: dict[str, Entry], what: str) -> str:
    text = "" if family else "None.\n"
    for entry in family.values():
        source = f" Source: {entry.source}." if entry.source else ""
        text += f"### {what} `{entry.name}`\n\n{entry.summary.rstrip('.')}.{source}\n\n"
        text += short_form(entry)
        if entry.params:
            text += parameters(entry.params, entry.model if what == "scheme" else None) + "\n"
    return text


def _programs(registry: Registry) -> str:
    """Our programs for the kernel; their parameters are those of the schemes of the same name."""
    rows = []
    for entry in registry.bpf.values():
        names = ", ".join(f"`{param.name}`" for param in entry.params) or "none"
        rows.append((f"`{entry.name}`", cell(entry.summary), names))
    return markdown_table(("name", "what it is", "parameters"), rows)


def short_form(entry: Entry) -> str:
    """The short form of an entry with one quantity, if it has one."""
    kinds = [EXAMPLES[param.kind] for name in entry.shorthand if (param := entry.param(name))]
    return f"Short form: `{entry.name}:` with {' or '.join(kinds)}.\n\n" if kinds else ""


def parameters(params: tuple[Param, ...], model: Param | None = None) -> str:
    """A table of parameters; `model` is the one of a scheme that names a model."""
    if not params:
        return "None.\n"
    rows = []
    for param in params:
        default = "required" if param.required else describe_default(param)
        allowed = MODELS if param is model else describe_values(param)
        rows.append((f"`{param.name}`", default, allowed, cell(param.doc), cell(param.source)))
    return markdown_table(("parameter", "default", "allowed", "meaning", "source"), rows)
