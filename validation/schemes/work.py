"""The work of `python -m validation schemes`: two campaigns, whose missing cells are run, and verdicts."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console

from narrows import __version__
from narrows.agent.location import this_machine
from narrows.campaign.planes import LocalPlane, Means
from narrows.campaign.store import CampaignFolder
from narrows.errors import DataError, UnavailableError
from narrows.scenario import registry
from narrows.scenario.programs.missing import why_missing
from narrows.schemes.availability import why_not
from narrows.text import did_you_mean
from validation.campaign import cell_of, finished, kept, run_cells
from validation.schemes import grid
from validation.schemes.check import FAILS, Check
from validation.schemes.compare import Comparison, compare
from validation.schemes.emulate import PLANE, GridCell, GridPlane, GridResult, cells_of_run, gather, measured
from validation.schemes.pairs import PROGRAMS, Pair, of_programs, pairs
from validation.schemes.registry import all_checks
from validation.schemes.verdict import verdict

THEORY, COMPARISON, OTHERS = "theory", "comparison", "programs"
#: Time for setting up the hosts of the grid, and for writing and reading the record of a cell.
OVERHEAD_S = 10


@dataclass(frozen=True)
class Options:
    """The options of the command."""

    names: tuple[str, ...] = ()
    simulate: bool = True
    emulate: bool = True
    quick: bool = False
    again: bool = False
    runs: int = 1
    #: Also compares with external programs.
    programs: bool = False


@dataclass
class Outcome:
    """The final results."""

    #: Findings of theory by scheme, as JSON; schemes whose checks were not made are missing.
    theory: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    comparisons: list[Comparison] = field(default_factory=list)
    #: Runs on the grid by scheme.
    runs: dict[str, list[GridResult]] = field(default_factory=dict)
    #: Why an implementation could not be run.
    missing: dict[str, str] = field(default_factory=dict)
    #: Verdicts by scheme.
    entries: dict[str, dict[str, Any]] = field(default_factory=dict)
    grid_paths: tuple[grid.GridPath, ...] = grid.GRID
    #: Comparisons with external programs, which do not affect verdicts.
    others: list[Comparison] = field(default_factory=list)


def chosen(options: Options) -> list[str]:
    """The selected native schemes, in the order of the registry; all if none is named."""
    known = registry.load()
    every = [*known.schemes, *known.bpf]
    others = {one for pair in PROGRAMS for one in (*pair, pair[1].partition(":")[0])}
    for name in options.names:
        if name not in every and not (options.programs and name in others):
            hint = did_you_mean(name, every) or "; narrows schemes lists them"
            raise DataError(f'no scheme "{name}" can be verified{hint}')
    return [name for name in every if not options.names or name in options.names]


def work(options: Options, folder: Path, console: Console) -> Outcome:
    """Runs what is missing and judges."""
    names = chosen(options)
    if options.again:
        emulated = options.emulate
        parts = ((THEORY, options.simulate), (COMPARISON, emulated), (OTHERS, emulated and options.programs))
        for part, wanted in parts:
            if wanted:
                shutil.rmtree(folder / part, ignore_errors=True)
    outcome = Outcome(grid_paths=grid.QUICK_GRID if options.quick else grid.GRID)
    _theory(names, options, folder / THEORY, outcome, console)
    every = pairs(registry.load())
    wanted_pairs = [pair for pair in every if pair.scheme in names or pair.reference in names]
    paths = dict.fromkeys((name for pair in wanted_pairs for name in names_of(pair)), outcome.grid_paths)
    outcome.comparisons, outcome.runs = _compare(
        wanted_pairs, paths, options, folder / COMPARISON, outcome.missing, console
    )
    if options.programs:
        _compare_with_programs(options, folder / OTHERS, outcome, console)
    done = {(one.scheme, one.reference): one for one in outcome.comparisons}
    listed = {check.scheme for check in all_checks()}
    for name in names:
        theory = outcome.theory.get(name) if name in listed else []
        entry = verdict(name, theory, every, done, outcome.missing)
        date = datetime.now(UTC).strftime("%Y-%m-%d")
        outcome.entries[name] = {**entry, "date": date, "version": __version__}
    return outcome


# -- in simulation -----------------------------------------------------------------------------------


def _theory(names: list[str], options: Options, path: Path, outcome: Outcome, console: Console) -> None:
    checks = [one for one in all_checks() if one.scheme in names and (one.quick or not options.quick)]
    cells = [(one, [cell_of(part.text()) for part in one.paths]) for one in checks]
    folder = kept(path)
    entries = finished(folder)
    missing = [cell for _, listed in cells for cell in listed if cell.id not in entries]
    if missing and options.simulate:
        console.print(f"theory: {len(checks)} checks in simulation")
        agent = this_machine()
        plane = LocalPlane("simulate", agent, path / "files", Means())
        folder = run_cells(path, missing, plane, agent, console)
        entries = finished(folder)
    for one, listed in cells:
        if folder is not None and (options.simulate or all(cell.id in entries for cell in listed)):
            found = try_check(one, [folder.cell_dir(cell.id) for cell in listed])
            outcome.theory.setdefault(one.scheme, []).extend(found)


def try_check(check: Check, records: list[Path]) -> list[dict[str, Any]]:
    """Makes one check; a check that raises an error does not hold."""
    try:
        return [{"kind": check.kind, **one.to_json()} for one in check.judge(records)]
    except (ValueError, OSError, ArithmeticError, KeyError) as error:
        found = {"found": f"none: {str(error) or type(error).__name__}", "outcome": FAILS}
        empty = dict.fromkeys(("difference", "tolerance", "why"), "")
        return [{"kind": check.kind, "what": check.title, "expected": "a number", **empty, **found}]


# -- on the emulator ---------------------------------------------------------------------------------


def names_of(pair: Pair) -> tuple[str, str]:
    """Both implementations."""
    return pair.scheme, pair.reference


def _compare_with_programs(options: Options, path: Path, outcome: Outcome, console: Console) -> None:
    """The comparisons with external programs. They have separate paths."""
    wanted = of_programs(options.names)
    named = dict.fromkeys(name for pair in wanted for name in names_of(pair))
    paths = {name: grid.paths_with_programs(name, quick=options.quick) for name in named}
    missing: dict[str, str] = {}
    outcome.others, _ = _compare(wanted, paths, options, path, missing, console)
    outcome.missing.update({name: reason for name, reason in missing.items() if name not in outcome.missing})


def _compare(
    wanted: list[Pair],
    paths: dict[str, tuple[grid.GridPath, ...]],
    options: Options,
    path: Path,
    missing: dict[str, str],
    console: Console,
) -> tuple[list[Comparison], dict[str, list[GridResult]]]:
    """Comparisons of all pairs that could be run, and the runs of each implementation; `missing` receives
    why one could not."""
    seconds = grid.QUICK_SECONDS if options.quick else grid.SECONDS
    runs = {
        name: [cells_of_run(name, own, seconds, seed) for seed in range(1, options.runs + 1)]
        for name, own in paths.items()
    }
    folder = kept(path)
    if options.emulate and runs:
        folder = _emulate(runs, folder, path, seconds + OVERHEAD_S, missing, console)
    entries = finished(folder)
    ran: dict[str, list[GridResult]] = {}
    for name, listed in runs.items():
        parts = [[part for cell in cells for part in cell.parts(entries)] for cells in listed]
        found = [one for cells in parts if (one := gather(cells, entries, path)) is not None]
        if found:
            ran[name] = found
        if found and not any(one.valid for one in found):
            reasons = "; ".join(found[-1].reasons)[:200] or "no reason was recorded"
            missing[name] = f"no valid run of {name} ({reasons})"
    comparisons = []
    for pair in wanted:
        ours, theirs = (measured(ran.get(name, []), paths[name]) for name in names_of(pair))
        if ours and theirs:
            comparisons.append(compare(pair.scheme, pair.reference, ours, theirs, pair.tolerance))
    return comparisons, ran


def _emulate(
    runs: dict[str, list[list[GridCell]]],
    folder: CampaignFolder | None,
    path: Path,
    each_s: float,
    missing: dict[str, str],
    console: Console,
) -> CampaignFolder | None:
    """Runs the missing cells; those that were too much for the machine in halves."""
    try:
        agent = this_machine()
        agent.version()
        facts = agent.doctor()
    except UnavailableError as error:
        missing.update(dict.fromkeys(runs, str(error)))
        console.print(f"nothing can be emulated here: {error}", highlight=False, soft_wrap=True)
        return folder
    for name, listed in runs.items():
        if reason := why_not(name, PLANE, facts) or _why_not_built(listed):
            missing[name] = reason
            console.print(f"{name} can't run here: {reason}", highlight=False, soft_wrap=True)
    cells = [cell for name, listed in runs.items() if name not in missing for one in listed for cell in one]
    tried: set[str] = set()
    while True:
        entries = finished(folder)
        parts = [part.cell for cell in cells for part in cell.parts(entries)]
        left = [cell for cell in parts if cell.id not in entries and cell.id not in tried]
        if not left:
            break
        tried.update(cell.id for cell in left)
        try:
            folder = run_cells(path, left, GridPlane(agent, path / "files"), agent, console, each_s)
        except UnavailableError as error:
            missing.update({cell.scheme: str(error) for cell in left if cell.scheme not in missing})
            folder = kept(path)
    for entry in folder.cells if folder is not None else ():
        if entry.state == "failed":
            missing.setdefault(entry.scheme, entry.error_message)
    return folder


def _why_not_built(listed: list[list[GridCell]]) -> str | None:
    """Why an external program can't be started here; None if it can, or if the scheme is not one."""
    plans = (flow.program for flow in listed[0][0].cell.flows if flow.program)
    return next((reason for plan in plans if (reason := why_missing(plan))), None)
