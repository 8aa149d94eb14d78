"""A contest: submitted schemes ranked over paths that their authors do not know.

Every submission runs on every scenario of the paths, each as a separate campaign, so that a submission that
crashes, hangs or can't be loaded affects no other. The score:

- the value of a submission on a path is the median over its runs of the power of its own flows: the sum of
  their throughputs over the largest of their 95th percentiles of one-way delay;
- values are ranked on each path, equal ones share the mean of their ranks, and whoever failed there (crashed,
  hung, used up its time, sent nothing) is last, together with all others who did;
- the score is the mean rank over the paths; whoever has the lowest wins, and equal scores share a place.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import UNSET
from msgspec.structs import replace

from narrows.agent.location import Location, find_agent
from narrows.campaign.signals import Signalled
from narrows.documents.campaign import INVALID
from narrows.documents.lessons import CONTEST_FORMAT, Contest, Place
from narrows.errors import DataError, Interrupted, NarrowsError, UsageError
from narrows.lab.submissions import PLACEHOLDER, Submission, submissions_in
from narrows.statistics.ranking import Floats
from narrows.statistics.runs import LEVEL, RESAMPLES, SEED, median_over_runs

if TYPE_CHECKING:
    from rich.console import Console

    from narrows.scenario import Loaded

#: A second scheme that always exists.
_ANOTHER = "reno"
#: The message of a run that has exceeded its processor time.
_CPU = "SIGXCPU"
_TOO_LONG = "a run took more than {} s of processor time"
#: How often a submission is run on an emulated path until a run is valid: the machine may have been busy, and
#: that must not cost a submission its path.
_ATTEMPTS = 3


@dataclass(frozen=True)
class Rules:
    """The rules of a contest: the plane, and the processor time of a simulated run."""

    where: str
    limit_s: int


@dataclass
class Entrant:
    """A submission with its values: on each path one per run, NaN where there is none."""

    submission: Submission
    values: list[list[float]] = field(default_factory=list)
    #: The reasons why something could not be run, each once.
    problems: list[str] = field(default_factory=list)


def scenarios_in(folder: Path) -> list[Path]:
    """The scenarios of the paths, by name. Raises `DataError` if there are none."""
    files = sorted(folder.glob("*.yaml")) if folder.is_dir() else []
    if not files:
        raise DataError(f"{folder}: there is no scenario; the paths are files NAME.yaml in a folder")
    return files


def run(
    paths: Path,
    submitted: Path,
    folder: Path,
    rules: Rules,
    *,
    argv: list[str],
    console: Console,
    quiet: bool,
    tell: Callable[[str], object],
) -> Contest:
    """Runs the missing campaigns of a contest's folder, and ranks. Raises `DataError` for scenarios that
    can't be read and `Interrupted`; problems of a submission are in the document.
    """
    courses = [_read_course(file, rules) for file in scenarios_in(paths)]
    entrants = [Entrant(submission) for submission in submissions_in(submitted)]
    for number, entrant in enumerate(entrants, 1):
        name = entrant.submission.name
        tell(f"submission {number} of {len(entrants)}, {name}")
        begun, runner = True, None
        try:
            runner = _runner(entrant.submission, folder, rules)
        except NarrowsError as error:
            _note_failure(entrant, str(error))
            begun = False
        for course in courses:
            values = [[float("nan")] * course.runs for _ in course.own]
            if begun:
                problems: list[str] = []
                for place in _places_of(folder, name, course, rules):
                    problems = _play(
                        entrant, course, place, rules, runner, values, argv=argv, console=console, quiet=quiet
                    )
                    if not problems or np.isfinite(values).any(axis=1).all():
                        break
                for problem in problems:
                    _note_failure(entrant, problem)
            entrant.values += values
    return ranking(entrants, [name for course in courses for name in course.names], rules)


def _places_of(folder: Path, name: str, course: _Course, rules: Rules) -> list[Path]:
    """The folders of a submission's campaigns on a scenario, one for each attempt."""
    stem = course.file.stem
    again = range(2, _ATTEMPTS + 1) if rules.where == "emulate" else ()
    return [folder / "runs" / name / stem, *(folder / "again" / name / stem / str(at) for at in again)]


