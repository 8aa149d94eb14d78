"""The work of `python -m validation tunnel`: runs in random order; spoiled ones are repeated."""

from __future__ import annotations

import json
import random
import shutil
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from msgspec.structs import replace
from rich.console import Console

from narrows.agent.cell import CellOutcome
from narrows.agent.location import Location
from narrows.campaign.peers import Stopped
from narrows.campaign.planes import Progress, Run
from narrows.documents.campaign import CellEntry
from narrows.errors import UnavailableError, UsageError
from narrows.progress import show_time
from narrows.scenario.model import Cell
from validation.campaign import cell_of, finished, kept, run_cells
from validation.tunnel.compare import Row, compare, counts
from validation.tunnel.testbed import (
    FAILED,
    INSIDE,
    INVALID,
    OUTSIDE,
    EmulatedPath,
    RunResult,
    Setup,
    Testbed,
)

#: The numbers of a run, beside its run.json.
NUMBERS = "numbers.json"
PREFIX = "linux:"
SCHEMES = ("linux:cubic", "linux:reno", "linux:bbr")
#: Maximum attempts at a run. The last attempt counts even if it is only `degraded`.
ATTEMPTS = 3
#: Total share of `degraded` attempts that may be repeated: on a machine that is never quiet, repeating all
#: would only take longer.
REPEATED = 0.25
OK = "ok"
#: Time for setting up and reading one run, in addition to its duration.
OVERHEAD_S = 2.5


def chosen(text: str) -> tuple[str, ...]:
    """The schemes in a comma-separated list. (Names without `linux:` also mean the kernel's: no other scheme
    would run here with packets of the same size in both places.)"""
    names = dict.fromkeys(name.strip() for name in text.split(","))
    if not all(names):
        raise UsageError(f"--schemes: '{text}' has an empty name; write for example {','.join(SCHEMES)}")
    return tuple(name if name.startswith(PREFIX) else f"{PREFIX}{name}" for name in names)


@dataclass(frozen=True)
class Options:
    """The options of the command."""

    emulated_path: EmulatedPath
    schemes: tuple[str, ...] = SCHEMES
    runs: int = 20
    seed: int = 1
    #: Also compares with the path without tunnel whose return path is longer by this much.
    longer_ns: int = 0
    again: bool = False

    def setups(self) -> list[Setup]:
        """The places of each scheme, the reference first."""
        longer = Setup(f"{self.longer_ns / 1000:g} us longer", added_ns=self.longer_ns)
        return [OUTSIDE, INSIDE, *([longer] if self.longer_ns else [])]

    def pairs(self) -> list[tuple[str, str]]:
        """The comparisons: inside with outside, and both with the longer return path outside."""
        outside, inside, *longer = (where.name for where in self.setups())
        return [(outside, inside), *((outside, one) for one in longer), *((one, inside) for one in longer)]

    def key(self) -> dict[str, Any]:
        """Runs with other conditions do not count."""
        return {"seed": self.seed, **asdict(self.emulated_path)}


@dataclass(frozen=True)
class Job:
    """A run to be made."""

    scheme: str
    where: Setup
    number: int

    def cell(self, options: Options) -> Cell:
        """The run as a cell."""
        text = (
            "schema: narrows/scenario/1\n"
            "question: Does a tunnel change what it measures?\n"
            "where: hosts\nreal_path: {other: receiver}\n"
            f"schemes: ['{self.scheme}']\nduration: {options.emulated_path.length_ns // 1_000_000} ms\n"
        )
        cell = cell_of(text, [options.key(), self.where.name, self.number])
        return replace(cell, scheme=f"{self.scheme} {self.where.name}", run=self.number)


@dataclass
class Outcome:
    """The final results."""

    options: Options
    #: By scheme and place, in the order of their numbers.
    runs: dict[str, dict[str, list[dict[str, Any]]]]
    rows: list[Row] = field(default_factory=list)
    #: Attempts that the machine spoiled, and that were repeated.
    repeated: int = 0
    #: Runs that were given up, and those that count although they are `degraded`.
    given_up: int = 0
    degraded: int = 0
    #: Kernel settings that unexpectedly differ between the places.
    differing: list[str] = field(default_factory=list)
    #: The place of the last runs.
    machine: dict[str, Any] = field(default_factory=dict)


def jobs(options: Options) -> list[Job]:
    """The runs in order: each round has every scheme in every place once, in a separate order, so that a
    drift over time does not affect only one of them."""
    order = random.Random(options.seed)
    found: list[Job] = []
    for number in range(1, options.runs + 1):
        batch = [Job(scheme, where, number) for scheme in options.schemes for where in options.setups()]
        order.shuffle(batch)
        found += batch
    return found


