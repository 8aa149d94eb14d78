"""The parts of a lesson, and the figures of a laboratory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from narrows.documents.data import Part

#: A scheme by its published name and a case.
Pair = tuple[str, str]


class Question(Part, frozen=True, kw_only=True):
    """A question of a lesson."""

    name: str = ""
    ask: str
    options: tuple[str, ...]
    unit: str | None
    points: float


@dataclass(frozen=True)
class Drawing:
    """A figure of a laboratory: a figure of `narrows plot` over some conditions of one experiment."""

    figure: str
    experiment: str
    #: The conditions that it shows; empty for all conditions of the experiment.
    conditions: tuple[Pair, ...]
    caption: str


@dataclass(frozen=True)
class Task:
    """A task of a lesson: predict, run only its conditions, look at its figures, and explain."""

    name: str
    do: str
    #: The question that is asked before anything runs, and never marked.
    predict: str | None
    #: The conditions that it runs; empty if it needs none.
    conditions: tuple[Pair, ...]
    figures: tuple[Drawing, ...]
    hints: tuple[str, ...]
    questions: tuple[Question, ...]

    @property
    def prediction(self) -> str | None:
        """The key of the prediction among the answers."""
        return f"{self.name}.predict" if self.predict else None


@dataclass(frozen=True)
class Lesson:
    """The tasks that make a laboratory a lesson; `minutes` is its duration."""

    number: int | None
    minutes: float
    solution: str
    tasks: tuple[Task, ...]

    @property
    def questions(self) -> dict[str, Question]:
        """All questions by `TASK.QUESTION`."""
        return {f"{task.name}.{asked.name}": asked for task in self.tasks for asked in task.questions}

    @property
    def predictions(self) -> dict[str, str]:
        """All requested predictions, by `TASK.predict`."""
        return {f"{task.name}.predict": task.predict for task in self.tasks if task.predict}

    def task(self, name: str) -> Task | None:
        """The task of a name."""
        return next((task for task in self.tasks if task.name == name), None)


def expand_conditions(
    texts: Sequence[str], schemes: Sequence[str], cases: Iterable[str]
) -> tuple[list[Pair], list[str]]:
    """The conditions that texts name (`SCHEME @ CASE`, a scheme with all cases, or a case with all schemes),
    and the texts that name none.
    """
    known: Mapping[str, None] = dict.fromkeys(cases)
    pairs: dict[Pair, None] = {}
    unknown = []
    for text in texts:
        scheme, at, case = (part.strip() for part in text.partition("@"))
        if at and scheme in schemes and case in known:
            pairs[scheme, case] = None
        elif not at and text in known:
            pairs |= dict.fromkeys((name, text) for name in schemes)
        elif not at and text in schemes:
            pairs |= dict.fromkeys((text, name) for name in known)
        else:
            unknown.append(text)
    return list(pairs), unknown
