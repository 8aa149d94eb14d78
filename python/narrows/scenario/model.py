"""Step two: the resolved scenario. Units, defaults and names are settled; the result is plain data.

Its canonical JSON is stored with every campaign, and the hash of that JSON is the identity of the campaign.
"""

from __future__ import annotations

import hashlib
from typing import Any

from msgspec import field, structs

from narrows.documents.data import to_data
from narrows.documents.resolved import CELL, Cell, Flow, Resolved, SchemeRow, lay_over
from narrows.errors import Problem
from narrows.hashes import content_hash
from narrows.scenario.files import Files
from narrows.scenario.real_path import NOT_OF_RESULTS

__all__ = ["Cell", "Scenario", "SchemeRow"]

#: Keys that explain a scenario to people or judge its results; changing them does not change the experiment.
FOR_PEOPLE = ("name", "title", "question", "report", "expect", "matrix")


class Scenario(Resolved, frozen=True, kw_only=True):
    """A resolved scenario with what is not stored of it."""

    #: Contents of the files that the network names.
    files: Files = field(default_factory=Files)
    #: Warnings about settings that can run but are probably unintended.
    warnings: list[Problem] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """The resolved scenario in stored form."""
        members = structs.asdict(self)
        stored = {name: members[name] for name in Resolved.__struct_fields__}
        content: dict[str, Any] = to_data(Resolved(**stored))
        return content

    @property
    def hash(self) -> str:
        """The identity of the scenario: everything that can change a result, and nothing else."""
        return hash_of(self.to_json())


def hash_of(resolved: dict[str, Any]) -> str:
    """The identity of a scenario in stored form."""
    content = {key: value for key, value in resolved.items() if key not in FOR_PEOPLE}
    content["schemes"] = [
        {key: value for key, value in row.items() if key != "derived"} for row in content["schemes"]
    ]
    if "real_path" in content:
        items = content["real_path"].items()
        content["real_path"] = {key: value for key, value in items if key not in NOT_OF_RESULTS}
    return content_hash(content)


def run_seed(seed: int, run: int) -> int:
    """The seed of one run: the first 53 bits of SHA-256 of `narrows/run-seed/1:SEED:RUN`.

    It does not depend on the scheme, so all schemes meet the same random events in the same run (common
    random numbers). 53 bits survive every JSON reader.
    """
    digest = hashlib.sha256(f"narrows/run-seed/1:{seed}:{run}".encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 11


def start_offset(seed: int, flow: int, spread_ns: int) -> int:
    """The delay of the start of flow number `flow` relative to its plan, in the run with this seed.

    Uniform from -spread to spread: the first 64 bits of SHA-256 of `narrows/start/1:SEED:FLOW`, scaled. Like
    all randomness of a run it is the same for every scheme.
    """
    digest = hashlib.sha256(f"narrows/start/1:{seed}:{flow}".encode()).digest()
    return (int.from_bytes(digest[:8], "big") * (2 * spread_ns + 1) >> 64) - spread_ns


def _start_flow(flow: Flow, seed: int) -> Flow:
    """A flow of a run, with its actual start time."""
    if not flow.start_spread_ns:
        return flow
    offset = start_offset(seed, flow.number, flow.start_spread_ns)
    return structs.replace(flow, start_ns=flow.start_ns + offset, start_spread_ns=0)


def cells_of(scenario: Scenario) -> list[Cell]:
    """All cells of a scenario, scheme by scheme (the plan decides the order of execution)."""
    return [cell_of(scenario, row, run) for row in scenario.schemes for run in range(1, scenario.runs + 1)]


def cell_of(scenario: Scenario, row: SchemeRow, run: int) -> Cell:
    """One run of a row."""
    scenario = lay_over(scenario, row.overlay)
    drawn = scenario.drawn[run - 1] if scenario.drawn else None
    if drawn is not None:
        scenario = lay_over(scenario, drawn.overlay)
    seed = run_seed(scenario.seed, run)
    return Cell(
        format=CELL,
        id=f"{row.slug}-r{run}",
        scheme=row.label,
        run=run,
        where=scenario.where,
        seed=seed,
        duration_ns=scenario.duration_ns,
        record=scenario.record,
        bin_ns=scenario.bin_ns,
        sample_ns=scenario.sample_ns,
        network=scenario.network,
        flows=[_start_flow(flow, seed) for flow in row.flows],
        transport=scenario.transport,
        timeline=scenario.timeline,
        drawn=drawn.values if drawn is not None else {},
        measure=scenario.measure,
        transfers=scenario.transfers,
    )
