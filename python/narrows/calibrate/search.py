"""The choice of the path to simulate next.

First, some paths of a Latin hypercube are simulated. Then, repeatedly, Gaussian processes learn from all
results so far, and a few paths are chosen: the one whose expected results are closest to the table, and
others that would be the best under one possible draw from the processes (Thompson sampling). Every evaluation
has a separate seed, so that the processes average over randomness. All choices follow from the seed and the
results, never from time or the number of threads.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from narrows.calibrate.paths import Path, Space
from narrows.calibrate.simulate import Simulator, Wanted
from narrows.calibrate.surrogate import Floats, Surrogate
from narrows.calibrate.targets import Objective, Targets
from narrows.sweep import designs

#: Distant and near candidates; the most promising of them are sampled.
_FAR, _NEAR, _PROMISING = 800, 800, 100
_STEPS = (0.15, 0.05, 0.02)
#: Rounds of refinement of a minimum, and candidates in each.
_ROUNDS, _EACH = 8, 120
#: Seeds of a search are this many evaluations apart.
SEEDS = 1_000_000


class Budget:
    """The budget of the search: evaluations, or seconds of simulation in all sessions."""

    def __init__(self, evaluations: int | None, seconds: float | None) -> None:
        self.evaluations, self.seconds = evaluations, seconds

    def measure_share(self, search: Search) -> float:
        """The used share."""
        if self.seconds is not None:
            # Time spent choosing paths in this session counts too.
            return (search.simulator.spent + search.thought) / self.seconds
        return len(search.history) / max(1, self.evaluations or 1)


@dataclass(frozen=True)
class Seen:
    """The results of all schemes on a path, in the order of the targets."""

    path: Path
    row: Floats


class Search:
    """A search with its results so far."""

    def __init__(
        self,
        simulator: Simulator,
        targets: Targets,
        metrics: dict[str, str],
        *,
        seed: int,
        runs: int,
        budget: Budget,
        report: Callable[[], object] = lambda: None,
    ) -> None:
        self.simulator, self.targets, self.metrics = simulator, targets, metrics
        self.seed, self.runs, self.budget, self.report = seed, runs, budget, report
        self.history: list[Seen] = []
        self.objective = Objective.first(targets)
        self.thought = 0.0
        self._learnt: dict[tuple[object, ...], tuple[int, Surrogate]] = {}

    # -- evaluations -----------------------------------------------------------------------------

    def simulate(self, paths: Sequence[Path]) -> None:
        """Simulates all schemes on some paths."""
        first = self.seed * SEEDS + len(self.history)
        wanted = [
            Wanted(path, tuple(self.simulator.entries), self.runs, first + at)
            for at, path in enumerate(paths)
        ]
        for evaluation in self.simulator.evaluate(wanted):
            self.history.append(Seen(evaluation.path, self.targets.row(evaluation.runs(self.metrics))))
        self.report()

    def begin(self, space: Space, count: int, around: Path | None = None) -> None:
        """Simulates paths that are spread over a space, or over the vicinity of a path."""
        keys = [f"{space.link}/{name}/{len(self.history)}" for name in space.names]
        points = np.array(list(designs.latin_hypercube(keys, self.seed, count)))
        if around is not None:
            centre = np.array(space.shares(around))
            has = {name for name in around.values if name in space.names}
            for at, name in enumerate(space.names):
                if name in has:
                    points[:, at] = centre[at] + 0.2 * (points[:, at] - 0.5)
        self.simulate([space.path(point) for point in points])

    def step(self, space: Space, count: int) -> None:
        """Simulates the most promising paths of a space."""
        began = time.monotonic()
        surrogate = self.surrogate(space)
        random = self._random("step", space)
        candidates = self._candidates(space, surrogate, random)
        costs = self.objective.of(surrogate.means(candidates))
        order = np.argsort(costs, kind="stable")[:_PROMISING]
        chosen = [self._refine(space, surrogate, candidates[order[0]], None, random)]
        promising = candidates[order]
        for drawn in surrogate.samples(promising, max(0, count - 1), random):
            chosen.append(promising[int(np.argmin(self.objective.of(drawn)))])
        self.thought += time.monotonic() - began
        self.simulate([space.path(point) for point in chosen[:count]])
        self._judge(space)

    def close_in(
        self, space: Space, width: float, count: int, part: str, centre: Path | None = None
    ) -> Space:
        """The part of a space around its best path, or another one, with `count` evaluations spread over it:
        where values are nearly linear in the parameters, a fit averages over the randomness of all of them.
        """
        inner = space.around(centre or self.best(space), width, part)
        self.begin(inner, count)
        return inner

    def _judge(self, space: Space) -> None:
        """Updates the objective with the misfit at the best path so far, and widens ranges at whose edge it
        lies.
        """
        best = self.best(space)
        self.objective = self.objective.after(
            self.expect(space, [best])[0], self.surrogate(space).chance() * math.sqrt(self.runs)
        )
        if space.widen(best):
            self._learnt.clear()

    # -- what is known ---------------------------------------------------------------------------

    def list_seen(self, space: Space) -> list[Seen]:
        """The evaluations that belong to a space."""
        return [seen for seen in self.history if space.holds(seen.path)]

    def surrogate(self, space: Space) -> Surrogate:
        """The processes of a space, trained on all results."""
        key = (space.link, space.unit, space.features, space.part)
        known, surrogate = self._learnt.get(key, (0, None))
        seen = self.list_seen(space)
        if surrogate is None or known != len(seen):
            surrogate = surrogate or Surrogate(len(space.names), len(self.targets.all))
            points = np.array([space.shares(item.path) for item in seen])
            surrogate.learn(points, np.array([item.row for item in seen]))
            self._learnt[key] = (len(seen), surrogate)
        return surrogate

    def expect(self, space: Space, paths: Sequence[Path]) -> Floats:
        """The expectation of the processes on some paths (paths x targets)."""
        return self.surrogate(space).means(np.array([space.shares(path) for path in paths]))

    def best(self, space: Space, chosen: NDArray[np.bool_] | None = None) -> Path:
        """The path that is expected to meet the chosen targets best (all targets by default)."""
        surrogate = self.surrogate(space)
        random = self._random("best", space)
        candidates = self._candidates(space, surrogate, random, chosen)
        costs = self.objective.of(surrogate.means(candidates), chosen)
        best = self._refine(space, surrogate, candidates[int(np.argmin(costs))], chosen, random)
        return space.path(best)

    def cost(self, space: Space) -> float:
        """The expected objective of the best path of a space."""
        return float(self.objective.of(self.expect(space, [self.best(space)]))[0])

    def pool(self, space: Space) -> Floats:
        """Many candidates, to represent a whole space."""
        return self._candidates(space, self.surrogate(space), self._random("pool", space))

    def hold_out(self, space: Space) -> dict[str, tuple[Path, float | None]]:
        """For each scheme, the path that fits the others best, and its expected error there."""
        result = {}
        for scheme in self.targets.schemes:
            mask = self.targets.mask([scheme])
            path = self.best(space, ~mask)
            expected = self.expect(space, [path])[0]
            errors = self.relative(expected)[mask]
            known = errors[np.isfinite(errors)]
            result[scheme] = (path, float(np.mean(known)) if len(known) else None)
        return result

    def error_of_held_out(self, space: Space) -> float:
        """The mean of these errors over schemes."""
        errors = [error for _, error in self.hold_out(space).values() if error is not None]
        return fmean(errors) if errors else 0.0

    def relative(self, rows: Floats) -> Floats:
        """|ours / theirs - 1| of expected results; NaN for targets that enter no error."""
        used = np.array([target.relative for target in self.targets.all])
        return np.where(used, np.abs(np.expm1(rows - self.targets.theirs)), np.nan)

    # -- candidates ------------------------------------------------------------------------------

    def _random(self, *words: object) -> np.random.Generator:
        parts = [self.seed, len(self.history)]
        parts += [
            ord(letter) for word in words for letter in (word.link if isinstance(word, Space) else str(word))
        ]
        return np.random.Generator(np.random.PCG64(np.random.SeedSequence(parts)))

    def _candidates(
        self,
        space: Space,
        surrogate: Surrogate,
        random: np.random.Generator,
        chosen: NDArray[np.bool_] | None = None,
    ) -> Floats:
        axes = len(space.names)
        seen = np.array([space.shares(item.path) for item in self.list_seen(space)])
        costs = self.objective.of(surrogate.means(seen), chosen)
        centres = seen[np.argsort(costs, kind="stable")[:6]]
        near = centres[random.integers(len(centres), size=_NEAR)]
        # Some candidates move along a few axes only.
        moves = random.standard_normal((_NEAR, axes)) * random.choice(_STEPS, size=(_NEAR, 1))
        moves *= random.random((_NEAR, axes)) < random.choice([0.4, 1.0], size=(_NEAR, 1))
        values = np.concatenate([random.random((_FAR, axes)), near + moves, centres])
        return np.asarray(np.clip(values, 0.0, 1.0))

    def _refine(
        self,
        space: Space,
        surrogate: Surrogate,
        start: Floats,
        chosen: NDArray[np.bool_] | None,
        random: np.random.Generator,
    ) -> Floats:
        best, width = start, 0.05
        cost = float(self.objective.of(surrogate.means(best[None, :]), chosen)[0])
        for _ in range(_ROUNDS):
            moves = random.standard_normal((_EACH, len(space.names))) * width
            moves *= random.random(moves.shape) < 0.6
            points = np.clip(best + moves, 0.0, 1.0)
            costs = self.objective.of(surrogate.means(points), chosen)
            at = int(np.argmin(costs))
            if costs[at] < cost:
                best, cost = points[at], float(costs[at])
            else:
                width /= 2
        return best
