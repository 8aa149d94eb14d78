"""The grid on the emulator: a few cells per scheme and run, repeated if the machine spoils them."""

from __future__ import annotations

import json
import shutil
import statistics
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from narrows import _native
from narrows.agent.cell import CellOutcome
from narrows.agent.location import Location
from narrows.campaign.planes import LocalPlane, Means, Progress, Run
from narrows.documents.campaign import INVALID, CellEntry
from narrows.scenario.model import Cell
from validation.campaign import cell_of
from validation.schemes.compare import Measured
from validation.schemes.grid import PACKET, GridPath, groups, scenario

PLANE = "emulate"
#: Attempts at a cell with one path before its numbers are given up. A cell with several paths is tried once:
#: if it was too much for the machine, two halves are less.
ATTEMPTS = 3
#: The numbers of a record; the rest, hundreds of megabytes, is not stored.
NUMBERS = "numbers.json"
#: Verdicts of runs, the best first.
_ORDER = ("ok", "degraded", INVALID)


@dataclass(frozen=True)
class GridCell:
    """A scheme on several of the paths at once."""

    scheme: str
    grid_paths: tuple[GridPath, ...]
    seconds: int
    seed: int

    def halves(self) -> list[GridCell]:
        """The same paths in two cells."""
        middle = (len(self.grid_paths) + 1) // 2
        return [
            replace(self, grid_paths=part) for part in (self.grid_paths[:middle], self.grid_paths[middle:])
        ]

    @cached_property
    def cell(self) -> Cell:
        """The cell in the agent's format."""
        return cell_of(scenario(self.scheme, self.grid_paths, self.seconds, self.seed))

    def parts(self, entries: dict[str, CellEntry]) -> list[GridCell]:
        """Itself, or its halves if it was too much for the machine, judging by the finished cells."""
        entry = entries.get(self.cell.id)
        if entry is not None and entry.verdict == INVALID and len(self.grid_paths) > 1:
            return [part for half in self.halves() for part in half.parts(entries)]
        return [self]


def cells_of_run(scheme: str, grid_paths: tuple[GridPath, ...], seconds: int, seed: int) -> list[GridCell]:
    """The cells in which a scheme meets all paths once."""
    return [
        GridCell(scheme, tuple(grid_paths[number] for number in numbers), seconds, seed)
        for numbers in groups(grid_paths, scheme)
    ]


class GridPlane(LocalPlane):
    """The emulator, which stores only a record's numbers, and repeats runs of one path."""

    def __init__(self, agent: Location, files: Path) -> None:
        super().__init__(PLANE, agent, files, Means())

    def run_of(self, cell: Cell, cell_file: Path, out: Path, log_file: Path, progress: Progress) -> Run:
        """Runs a cell until its record is usable."""

        def start() -> Run:
            return super(GridPlane, self).run_of(cell, cell_file, out, log_file, progress)

        flows = len(cell.flows)
        return GridRun(start, out, flows, ATTEMPTS if flows == 1 else 1)


@dataclass
class GridRun:
    """One cell of the grid, perhaps several times."""

    start: Callable[[], Run]
    out: Path
    flows: int
    attempts: int
    _now: Run | None = None
    _stopped: bool = False

    def stop(self, kill: bool = False) -> None:
        """Asks the agent to stop."""
        self._stopped = True
        if self._now is not None:
            self._now.stop(kill)

    def run(self) -> CellOutcome:
        """Runs the cell until it ends."""
        for attempt in range(1, self.attempts + 1):
            self._now = self.start()
            outcome = CellOutcome("interrupted") if self._stopped else self._now.run()
            if outcome.state != "finished":
                break
            document = json.loads((self.out / "run.json").read_text(encoding="utf-8"))
            if document["verdict"] != INVALID or attempt == self.attempts:
                keep_numbers(self.out, self.flows)
                break
            shutil.rmtree(self.out)
        return outcome


def keep_numbers(record: Path, flows: int) -> None:
    """Replaces a record by its numbers."""
    numbers = json.dumps(read(record, flows))
    for file in record.iterdir():
        if file.is_dir():
            shutil.rmtree(file)
        elif file.name != "run.json":
            file.unlink()
    (record / NUMBERS).write_text(numbers, encoding="utf-8")


def read(record: Path, flows: int) -> dict[str, Any]:
    """Per path: throughput, 95th percentile of the queueing delay (None if unknown), and samples of the
    window for the figure."""
    rows = {str(row["flow"]): row["metrics"] for row in json.loads(_native.measure(str(record)))["flows"]}
    states = _native.state_series(str(record))
    known = [rows.get(str(number)) or {} for number in range(1, flows + 1)]
    return {
        "flows": [
            {
                "throughput_bps": metrics.get("throughput_bps"),
                "delay_p95_ns": metrics.get("queueing_delay_p95_ns"),
            }
            for metrics in known
        ],
        "windows": [_window(states.get(number)) for number in range(1, flows + 1)],
    }


def _window(states: Any) -> dict[str, list[float]]:
    """Samples of a window, some hundred of them."""
    if states is None:
        return {"time_s": [], "cwnd_packets": []}
    window = states["cwnd_bytes"]
    step = max(1, len(window) // 600)
    known = ~np.isnan(window[::step])
    return {
        "time_s": [round(float(t), 3) for t in states["time_s"][::step][known]],
        "cwnd_packets": [round(float(w) / 1448, 1) for w in window[::step][known]],
    }


@dataclass
class GridResult:
    """The outcome of one run of a scheme on all paths."""

    verdict: str
    reasons: list[str]
    #: Per path, as in `read`.
    flows: list[dict[str, float | None]] = field(default_factory=list)
    windows: list[dict[str, list[float]]] = field(default_factory=list)

    @property
    def valid(self) -> bool:
        """False if the numbers describe the machine and not the scheme."""
        return self.verdict != INVALID


def gather(cells: list[GridCell], entries: dict[str, CellEntry], folder: Path) -> GridResult | None:
    """One run from its finished cells; None unless there is one for each path."""
    found = [entries.get(cell.cell.id) for cell in cells]
    known = [entry for entry in found if entry is not None]
    if len(known) < len(cells):
        return None
    numbers = [json.loads((folder / "cells" / one.id / NUMBERS).read_text("utf-8")) for one in known]
    return GridResult(
        max((str(one.verdict) for one in known), key=_ORDER.index),
        [str(reason.text) for one in known for reason in one.reasons],
        [flow for one in numbers for flow in one["flows"]],
        [window for one in numbers for window in one["windows"]],
    )


def measured(runs: list[GridResult], grid_paths: tuple[GridPath, ...]) -> list[Measured]:
    """Medians over the valid runs; paths without a valid number are left out."""
    found = []
    for index, grid_path in enumerate(grid_paths):
        flows = [one.flows[index] for one in runs if one.valid]
        pairs = [
            (rate, delay)
            for flow in flows
            if (rate := flow["throughput_bps"]) is not None and (delay := flow["delay_p95_ns"]) is not None
        ]
        if pairs:
            found.append(
                Measured(
                    grid_path.name,
                    statistics.median(rate for rate, _ in pairs) / 1e6,
                    statistics.median(delay for _, delay in pairs) / 1e6,
                    PACKET * 8 / (grid_path.rate_mbps * 1e3),
                    len(pairs),
                )
            )
    return found
