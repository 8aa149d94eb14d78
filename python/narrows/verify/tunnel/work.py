"""The work of `narrows verify-tunnel`: runs in random order, repeated if the machine spoils them, all
kept."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol

from narrows import __version__
from narrows.agent.location import Location
from narrows.errors import DataError, UnavailableError, UsageError
from narrows.verify.store import Store
from narrows.verify.tunnel.compare import Row, compare, counts
from narrows.verify.tunnel.lab import FAILED, INSIDE, INVALID, OUTSIDE, Lab, Ran, Road, Where

RUNS, NOTES = "runs", "notes"
PREFIX = "linux:"
SCHEMES = ("linux:cubic", "linux:reno", "linux:bbr")
#: How often a run is tried at most. The last try counts even if it is only good enough (`degraded`).
ATTEMPTS = 3
#: How many attempts that are good enough may be repeated altogether, as a share of the runs: where it is
#: never quiet all would only take longer.
REPEATED = 0.25
OK = "ok"
#: Setting up and reading one run, without what it lasts.
OVERHEAD_S = 2.5


def chosen(text: str) -> tuple[str, ...]:
    """The schemes that a list of names separated by commas means. (Without `linux:` it is the kernel's as
    well: no other would run here with packets of the same size in both places.)"""
    names = dict.fromkeys(name.strip() for name in text.split(","))
    if not all(names):
        raise UsageError(f"--schemes: '{text}' has an empty name; write for example {','.join(SCHEMES)}")
    return tuple(name if name.startswith(PREFIX) else f"{PREFIX}{name}" for name in names)


@dataclass(frozen=True)
class Options:
    """What is asked for."""

    road: Road
    schemes: tuple[str, ...] = SCHEMES
    runs: int = 20
    seed: int = 1
    #: Compare as well with the path without tunnel whose way back is longer by so much.
    longer_ns: int = 0
    again: bool = False

    def wheres(self) -> list[Where]:
        """Where each scheme runs, what others are compared with first."""
        longer = Where(f"{self.longer_ns / 1000:g} us longer", added_ns=self.longer_ns)
        return [OUTSIDE, INSIDE, *([longer] if self.longer_ns else [])]

    def pairs(self) -> list[tuple[str, str]]:
        """What is compared with what: inside with outside, and both with the longer way outside."""
        outside, inside, *longer = (where.name for where in self.wheres())
        return [(outside, inside), *((outside, one) for one in longer), *((one, inside) for one in longer)]

    def key(self) -> dict[str, Any]:
        """Runs of other conditions do not count."""
        return {"version": __version__, "seed": self.seed, **asdict(self.road)}


@dataclass(frozen=True)
class Job:
    """One run to make."""

    scheme: str
    where: Where
    number: int


@dataclass
class Outcome:
    """Everything that is known in the end."""

    options: Options
    #: By scheme and place, in the order of their numbers.
    runs: dict[str, dict[str, list[dict[str, Any]]]]
    rows: list[Row] = field(default_factory=list)
    #: Attempts that the machine spoiled, which were repeated.
    repeated: int = 0
    #: Runs that had to be given up, and those that count although they are only good enough.
    given_up: int = 0
    degraded: int = 0
    #: Kernel settings that differ between the places although they should not.
    differing: list[str] = field(default_factory=list)
    #: Where the last runs were made.
    machine: dict[str, Any] = field(default_factory=dict)


class View(Protocol):
    """Hears how it goes."""

    def message(self, text: str, /) -> None:
        """Something to read."""

    def started(self, done: int, left: int, /) -> None:
        """So many runs are kept from before, so many are to be made."""

    def ended(self, text: str, /) -> None:
        """A run is over."""


def jobs(options: Options, kept: Callable[[Job], bool]) -> list[Job]:
    """What is to be done: in each round every scheme in every place once, in an order of its own, so that
    nothing that changes with time falls on one of them only."""
    order = random.Random(options.seed)
    found: list[Job] = []
    for number in range(1, options.runs + 1):
        batch = [Job(scheme, where, number) for scheme in options.schemes for where in options.wheres()]
        order.shuffle(batch)
        found += [job for job in batch if not kept(job)]
    return found


def work(options: Options, agent: Location, folder: Path, view: View) -> Outcome:
    """Makes the runs that are missing and compares."""
    store = Store(folder, options.again)
    done: dict[str, dict[str, dict[str, Any]]] = {}
    for scheme in options.schemes:
        part = store.load(RUNS, scheme, options.key())
        done[scheme] = part["runs"] if part is not None else {}

    def place(job: Job) -> str:
        return f"{job.where.name}-{job.number}"

    left = jobs(options, lambda job: place(job) in done[job.scheme])
    total = options.runs * len(options.schemes) * len(options.wheres())
    view.started(total - len(left), len(left))
    notes: dict[str, Any] = {"differing": [], "machine": {}}
    if kept := store.kept(NOTES, NOTES, options.key()):
        notes = kept["notes"]
    if left:
        lab = Lab(agent, options.road, folder / "work")
        lab.rehearse(options.schemes[0])
        notes["machine"] = lab.machine
        spare = max(1, round(REPEATED * len(left)))
        for job in left:
            ran = _attempts(lab, job, spare, view)
            spare = max(0, spare - (ran.attempts - 1))
            if not job.where.tunnelled:
                notes["differing"] = lab.differing_settings()
            done[job.scheme][place(job)] = ran.to_json()
            store.save(RUNS, job.scheme, options.key(), {"runs": done[job.scheme]})
            view.ended(_in_words(job, ran))
        store.save(NOTES, NOTES, options.key(), {"notes": notes})
        lab.tidy()
    outcome = Outcome(options, _sorted(options, done), **notes)
    every = [one for places in outcome.runs.values() for runs in places.values() for one in runs]
    outcome.repeated = sum(one["attempts"] - 1 for one in every)
    outcome.given_up = sum(not counts(one) for one in every)
    outcome.degraded = sum(counts(one) and one["verdict"] != OK for one in every)
    outcome.rows = compare(outcome.runs, options.pairs())
    if all(row.p is None for row in outcome.rows):
        reasons = {reason for one in every for reason in one["reasons"]}
        raise UnavailableError(f"no run could be used: {'; '.join(sorted(reasons))[:500]}")
    return outcome


def _attempts(lab: Lab, job: Job, spare: int, view: View) -> Ran:
    """A run, again if the machine had too much else to do, at most `spare` times where it is good enough.

    Both places are judged by the same rule, by the path's record, so that none is favoured.
    """
    best: Ran | None = None
    for attempt in range(1, ATTEMPTS + 1):
        ran = lab.run(job.scheme, job.where, 1000 * job.number + attempt)
        usable = ran.verdict not in (INVALID, FAILED)
        if best is None or usable:
            best = ran
        best.attempts = attempt
        if ran.verdict == OK:
            break
        last = attempt == ATTEMPTS or (best.verdict not in (INVALID, FAILED) and attempt > spare)
        again = "that was the last try" if last else "trying again"
        view.message(f"{_name(job)}: {ran.verdict}, {again} ({'; '.join(ran.reasons)[:300]})")
        if last:
            break
    if best is None:
        raise DataError(f"{_name(job)}: no attempt was made")
    return best


def _name(job: Job) -> str:
    return f"{job.scheme} {job.where.name} {job.number}"


def _in_words(job: Job, ran: Ran) -> str:
    if ran.path is None:
        return f"{_name(job)}: {ran.verdict}"
    rate, delay = ran.path["throughput_bps"] / 1e6, ran.path["delay_p95_ns"] / 1e6
    return f"{_name(job)}: {ran.verdict}, {rate:.3f} Mbit/s, p95 {delay:.3f} ms"


def _sorted(
    options: Options, done: dict[str, dict[str, dict[str, Any]]]
) -> dict[str, dict[str, list[dict[str, Any]]]]:
    return {
        scheme: {
            where.name: [
                done[scheme][f"{where.name}-{number}"]
                for number in range(1, options.runs + 1)
                if f"{where.name}-{number}" in done[scheme]
            ]
            for where in options.wheres()
        }
        for scheme in options.schemes
    }
