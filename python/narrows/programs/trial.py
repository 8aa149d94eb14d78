"""A trial of a program over an emulated path, with the observations (`narrows programs check`)."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from msgspec import structs

from narrows.agent.cell import CellRun
from narrows.agent.location import this_machine
from narrows.campaign import players, program_reports
from narrows.campaign.json_files import read_json, read_run
from narrows.documents.programs import CONNECTOR, LISTENER
from narrows.documents.results import Measured, MeasuredFlow
from narrows.documents.run import FORMAT, Conversation, ProgramProcess, ProgramRun, SentData
from narrows.errors import UnavailableError
from narrows.scenario.loading import loads
from narrows.scenario.model import cells_of
from narrows.scenario.programs.missing import why_missing
from narrows.scenario.programs.program import Program
from narrows.scenario.programs.scheme import defaults, plan

#: The path: slow enough that every program can fill it, and cheap to emulate.
_SCENARIO = """\
schema: narrows/scenario/1
question: Does the program run?
where: emulate
path: {forward: [{rate: 10 Mbit/s, queue: {droptail: 1 bdp}}, {delay: 10 ms}]}
schemes: [reno]
duration: 2 s
"""
PROTOCOLS = {1: "ICMP", 6: "TCP", 17: "UDP", 33: "DCCP", 132: "SCTP"}
OK, INVALID = "ok", "invalid"


@dataclass(frozen=True)
class Trial:
    """The observations about a program."""

    scheme: str
    #: `ok`, `degraded`, `invalid`, or `failed` if there was no run.
    verdict: str
    #: Objections to it, as sentences.
    reasons: tuple[str, ...]
    #: The program in the record of the run: its processes and its traffic.
    program: ProgramRun | None = None
    #: The same with all members.
    seen: dict[str, object] = field(default_factory=dict)
    #: Its own reports, by metric: in words, or why there is no value.
    reported: dict[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, object]:
        """As plain data."""
        reasons = list(self.reasons)
        result: dict[str, object] = {
            "scheme": self.scheme,
            "verdict": self.verdict,
            "reasons": reasons,
            "seen": self.seen,
        }
        return {**result, "reported": self.reported} if self.reported else result


def check(program: Program, variant: str, progress: Callable[[float], None]) -> Trial:
    """Runs a variant of a program; raises `UnavailableError` if a requirement is missing."""
    one = program.variants[variant]
    planned = plan(program, one, defaults(program, one))
    scheme = f"{program.name}:{variant}"
    if reason := why_missing(planned):
        raise UnavailableError(f"{scheme}: {reason}")
    (cell,) = cells_of(loads(_SCENARIO, "check"))
    flow = structs.replace(cell.flows[0], scheme=scheme, params={}, program=planned, transport={})
    cell = structs.replace(cell, flows=[flow])
    with tempfile.TemporaryDirectory(prefix="narrows-check-") as name:
        folder = Path(name)
        cell_file, out = folder / "cell.json", folder / "run"
        cell_file.write_text(cell.to_text(), encoding="utf-8")
        log = folder / "log"
        outcome = CellRun(this_machine(), "emulate", cell_file, out, log, progress, folder).run()
        if outcome.state != "finished":
            if outcome.kind == "unavailable":
                raise UnavailableError(outcome.message)
            return Trial(scheme, "failed", (outcome.message or "it was interrupted",))
        run, whole = read_run(out), read_json(out / "run.json", FORMAT)
        reported = _describe_reports(out)
    reasons = tuple(reason.text or "" for reason in run.reasons)
    seen = whole["flows"][0].get("program", {})
    return Trial(scheme, run.verdict or "", reasons, run.flows[0].program, seen, reported)


def _describe_reports(record: Path) -> dict[str, str]:
    """The reports of the program of flow 1, in words."""
    flow = MeasuredFlow(flow="1", scheme=None, metrics={})
    measured = Measured(flows=[flow], absent={})
    described = [*program_reports.add([(record, measured)]), *players.add([(record, measured)])]
    reports = {}
    for metric in described:
        value = flow.metrics[metric.name]
        shown = "" if value is None else f"{value * metric.show_scale:.6g} {metric.show_unit}".strip()
        reports[metric.name] = shown or f"N/A: {measured.absent['1'][metric.name]}"
    return reports


def in_words(trial: Trial) -> list[str]:
    """The observations, line by line."""
    lines = [f"{trial.scheme}: {trial.verdict}", *(f"  {reason}" for reason in trial.reasons)]
    program = trial.program
    if program is None:
        return lines
    if program.root is not None:
        lines.append(f"  root       {program.root.folder} ({program.root.digest})")
    processes = ((LISTENER, program.listener), (CONNECTOR, program.connector))
    for side, process in processes:
        if process is not None:
            lines += [f"  {side:10} {' '.join(process.command)}", f"  {'':10} {_life(process)}"]
    if program.traffic is not None:
        traffic, first = program.traffic, program.first_data_ns
        other = LISTENER if program.data == CONNECTOR else CONNECTOR
        begins = f"; the first after {first / 1e6:.0f} ms" if first is not None else ""
        there, back = _amount(traffic.sender), _amount(traffic.receiver)
        lines.append(f"  data       {program.data} to {other}: {there}{begins}; back: {back}")
        ports = ", ".join(_conversation(item, program.data) for item in traffic.conversations)
        lines.append(f"  ports      {ports or 'none'}")
    lines += [f"  reports    {name}: {words}" for name, words in trial.reported.items()]
    versions = [process.version for _, process in processes if process and process.version]
    return lines + [f"  version    {version.splitlines()[0]}" for version in versions]


def _life(process: ProgramProcess) -> str:
    """How a process began and ended."""
    parts = []
    if process.ready_ns is not None:
        parts.append(f"ready after {process.ready_ns / 1e6:.0f} ms")
    elif process.started_ns is not None:
        parts.append(f"started at {process.started_ns / 1e6:.0f} ms")
    how = f"signal {process.signal}" if process.signal else f"exit code {process.exit}"
    if process.killed:
        parts.append("killed")
    elif process.stopped:
        parts.append(f"told to stop, ended with {how}")
    else:
        parts.append(f"ended by itself at {(process.ended_ns or 0) / 1e6:.0f} ms with {how}")
    return ", ".join([*parts, f"printed {sum(process.printed)} bytes"])


def _amount(sent: SentData) -> str:
    return f"{sent.packets} packets, {sent.payload_bytes / 1e3:.1f} kB of payload"


def _conversation(conversation: Conversation, data: str | None) -> str:
    protocol = PROTOCOLS.get(conversation.protocol, f"protocol {conversation.protocol}")
    ports = (conversation.sender_port, conversation.receiver_port)
    port = ports[1] if data == CONNECTOR else ports[0]
    return f"{protocol} {ports[0]} to {ports[1]}" if port else protocol
