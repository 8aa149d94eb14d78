"""The choice between paths that are about equal: simulations on the same seeds, outside the budget of the
search.

The processes of a search are less certain than the differences between its best paths.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from narrows.calibrate import round_paths
from narrows.calibrate.paths import BYTES, LOSS, PACKETS, Path, Space
from narrows.calibrate.search import SEEDS, Search
from narrows.calibrate.simulate import Evaluation, Wanted
from narrows.calibrate.surrogate import Floats

#: Paths to compare at the end, and how many remain for how many further runs.
_RACERS, _ROUNDS = 10, ((10, 3), (3, 9))
#: Round paths to try, of each of three kinds; the number compared with the best path, and the share of its
#: objective at which a round path is clearly closer to the table.
_ROUND, _ROUNDEST, _CLEARLY = 40, 6, 0.7
#: Runs in which simpler paths are compared with the best one, and how much worse they may be.
PAIRS, _SIMPLER = 6, 1.15


class Choice:
    """Compares paths of a search."""

    def __init__(self, search: Search) -> None:
        self.search = search

    @property
    def schemes(self) -> tuple[str, ...]:
        """The schemes by their published names."""
        return tuple(self.search.simulator.entries)

    def seed(self, purpose: str, number: int) -> int:
        """The seed of a simulation for some purpose."""
        # These seeds lie beyond those of the search, which has fewer evaluations.
        base = {
            "fresh": 900_000,
            "left out": 910_000,
            "explained": 920_000,
            "pairs": 930_000,
            "race": 940_000,
            "links": 950_000,
            "rates": 960_000,
            "own rate": 970_000,
            "elsewhere": 980_000,
            "features": 990_000,
            "round": 890_000,
        }
        return self.search.seed * SEEDS + base[purpose] + number

    def check(self, wanted: Sequence[Wanted]) -> list[Evaluation]:
        """Simulates outside the search's budget."""
        evaluations = self.search.simulator.evaluate(wanted)
        self.search.report()
        return evaluations

    def rows(self, paths: Sequence[Path], runs: int, seed: int) -> Floats:
        """The results of some paths on the same seeds."""
        evaluations = self.check([Wanted(path, self.schemes, runs, seed) for path in paths])
        return np.array(
            [self.search.targets.row(evaluation.runs(self.search.metrics)) for evaluation in evaluations]
        )

    def costs(self, paths: Sequence[Path], runs: int, seed: int) -> Floats:
        """The objective of some paths on the same seeds."""
        return self.search.objective.of(self.rows(paths, runs, seed))

    def race(self, space: Space, others: Sequence[Path]) -> Path:
        """The best of several paths that are expected to be about equal, on the same seeds: the uncertainty
        of the processes exceeds the differences between the paths.
        """
        search = self.search
        paths = [search.best(space), *others, *(path for path, _ in search.hold_out(space).values())]
        paths = list({json.dumps(path.words()): path for path in paths}.values())
        costs = search.objective.of(search.expect(space, paths))
        sure = 1 + len(others)
        order = [*range(sure), *(int(at) for at in np.argsort(costs, kind="stable") if at >= sure)]
        paths = [paths[at] for at in order[:_RACERS]]
        rows = np.zeros((len(paths), len(search.targets.all)))
        for number, (left, runs) in enumerate(_ROUNDS):
            paths, rows = paths[:left], rows[:left]
            new = self.rows(paths, runs, self.seed("race", number))
            before = sum(runs for _, runs in _ROUNDS[:number])
            rows = (rows * before + new * runs) / (before + runs)
            best = np.argsort(search.objective.of(rows), kind="stable")
            paths, rows = [paths[int(at)] for at in best], rows[best]
        return paths[0]

    def round_off(self, best: Path, space: Space) -> Path:
        """The path, or a path of round values near it that is clearly closer to the table on the
        same seeds.
        """
        paths = round_paths.near(best)
        order = np.argsort(self.search.objective.of(self.search.expect(space, paths)), kind="stable")
        # The processes are uncertain, so both rounder and closer paths are candidates.
        paths = round_paths.likeliest([paths[at] for at in order], best, _ROUND)
        costs = self.costs(paths, 1, self.seed("round", 0))
        paths = [best, *(paths[at] for at in np.argsort(costs, kind="stable")[:_ROUNDEST])]
        costs = self.costs(paths, _ROUNDS[-1][1], self.seed("round", 1))
        at = int(np.argmin(costs))
        if costs[at] >= _CLEARLY * costs[0]:
            return best
        return paths[at]

    def simplest(self, best: Path) -> tuple[Path, float | None]:
        """The path, or its variant without loss or with a queue in the other unit if that does as well or
        better on the same seeds, and its error on them.
        """
        choices = [best]
        if 0 < best[LOSS] < round_paths.NO_LOSS:
            choices.append(replace(best, values={**best.values, LOSS.name: 0.0}))
        choices.append(replace(best, unit=BYTES if best.unit == PACKETS else PACKETS))
        wanted = [Wanted(path, self.schemes, PAIRS, self.seed("pairs", 0)) for path in choices]
        targets = self.search.targets
        entries = [evaluation.runs(self.search.metrics) for evaluation in self.check(wanted)]
        costs = [
            float(cost)
            for cost in self.search.objective.of(np.array([targets.row(entry) for entry in entries]))
        ]
        at = 0
        if len(choices) == 3 and costs[1] <= _SIMPLER * costs[0]:
            at = 1
        # Schemes that send only packets of 1500 bytes cannot distinguish the two units.
        if costs[-1] < 0.9 * costs[at]:
            at = len(choices) - 1
        return choices[at], targets.mean_error(targets.errors(targets.means(entries[at])))
