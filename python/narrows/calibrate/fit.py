"""The whole of a calibration, from a table to a path that has been examined.

1. Pantheon's path with a constant and with a Poisson link, and the neighbourhood of the best path, ever
   closer. The worse kind of link is left as soon as that is clear, and both are compared on the same seeds
   where it never is.
2. If that is not as good as the noise of the table allows: features one by one. One is admitted if the error
   of schemes that were left out falls by it.
3. The neighbourhood of the best path with them; no loss at all where that does as well.
4. Each scheme left out and the path fitted again without it.
5. The path on seeds that the fit has not seen.
6. Of each scheme: is there a path on which the others fit and this one too?
7. If the path is not as good as the noise of the table allows: at which rate would each scheme fit?
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from narrows.calibrate.examine import BESIDE, Examination, Explained, LeftOut, OwnRate
from narrows.calibrate.paths import (
    BYTES,
    DELAY,
    FEATURES,
    LINKS,
    LOSS,
    PACKETS,
    QUEUE,
    RATE,
    TRACE,
    Path,
    Space,
    TraceFile,
    interval_ns,
)
from narrows.calibrate.search import SEEDS, Search
from narrows.calibrate.simulate import Evaluation, Wanted
from narrows.calibrate.start import ranges

#: Evaluations with which each kind of link begins, and those of a step.
_FIRST, _STEP = 10, 4
#: Steps with both kinds of link.
_BOTH = 3
#: Steps after that, the share of the budget at which they end, and the share of the objective of one kind at
#: which the other is clearly better: a kind is judged by few evaluations, each of them a single run.
_WIDE, _WIDE_SHARE, _CLEAR = 6, 0.55, 0.5
#: Share of the budget after which no more features are tried.
_FEATURES_SHARE = 0.8
#: Widths of the neighbourhoods, as shares of the ranges, and steps in each.
_WIDTHS, _CLOSE_STEPS = (0.3, 0.12), 3
#: A search is over when this many best paths differ by no more than these shares.
_STILL = 6
_SAME = {RATE.name: 0.004, DELAY.name: 0.006, QUEUE.name: 0.02, LOSS.name: 0.06}
#: Evaluations that spread over a feature, and steps after them.
_FEATURE_FIRST, _FEATURE_STEPS = 8, 3
#: By how much the error of schemes that were left out must fall, as a share, for a feature.
ADMITTED = 0.03
#: Up to this multiple of the noise floor there is nothing for a feature to gain.
GOOD_ENOUGH = 1.5
#: Paths that are compared at the end, and how many are left for how many further runs.
_RACERS, _ROUNDS = 10, ((10, 3), (3, 9))
#: Runs in which simpler paths are compared with the best, and how much worse they may be.
_PAIRS, _SIMPLER = 6, 1.15


@dataclass(frozen=True)
class Trial:
    """A feature that was tried: the error of schemes left out without it and with it."""

    feature: str
    before: float
    after: float
    admitted: bool


@dataclass
class Fit:
    """What a calibration has found."""

    path: Path
    space: Space
    fresh: Evaluation
    fitted: float | None
    misfit: dict[str, float]
    trials: list[Trial] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)
    explained: list[Explained] = field(default_factory=list)
    #: Empty where the path is good enough.
    own_rates: list[OwnRate] = field(default_factory=list)
    #: The other kind of link: its best objective, and that of the one which was kept.
    links: dict[str, float] = field(default_factory=dict)
    not_tried: str | None = None
    within_budget: bool = True


def fit(
    search: Search, floor: float | None, tell: Callable[[str], object], trace: TraceFile | None = None
) -> Fit:
    """Calibrates: see the head of this module. `floor` is the error that chance alone makes; with a `trace`
    the link follows that."""
    return _Fitting(search, floor, tell, trace).run()


class _Fitting:
    def __init__(
        self, search: Search, floor: float | None, tell: Callable[[str], object], trace: TraceFile | None
    ) -> None:
        self.search, self.floor, self.tell, self.trace = search, floor, tell, trace
        self.trials: list[Trial] = []
        self.links: dict[str, float] = {}
        self.not_tried: str | None = None

    def run(self) -> Fit:
        wides = self.basic()
        inners = [self.close_in(wide, "basic path") for wide in wides]
        at = self.better(inners) if len(inners) > 1 else 0
        wide, inner = wides[at], inners[at]
        if self.features_wanted(inner):
            wider = self.features(wide)
            if wider.features:
                inner = self.close_in(wider, "all features")
        self.tell("closing in")
        best = [self.search.best(inner)]
        while not self.spent(1.0) and not _settled(best):
            self.search.step(inner, _STEP)
            best.append(self.search.best(inner))
        self.tell("comparing the best")
        path, fitted = self.simplest(self.race(inner))
        self.tell("fresh seeds")
        examination = Examination(self.search, self.seed, self.check)
        fresh = examination.fresh(path)
        made = Fit(path, inner, fresh, fitted, dict(self.search.objective.misfit), self.trials)
        made.links, made.not_tried = self.links, self.not_tried
        made.within_budget = not self.spent(1.0)
        if len(self.schemes) > 1:
            self.tell("leaving one out")
            made.left_out = examination.left_out(inner)
            made.explained = examination.explained(inner)
            if not self.good_enough(examination.error(None, fresh)):
                self.tell("rates of their own")
                made.own_rates = examination.own_rates(path)
        return made

    def good_enough(self, error: float | None) -> bool:
        """True if an error is about the noise of the table, so that there is nothing left to explain."""
        return error is None or (self.floor is not None and error <= GOOD_ENOUGH * self.floor + BESIDE)

    def close_in(self, space: Space, what: str) -> Space:
        """The neighbourhood of the best path, ever closer."""
        for number, width in enumerate(_WIDTHS, 1):
            if self.spent(1.0):
                break
            self.tell(f"{what}, closer")
            space = self.search.close_in(space, width, 4 + 2 * len(space.names), f"{what} {number}")
            for _ in range(_CLOSE_STEPS):
                if not self.spent(1.0):
                    self.search.step(space, _STEP)
        return space

    @property
    def schemes(self) -> tuple[str, ...]:
        return tuple(self.search.simulator.entries)

    def spent(self, share: float) -> bool:
        return self.search.budget.used(self.search) >= share

    def seed(self, purpose: str, number: int) -> int:
        # Beyond those of the search, which has fewer evaluations than that.
        base = {
            "fresh": 900_000,
            "left out": 910_000,
            "explained": 920_000,
            "pairs": 930_000,
            "race": 940_000,
            "links": 950_000,
            "rates": 960_000,
            "own rate": 970_000,
        }
        return self.search.seed * SEEDS + base[purpose] + number

    def check(self, wanted: Sequence[Wanted]) -> list[Evaluation]:
        """Simulates outside of the search's budget."""
        found = self.search.simulator.evaluate(wanted)
        self.search.told()
        return found

    # -- the path --------------------------------------------------------------------------------

    def basic(self) -> list[Space]:
        """The kinds of link that may be that of the table: one, if it is clear which."""
        self.tell("basic path")
        links = LINKS if self.trace is None else (TRACE,)
        # Flows start in the order in which they are planned.
        most = {"offset": interval_ns(self.search.simulator.work) / 2}
        spaces = [Space(link, ranges(self.search.targets), trace=self.trace, most=most) for link in links]
        for space in spaces:
            self.search.begin(space, _FIRST)
        for number in range(_BOTH + _WIDE):
            if number >= _BOTH:
                if self.spent(_WIDE_SHARE):
                    break
                spaces = self.clearly(spaces)
            for space in spaces:
                self.search.step(space, _STEP)
        return self.clearly(spaces)

    def clearly(self, spaces: list[Space]) -> list[Space]:
        """Those of the spaces that are not clearly worse than the best; notes how good each is."""
        self.links |= {space.link: self.search.cost(space) for space in spaces}
        least = min(self.links[space.link] for space in spaces)
        return [space for space in spaces if _CLEAR * self.links[space.link] <= least]

    def better(self, spaces: Sequence[Space]) -> int:
        """Which kind of link is the better one, by the best path of each on the same seeds."""
        self.tell("comparing links")
        seed = self.seed("links", 0)
        paths = [self.search.best(space) for space in spaces]
        found = self.check([Wanted(path, self.schemes, _PAIRS, seed) for path in paths])
        rows = np.array([self.search.targets.row(one.runs(self.search.metrics)) for one in found])
        costs = self.search.objective.of(rows)
        self.links |= {space.link: float(cost) for space, cost in zip(spaces, costs, strict=True)}
        return int(np.argmin(costs))

    def features_wanted(self, space: Space) -> bool:
        """True if there is something for features to gain: notes why not."""
        expected = self.search.expected(space, [self.search.best(space)])
        error = float(np.nanmean(self.search.relative(expected)))
        if len(self.schemes) < 3:
            self.not_tried = "an error of schemes left out needs three schemes"
        elif self.good_enough(error):
            self.not_tried = (
                f"the basic path is within {GOOD_ENOUGH:g} times the noise floor, so there is nothing to gain"
            )
        elif self.spent(_FEATURES_SHARE):
            self.not_tried = "the budget ended before them"
        return self.not_tried is None

    def features(self, space: Space) -> Space:
        """The space with the features that are admitted."""
        apart = interval_ns(self.search.simulator.work) > 0
        waiting = [
            one.name
            for one in FEATURES.values()
            if one.link in (None, space.link) and (apart or not one.several)
        ]
        before = self.search.held_out_error(space)
        while waiting and not self.spent(_FEATURES_SHARE):
            found: dict[str, tuple[float, Space]] = {}
            for name in waiting:
                if self.spent(_FEATURES_SHARE):
                    break
                self.tell(f"feature {name}")
                wider = space.with_feature(name)
                self.search.begin(wider, _FEATURE_FIRST, self.search.best(space))
                for _ in range(_FEATURE_STEPS):
                    self.search.step(wider, _STEP)
                found[name] = (self.search.held_out_error(wider), wider)
            if not found:
                break
            best = min(found, key=lambda name: found[name][0])
            after, wider = found[best]
            admitted = after < before * (1 - ADMITTED)
            for name, (error, _) in found.items():
                self.trials.append(Trial(name, before, error, admitted and name == best))
            if not admitted:
                break
            waiting = [name for name in waiting if name != best]
            before, space = after, wider
        if self.spent(_FEATURES_SHARE) and waiting:
            tried = {one.feature for one in self.trials}
            rest = [name for name in waiting if name not in tried]
            self.not_tried = f"the budget ended before {', '.join(rest)}" if rest else None
        return space

    def race(self, space: Space) -> Path:
        """The best of several paths that are expected to be about as good, on the same seeds: the processes
        are uncertain by more than these differ."""
        search = self.search
        paths = [search.best(space), *(path for path, _ in search.held_out(space).values())]
        paths = list({json.dumps(path.said()): path for path in paths}.values())
        costs = search.objective.of(search.expected(space, paths))
        order = [0, *(int(at) for at in np.argsort(costs, kind="stable") if at)]
        paths = [paths[at] for at in order[:_RACERS]]
        rows = np.zeros((len(paths), len(search.targets.all)))
        for number, (left, runs) in enumerate(_ROUNDS):
            paths, rows = paths[:left], rows[:left]
            found = self.check([Wanted(one, self.schemes, runs, self.seed("race", number)) for one in paths])
            new = np.array([search.targets.row(one.runs(search.metrics)) for one in found])
            before = sum(runs for _, runs in _ROUNDS[:number])
            rows = (rows * before + new * runs) / (before + runs)
            best = np.argsort(search.objective.of(rows), kind="stable")
            paths, rows = [paths[int(at)] for at in best], rows[best]
        return paths[0]

    def simplest(self, best: Path) -> tuple[Path, float | None]:
        """The path, or it without loss or with a queue in the other unit where that does as well or better
        on the same seeds, and its error on them."""
        choices = [best]
        if 0 < best["loss"] < 2e-3:
            choices.append(replace(best, values={**best.values, LOSS.name: 0.0}))
        choices.append(replace(best, unit=BYTES if best.unit == PACKETS else PACKETS))
        wanted = [Wanted(path, self.schemes, _PAIRS, self.seed("pairs", 0)) for path in choices]
        targets = self.search.targets
        found = [one.runs(self.search.metrics) for one in self.check(wanted)]
        costs = [
            float(cost) for cost in self.search.objective.of(np.array([targets.row(one) for one in found]))
        ]
        at = 0
        if len(choices) == 3 and costs[1] <= _SIMPLER * costs[0]:
            at = 1
        # Schemes with packets of 1500 bytes alone can't tell the two units apart.
        if costs[-1] < 0.9 * costs[at]:
            at = len(choices) - 1
        return choices[at], targets.mean_error(targets.errors(targets.means(found[at])))


def _settled(best: Sequence[Path]) -> bool:
    """True if the last of the best paths, one after each step, are the same for all that matters."""
    if len(best) <= _STILL:
        return False
    for name, share in _SAME.items():
        values = [path[name] for path in best[-_STILL:]]
        if max(values) - min(values) > share * max(values):
            return False
    return True
