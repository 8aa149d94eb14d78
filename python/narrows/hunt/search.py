"""The search: differential evolution (Storn and Price 1997, SciPy's), a generation at a time on all workers.

It needs neither derivatives nor an order of genes, follows from its seed alone, and evaluates a whole
generation at once. When a population has converged, a new one starts with the next seed.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from narrows.errors import UnavailableError
from narrows.hunt.evaluate import Evaluator
from narrows.hunt.space import Values

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

#: Members of a population per searched number.
PER_GENE = 3
#: The value of points that have none: worse than any other.
NOTHING = 1e300
#: This many of the worst points are run several times to choose the worst one.
FINALISTS = 8
#: Runs that confirm that a goal is reached, and in which the minimal scenario must hold.
CONFIRMED = range(1, 6)


class _Enough(Exception):  # noqa: N818 - ends the search, whatever the library is doing
    """The budget is spent, or the goal is reached."""


@dataclass(frozen=True)
class Budget:
    """The length of the search: a number of evaluations or of seconds, whichever is given."""

    evaluations: int | None = None
    seconds: float | None = None


@dataclass
class Best:
    """The worst point so far."""

    values: Values
    value: float


@dataclass
class Search:
    """One search; `told` is called after every generation."""

    evaluator: Evaluator
    budget: Budget
    told: Callable[[Search], None] = lambda _: None
    #: Search time of earlier sessions, in seconds.
    before_s: float = 0.0
    evaluations: int = 0
    best: Best | None = None
    #: The worst points, by their values in words.
    worst: dict[tuple[str, ...], Best] = field(default_factory=dict)
    #: Evaluations of earlier sessions, which are repeated from the stored results.
    before: int = 0
    reached: bool = False
    began: float = field(default_factory=time.monotonic)
    #: Points that seemed to reach the goal and did not in other runs.
    refuted: set[tuple[str, ...]] = field(default_factory=set)

    @property
    def seconds(self) -> float:
        """The search time of all sessions, in seconds."""
        return self.before_s + time.monotonic() - self.began

    def run(self) -> None:
        """Searches until the budget is spent or the goal is reached."""
        optimize = library()
        question = self.evaluator.question
        import numpy as np

        size, number = question.space.free, 0
        try:
            if not size:
                self._score(np.empty((0, 1)))
                return
            while True:
                optimize.differential_evolution(
                    self._score,
                    [(0.0, 1.0)] * size,
                    strategy="rand1bin",
                    popsize=PER_GENE,
                    maxiter=10**6,
                    tol=0.0,
                    mutation=(0.4, 0.9),
                    recombination=0.8,
                    rng=np.random.default_rng([question.seed, number]),
                    polish=False,
                    updating="deferred",
                    vectorized=True,
                )
                number += 1
        except _Enough:
            pass

    def _score(self, places: NDArray[np.float64]) -> NDArray[np.float64]:
        """The values of a generation, one column for each point, for a library that minimises."""
        import numpy as np

        question = self.evaluator.question
        points = [question.space.decode(column) for column in places.T]
        if self.budget.evaluations is not None:
            points = points[: self.budget.evaluations - self.evaluations]
        if not points:
            raise _Enough
        scores = np.full(places.shape[1], NOTHING)
        for at, (values, runs) in enumerate(zip(points, self.evaluator.values(points), strict=True)):
            value = runs[0]
            if value is None:
                continue
            scores[at] = -value if question.objective.high else value
            self._note(Best(values, value))
        self.evaluations += len(points)
        self.told(self)
        spent = self.budget.seconds is not None and self.seconds >= self.budget.seconds
        spent = spent and self.evaluations >= self.before
        whole = self.budget.evaluations is not None and self.evaluations >= self.budget.evaluations
        if self._reaches_goal() or spent or whole or not question.space.free:
            raise _Enough
        return scores

    def _note(self, point: Best) -> None:
        objective = self.evaluator.question.objective
        key = tuple(self.evaluator.question.space.in_words(point.values).values())
        self.worst[key] = point
        if len(self.worst) > FINALISTS:
            ranked = sorted(self.worst, key=lambda known: self.worst[known].value, reverse=objective.high)
            del self.worst[ranked[-1]]
        if self.best is None or (
            point.value != self.best.value and objective.worse(point.value, self.best.value)
        ):
            self.best = point

    def _reaches_goal(self) -> bool:
        """True if the best point reaches the goal in several runs."""
        question = self.evaluator.question
        if question.goal is None or self.best is None:
            return False
        wanted = question.objective.value_to_keep(self.best.value, question.goal, question.compared)
        key = tuple(question.space.in_words(self.best.values).values())
        if not question.objective.worse(self.best.value, wanted) or key in self.refuted:
            return False
        self.reached = holds(self.evaluator, self.best.values, wanted)
        if not self.reached:
            self.refuted.add(key)
        return self.reached


def holds(evaluator: Evaluator, values: Values, wanted: float) -> bool:
    """True if a point is as bad as `wanted` in every one of several runs."""
    return all(
        value is not None and evaluator.question.objective.worse(value, wanted)
        for value in evaluator.values([values], CONFIRMED)[0]
    )


def confirm(evaluator: Evaluator, search: Search) -> Best | None:
    """The worst point in all of several runs, with its value in the mildest one; None if no point has a value
    in all of them.
    """
    objective = evaluator.question.objective
    points = [search.best] if search.reached and search.best else list(search.worst.values())
    mildest = []
    results = evaluator.values([point.values for point in points], CONFIRMED)
    for point, runs in zip(points, results, strict=True):
        values = [value for value in runs if value is not None]
        if len(values) == len(runs):
            mildest.append(Best(point.values, min(values) if objective.high else max(values)))
    if not mildest:
        return None
    return (max if objective.high else min)(mildest, key=lambda best: best.value)


def library() -> Any:
    """The optimisation library; raises `UnavailableError` if it is not installed."""
    try:
        from scipy import optimize
    except ImportError:
        raise UnavailableError(
            "narrows hunt needs SciPy, which is not installed; pip install 'narrows[hunt]'"
        ) from None
    return optimize
