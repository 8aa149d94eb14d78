"""The reference of scenario files as Markdown, generated from the keys and the registry."""

from __future__ import annotations

import re
from pathlib import Path

from narrows.scenario import real_path
from narrows.scenario.keys import KEYS, REAL_PATH
from narrows.scenario.params import STEPS
from narrows.scenario.quantity import EXAMPLES, show
from narrows.scenario.registry import Entry, Param, Registry
from narrows.text import markdown_table

#: The values of a parameter of a scheme that names a model.
MODELS = "a model, or a list of models of which the first at hand is used"
_TEMPLATE = Path(__file__).with_name("reference.md.in")


def markdown(registry: Registry) -> str:
    """The whole page."""
    parts = {
        "keys": _keys(),
        "realpath": _real_path(),
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


def fill_template(template: Path, parts: dict[str, str]) -> str:
    """A page from its template, in which a line `@NAME@` is replaced by each part."""
    text = template.read_text(encoding="utf-8")
    return re.sub(r"^@([a-z]+)@$", lambda match: parts[match[1]].strip(), text, flags=re.MULTILINE)


def _keys() -> str:
    rows = []
    for key in KEYS.values():
        default = "required" if key.required else _default(key.param) if key.param else ""
        rows.append((f"`{key.name}`", default, cell(key.doc), f"`{cell(key.example)}`"))
    return markdown_table(("key", "default", "meaning", "example"), rows)


def _real_path() -> str:
    rows = []
    for name, param in real_path.PARAMS.items():
        key = REAL_PATH[name]
        listed = f"`{_list(param.default)}`" if param.default else "none"
        default = listed if key.values else _default(param)
        rows.append((f"`{name}`", default, cell(key.values or describe_values(param)), cell(key.doc)))
    return markdown_table(("key", "default", "allowed", "meaning"), rows)


def _list(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


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
        default = "required" if param.required else _default(param)
        allowed = MODELS if param is model else describe_values(param)
        rows.append((f"`{param.name}`", default, allowed, cell(param.doc), cell(param.source)))
    return markdown_table(("parameter", "default", "allowed", "meaning", "source"), rows)


def _default(param: Param) -> str:
    if param.default is None:
        return "none"
    return f"`{show(param.kind, param.default)}`"


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
