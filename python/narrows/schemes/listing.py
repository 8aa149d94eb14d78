"""The list of schemes, with the requirements that this machine lacks."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from narrows.agent.location import this_machine
from narrows.errors import DataError, UnavailableError
from narrows.models.store import names_of_kind
from narrows.scenario import registry
from narrows.scenario.prefixes import KERNEL_PREFIX
from narrows.scenario.registry import Entry
from narrows.schemes.availability import why_not
from narrows.schemes.status import status_of

if TYPE_CHECKING:
    from narrows.documents import agent

if TYPE_CHECKING:
    from narrows.scenario.programs.program import Program

#: Kinds of schemes: our state machines, our programs for the kernel, the kernel's own, external programs.
NATIVE, BPF, LINUX, PROGRAM = "native", "bpf", "linux", "program"
KINDS = (NATIVE, BPF, LINUX, PROGRAM)


@dataclass(frozen=True)
class SchemeInfo:
    """One scheme in the list of `narrows schemes`."""

    name: str
    kind: str
    planes: tuple[str, ...]
    status: str
    summary: str
    source: str
    missing: str | None
    #: True if it is both ends of a real-time flow; true if it sends frames of video.
    media: bool = False
    frames: bool = False
    #: The installed models that it can run with; None if it needs none.
    models: tuple[str, ...] | None = None

    def to_json(self) -> dict[str, object]:
        """As plain data."""
        return {
            "name": self.name,
            "kind": self.kind,
            "planes": list(self.planes),
            "status": self.status,
            "summary": self.summary,
            "source": self.source,
            "missing": self.missing,
            "media": self.media,
            "frames": self.frames,
            **({} if self.models is None else {"models": list(self.models)}),
        }


@dataclass(frozen=True)
class Machine:
    """The facts about this machine, and why it can't emulate (None if it can)."""

    facts: agent.MachineFacts
    trouble: str | None

    @classmethod
    def here(cls) -> Machine:
        """Asks the agent."""
        from narrows.documents.agent import MachineFacts

        try:
            facts = this_machine().doctor()
        except UnavailableError as error:
            return cls(MachineFacts(), f"emulation is not possible here: {error}")
        for name, fact in (("namespaces", facts.namespaces), ("packet sockets", facts.packet_socket)):
            if fact is not None and not fact.ok:
                why = fact.why or f"{name} are not permitted"
                return cls(facts, f"emulation is not possible here: {why}; see narrows doctor")
        return cls(facts, None)

    @property
    def kernel_schemes(self) -> list[str]:
        """Names of the congestion controls that the kernel offers, in our words."""
        return [KERNEL_PREFIX + name for name in self.facts.congestion_controls]


def list_schemes(machine: Machine | None = None) -> list[SchemeInfo]:
    """Our schemes, our programs for the kernel, the kernel's own schemes on this machine, and external
    programs.
    """
    machine = machine or Machine.here()
    known = registry.load()
    scheme_infos = [describe(entry, NATIVE, machine) for entry in known.schemes.values()]
    scheme_infos += [describe(entry, BPF, machine) for entry in known.bpf.values()]
    scheme_infos += [describe_kernel(name, machine) for name in machine.kernel_schemes]
    return scheme_infos + _programs(machine)


def _programs(machine: Machine) -> list[SchemeInfo]:
    """The schemes of all valid manifests; `narrows programs` names the others."""
    from narrows.scenario.programs import store

    programs: list[SchemeInfo] = []
    for item in store.list_programs():
        with contextlib.suppress(DataError):
            program = store.load(item.path)
            programs += [describe_program(program, variant, machine) for variant in program.variants]
    return programs


def describe_program(program: Program, variant: str, machine: Machine) -> SchemeInfo:
    """A variant of a program."""
    from narrows.scenario.programs.missing import why_missing
    from narrows.scenario.programs.scheme import defaults, plan

    one = program.variants[variant]
    name = f"{program.name}:{variant}"
    missing = machine.trouble or why_missing(plan(program, one, defaults(program, one)))
    return SchemeInfo(
        name,
        PROGRAM,
        () if missing else ("emulate",),
        status_of(name).word,
        one.what or program.what,
        program.source or str(program.path),
        missing,
    )


def describe(entry: Entry, kind: str, machine: Machine) -> SchemeInfo:
    """A native scheme, or one of our programs for the kernel."""
    missing = machine.trouble
    planes: tuple[str, ...] = ("simulate",) if kind == NATIVE else ()
    if kind == BPF:
        missing = missing or why_not(entry.name, "emulate", machine.facts)
    if missing is None:
        planes += ("emulate",)
    models = None
    if entry.model is not None:
        # Models have the kind that is named like the scheme.
        models = names_of_kind(entry.name)
        if not models and missing is None:
            missing = "no model for it is installed; narrows models add NAME PATH adds one"
    status = status_of(entry.name).word
    about = (entry.name, kind, planes, status, entry.summary, entry.source, missing)
    return SchemeInfo(*about, media=entry.media, frames=entry.frames, models=models)


def describe_kernel(label: str, machine: Machine) -> SchemeInfo:
    """A congestion control of the running kernel, whether it offers it or not."""
    missing = machine.trouble or why_not(label, "emulate", machine.facts)
    return SchemeInfo(
        label,
        LINUX,
        () if missing else ("emulate",),
        status_of(label).word,
        f"{label.removeprefix(KERNEL_PREFIX)} of the running kernel",
        f"Linux {machine.facts.kernel or 'unknown'}",
        missing,
    )
