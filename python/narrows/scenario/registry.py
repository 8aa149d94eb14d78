"""The registry of the core: schemes, queues, link elements, rate servers, transport parameters.

The core describes itself; nothing here names a scheme or a queue. A queue added to the core is
therefore valid in scenarios, in the JSON Schema and in the reference without a change in Python.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace
from dataclasses import field as defaults
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from msgspec import UNSET, Struct, UnsetType, field, structs

from narrows import extended
from narrows.documents.data import from_data
from narrows.documents.extensions import Extension, labels
from narrows.errors import UnavailableError, as_refusal
from narrows.scenario.quantity import show

if TYPE_CHECKING:
    from narrows.documents.components import Element
    from narrows.documents.results import RegisteredMetric

#: True while scenarios are read whose caller makes the decisions of schemes, as learning environments do.
decided_outside: ContextVar[bool] = ContextVar("decided_outside", default=False)


class Param(Struct, frozen=True):
    """One parameter of something in the registry; values are in base units (bit/s, ns, bytes)."""

    name: str
    kind: str
    choices: tuple[str, ...] = ()
    default: Any = None
    low: int | float | None = field(name="min", default=None)
    high: int | float | None = field(name="max", default=None)
    required: bool = False
    doc: str = ""
    source: str = ""
    #: Unit of a value whose kind has none.
    unit: str = ""


class HostSetting(Param, frozen=True):
    """A setting of hosts."""

    #: The description without the effect on the simulated transport.
    meaning: str = ""
    #: Its sysctl; None if it is a setting of sockets or of the device.
    sysctl: str | None = None
    #: Its effect on the simulated transport; None if it has none.
    mirrored: str | UnsetType | None = UNSET


class Profile(Struct, frozen=True):
    """A set-up of a scheme under one name: other defaults, in base units."""

    name: str
    doc: str
    params: dict[str, object]
    transport: dict[str, object]


class Entry(Struct, frozen=True):
    """A scheme, queue, link element or rate server."""

    name: str
    summary: str = ""
    source: str = ""
    params: tuple[Param, ...] = ()
    shorthand: tuple[str, ...] = ()
    #: For traffic: `datagrams`, or another word.
    kind: str = field(name="class", default="")
    #: For traffic: whether a flow may have several connections of the kind.
    parallel: bool = True
    #: For schemes: the text at the head of the source, as Markdown.
    page: str = ""
    #: For schemes: transport settings in the scheme's definition, in the notation of scenarios.
    transport: dict[str, str] = field(default_factory=dict)
    #: For schemes: configurations from other implementations.
    set_ups: tuple[Profile, ...] = field(name="profiles", default=())
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
    def datagram(self) -> bool:
        """For traffic: whether it sends datagrams, which no congestion control governs."""
        return self.kind == "datagrams"

    @property
    def profiles(self) -> dict[str, Profile]:
        """For schemes: configurations from other implementations, by name."""
        return {profile.name: profile for profile in self.set_ups}

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


class FlowBound(Struct, frozen=True):
    """The bound of a flow: its number, and what limits it."""

    flow: int
    by: str | None


class Bounds(Struct, frozen=True):
    """The bounds of the flows of a cell, and the reason why it must not be simulated."""

    flows: tuple[FlowBound, ...] = ()
    refusal: str | None = None


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
    #: Crates of the user that some entries come from.
    extensions: tuple[Extension, ...] = ()
    #: Our programs for the kernel, by their names in scenarios (`bpf:NAME`).
    bpf: dict[str, Entry] = defaults(default_factory=dict)
    #: The core's objection to a scheme with these parameters, given the contents of the files that they name;
    #: None if it has none.
    scheme_refusal: Callable[[str, Mapping[str, object], dict[str, bytes]], str | None] = (
        lambda _name, _params, _files: None
    )
    #: The name of the congestion control in the content of a BPF object file; raises `ValueError`
    #: with one sentence if there is none.
    object_name: Callable[[bytes], str] = lambda _content: "my_cc"
    #: The bounds of the flows of a cell (JSON text).
    bounds: Callable[[str], Bounds] = lambda _cell: Bounds()


class _Families(Struct, frozen=True):
    """The registry in the core's format."""

    schemes: tuple[Entry, ...] = ()
    queues: tuple[Entry, ...] = ()
    links: tuple[Entry, ...] = ()
    rates: tuple[Entry, ...] = ()
    transport: tuple[Param, ...] = ()
    bottleneck: tuple[Param, ...] = ()
    traffic: tuple[Entry, ...] = ()
    host_settings: tuple[HostSetting, ...] = ()
    bpf: tuple[Entry, ...] = ()
    extensions: tuple[Extension, ...] = ()