def work(options: Options, agent: Location, folder: Path, console: Console) -> Outcome:
    """Makes the missing runs and compares."""
    if options.again:
        shutil.rmtree(folder / "runs", ignore_errors=True)
    path = folder / "runs"
    cells = {job: job.cell(options) for job in jobs(options)}
    entries = finished(kept(path))
    left = {job: cell for job, cell in cells.items() if cell.id not in entries}
    before = len(cells) - len(left)
    each_s = options.emulated_path.length_ns / 1e9 + OVERHEAD_S
    console.print(
        f"{len(left)} runs in about {show_time(len(left) * each_s)}"
        f"{f', {before} are kept from before' if before else ''}; leave the machine alone",
        highlight=False,
        soft_wrap=True,
    )
    if left:
        testbed = Testbed(agent, options.emulated_path, folder / "work")
        testbed.warm_up(next(iter(left.values())))
        plane = TunnelPlane(testbed, {cell.id: job for job, cell in left.items()}, console)
        entries = finished(run_cells(path, left.values(), plane, agent, console, each_s))
        testbed.clean_up()
    outcome = _outcome(options, cells, entries, path)
    if all(row.p is None for row in outcome.rows):
        reasons = {reason for places in outcome.runs.values() for runs in places.values() for one in runs
                   for reason in one["reasons"]}  # fmt: skip
        raise UnavailableError(f"no run could be used: {'; '.join(sorted(reasons))[:500]}")
    return outcome


def _outcome(options: Options, cells: dict[Job, Cell], entries: dict[str, CellEntry], path: Path) -> Outcome:
    runs: dict[str, dict[str, list[dict[str, Any]]]] = {
        scheme: {where.name: [] for where in options.setups()} for scheme in options.schemes
    }
    outcome = Outcome(options, runs)
    for job in sorted(cells, key=lambda job: job.number):
        if cells[job].id not in entries:
            continue
        numbers = json.loads((path / "cells" / cells[job].id / NUMBERS).read_text(encoding="utf-8"))
        runs[job.scheme][job.where.name].append(numbers["ran"])
        outcome.machine = numbers["machine"]
        if not job.where.tunnelled:
            outcome.differing = numbers["differing"]
    every = [one for places in runs.values() for listed in places.values() for one in listed]
    outcome.repeated = sum(one["attempts"] - 1 for one in every)
    outcome.given_up = sum(not counts(one) for one in every)
    outcome.degraded = sum(counts(one) and one["verdict"] != OK for one in every)
    outcome.rows = compare(runs, options.pairs())
    return outcome


class TunnelPlane:
    """Runs over the emulated path, each repeated if the machine was too busy."""

    retries = 0

    def __init__(self, testbed: Testbed, jobs: dict[str, Job], console: Console) -> None:
        self.testbed = testbed
        self.console = console
        self._jobs = jobs
        #: Remaining repetitions of `degraded` attempts.
        self.spare = max(1, round(REPEATED * len(jobs)))

    def workers(self, _cells: int) -> int:
        """There is only one path."""
        return 1

    def run_of(self, cell: Cell, _file: Path, out: Path, log_file: Path, _progress: Progress) -> Run:
        """One run, in the tunnel or outside."""
        log_file.touch()
        return TunnelRun(self, cell, self._jobs[cell.id], out)

    def around_round(self, _number: int, _when: str) -> None:
        """Nothing."""

    def ends_campaign(self, _outcome: CellOutcome) -> bool:
        """Never ends the campaign."""
        return False


@dataclass
class TunnelRun:
    """One run, possibly with several attempts. Its record contains the metrics of the last usable one."""

    plane: TunnelPlane
    cell: Cell
    job: Job
    out: Path
    stopped: bool = False

    def stop(self, kill: bool = False) -> None:  # noqa: ARG002 - the agents end at once
        """Asks both agents to stop."""
        self.stopped = True

    def run(self) -> CellOutcome:
        """Runs the cell until it ends."""
        started = time.monotonic()
        try:
            ran = self._attempts()
        except Stopped:
            return CellOutcome("interrupted")
        except UnavailableError as error:
            return CellOutcome("failed", "unavailable", str(error), error.exit_code)
        testbed = self.plane.testbed
        differing = [] if self.job.where.tunnelled else testbed.differing_settings()
        numbers = {"ran": ran.to_json(), "machine": testbed.machine, "differing": differing}
        reasons = [{"text": reason} for reason in ran.reasons]
        record = {
            "format": "narrows/run/1",
            "cell": self.cell.to_json(),
            "verdict": ran.verdict,
            "reasons": reasons,
        }
        self.out.mkdir()
        (self.out / NUMBERS).write_text(json.dumps(numbers), encoding="utf-8")
        (self.out / "run.json").write_text(json.dumps({**record, "reasons": reasons}), encoding="utf-8")
        return CellOutcome("finished", seconds=time.monotonic() - started)

    def _attempts(self) -> RunResult:
        """Repeats a run while the machine was too busy; a `degraded` one at most `spare` times.

        Both places are judged by the same rule, by the path's record, so that neither is favoured.
        """
        best: RunResult | None = None
        for attempt in range(1, ATTEMPTS + 1):
            seed = 1000 * self.job.number + attempt
            ran = self.plane.testbed.run(self.cell, self.job.where, seed, lambda: self.stopped)
            usable = ran.verdict not in (INVALID, FAILED)
            if best is None or usable:
                best = ran
            best.attempts = attempt
            good = best.verdict not in (INVALID, FAILED) and attempt > self.plane.spare
            if ran.verdict == OK or attempt == ATTEMPTS or good:
                break
            why = "; ".join(ran.reasons)[:300]
            self.plane.console.print(
                f"{self.cell.scheme}: {ran.verdict}, trying again ({why})", soft_wrap=True
            )
        assert best is not None
        self.plane.spare = max(0, self.plane.spare - (best.attempts - 1))
        return best
