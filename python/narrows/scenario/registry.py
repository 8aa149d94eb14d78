"""The registry of the core: schemes, queues, link elements, rate servers, transport parameters.

The core describes itself; nothing here names a scheme or a queue. A queue added to the core is
therefore valid in scenarios, in the JSON Schema and in the reference without a change in Python.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar

from narrows.errors import UnavailableError, refused_path
from narrows.scenario.quantity import show

if TYPE_CHECKING:
    from narrows.documents.components import Element
    from narrows.documents.results import Metric

#: True while scenarios are read whose caller makes the decisions of schemes, as learning environments do.
decided_outside: ContextVar[bool] = ContextVar("decided_outside", default=False)


@dataclass(frozen=True)
class Param:
    """One parameter of something in the registry; values are in base units (bit/s, ns, bytes)."""

    name: str
    kind: str
    choices: tuple[str, ...] = ()
    default: Any = None
    low: float | None = None
    high: float | None = None
    required: bool = False
    doc: str = ""
    source: str = ""
    #: Unit of a value whose kind has none.
    unit: str = ""


@dataclass(frozen=True)
class HostSetting(Param):
    """A setting of hosts."""

    #: The description without the effect on the simulated transport.
    meaning: str = ""
    #: Its sysctl; None if it is a setting of sockets or of the device.
    sysctl: str | None = None
    #: Its effect on the simulated transport; None if it has none.
    mirrored: str | None = None


@dataclass(frozen=True)
class Profile:
    """A set-up of a scheme under one name: other defaults, in base units."""

    name: str
    doc: str
    params: dict[str, Any]
    transport: dict[str, Any]


@dataclass(frozen=True)
class Entry:
    """A scheme, queue, link element or rate server."""

    name: str
    summary: str
    source: str
    params: tuple[Param, ...]
    shorthand: tuple[str, ...]
    #: For traffic: whether it sends datagrams, which no congestion control governs.
    datagram: bool = False
    #: For traffic: whether a flow may have several connections of the kind.
    parallel: bool = True
    #: For schemes: the text at the head of the source, as Markdown.
    page: str = ""
    #: For schemes: transport settings in the scheme's definition, in the notation of scenarios.
    transport: dict[str, str] = field(default_factory=dict)
    #: For schemes: configurations from other implementations, by name.
    profiles: dict[str, Profile] = field(default_factory=dict)
    #: For schemes: the ECN codepoint of their packets: none, classic or scalable.
    ecn: str = ""
    #: For schemes: whether it is both ends of a real-time flow, and not a congestion control of our
    #: transport.
    media: bool = False
    #: For real-time schemes: whether it sends frames of an encoder; otherwise it always has more to send.
    frames: bool = False
    #: For programs of the kernel: the native scheme with the same rules.
    native: str = ""

    @property
    def model(self) -> Param | None:
        """For schemes: the parameter that names the model, without which the scheme can't run. Its default
        is the name of an installed model.
        """
        return next((param for param in self.params if param.kind == "file"), None)

    @property
    def needs_model(self) -> bool:
        """For schemes: whether scenarios have to name a model."""
        return self.model is not None and self.model.required

    def param(self, name: str) -> Param | None:
        """The parameter of that name."""
        return next((param for param in self.params if param.name == name), None)


@dataclass(frozen=True)
class Registry:
    """Everything that the core offers, each family by name, in the order of the core's lists."""

    schemes: dict[str, Entry]
    queues: dict[str, Entry]
    links: dict[str, Entry]
    rates: dict[str, Entry]
    transport: tuple[Param, ...]
    #: Parameters of a bottleneck besides its rate and its queue.
    bottleneck: tuple[Param, ...]
    #: Kinds of traffic of a flow.
    traffic: dict[str, Entry]
    #: Settings of a host.
    host_settings: tuple[HostSetting, ...]
    #: The core's objection to an element as a whole (parameters may be valid one by one and invalid
    #: together), given the contents of the files that it names; None if it has none.
    refusal: Callable[[Element, dict[str, bytes]], str | None]
    #: Our programs for the kernel, by their names in scenarios (`bpf:NAME`).
    bpf: dict[str, Entry] = field(default_factory=dict)
    #: The core's objection to a scheme with these parameters, given the contents of the files that they name;
    #: None if it has none.
    scheme_refusal: Callable[[str, dict[str, Any], dict[str, bytes]], str | None] = field(
        default=lambda _name, _params, _files: None
    )
    #: The name of the congestion control in the content of a BPF object file; raises `ValueError`
    #: with one sentence if there is none.
    object_name: Callable[[bytes], str] = field(default=lambda _content: "my_cc")
    #: The bounds of each flow of a cell (JSON text): `flows`, a list of `flow` and `by`, and `refusal`, the
    #: reason why it must not be simulated, or None.
    bounds: Callable[[str], dict[str, Any]] = field(default=lambda _cell: {"flows": [], "refusal": None})