def parse(text: str) -> Registry:
    """Reads the registry in the core's format."""
    core = from_data(json.loads(text, object_hook=_without_nulls), _Families)

    def by_name(entries: Iterable[Entry]) -> dict[str, Entry]:
        return {entry.name: entry for entry in entries}

    return Registry(
        schemes=by_name(_with_units(entry, core.transport) for entry in core.schemes),
        queues=by_name(core.queues),
        links=by_name(core.links),
        rates=by_name(core.rates),
        transport=core.transport,
        bottleneck=core.bottleneck,
        traffic=by_name(core.traffic),
        host_settings=tuple(map(_with_effect, core.host_settings)),
        refusal=lambda _element, _files: None,
        extensions=core.extensions,
        # Under their names in scenarios.
        bpf=by_name(structs.replace(item, name="bpf:" + item.name.removeprefix("bpf:")) for item in core.bpf),
    )


def _without_nulls(item: dict[str, object]) -> dict[str, object]:
    """An object without absent members; a setting that is mirrored as null has no effect on ours."""
    return {name: value for name, value in item.items() if value is not None or name == "mirrored"}


@lru_cache(maxsize=1)
def load() -> Registry:
    """The registry of the core that this package was built with, or of the extensions in use."""
    if extended.problem:
        raise UnavailableError(extended.problem)
    try:
        from narrows import _native
    except ImportError as error:
        if (refused := as_refusal(error)) is not None:
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
        bounds=lambda cell: from_data(json.loads(_native.bounds(cell)), Bounds),
    )


def version_of_extensions() -> str:
    """The user's crates that were built in, as part of the version of simulated results; "" if there are
    none.
    """
    return " ".join(f"{item.name}@{item.sha256[:12]}" for item in load().extensions)


def check_extensions(theirs: Sequence[Extension], agent: str) -> None:
    """Raises `UnavailableError` if an agent has other crates of users than this package, whose scenarios it
    could not run, or would run with other code.
    """
    ours = load().extensions
    if {item.label for item in theirs} != {item.label for item in ours}:
        raise UnavailableError(
            f"{agent} has {_in_words(theirs)}, and this package has {_in_words(ours)}; both ends need the"
            f" same (narrows extend add), or none: {extended.VARIABLE}={extended.OFF}"
        )


def _in_words(extensions: Sequence[Extension]) -> str:
    return f"the extensions {labels(list(extensions))}" if extensions else "no extensions"


@lru_cache(maxsize=1)
def metrics() -> dict[str, RegisteredMetric]:
    """The metrics of a run, by name."""
    # Imported late: lists of schemes and elements do not need it.
    from narrows import _native
    from narrows.documents.results import RegisteredMetric

    entries = from_data(json.loads(_native.metrics()), list[RegisteredMetric])
    return {metric.name: metric for metric in entries}


def _with_units(entry: Entry, transport: tuple[Param, ...]) -> Entry:
    """The transport settings in a scheme's definition, in the notation of scenarios."""
    kinds = {param.name: param.kind for param in transport}

    def display(name: str, text: str) -> str:
        whole = kinds.get(name) in ("span", "bytes", "packets", "rate")
        return show(kinds[name], int(text)) if whole and text.isdecimal() else text

    return structs.replace(
        entry, transport={name: display(name, text) for name, text in entry.transport.items()}
    )


def _with_effect(setting: HostSetting) -> HostSetting:
    """A setting of hosts, described with its effect on the simulated transport."""
    if setting.mirrored is UNSET:
        return structs.replace(setting, meaning=setting.doc)
    note = f" Ours: {setting.mirrored}." if setting.mirrored else " Ours has no such thing."
    return structs.replace(setting, meaning=setting.doc, doc=f"{setting.doc}{note}")