@dataclass(frozen=True)
class _Course:
    """A scenario: a path for each of its rows, with the numbers of the submission's flows."""

    file: Path
    runs: int
    own: list[set[int]]

    @property
    def names(self) -> list[str]:
        """The names of the paths."""
        stem = self.file.stem
        return [stem] if len(self.own) == 1 else [f"{stem} {row}" for row in range(1, len(self.own) + 1)]


def _read_course(file: Path, rules: Rules) -> _Course:
    """Reads a scenario with two schemes that always exist: the flows that differ belong to the submission."""
    from narrows.scenario.overrides import Override

    ours, other = (
        _load(file, Override("contest", "schemes", f"[{scheme}]"), rules).scenario
        for scheme in (PLACEHOLDER, _ANOTHER)
    )
    own = [
        {
            flow.number
            for flow, changed in zip(row.flows, like.flows, strict=True)
            if flow.scheme != changed.scheme
        }
        for row, like in zip(ours.schemes, other.schemes, strict=True)
    ]
    if not all(own):
        raise DataError(
            f"{file}: no flow is under test, so no scheme can compete; leave out the scheme of a flow"
        )
    if any(PLACEHOLDER in row.scheme_names for row in other.schemes):
        raise DataError(f"{file}: {PLACEHOLDER} represents submissions, so no other flow can have it")
    return _Course(file, ours.runs, own)


def _load(file: Path, change: Any, rules: Rules) -> Loaded:
    from narrows.scenario import Override, load

    return load(file, [Override("--where", "where", rules.where), change])


def _runner(submission: Submission, folder: Path, rules: Rules) -> Location | None:
    """The program that simulates a submission, its own or the agent, with limits of time and memory; `None`
    if the agent emulates, which has separate limits.
    """
    import shutil

    if rules.where != "simulate":
        if submission.is_crate:
            raise UsageError("a crate can be simulated alone; for the kernel, hand in a BPF object")
        return None
    own = submission.runner(folder / "build")
    words = own.prefix if own is not None else [str(find_agent())]
    if limiter := shutil.which("prlimit"):
        words = [limiter, f"--cpu={rules.limit_s}:{rules.limit_s + 1}", f"--as={_memory()}", *words]
    return Location(submission.name, words, "user")


def _memory() -> int:
    import os

    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 4 * 3


def _note_failure(entrant: Entrant, why: str) -> None:
    sentence = why.splitlines()[0] if why else "it failed without a word"
    if sentence not in entrant.problems:
        entrant.problems.append(sentence)


def _play(
    entrant: Entrant,
    course: _Course,
    place: Path,
    rules: Rules,
    runner: Location | None,
    values: list[list[float]],
    *,
    argv: list[str],
    console: Console,
    quiet: bool,
) -> list[str]:
    """Runs a submission on the paths of a scenario, and collects its values. Returns the reasons of invalid
    runs if the machine may be to blame: other runs count then.
    """
    from narrows.campaign.run import run_campaign

    try:
        loaded = _load(course.file, entrant.submission.change(), rules)
        done = run_campaign(
            loaded, place, resume=False, argv=argv, console=console, quiet=quiet, runner=runner
        )
    except (Interrupted, Signalled, KeyboardInterrupt):
        raise
    except NarrowsError as error:
        # The author must not learn which path it was.
        text = str(error).replace(str(place), "a run")
        _note_failure(entrant, text.replace(str(course.file), "a path").replace(course.file.name, "a path"))
        return []
    except RecursionError:
        _note_failure(entrant, f"{entrant.submission.path.name}: is nested too deeply")
        return []
    order = [row.label for row in done.folder.resolved.schemes]
    flows: dict[tuple[int, int], list[dict[str, float | None]]] = {}
    for row in done.results.rows:
        at = order.index(row.scheme)
        if row.flow in course.own[at] and row.verdict != INVALID:
            flows.setdefault((at, row.run - 1), []).append(row.metrics)
    for (at, run), metrics in flows.items():
        values[at][run] = power(metrics)
    spoilt: list[str] = []
    for cell in done.folder.cells:
        if cell.is_usable:
            continue
        if not cell.is_finished:
            why = cell.error_message or "a run failed"
            _note_failure(entrant, _TOO_LONG.format(rules.limit_s) if _CPU in why else why)
        else:
            reasons = [str(reason.text) for reason in cell.reasons]
            why = f"a run is invalid: {(reasons or ['no reason is given'])[0]}"
            if rules.where == "emulate":
                spoilt.append(why)
                continue
            _note_failure(entrant, why)
        of_path = values[order.index(cell.scheme)]
        of_path[:] = [float("nan")] * len(of_path)
    return spoilt