Kind = TypeVar("Kind", bound=Param)


def parse(text: str) -> Registry:
    """Reads the registry in the core's format."""
    document = json.loads(text)

    def family(name: str) -> dict[str, Entry]:
        return {item["name"]: _entry(item) for item in document.get(name, ())}

    def params(name: str) -> tuple[Param, ...]:
        return tuple(_param(item) for item in document.get(name, ()))

    transport = params("transport")
    schemes = {name: _with_units(entry, transport) for name, entry in family("schemes").items()}
    return Registry(
        schemes=schemes,
        queues=family("queues"),
        links=family("links"),
        rates=family("rates"),
        transport=transport,
        bottleneck=params("bottleneck"),
        traffic=family("traffic"),
        host_settings=tuple(_setting(item) for item in document.get("host_settings", ())),
        refusal=lambda _element, _files: None,
        bpf={entry.name: entry for entry in map(_program, document.get("bpf", ()))},
    )


@lru_cache(maxsize=1)
def load() -> Registry:
    """The registry of the core that this package was built with."""
    try:
        from narrows import _native
    except ImportError as error:
        if (refused := refused_path(error)) is not None:
            raise refused from None
        raise UnavailableError(
            f"the extension module narrows._native can't be loaded ({error}); build it with: make build"
        ) from None
    known = parse(_native.registry())
    return replace(
        known,
        refusal=lambda element, files: _native.check_element(json.dumps(element.to_members()), files),
        scheme_refusal=lambda name, params, files: _native.check_scheme(
            name, json.dumps(params), files, decided_outside.get()
        ),
        object_name=_native.bpf_object_name,
        bounds=lambda cell: json.loads(_native.bounds(cell)),
    )


@lru_cache(maxsize=1)
def metrics() -> dict[str, Metric]:
    """The metrics of a run, by name."""
    # Imported late: lists of schemes and elements do not need it.
    from narrows import _native
    from narrows.documents.data import from_data
    from narrows.documents.results import Metric

    return {metric.name: metric for metric in from_data(json.loads(_native.metrics()), list[Metric])}


def _entry(item: dict[str, Any]) -> Entry:
    own = {field.name: item[field.name] for field in fields(Entry) if item.get(field.name) is not None}
    own |= {
        "params": tuple(_param(param) for param in item["params"]),
        "shorthand": tuple(item.get("shorthand", ())),
        "datagram": item.get("class") == "datagrams",
        "profiles": {entry["name"]: Profile(**entry) for entry in item.get("profiles", ())},
    }
    return Entry(**{"summary": "", "source": "", **own})


def _with_units(entry: Entry, transport: tuple[Param, ...]) -> Entry:
    """The transport settings in a scheme's definition, in the notation of scenarios."""
    kinds = {param.name: param.kind for param in transport}

    def shown(name: str, text: str) -> str:
        whole = kinds.get(name) in ("span", "bytes", "packets", "rate")
        return show(kinds[name], int(text)) if whole and text.isdecimal() else text

    return replace(entry, transport={name: shown(name, text) for name, text in entry.transport.items()})


def _program(item: dict[str, Any]) -> Entry:
    """A program for the kernel, under its name in scenarios."""
    return _entry({**item, "name": "bpf:" + item["name"].removeprefix("bpf:")})


def _setting(item: dict[str, Any]) -> HostSetting:
    """A setting of hosts, described with its effect on the simulated transport."""
    meaning = item.get("doc", "")
    mirrored = item.get("mirrored")
    note = f" Ours: {mirrored}." if mirrored else " Ours has no such thing." if "mirrored" in item else ""
    return _param({**item, "meaning": meaning, "doc": f"{meaning}{note}"}, HostSetting)


def _param(item: dict[str, Any], kind: type[Kind] = Param) -> Kind:  # type: ignore[assignment]
    own = {field.name: item[field.name] for field in fields(kind) if item.get(field.name) is not None}
    limits = {"low": item.get("min"), "high": item.get("max")}
    return kind(**{**own, **limits, "choices": tuple(item.get("choices") or ())})
