"""Cards of simulated schemes without a campaign: runs are simulated in this process, measured and deleted."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from narrows import _native
from narrows.documents.identify import Card
from narrows.identify.card import Runs, make_card
from narrows.identify.features import PROBES
from narrows.identify.probe_paths import UNCHANGED, PathFactors, load_probe
from narrows.identify.trace import Trace, read_trace
from narrows.scenario.model import cells_of
from narrows.scenario.overrides import Override


def _see_nothing(_probe: str, _trace: Trace) -> None:
    pass


def simulate_card(
    scheme: str,
    seed: int,
    factors: PathFactors = UNCHANGED,
    probes: Sequence[str] = PROBES,
    runs: int = 1,
    see: Callable[[str, Trace], object] = _see_nothing,
) -> Card:
    """The card of a native scheme (by its name) from runs of the probes on multiplied paths; `see` is called
    with each probe and the trace of its first cell."""
    with tempfile.TemporaryDirectory(prefix="narrows-") as place:
        groups = [_simulate(scheme, seed, factors, probe, runs, Path(place)) for probe in probes]
        for group in groups:
            see(group.probe, read_trace(group.records[0]))
        return make_card(scheme, scheme, "simulate", groups, "its probe did not run")


def _simulate(scheme: str, seed: int, factors: PathFactors, probe: str, runs: int, place: Path) -> Runs:
    """The records of a probe below `place`."""
    overrides = [
        Override("WHAT", "schemes", f"[{scheme}]"),
        Override("--runs", "runs", str(runs)),
        Override("--seed", "seed", str(seed)),
    ]
    scenario = load_probe(probe, factors, overrides).scenario
    files = place / "files"
    files.mkdir(exist_ok=True)
    for name, content in scenario.files.stored.items():
        (files / name).write_bytes(content)
    records, numbers = [], []
    for cell in cells_of(scenario):
        record = place / probe / cell.id
        record.parent.mkdir(exist_ok=True)
        _native.simulate(cell.to_text(), record, files)
        records.append(record)
        numbers.append(cell.run)
    return Runs(probe, place / probe, records, numbers)
