"""What exists in the core: schemes, queues, link elements, rate servers, transport parameters.

The core describes itself; nothing here names a scheme or a queue. A queue added to the core is
therefore valid in scenarios, in the JSON Schema and in the reference without a change in Python.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from narrows.errors import UnavailableError


@dataclass(frozen=True)
class Param:
    """One parameter of something in the registry; values are in base units (bit/s, ns, bytes)."""

    name: str
    kind: str
    choices: tuple[str, ...]
    default: Any
    low: float | None
    high: float | None
    required: bool
    doc: str
    source: str


@dataclass(frozen=True)
class Entry:
    """A scheme, queue, link element or rate server."""

    name: str
    summary: str
    source: str
    status: str
    params: tuple[Param, ...]
    shorthand: tuple[str, ...]

    def param(self, name: str) -> Param | None:
        """The parameter of that name."""
        return next((param for param in self.params if param.name == name), None)


@dataclass(frozen=True)
class Registry:
    """Everything the core offers, each family by name, in the order of the core's lists."""

    schemes: dict[str, Entry]
    queues: dict[str, Entry]
    links: dict[str, Entry]
    rates: dict[str, Entry]
    transport: tuple[Param, ...]
    #: What the core says against an element as a whole (parameters may be right one by one and wrong
    #: together); None if nothing.
    refusal: Callable[[dict[str, Any]], str | None]


def parse(text: str) -> Registry:
    """Reads the registry as the core prints it."""
    document = json.loads(text)

    def family(name: str) -> dict[str, Entry]:
        return {item["name"]: _entry(item) for item in document[name]}

    return Registry(
        schemes=family("schemes"),
        queues=family("queues"),
        links=family("links"),
        rates=family("rates"),
        transport=tuple(_param(item) for item in document["transport"]),
        refusal=lambda _: None,
    )


@lru_cache(maxsize=1)
def load() -> Registry:
    """The registry of the core that this package was built with."""
    try:
        from narrows import _native
    except ImportError as error:
        raise UnavailableError(
            f"the extension module narrows._native can't be loaded ({error}); build it with: make build"
        ) from None
    known = parse(_native.registry())
    return replace(known, refusal=lambda element: _native.check_element(json.dumps(element)))


def _entry(item: dict[str, Any]) -> Entry:
    return Entry(
        name=item["name"],
        summary=item.get("summary", ""),
        source=item.get("source", ""),
        status=item.get("status", ""),
        params=tuple(_param(param) for param in item["params"]),
        shorthand=tuple(item.get("shorthand", ())),
    )


def _param(item: dict[str, Any]) -> Param:
    return Param(
        name=item["name"],
        kind=item["kind"],
        choices=tuple(item.get("choices") or ()),
        default=item.get("default"),
        low=item.get("min"),
        high=item.get("max"),
        required=bool(item.get("required")),
        doc=item.get("doc", ""),
        source=item.get("source", ""),
    )
