"""Everything about one scheme: the page of `narrows schemes NAME`."""

from __future__ import annotations

from narrows.errors import DataError
from narrows.scenario import registry
from narrows.scenario.declarations.reference import describe_values
from narrows.scenario.prefixes import BPF_PREFIX, KERNEL_PREFIX
from narrows.scenario.quantity import show
from narrows.scenario.reference import MODELS
from narrows.scenario.registry import Entry, Param, Registry
from narrows.schemes import header
from narrows.schemes.listing import (
    BPF,
    NATIVE,
    Machine,
    describe,
    describe_kernel,
)
from narrows.schemes.page_content import Counterpart, Page, Row
from narrows.schemes.program_page import program_page
from narrows.schemes.status import status_of
from narrows.text import did_you_mean, printable

#: Kinds of values with a unit; others have none, or the header of the scheme states it.
_WITH_UNIT = ("rate", "span", "bytes", "packets")
#: Differences between our names and those of the kernel's modules with the same rules.
_KERNEL_NAMES = {"bbr1": "bbr"}
_LINUX_RULES = "-linux"
#: Notes of a model on the page of its scheme.
_FACTS = ("recipe", "seed", "version", "score", "source")


def page_of(name: str, machine: Machine | None = None) -> Page:
    """Explains a scheme; raises if no scheme has that name."""
    machine = machine or Machine.here()
    known = registry.load()
    if name.startswith(KERNEL_PREFIX):
        return _kernel_page(name, known, machine)
    entry, kind = known.schemes.get(name), NATIVE
    if entry is None:
        entry, kind = known.bpf.get(name), BPF
    if entry is None and ":" in name:
        return program_page(name, machine)
    if entry is None:
        names = [*known.schemes, *known.bpf, *machine.kernel_schemes]
        hint = did_you_mean(name, names) or "; narrows schemes lists them"
        raise DataError(f'scheme "{name}" does not exist{hint}')
    text = header.read(entry.page)
    return Page(
        describe(entry, kind, machine),
        text,
        rows(entry, text),
        entry.transport,
        profiles(entry, known),
        entry.ecn,
        status_of(name),
        _counterparts(entry, kind, known, machine),
        _default_model(entry),
    )


def _default_model(entry: Entry) -> str:
    """The model that a scheme runs by default, with its origin."""
    if entry.model is None or entry.model.default is None:
        return ""
    from narrows.models import store

    name = entry.model.default
    path = store.find_installed(name)
    if path is None:
        return store.how_to_add(name)
    model = store.describe(path)
    if model.summary is None:
        return f"{name} ({model.problem})"
    whose = "trained by Narrows" if model.summary.is_ours else "yours"
    facts = [f"{key} {value}" for key, value in model.summary.notes.items() if key in _FACTS]
    return f"{name} ({', '.join([whose, *map(printable, facts)])}); narrows models show {name} tells more"


def profiles(entry: Entry, known: Registry) -> dict[str, str]:
    """The profiles of a scheme, with the settings that each changes."""
    kinds = {param.name: param.kind for param in (*known.transport, *entry.params)}
    result = {}
    for profile in entry.profiles.values():
        settings = {**profile.params, **profile.transport}
        listed = ", ".join(f"{name}: {show(kinds[name], value)}" for name, value in settings.items())
        result[profile.name] = f"{profile.doc.rstrip('.')} ({listed})" if listed else profile.doc
    return result


def rows(entry: Entry, text: header.Header) -> tuple[Row, ...]:
    """The parameters of a scheme; for a program for the kernel, units and sources are in its header."""
    return tuple(_row(param, text.rows.get(param.name), param is entry.model) for param in entry.params)


def _row(param: Param, written: header.Row | None, is_model: bool) -> Row:
    default = "required" if param.required else show(param.kind, param.default)
    unit = default.split(" ")[-1] if param.kind in _WITH_UNIT and " " in default else ""
    unit = unit or ("share" if param.kind == "ratio" else param.unit or (written.unit if written else ""))
    source = written.source if written and written.source else param.source
    allowed = MODELS if is_model else describe_values(param).replace("`", "")
    return Row(param.name, unit, default, allowed, param.doc, source)


def kernel_name(name: str) -> str:
    """The kernel's module with the rules of a native scheme, if one exists."""
    return KERNEL_PREFIX + _KERNEL_NAMES.get(name, name.removesuffix(_LINUX_RULES))


def _counterparts(entry: Entry, kind: str, known: Registry, machine: Machine) -> tuple[Counterpart, ...]:
    native = entry.native if kind == BPF else entry.name
    counterparts: list[Counterpart] = []
    if kind == BPF and native in known.schemes:
        counterparts.append(Counterpart(native, "the same rules as a native state machine", None))
    for program in known.bpf.values():
        if kind == NATIVE and program.native == native:
            info = describe(program, BPF, machine)
            counterparts.append(Counterpart(program.name, "the same rules inside the kernel", info.missing))
    linux = native + _LINUX_RULES
    if kind == NATIVE and linux in known.schemes:
        counterparts.append(
            Counterpart(linux, "the rules of the kernel's module, as a native state machine", None)
        )
    paper = native.removesuffix(_LINUX_RULES)
    if paper != native and paper in known.schemes:
        counterparts.append(Counterpart(paper, "the rules as they were published", None))
    label = kernel_name(native)
    if label in machine.kernel_schemes:
        counterparts.append(Counterpart(label, "the running kernel's own", machine.trouble))
    return tuple(counterparts)


def _kernel_page(label: str, known: Registry, machine: Machine) -> Page:
    info = describe_kernel(label, machine)
    ours = [name for name in known.schemes if kernel_name(name) == label]
    ours += [name for name in (BPF_PREFIX + label.removeprefix(KERNEL_PREFIX),) if name in known.bpf]
    if label not in machine.kernel_schemes and not ours:
        names = [*known.schemes, *known.bpf, *machine.kernel_schemes]
        hint = did_you_mean(label, names) or "; narrows schemes lists them"
        raise DataError(f'this kernel has no scheme "{label.removeprefix(KERNEL_PREFIX)}"{hint}')
    text = header.Header(
        f"{label.removeprefix(KERNEL_PREFIX)}, the running kernel's own congestion control.",
        (
            f"Provenance: {info.source}. Deviations: none, it is the kernel's code. It takes no parameters"
            " from scenarios; what the module in use says of itself is in the record of each run.",
        ),
        {},
    )
    pair = tuple(Counterpart(name, "ours of the same name", None) for name in ours)
    return Page(info, text, (), {}, {}, "", status_of(label), pair)
