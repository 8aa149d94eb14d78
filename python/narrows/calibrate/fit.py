"""A whole calibration, from a table to an examined path.

1. Pantheon's path with a constant and with a Poisson link, and the neighbourhood of the best path, ever
   closer. Where neither is as good as the noise of the table allows, a third start is a Poisson link with
   grants and jitter together, a cellular link. A kind of link is left once it is clearly worse, and the
   others are compared on the same seeds. Then further away along each parameter, by simulation.
2. If that is not as good as the noise of the table allows: features one by one. One is admitted if the error
   of schemes that were left out falls by it, and all of them if simulations are nearer to the table for it.
3. The neighbourhood of the best path, with them or without; paths of round values near it; no loss at all
   where that does as well.
4. Each scheme left out and the path fitted again without it.
5. The path on seeds that the fit has not seen.
6. For each scheme: is there a path on which the others fit and this one too?
7. If the path is not as good as the noise of the table allows: at which rate would each scheme fit?
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from narrows.calibrate.choice import PAIRS, Choice
from narrows.calibrate.examine import BESIDE, Examination, Explained, LeftOut, OwnRate
from narrows.calibrate.paths import (
    DELAY,
    FEATURES,
    LINKS,
    LOSS,
    OFFSET,
    POISSON,
    QUEUE,
    RATE,
    TRACE,
    Path,
    Space,
    TraceFile,
    interval_ns,
)
from narrows.calibrate.search import Search
from narrows.calibrate.simulate import Evaluation
from narrows.calibrate.start import bounds, ranges
from narrows.calibrate.surrogate import Floats

#: Evaluations at the start for each kind of link, and evaluations per step.
_FIRST, _STEP = 10, 4
#: Steps with both kinds of link.
_BOTH = 3
#: Further steps, the share of the budget at which they end, and the ratio of objectives at which one kind is
#: clearly better than the other: a kind is judged by few evaluations, each of a single run.
_WIDE, _WIDE_SHARE, _CLEAR = 6, 0.55, 0.5
#: The features of a cellular link: it sends what a grant allows, at times that jitter.
_CELLULAR = ("grants", "jitter")
#: Share of the budget after which this start is left out.
_CELLULAR_SHARE = 0.3
#: Share of the budget after which no more features are tried.
_FEATURES_SHARE = 0.8
#: Widths of the neighbourhoods, each as a share of the previous one: the first of each kind of link, the one
#: in which features are compared, and the last. Also the steps in each.
_FIRST_WIDTH, _NEXT_WIDTH, _LAST_WIDTH, _CLOSE_STEPS = 0.3, 0.4, 0.3, 2
#: Width of the neighbourhood in which schemes are left out and explained.
_BESIDE_WIDTH = 0.3
#: Parameters of looking around: steps along each parameter as shares of the ranges, how many paths remain for
#: how many runs, the share of the objective that counts as better, and how often a search may move elsewhere.
_AROUND, _LOOKS, _BETTER, _ELSEWHERE = (0.05, 0.12, 0.25), ((3, 1), (1, 6)), 0.85, 2
#: How often a neighbourhood moves when its best path is not in the middle, and the extent of the middle.
_MOVES, _MIDDLE = 2, (0.2, 0.8)
#: A search has converged when this many best paths differ by no more than these shares.
_STILL = 6
_SAME = {RATE: 0.004, DELAY: 0.006, QUEUE: 0.02, LOSS: 0.06}
#: Evaluations spread over a feature, and the steps after them; the number of features compared by simulation.
_FEATURE_FIRST, _FEATURE_STEPS, _FINALISTS = 8, 3, 3
#: A feature must reduce the error of left-out schemes by at least this share.
ADMITTED = 0.03
#: Below this multiple of the noise floor a feature can gain nothing.
GOOD_ENOUGH = 1.5


@dataclass(frozen=True)
class Trial:
    """A feature that was tried: the error of left-out schemes without and with it."""

    feature: str
    before: float
    after: float
    admitted: bool


@dataclass
class Fit:
    """The result of a calibration."""

    path: Path
    fresh: Evaluation
    fitted: float | None
    misfit: dict[str, float]
    trials: list[Trial] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)
    explained: list[Explained] = field(default_factory=list)
    #: Empty if the path fits well enough.
    own_rates: list[OwnRate] = field(default_factory=list)
    #: The best objective of each kind of link.
    links: dict[str, float] = field(default_factory=dict)
    #: The schemes that are off the path.
    off_path: set[str] = field(default_factory=set)
    not_tried: str | None = None
    within_budget: bool = True


def fit(
    search: Search, floor: float | None, tell: Callable[[str], object], trace: TraceFile | None = None
) -> Fit:
    """Calibrates: see the head of this module. `floor` is the error due to randomness alone; with a `trace`
    the link follows it.
    """
    return _Fitting(search, floor, tell, trace).run()


class _Fitting:
    def __init__(
        self, search: Search, floor: float | None, tell: Callable[[str], object], trace: TraceFile | None
    ) -> None:
        self.search, self.floor, self.tell, self.trace = search, floor, tell, trace
        self.trials: list[Trial] = []
        self.links: dict[str, float] = {}
        self.not_tried: str | None = None
        #: The number of neighbourhoods so far.
        self.parts = 0
        self.choice = Choice(search)
        #: Paths that improved on the best one of a neighbourhood.
        self.others: list[Path] = []

    def run(self) -> Fit:
        wides = self.basic()
        inners = [self.close_in(wide, _FIRST_WIDTH) for wide in wides]
        at = self.better(inners) if len(inners) > 1 else 0
        wide, inner = wides[at], inners[at]
        inner = self.look_around(wide, self.close_in(inner, _NEXT_WIDTH))
        wider = self.features(wide) if self.features_wanted(inner) else wide
        if wider.features:
            more = self.close_in(self.close_in(wider, _FIRST_WIDTH), _NEXT_WIDTH)
            inner = self.worth_it(inner, self.look_around(wider, more))
        inner = self.close_in(inner, _LAST_WIDTH)
        self.tell("closing in")
        best = [self.search.best(inner)]
        while not self.is_spent(1.0) and not _is_settled(best):
            self.search.step(inner, _STEP)
            best.append(self.search.best(inner))
        self.tell("comparing the best")
        path = self.choice.race(inner, self.others)
        path = self.choice.round_off(path, wider if inner.features else wide)
        self.trials = [
            replace(trial, admitted=trial.admitted and trial.feature in path.features)
            for trial in self.trials
        ]
        path, fitted = self.choice.simplest(path)
        self.tell("fresh seeds")
        examination = Examination(self.search, self.choice.seed, self.choice.check)
        fresh = examination.fresh(path)
        made = Fit(path, fresh, fitted, dict(self.search.objective.misfit), self.trials)
        made.links, made.not_tried = self.links, self.not_tried
        made.off_path = self.off_path(fresh)
        made.within_budget = not self.is_spent(1.0)
        if len(self.schemes) > 1:
            self.tell("leaving one out")
            beside = self.beside(path, wider if path.features else wide)
            made.left_out = examination.fit_left_out(beside)
            made.explained = examination.explain_schemes(beside, fresh)
            on_path = [name for name in self.search.targets.schemes if name not in made.off_path]
            if made.off_path or not self.good_enough(examination.error(on_path, fresh)):
                self.tell("rates of their own")
                made.own_rates = examination.own_rates(path)
        return made

    def off_path(self, evaluation: Evaluation) -> set[str]:
        """The schemes that are off the path of an evaluation."""
        row = self.search.targets.row(evaluation.runs(self.search.metrics))
        return self.search.objective.off_path(row)

    def good_enough(self, error: float | None) -> bool:
        """True if an error is close to the noise of the table, so that nothing remains to be explained."""
        return error is None or (self.floor is not None and error <= GOOD_ENOUGH * self.floor + BESIDE)

    def look_around(self, wide: Space, inner: Space) -> Space:
        """Continues elsewhere while a better path exists that differs in one parameter. Processes that were
        trained near a path, where values may change in steps, are overconfident further away.
        """
        for _ in range(_ELSEWHERE):
            self.tell("looking around")
            other = self.elsewhere(wide, self.search.best(inner))
            if other is None:
                break
            self.others.append(other)
            if self.is_spent(1.0):
                break
            inner = self.close_in(self.close_in(wide, _FIRST_WIDTH, other), _NEXT_WIDTH)
        return inner

    def elsewhere(self, space: Space, path: Path) -> Path | None:
        """A better path that differs in one parameter, found by simulation; None if there is none."""
        middle = space.shares(path)
        paths = [path]
        for at in range(len(middle)):
            for step in _AROUND:
                for place in (middle[at] - step, middle[at] + step):
                    paths.append(space.path([*middle[:at], place, *middle[at + 1 :]]))
        for number, (left, runs) in enumerate(_LOOKS):
            paths = list({json.dumps(path.words()): path for path in paths}.values())
            costs = self.choice.costs(paths, runs, self.choice.seed("elsewhere", number))
            order = [int(at) for at in np.argsort(costs, kind="stable")]
            better = [at for at in order if at and costs[at] < _BETTER * costs[0]]
            paths = [paths[0], *(paths[at] for at in better[:left])]
        return paths[1] if len(paths) > 1 else None

    def close_in(self, space: Space, width: float, centre: Path | None = None) -> Space:
        """Searches the neighbourhood of the best path, or of another, with this share of the ranges. The
        neighbourhood moves while the best path is near its edge.
        """
        self.tell("closing in")
        count = 4 + 2 * len(space.names)
        for _ in range(_MOVES + 1):
            if self.is_spent(1.0):
                break
            self.parts += 1
            space = self.search.close_in(space, width, count, f"part {self.parts}", centre)
            for _step in range(_CLOSE_STEPS):
                if not self.is_spent(1.0):
                    self.search.step(space, _STEP)
            if not self.off_middle(space):
                break
            width, count, centre = 1.0, 2 + len(space.names), None
        return space

    def off_middle(self, space: Space) -> bool:
        """True if the best path of a neighbourhood is near its edge, so that a better path may lie
        outside.
        """
        low, high = _MIDDLE
        path = self.search.best(space)
        moved = space.around(path, 1.0, space.part)
        return any(
            not low <= share <= high and space.ranges[name] != moved.ranges[name]
            for name, share in zip(space.names, space.shares(path), strict=True)
        )

    @property
    def schemes(self) -> tuple[str, ...]:
        return tuple(self.search.simulator.entries)

    def is_spent(self, share: float) -> bool:
        return self.search.budget.measure_share(self.search) >= share

    # -- the path --------------------------------------------------------------------------------

    def basic(self) -> list[Space]:
        """The kinds of link that the table may come from; a single one if that is clear."""
        self.tell("basic path")
        links = LINKS if self.trace is None else (TRACE,)
        least, most = bounds(self.search.targets)
        # Flows start in their planned order.
        most[OFFSET.name] = interval_ns(self.search.simulator.work) / 2
        limits = ranges(self.search.targets)
        spaces = [Space(link, dict(limits), trace=self.trace, most=most, least=least) for link in links]
        for space in spaces:
            self.search.begin(space, _FIRST)
        for number in range(_BOTH + _WIDE):
            if number == _BOTH and (more := self.cellular(spaces)):
                spaces = [*spaces, more]
            if number >= _BOTH:
                if self.is_spent(_WIDE_SHARE):
                    break
                spaces = self.clearly(spaces)
            for space in spaces:
                self.search.step(space, _STEP)
        return self.clearly(spaces)

    def cellular(self, spaces: Sequence[Space]) -> Space | None:
        """A Poisson link with grants and jitter as another start; None if nothing can be gained by it."""
        poisson = next((space for space in spaces if space.link == POISSON), None)
        best = min(spaces, key=self.search.cost)
        if poisson is None or len(self.schemes) < 3 or self.is_spent(_CELLULAR_SHARE):
            return None
        if self.good_enough(self.predict_error(best)):
            return None
        self.tell("cellular link")
        space = poisson
        for name in _CELLULAR:
            space = space.with_feature(name)
        self.search.begin(space, _FIRST)
        for _ in range(_BOTH):
            self.search.step(space, _STEP)
        return space

    def predict_error(self, space: Space) -> float:
        """The expected error of the best path of a space, over schemes that are on it."""
        row = self.search.expect(space, [self.search.best(space)])
        off = self.search.targets.mask(sorted(self.search.objective.off_path(row[0])))
        return float(np.nanmean(np.where(off, np.nan, self.search.relative(row)[0])))

    def clearly(self, spaces: list[Space]) -> list[Space]:
        """The spaces that are not clearly worse than the best one; records the objective of each."""
        self.links |= {space.kind: self.search.cost(space) for space in spaces}
        least = min(self.links[space.kind] for space in spaces)
        return [space for space in spaces if _CLEAR * self.links[space.kind] <= least]

    def better(self, spaces: Sequence[Space]) -> int:
        """The better kind of link, decided by the best path of each on the same seeds."""
        self.tell("comparing links")
        paths = [self.search.best(space) for space in spaces]
        costs = self.choice.costs(paths, PAIRS, self.choice.seed("links", 0))
        self.links |= {space.kind: float(cost) for space, cost in zip(spaces, costs, strict=True)}
        return int(np.argmin(costs))

    def features_wanted(self, space: Space) -> bool:
        """True if features can gain anything; records the reason if not."""
        error = self.predict_error(space)
        if len(self.schemes) < 3:
            self.not_tried = "an error of schemes left out needs three schemes"
        elif self.good_enough(error):
            self.not_tried = (
                f"the basic path is within {GOOD_ENOUGH:g} times the noise floor, so there is nothing to gain"
            )
        elif self.is_spent(_FEATURES_SHARE):
            self.not_tried = "the budget ended before them"
        return self.not_tried is None

    def features(self, space: Space) -> Space:
        """The space with the admitted features."""
        apart = interval_ns(self.search.simulator.work) > 0
        waiting = [
            feature.name
            for feature in FEATURES.values()
            if feature.link in (None, space.link)
            and (apart or not feature.several)
            and feature.name not in space.features
        ]
        before = self.search.error_of_held_out(space)
        while waiting and not self.is_spent(_FEATURES_SHARE):
            result: dict[str, tuple[float, Space]] = {}
            for name in waiting:
                if self.is_spent(_FEATURES_SHARE):
                    break
                self.tell(f"feature {name}")
                wider = space.with_feature(name)
                self.search.begin(wider, _FEATURE_FIRST, self.search.best(space))
                for _ in range(_FEATURE_STEPS):
                    self.search.step(wider, _STEP)
                result[name] = (self.search.error_of_held_out(wider), wider)
            if not result:
                break
            best = self.best_feature(space, before, result)
            for name, (error, _) in result.items():
                self.trials.append(Trial(name, before, error, name == best))
            if best is None:
                break
            waiting = [name for name in waiting if name != best]
            before, space = result[best]
        if self.is_spent(_FEATURES_SHARE) and waiting:
            tried = {trial.feature for trial in self.trials}
            rest = [name for name in waiting if name not in tried]
            self.not_tried = f"the budget ended before {', '.join(rest)}" if rest else None
        return space

    def best_feature(
        self, space: Space, before: float, entry: Mapping[str, tuple[float, Space]]
    ) -> str | None:
        """Among the features that are expected to reduce the error of left-out schemes, the one whose best
        path is closest to the table in simulation; None if none is closer than the path without features.
        """
        order = sorted(entry, key=lambda name: entry[name][0])
        order = [name for name in order if entry[name][0] < before * (1 - ADMITTED)][:_FINALISTS]
        if not order:
            return None
        self.tell("comparing features")
        errors = self.simulate([space, *(entry[name][1] for name in order)], 1 + len(self.trials))
        at = int(np.argmin(errors))
        return order[at - 1] if at else None

    def simulate(self, spaces: Sequence[Space], number: int) -> Floats:
        """The errors of the best paths of several spaces on the same seeds."""
        paths = [self.search.best(space) for space in spaces]
        rows = self.choice.rows(paths, PAIRS, self.choice.seed("features", number))
        return np.asarray(np.nanmean(self.search.relative(rows), axis=1))

    def worth_it(self, without: Space, more: Space) -> Space:
        """The neighbourhood with features, or without them if its best path is about as good in simulation:
        features were compared only by expectations.
        """
        self.tell("comparing with and without features")
        less, with_them = self.simulate([without, more], 0)
        if with_them < less * (1 - ADMITTED):
            return more
        self.trials = [replace(trial, admitted=False) for trial in self.trials]
        self.others = [path for path in self.others if not path.features]
        return without

    def beside(self, path: Path, space: Space) -> Space:
        """A neighbourhood of a path that is wide enough to compare it with alternatives."""
        result = space.around(path, _BESIDE_WIDTH, "beside the path")
        self.search.begin(result, 4 + 2 * len(result.names))
        return result


def _is_settled(best: Sequence[Path]) -> bool:
    """True if the last best paths, one after each step, agree in everything that matters."""
    if len(best) <= _STILL:
        return False
    for parameter, share in _SAME.items():
        values = [path[parameter] for path in best[-_STILL:]]
        if max(values) - min(values) > share * max(values):
            return False
    return True
