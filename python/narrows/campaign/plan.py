"""The plan of a campaign: cells in order, and schemes that can't run here with the reason."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

from narrows.campaign.memory_need import describe_need
from narrows.documents.agent import Facts
from narrows.documents.campaign import ScenarioSource, Versions
from narrows.documents.data import to_data
from narrows.documents.results import Skipped
from narrows.errors import DataError, UnavailableError
from narrows.scenario import registry
from narrows.scenario.model import Cell, Scenario, SchemeRow, cells_of
from narrows.scenario.prefixes import BPF_PREFIX
from narrows.scenario.real_path import LOCAL, OFF, WHERE, sender_is_local
from narrows.scenario.schemes import missing_model
from narrows.schemes.availability import no_rights, why_not

#: Plans list up to this many flows or schemes, and count them beyond that.
_LISTED = 8


@dataclass(frozen=True)
class Plan:
    """All cells of a campaign in the order in which they run."""

    scenario: Scenario
    cells: list[Cell]
    skipped: list[Skipped]
    #: The bounds of the flows of each scheme's cells, by scheme label: the number of the flow and its bound,
    #: as part of a sentence.
    bounds: dict[str, list[tuple[int, str]]] = field(default_factory=dict)
    #: Sentences about cells that may take much memory.
    memory: list[str] = field(default_factory=list)

    @property
    def notes(self) -> list[str]:
        """Sentences about models that were chosen from lists."""
        return list(map(str, self.scenario.files.choices))


@dataclass(frozen=True)
class Sender:
    """A machine of a campaign between two hosts, in the role of a sender."""

    name: str
    facts: Facts


def why_not_between(cell: Cell, local: Sender, remote: Sender) -> str | None:
    """Why a cell can't run between two hosts; None if it can. The sender's kernel decides."""
    forward, backward = (local, remote) if sender_is_local(cell) else (remote, local)
    for flow in cell.flows:
        sender = forward if flow.is_forward else backward
        if reason := why_not(flow.scheme, WHERE, sender.facts):
            return f"{sender.name}: {reason}"
    return None


def make_plan(scenario: Scenario, facts: Facts, other: Sender | None = None) -> Plan:
    """Decides what runs, in which order; refuses if nothing is left.

    Between two hosts, `facts` describe this one and `other` is the other one.
    """
    skipped: list[Skipped] = []
    here = Sender(LOCAL, facts)
    first = {cell.scheme: cell for cell in cells_of(scenario) if cell.run == 1}
    programs = [
        name
        for row in scenario.schemes
        for name in row.scheme_names
        if name.startswith(BPF_PREFIX) and scenario.where == "emulate"
    ]
    if programs and (reason := no_rights(facts)):
        # The user can obtain rights, so the user decides: leaving the scheme out would answer another
        # question.
        raise UnavailableError(f"{programs[0]}: {reason}")
    for row in scenario.schemes:
        if other is not None:
            between = why_not_between(first[row.label], here, other)
            reasons = [between] if between else []
        else:
            reasons = [
                reason for name in row.scheme_names if (reason := why_not(name, scenario.where, facts))
            ]
        reasons += missing_models(row) or _missing_programs(row, scenario, first[row.label])
        if reasons:
            skipped.append(Skipped(scheme=row.label, reason=reasons[0]))
    left_out = {item.scheme for item in skipped}
    cells = [cell for cell in cells_of(scenario) if cell.scheme not in left_out]
    if not cells:
        listed = "; ".join(f"{item.scheme}: {item.reason}" for item in skipped)
        raise UnavailableError(f"no scheme of this scenario can run here: {listed}")
    check_readable(scenario, cells, skipped)
    bounds = _bounds(cells) if other is None else {}
    cells = sorted(cells, key=lambda cell: _order(scenario.seed, cell))
    return Plan(scenario, cells, skipped, bounds, describe_need(scenario, cells))


def check_readable(scenario: Scenario, cells: list[Cell], skipped: list[Skipped]) -> None:
    """Refuses a plan whose campaign could not be read back, by the readers' rules."""
    from narrows.campaign.entries import new_document, new_planned, problem_of_campaign

    source = ScenarioSource(resolved=scenario.to_json())
    document = new_document(scenario.name, scenario.where, source, Versions(), list(map(new_planned, cells)))
    if problem := problem_of_campaign(document | {"skipped": to_data(skipped)}):
        raise DataError(f"{scenario.name}: the campaign could not be read again: {problem}")


