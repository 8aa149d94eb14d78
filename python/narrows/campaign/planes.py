"""The planes that cells run on: the runner of one cell, the number of parallel cells, and the work around a
round.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from narrows.agent.cell import CellOutcome, CellRun
from narrows.agent.location import Location
from narrows.live.watch import Watch
from narrows.scenario.model import Cell

#: When notes about a round are taken.
BEFORE, AFTER = "before", "after"
#: Receives the progress of a cell, from 0 to 1.
Progress = Callable[[float], None]


class Run(Protocol):
    """One running cell; `stop` may be called from any thread."""

    def run(self) -> CellOutcome:
        """Runs the cell until it ends."""

    def stop(self, kill: bool = False) -> None:
        """Asks it to stop and clean up; with `kill` ends it at once."""


class Plane(Protocol):
    """Where cells run."""

    #: How many times a failed cell is tried again, at the end of its round.
    retries: int

    def workers(self, cells: int, /) -> int:
        """The number of cells that run in parallel."""

    def run_of(self, cell: Cell, cell_file: Path, out: Path, log_file: Path, progress: Progress, /) -> Run:
        """Creates the run of a cell, which a file also contains, into a folder."""

    def around_round(self, number: int, when: str, /) -> dict[str, object] | None:
        """Notes for campaign.json before and after a round. It may take some seconds."""

    def ends_campaign(self, outcome: CellOutcome, /) -> bool:
        """True if the campaign must stop after such a failure, to be resumed later."""


@dataclass(frozen=True)
class Means:
    """The resources that a run on this machine may take; `None` leaves them to the agent."""

    #: Bytes of memory of a simulated run.
    memory: int | None = None
    #: Maximum number of emulator threads.
    emulator_threads: int | None = None


class LocalPlane:
    """`simulate` and `emulate`: one agent per cell, on this machine."""

    retries = 0

    def __init__(
        self, where: str, agent: Location, files: Path, means: Means, watch: Watch | None = None
    ) -> None:
        self._where = where
        self._means = means
        self._watch = watch
        self._beside = 1
        self._agent = agent
        self._files = files

    def workers(self, cells: int) -> int:
        """All processors for simulations; emulations need the machine for themselves."""
        if self._where != "simulate":
            return 1
        usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        self._beside = max(1, min(cells, usable or 1))
        return self._beside

    def run_of(self, cell: Cell, cell_file: Path, out: Path, log_file: Path, progress: Progress) -> Run:
        """An agent for the cell."""
        more: tuple[str, ...] = ()
        if self._where == "simulate":
            memory = self._means.memory
            more = ("--memory", str(memory)) if memory else ("--beside", str(self._beside))
        elif self._means.emulator_threads is not None:
            more = ("--emulator-threads", str(self._means.emulator_threads))
        if self._watch is not None:
            more += ("--live", "--interactive") if self._watch.orders is not None else ("--live",)
        run = CellRun(self._agent, self._where, cell_file, out, log_file, progress, self._files, more)
        if self._watch is not None:
            run.on_live = self._watch.begin(cell, run)
        return run

    def around_round(self, _number: int, _when: str) -> None:
        """Nothing: facts about this machine are in each record."""

    def ends_campaign(self, _outcome: CellOutcome) -> bool:
        """Never ends the campaign."""
        return False
