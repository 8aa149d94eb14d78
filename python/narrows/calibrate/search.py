"""The choice of the path to simulate next.

Some paths of a Latin hypercube are simulated first. Then, again and again, Gaussian processes learn from all
results so far, and a few paths are chosen: the one at which the expected results come nearest to the table,
and others that would be the best if the results were as one possible draw from the processes has them
(Thompson sampling). Every evaluation has a seed of its own, so that the processes average over chance. All
choices follow from the seed and the results, never from time or the number of threads.
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

#: Candidates far and near, of which the most promising are drawn from.
_FAR, _NEAR, _PROMISING = 800, 800, 100
_STEPS = (0.15, 0.05, 0.02)
#: Rounds of refinement of a minimum, and candidates of each.
_ROUNDS, _EACH = 8, 120
#: Seeds of a search: this many evaluations before those of the next seed begin.
SEEDS = 1_000_000


class Budget:
    """How much may be spent on the search: evaluations, or seconds of simulating in all sessions."""

    def __init__(self, evaluations: int | None, seconds: float | None) -> None:
        self.evaluations, self.seconds = evaluations, seconds

    def used_share(self, search: Search) -> float:
        """The share that is used up."""
        if self.seconds is not None:
            # Thinking between evaluations counts too, of this session.
            return (search.simulator.spent + search.thought) / self.seconds
        return len(search.history) / max(1, self.evaluations or 1)


@dataclass(frozen=True)
class Seen:
    """The results of all schemes on a path, in the order of the targets."""

    path: Path
    row: Floats


class Search:
    """A search with what it has seen so far."""

    def __init__(
        self,
        simulator: Simulator,
        targets: Targets,
        metrics: dict[str, str],
        *,
        seed: int,
        runs: int,
        budget: Budget,
        told: Callable[[], object] = lambda: None,
    ) -> None:
        self.simulator, self.targets, self.metrics = simulator, targets, metrics
        self.seed, self.runs, self.budget, self.told = seed, runs, budget, told
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
        self.told()

    def begin(self, space: Space, count: int, around: Path | None = None) -> None:
        """Simulates paths that are spread over a space; around a path only those near it in what it has."""
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
        """The part of a space around its best path, or another, with `count` evaluations spread over it:
        where values are nearly linear in the parameters, a fit averages over the chance of all of them."""
        inner = space.around(centre or self.best(space), width, part)
        self.begin(inner, count)
        return inner

    def _judge(self, space: Space) -> None:
        """Takes the misfit at the best path so far into the objective, and widens ranges at its edge."""
        best = self.best(space)
        self.objective = self.objective.after(
            self.expect(space, [best])[0], self.surrogate(space).chance() * math.sqrt(self.runs)
        )
        if space.widen(best):
            self._learnt.clear()

    # -- what is known ---------------------------------------------------------------------------

    def list_seen(self, space: Space) -> list[Seen]:
        """The evaluations that are of a space."""
        return [seen for seen in self.history if space.holds(seen.path)]

    def surrogate(self, space: Space) -> Surrogate:
        """The processes of a space, with everything that is known."""
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
        """The path on which the chosen targets (all, if none are chosen) are expected to be met best."""
        surrogate = self.surrogate(space)
        random = self._random("best", space)
        candidates = self._candidates(space, surrogate, random, chosen)
        costs = self.objective.of(surrogate.means(candidates), chosen)
        best = self._refine(space, surrogate, candidates[int(np.argmin(costs))], chosen, random)
        return space.path(best)

    def cost(self, space: Space) -> float:
        """The objective that is expected on the best path of a space."""
        return float(self.objective.of(self.expect(space, [self.best(space)]))[0])

    def pool(self, space: Space) -> Floats:
        """Many candidates, for questions about all of a space."""
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
        """The mean of that over schemes."""
        errors = [error for _, error in self.hold_out(space).values() if error is not None]
        return fmean(errors) if errors else 0.0

    def relative(self, rows: Floats) -> Floats:
        """|ours / theirs - 1| of expected results; NaN where a target enters no error."""
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
        # Some move along a few axes only.
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