def _bounds(cells: list[Cell]) -> dict[str, list[tuple[int, str]]]:
    """The bounds of the flows of each scheme's cells; refuses simulations of unbounded flows."""
    known = registry.load()
    bounds = {}
    for cell in cells:
        if cell.scheme in bounds:
            continue
        try:
            said = known.bounds(cell.to_text())
        except ValueError as error:
            raise DataError(f"{cell.scheme}: {error}") from None
        if said.refusal and cell.where == "simulate":
            raise DataError(f"{cell.scheme}: {said.refusal}")
        bounds[cell.scheme] = [(flow.flow, flow.by or "nothing but this machine") for flow in said.flows]
    return bounds


def bounds_in_words(plan: Plan) -> list[str]:
    """The bounds in words, each with its flows."""
    flows: dict[str, dict[int, None]] = {}
    schemes: dict[str, dict[str, None]] = {}
    for scheme, listed in plan.bounds.items():
        for flow, by in listed:
            flows.setdefault(by, {})[flow] = None
            schemes.setdefault(by, {})[scheme] = None
    if len(flows) <= 1:
        return [f"every flow is bounded by {by}" for by in flows]
    return [
        f"bounded by {by}: {_some('flow', list(map(str, flows[by])))} of {_some('scheme', list(schemes[by]))}"
        for by in flows
    ]


def _some(what: str, names: list[str]) -> str:
    """`flow 1`, `flows 1, 2`, or their number."""
    if len(names) > _LISTED:
        return f"{len(names)} {what}s"
    return f"{what}{'s' if len(names) > 1 else ''} {', '.join(names)}"


def missing_models(row: SchemeRow) -> list[str]:
    """Why flows of a row can't run: their models are not installed."""
    names = [name for flow in row.flows if (name := missing_model(flow.params))]
    if not names:
        return []
    # Loads numpy, which takes longer than everything else here.
    from narrows.models.store import how_to_add

    return [how_to_add(name) for name in dict.fromkeys(names)]


def _missing_programs(row: SchemeRow, scenario: Scenario, cell: Cell) -> list[str]:
    """Why the programs of a row can't run; sides on another host are checked there."""
    programs = [(flow, flow.program) for flow in row.flows if flow.program]
    if not programs:
        return []
    name = programs[0][0].scheme
    if scenario.where == "simulate":
        return [f"{name} is a program and needs a real machine; use --where emulate"]
    if scenario.where == WHERE and scenario.real_path and scenario.real_path.tunnel == OFF:
        return [
            f"{name} is a program, whose packets are known by addresses inside the tunnel; write tunnel: on"
        ]
    from narrows.documents.programs import CONNECTOR, LISTENER
    from narrows.scenario.programs.missing import why_missing

    missing_programs = []
    for flow, program in programs:
        sides: tuple[str, ...] = (LISTENER, CONNECTOR)
        if scenario.where == WHERE:
            sends_here = flow.is_forward == sender_is_local(cell)
            sides = tuple(side for side in sides if (side == program.data) == sends_here)
        if reason := why_missing(program, sides):
            missing_programs.append(f"{flow.scheme}: {reason}")
    return missing_programs


def _order(seed: int, cell: Cell) -> tuple[int, bytes]:
    """The cells in rounds, each in a separate order derived from the seed.

    Shuffling prevents a drift of the machine (heat, other load) from always affecting the same scheme.
    """
    key = f"narrows/order/1:{seed}:{cell.run}:{cell.scheme}"
    return cell.run, hashlib.sha256(key.encode()).digest()
