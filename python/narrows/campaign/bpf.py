"""BPF programs of a campaign, loaded briefly before it begins.

A program that the kernel refuses is thus detected at once, and not when half of the cells have run.
"""

from __future__ import annotations

import contextlib
import os
import sys

from narrows.agent.location import MISSING, REMEDY, Location
from narrows.campaign.plan import Plan
from narrows.documents.agent import TriedPrograms
from narrows.errors import DataError, UnavailableError
from narrows.scenario.prefixes import BPF_PREFIX
from narrows.scenario.real_path import sender_is_local


def check_programs(plan: Plan, agent: Location, remote: Location | None = None) -> None:
    """Tries every program that the cells use, on the machine that sends with it; raises the agent's message
    about the first that fails. `remote` is the other host of a campaign between two hosts.

    Only users' files are tried here.
    """
    names: tuple[dict[str, None], dict[str, None]] = ({}, {})
    files: dict[str, str] = {}
    for cell in plan.cells:
        for flow in cell.flows:
            here = remote is None or sender_is_local(cell) == flow.is_forward
            if flow.object_file:
                if here:
                    files[flow.object_file.sha256] = flow.object_file.name
            elif flow.scheme.startswith(BPF_PREFIX):
                names[0 if here else 1][flow.scheme.removeprefix(BPF_PREFIX)] = None
    if remote is not None and names[1]:
        options = [word for name in names[1] for word in ("--program", name)]
        _judge(remote.ask(TriedPrograms, "bpf", *options), f"{remote.name}: ")
    if names[0] or files:
        _judge(_here(plan, agent, list(names[0]), files))


def _here(plan: Plan, agent: Location, names: list[str], files: dict[str, str]) -> TriedPrograms:
    if sys.platform != "linux":
        raise UnavailableError(f"{MISSING}; {REMEDY}")
    options: list[str] = []
    for name in names:
        options += ["--program", name]
    with contextlib.ExitStack() as stack:
        handles = []
        for sha256, name in files.items():
            # In memory and without a path: nothing remains, however this process ends.
            file = stack.enter_context(os.fdopen(os.memfd_create(name), "wb"))
            file.write(plan.scenario.files.contents[sha256])
            file.flush()
            handles.append(file.fileno())
            options += ["--object", f"{name}=/proc/self/fd/{file.fileno()}"]
        return agent.ask(TriedPrograms, "bpf", *options, pass_fds=handles)


def _judge(answer: TriedPrograms, where: str = "") -> None:
    for result in answer.results:
        if not result.ok:
            kind = DataError if result.kind == "input" else UnavailableError
            raise kind(f"{where}{result.message}")
