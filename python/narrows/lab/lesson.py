"""The answers of a student: writing the file, and reading it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from narrows.errors import DataError, Problem, ScenarioError, UsageError
from narrows.files import read_whole
from narrows.lab.reading import Lab
from narrows.lab.tasks import Task
from narrows.scenario.yaml_tree import Mapping, Scalar, parse_value
from narrows.text import any_of, did_you_mean, shorten, suggest

FILE = "answers.yaml"
SCHEMA = "narrows/lab-answers/1"
_MOST_BYTES = 100_000
_WIDTH = 100


@dataclass(frozen=True)
class Sheet:
    """The content of a student's file: answers by `TASK.QUESTION` and predictions by task, without empty
    ones."""

    name: str
    answers: dict[str, str]
    predictions: dict[str, str]


def find_task(lab: Lab, name: str) -> Task:
    """The task of a lesson. Raises `UsageError` if the family is not a lesson or has no such task."""
    if lab.lesson is None:
        raise UsageError(f"--task: {lab.name} is not a lesson")
    task = lab.lesson.task(name)
    if task is None:
        known = [task.name for task in lab.lesson.tasks]
        hint = did_you_mean(name, known) or f"; it has {any_of(known)}"
        raise UsageError(f'--task: {lab.name} has no task "{shorten(name)}"{hint}')
    return task


def write_answers(lab: Lab, folder: Path) -> Path | None:
    """Writes the questions of a lesson as a file to fill in; returns None if the file exists, whatever its
    content.
    """
    from narrows.blocks.terminal import fold
    from narrows.campaign.json_files import write_atomically

    file = folder / FILE
    if lab.lesson is None or file.exists():
        return None
    lines = [f"# {lab.title}: write each answer behind its colon.", f"schema: {SCHEMA}", "name:", "answers:"]
    for number, task in enumerate(lab.lesson.tasks, 1):
        lines += ["", *(f"  # {line}" for line in fold(f"{number}. {task.do}", _WIDTH))]
        if task.predict:
            lines += [
                f"  # {line}" for line in fold(f"Before you run it: {task.predict} (not marked)", _WIDTH)
            ]
            lines.append(f"  {task.prediction}:")
        for asked in task.questions:
            kind = (
                f"one of: {', '.join(asked.options)}"
                if asked.options
                else f"a number{f' in {asked.unit}' if asked.unit else ''}"
            )
            lines += [f"  # {line}" for line in fold(f"{asked.ask} ({kind})", _WIDTH)]
            lines.append(f"  {task.name}.{asked.name}:")
    write_atomically(file, "\n".join(lines) + "\n")
    return file


def check_prediction(lab: Lab, folder: Path, task: Task) -> None:
    """Raises `DataError` with the question if a task has a prediction that the student has not made."""
    if task.predict and task.name not in read_answers(lab, folder).predictions:
        raise DataError(
            f"{folder / FILE}: {task.prediction} is empty: {task.predict} Write your answer behind it,"
            " then run the same command again"
        )


def read_answers(lab: Lab, folder: Path) -> Sheet:
    """The student's file. Raises `DataError` if it does not exist, or answers an unknown question."""
    assert lab.lesson is not None
    file = folder / FILE
    try:
        text = read_whole(file, "file of answers", _MOST_BYTES).decode("utf-8-sig")
    except DataError as error:
        raise DataError(f"{file}: {error}") from None
    except UnicodeDecodeError:
        raise DataError(f"{file}: is not UTF-8 text; save the file as UTF-8") from None
    tree = parse_value(text, str(file))
    if not isinstance(tree, Mapping):
        raise ScenarioError(
            [Problem(f"{file}:1:1", "", f"answers are keys with values, and start with schema: {SCHEMA}")]
        )
    problems = []
    named = tree.entries.get("name")
    name = named.text if isinstance(named, Scalar) and not named.is_null else folder.resolve().name
    entries = tree.entries.get("answers")
    answers: dict[str, str] = {}
    predictions: dict[str, str] = {}
    known = [*lab.lesson.questions, *lab.lesson.predictions]
    for key, mark, value in entries if isinstance(entries, Mapping) else ():
        if key not in known:
            hint = suggest(key, known, "question")
            problems.append(Problem(str(mark), "", f'question "{shorten(key)}" does not exist{hint}'))
        elif not isinstance(value, Scalar):
            problems.append(Problem(str(mark), key, "must be a single value"))
        elif not value.is_null:
            text = " ".join(value.text.split())
            if key in lab.lesson.predictions:
                predictions[key.partition(".")[0]] = text
            else:
                answers[key] = text
    if problems:
        raise ScenarioError(problems)
    return Sheet(name, answers, predictions)
