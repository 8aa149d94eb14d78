"""The work of `narrows verify-schemes`: what is missing is done, everything is kept, then it is judged."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from datetime import UTC, datetime
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from narrows import __version__
from narrows.agent.location import this_machine
from narrows.campaign.plan import why_not
from narrows.errors import DataError, UnavailableError
from narrows.scenario import registry
from narrows.text import did_you_mean
from narrows.verify import emulate, grid
from narrows.verify.check import FAILS, Check
from narrows.verify.compare import Comparison, compare
from narrows.verify.pairs import Pair, pairs
from narrows.verify.registry import all_checks
from narrows.verify.store import Store
from narrows.verify.verdict import verdict

THEORY, RUNS = "theory", "runs"
#: Setting up the hosts of the grid, and writing and reading the record of a cell.
OVERHEAD_S = 10


@dataclass(frozen=True)
class Options:
    """What is asked for."""

    names: tuple[str, ...] = ()
    simulate: bool = True
    emulate: bool = True
    quick: bool = False
    again: bool = False
    runs: int = 1


@dataclass
class Outcome:
    """Everything that is known in the end."""

    #: Findings of theory by scheme, as JSON; schemes whose checks were not made are missing.
    theory: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    comparisons: list[Comparison] = field(default_factory=list)
    #: Runs on the grid by scheme, as JSON.
    runs: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    #: Why an implementation could not be run.
    missing: dict[str, str] = field(default_factory=dict)
    #: Verdicts by scheme.
    entries: dict[str, dict[str, Any]] = field(default_factory=dict)
    places: tuple[grid.Place, ...] = grid.GRID


def chosen(options: Options) -> list[str]:
    """The schemes of ours that are meant, in the order of the registry; all if none is named."""
    known = registry.load()
    every = [*known.schemes, *known.bpf]
    for name in options.names:
        if name not in every:
            hint = did_you_mean(name, every) or "; narrows schemes lists them"
            raise DataError(f'there is no scheme "{name}" of ours to verify{hint}')
    return [name for name in every if not options.names or name in options.names]


def wanted_pairs(names: list[str]) -> list[Pair]:
    """The pairs in which one of these schemes takes part."""
    return [pair for pair in pairs(registry.load()) if pair.scheme in names or pair.reference in names]


def work(options: Options, folder: Path, tell: Callable[[str], None]) -> Outcome:
    """Does what is missing and judges."""
    names = chosen(options)
    store = Store(folder, options.again)
    outcome = Outcome(places=grid.QUICK_GRID if options.quick else grid.GRID)
    _theory(names, options, store, outcome, tell)
    wanted = wanted_pairs(names)
    _emulated(wanted, options, store, outcome, tell)
    done = {(one.scheme, one.reference): one for one in outcome.comparisons}
    listed = {check.scheme for check in all_checks()}
    for name in names:
        theory = outcome.theory.get(name) if name in listed else []
        entry = verdict(name, theory, pairs(registry.load()), done, outcome.missing)
        date = datetime.now(UTC).strftime("%Y-%m-%d")
        outcome.entries[name] = {**entry, "date": date, "version": __version__}
    return outcome


# -- in simulation -----------------------------------------------------------------------------------


def _theory(
    names: list[str], options: Options, store: Store, outcome: Outcome, tell: Callable[[str], None]
) -> None:
    key = {"version": __version__, "quick": options.quick}
    left: list[str] = []
    for name in dict.fromkeys(check.scheme for check in all_checks()):
        if name not in names:
            continue
        part = store.load(THEORY, name, key) if options.simulate else store.kept(THEORY, name, key)
        if part is not None:
            outcome.theory[name] = part["findings"]
        elif options.simulate:
            left.append(name)
    if not left:
        return
    jobs = [
        index
        for index, check in enumerate(all_checks())
        if check.scheme in left and (check.quick or not options.quick)
    ]
    tell(f"theory: {len(jobs)} checks of {len(left)} schemes in simulation")
    found: dict[int, list[dict[str, Any]]] = {}
    workers = max(1, min(len(jobs), os.cpu_count() or 1))
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        futures = {pool.submit(try_check, index, options.quick): index for index in jobs}
        for future in as_completed(futures):
            index = futures[future]
            found[index] = future.result()
            check = all_checks()[index]
            words = ", ".join(f"{one['found']} ({one['outcome']})" for one in found[index])
            tell(f"theory {len(found)}/{len(jobs)}: {check.scheme}, {check.title}: {words}")
            if all(i in found for i in jobs if all_checks()[i].scheme == check.scheme):
                mine = [one for i in jobs if all_checks()[i].scheme == check.scheme for one in found[i]]
                outcome.theory[check.scheme] = mine
                store.save(THEORY, check.scheme, key, {"findings": mine})


def try_check(index: int, quick: bool) -> list[dict[str, Any]]:
    """Makes one check, by its place in the registry; a check that breaks down does not hold."""
    check = all_checks()[index]
    try:
        return [{"kind": check.kind, **one.to_json()} for one in check.run(quick)]
    except (ValueError, OSError, ArithmeticError, KeyError) as error:
        return [_broken(check, str(error) or type(error).__name__)]


def _broken(check: Check, why: str) -> dict[str, Any]:
    return {
        "kind": check.kind,
        "what": check.title,
        "expected": "a number",
        "found": f"none: {why}",
        "difference": "",
        "tolerance": "",
        "why": "",
        "outcome": FAILS,
    }


# -- on the emulator ---------------------------------------------------------------------------------


def _emulated(
    wanted: list[Pair], options: Options, store: Store, outcome: Outcome, tell: Callable[[str], None]
) -> None:
    schemes = list(dict.fromkeys(name for pair in wanted for name in (pair.scheme, pair.reference)))
    seconds = grid.QUICK_SECONDS if options.quick else grid.SECONDS
    key = {
        "version": __version__,
        "places": [place.name for place in outcome.places],
        "seconds": seconds,
    }
    jobs = []
    for name in schemes:
        for number in range(1, options.runs + 1):
            part = f"{RUNS}/{number}"
            kept = store.load(part, name, key) if options.emulate else store.kept(part, name, key)
            if kept is not None and (
                not options.emulate or kept["ran"]["verdict"] not in ("invalid", "failed")
            ):
                outcome.runs.setdefault(name, []).append(kept["ran"])
            elif options.emulate:
                jobs.append((name, number))
    if jobs:
        _run_jobs(jobs, seconds, key, store, outcome, tell)
    for name in schemes:
        runs = outcome.runs.get(name)
        if runs and not any(one["verdict"] not in ("invalid", "failed") for one in runs):
            reasons = "; ".join(runs[-1]["reasons"])[:200] or "no reason was recorded"
            outcome.missing[name] = f"no valid run of {name} ({reasons})"
    for pair in wanted:
        ours, theirs = (
            emulate.measured(outcome.runs.get(name, []), outcome.places)
            for name in (pair.scheme, pair.reference)
        )
        if ours and theirs:
            outcome.comparisons.append(compare(pair.scheme, pair.reference, ours, theirs, pair.tolerance))


def _run_jobs(
    jobs: list[tuple[str, int]],
    seconds: int,
    key: dict[str, Any],
    store: Store,
    outcome: Outcome,
    tell: Callable[[str], None],
) -> None:
    try:
        agent = this_machine()
        agent.version()
        facts = agent.doctor()
    except UnavailableError as error:
        outcome.missing.update({name: str(error) for name, _ in jobs})
        tell(f"nothing can be emulated here: {error}")
        return
    cells = sum(len(grid.groups(outcome.places, name)) for name, _ in jobs)
    minutes = cells * (seconds + OVERHEAD_S) / 60
    tell(f"comparison: {len(jobs)} runs on {len(outcome.places)} paths, about {minutes:.0f} minutes")
    for index, (name, number) in enumerate(jobs, 1):
        reason = why_not(name, emulate.PLANE, facts)
        if reason:
            outcome.missing[name] = reason
            tell(f"comparison {index}/{len(jobs)}: {name} can't run here: {reason}")
            continue
        try:
            ran = emulate.run(name, outcome.places, seconds, number, agent, store.folder / ".work", tell)
        except UnavailableError as error:
            outcome.missing[name] = str(error)
            tell(f"comparison {index}/{len(jobs)}: {name} can't run here: {error}")
            continue
        outcome.runs.setdefault(name, []).append(ran.to_json())
        store.save(f"{RUNS}/{number}", name, key, {"ran": ran.to_json()})
        tell(f"comparison {index}/{len(jobs)}: {name}, run {number}: {ran.verdict}")
