"""Step two: the resolved scenario. Units, defaults and names are settled; the result is plain data.

Its canonical JSON is stored with every campaign, and the hash of that JSON is the identity of the campaign.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

from narrows.errors import Problem
from narrows.scenario.files import Files
from narrows.scenario.hashes import content_hash
from narrows.scenario.real_path import NOT_OF_RESULTS

if TYPE_CHECKING:
    from narrows.documents.results import Expectation

#: Keys that explain a scenario to people or judge its results; changing them does not change the experiment.
FOR_PEOPLE = ("name", "title", "question", "report", "expect", "matrix")


#: The members of a scenario that a matrix may change, in addition to the flows.
OVERLAID = (
    "topology",
    "network",
    "base_rtt_ns",
    "duration_ns",
    "record",
    "bin_ns",
    "sample_ns",
    "transport",
    "timeline",
    "drawn",
    "measure",
    "transfers",
)

#: Members of a resolved scenario that are omitted if empty.
_OPTIONAL = ("timeline", "measure", "expect", "real_path", "draw", "drawn", "matrix")
#: Members of a scenario that are not stored.
_UNSTORED = ("files", "warnings")
#: In the flows of a resolved scenario: the maximum deviation of the start in either direction, in each run.
SPREAD = "start_spread_ns"


@dataclass(frozen=True)
class Drawn:
    """The values drawn for one run."""

    #: The values by address, in words.
    values: dict[str, str]
    #: Differences from the scenario in this run, by the names of `OVERLAID`.
    overlay: dict[str, Any]

    def to_json(self) -> dict[str, Any]:
        """The drawn values in stored form."""
        return {"values": self.values, "overlay": self.overlay}


@dataclass(frozen=True)
class SchemeRow:
    """One row of the results: a scheme (or a mix of schemes) with its flows."""

    label: str
    slug: str
    flows: list[dict[str, Any]]
    #: Differences from the scenario in this row, by the names of `OVERLAID`, if a matrix made it.
    overlay: dict[str, Any] = field(default_factory=dict)
    #: The matrix values of this row as written, by the names of their keys.
    values: dict[str, str] = field(default_factory=dict)
    #: Values derived from those, by name.
    derived: dict[str, str] = field(default_factory=dict)
    #: In a scenario of pairs, the labels of the schemes of the flows under test.
    pair: list[str] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """The row in stored form."""
        content: dict[str, Any] = {"label": self.label, "slug": self.slug, "flows": self.flows}
        if self.pair:
            content["pair"] = self.pair
        overlay = {
            name: [item.to_json() for item in value] if name == "drawn" else value
            for name, value in self.overlay.items()
        }
        derived = {"derived": self.derived} if self.derived else {}
        return {**content, "overlay": overlay, "values": self.values, **derived} if self.values else content

    @property
    def scheme_names(self) -> list[str]:
        """The schemes of the flows, without duplicates."""
        return list(dict.fromkeys(flow["scheme"] for flow in self.flows))


@dataclass(frozen=True)
class Scenario:
    """A resolved scenario; all quantities are in base units (ns, bytes, bit/s)."""

    name: str
    title: str | None
    question: str
    where: str
    topology: str
    network: dict[str, Any]
    base_rtt_ns: int
    schemes: list[SchemeRow]
    duration_ns: int
    runs: int
    seed: int
    record: str
    bin_ns: int
    sample_ns: int
    transport: dict[str, Any]
    report: dict[str, Any]
    #: Changes of elements in order of time.
    timeline: list[dict[str, Any]] = field(default_factory=list)
    #: The part of a run that metrics cover, and the transfers that are kept.
    measure: dict[str, Any] = field(default_factory=dict)
    transfers: str = "all"
    #: Assertions about the results.
    expect: list[Expectation] = field(default_factory=list)
    #: For runs between two hosts: the other one, and how to reach it.
    real_path: dict[str, Any] = field(default_factory=dict)
    #: The laws of the values that each run draws, in words, and the drawn values. The network is that of the
    #: medians.
    draw: dict[str, str] = field(default_factory=dict)
    drawn: list[Drawn] = field(default_factory=list)
    #: The addresses of the keys that a matrix varies, by name.
    matrix: dict[str, str] = field(default_factory=dict)
    #: Contents of the files that the network names.
    files: Files = field(default_factory=Files, compare=False, repr=False)
    #: Warnings about settings that can run but are probably unintended.
    warnings: list[Problem] = field(default_factory=list, compare=False, repr=False)

    def to_json(self) -> dict[str, Any]:
        """The resolved scenario in stored form."""
        content = {
            field.name: getattr(self, field.name) for field in fields(self) if field.name not in _UNSTORED
        }
        content["schemes"] = [row.to_json() for row in self.schemes]
        if self.expect:
            # Imported late: lists of schemes do not need it.
            from narrows.documents.data import to_data

            content["expect"] = to_data(self.expect)
        content["drawn"] = [drawn.to_json() for drawn in self.drawn]
        # Omitted if empty, as in scenarios that do not use them.
        silent = {name for name in _OPTIONAL if not content[name]} | (
            {"transfers"} - self.measured_part().keys()
        )
        kept = {name: value for name, value in content.items() if name not in silent}
        return {"format": "narrows/resolved/1", **kept}

    def measured_part(self) -> dict[str, Any]:
        """The measured and recorded part, if it is not the whole run."""
        measured = {"measure": self.measure} if self.measure else {}
        return {**measured, **({"transfers": self.transfers} if self.transfers != "all" else {})}

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


def _start_flow(flow: dict[str, Any], seed: int) -> dict[str, Any]:
    """A flow of a run, with its actual start time."""
    if SPREAD not in flow:
        return flow
    content = {key: value for key, value in flow.items() if key != SPREAD}
    content["start_ns"] += start_offset(seed, flow["flow"], flow[SPREAD])
    return content


@dataclass(frozen=True)
class Cell:
    """One run of one scheme: the agent's input, and the name under which it is stored."""

    id: str
    scheme: str
    run: int
    seed: int
    content: dict[str, Any]

    @property
    def hash(self) -> str:
        """The identity of the cell."""
        return content_hash(self.content)


def cells_of(scenario: Scenario) -> list[Cell]:
    """All cells of a scenario, scheme by scheme (the plan decides the order of execution)."""
    return [cell_of(scenario, row, run) for row in scenario.schemes for run in range(1, scenario.runs + 1)]


def cell_of(scenario: Scenario, row: SchemeRow, run: int) -> Cell:
    """One run of a row."""
    if row.overlay:
        scenario = replace(scenario, **row.overlay)
    drawn = scenario.drawn[run - 1] if scenario.drawn else None
    if drawn is not None:
        scenario = replace(scenario, **drawn.overlay)
    cell_id = f"{row.slug}-r{run}"
    seed = run_seed(scenario.seed, run)
    content = {
        "format": "narrows/cell/1",
        "id": cell_id,
        "scheme": row.label,
        "run": run,
        "where": scenario.where,
        "seed": seed,
        "duration_ns": scenario.duration_ns,
        "record": scenario.record,
        "bin_ns": scenario.bin_ns,
        "sample_ns": scenario.sample_ns,
        "network": scenario.network,
        "flows": [_start_flow(flow, seed) for flow in row.flows],
        "transport": scenario.transport,
        **({"timeline": scenario.timeline} if scenario.timeline else {}),
        **({"drawn": drawn.values} if drawn is not None else {}),
        **scenario.measured_part(),
    }
    return Cell(cell_id, row.label, run, seed, content)