# -- order ---------------------------------------------------------------------------------------


def power(flows: list[dict[str, Any]]) -> float:
    """The power of a submission's flows in a run: the sum of their throughputs (Mbit/s) over the largest of
    their 95th percentiles of delay (s); NaN if nothing arrived of one."""
    throughput = sum(flow.get("throughput_bps") or 0.0 for flow in flows)
    delays = [flow.get("delay_p95_ns") for flow in flows]
    if not throughput or not all(delays):
        return float("nan")
    return float(throughput / 1e6 / (max(delay for delay in delays if delay) / 1e9))


def ranks(values: Floats) -> Floats:
    """Ranks from 1 along the last axis, the largest value first; equal values share the mean of their ranks,
    and all NaN values share the last ones.
    """
    known = np.where(np.isfinite(values), values, -np.inf)
    better = (known[..., None, :] > known[..., :, None]).sum(axis=-1)
    equal = (known[..., None, :] == known[..., :, None]).sum(axis=-1)
    return np.asarray(better + (equal + 1) / 2)


def ranking(entrants: list[Entrant], paths: list[str], rules: Rules) -> Contest:
    """The document of a contest."""
    on_path = np.array([[_value(runs) for runs in entrant.values] for entrant in entrants])
    each = ranks(on_path.T)
    scores = each.mean(axis=0)
    low, high = _places(entrants)
    order = sorted(range(len(entrants)), key=lambda at: (scores[at], entrants[at].submission.name))
    return Contest(
        format=CONTEST_FORMAT,
        where=rules.where,
        paths=paths,
        ranking=[
            Place(
                place=1 + int((scores < scores[at]).sum()),
                place_low=low[at],
                place_high=high[at],
                name=entrants[at].submission.name,
                score=float(scores[at]),
                won=int((each[:, at] == each.min(axis=1)).sum()),
                failed=int(np.isnan(on_path[at]).sum()),
                values=[None if np.isnan(value) else float(value) for value in on_path[at]],
                ranks=[float(rank) for rank in each[:, at]],
                problems=entrants[at].problems,
            )
            for at in order
        ],
    )


def _value(runs: list[float]) -> float:
    known = [run for run in runs if np.isfinite(run)]
    return median_over_runs(known) if known else float("nan")


def _places(entrants: list[Entrant]) -> tuple[list[int], list[int]]:
    """The 95 % interval of each place, when paths are resampled and, on each of them, runs: the same runs for
    all submissions, because run k of each shares its randomness.
    """
    count, paths = len(entrants), len(entrants[0].values)
    chance = np.random.RandomState(SEED)
    # For each path, resampled medians of all submissions.
    times = RESAMPLES // 10
    drawn = np.empty((paths, times, count))
    for path in range(paths):
        values = np.array([entrant.values[path] for entrant in entrants])
        picks = chance.randint(0, values.shape[1], size=(times, values.shape[1]))
        # A missing run counts as its path's median.
        middle = np.array([_value(runs) for runs in values])[:, None]
        values = np.where(np.isfinite(values), values, middle)
        drawn[path] = np.median(values[:, picks], axis=-1).T
    chosen = chance.randint(0, paths, size=(times, paths))
    scores = ranks(drawn[chosen, np.arange(times)[:, None]]).mean(axis=1)
    places = np.sort(1 + (scores[:, None, :] < scores[:, :, None]).sum(axis=-1), axis=0)
    tail = (1 - LEVEL) / 2
    ends = [int(np.floor(tail * (times - 1))), int(np.ceil((1 - tail) * (times - 1)))]
    low, high = (places[end].tolist() for end in ends)
    return low, high


def for_students(contest: Contest, per_path: bool) -> Contest:
    """The ranking without the names of paths, and without values of single paths unless requested."""
    places = contest.ranking
    if not per_path:
        places = [replace(place, values=UNSET, ranks=UNSET) for place in places]
    paths = [f"path {number}" for number in range(1, len(contest.paths) + 1)]
    return replace(contest, paths=paths, ranking=places)
