"""Marks the answers of students: against fixed answers, or against what their own runs gave."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from narrows.errors import DataError, NarrowsError
from narrows.lab.comparing import compare
from narrows.lab.lesson import FILE, read_answers
from narrows.lab.reading import Lab, Question
from narrows.lab.running import NOTE, open_run
from narrows.lab.sections import read_section
from narrows.report.units import trimmed
from narrows.text import any_of, did_you_mean, plural, shorten

if TYPE_CHECKING:
    from rich.console import Console

FORMAT = "narrows/lab-marks/1"
RIGHT, WRONG, EMPTY = "right", "wrong", "not answered"


@dataclass(frozen=True)
class Answer:
    """A right answer: a fixed one, or where it is in the student's runs; `within` is a share of it."""

    right: str | None
    origin: str | None
    column: str | None
    within: float
    factor: float
    explain: str


def read_solution(lab: Lab, path: Path | None) -> dict[str, Answer]:
    """The right answers by `TASK.QUESTION`. Raises `DataError` if the file is not there, or answers not every
    question."""
    assert lab.lesson is not None
    file = path or lab.folder / lab.lesson.solution
    if not file.is_file():
        raise DataError(f"{file}: the right answers are not there; name their file with --solution")
    raw, tree, problems = read_section(file, "solution", "solution")
    problems.raise_if_any()
    found = {}
    questions = lab.lesson.questions
    for name, one in raw["answers"].items():
        if name not in lab.lesson.questions:
            hint = did_you_mean(name, lab.lesson.questions) or ""
            problems.add(tree.mark, f'there is no question "{shorten(name)}"{hint}')
        elif (one["right"] is None) == (one["from"] is None):
            problems.add(tree.mark, f"{name}: write one of right and from")
        elif one["from"] is not None and one["column"] not in lab.columns:
            problems.add(tree.mark, f"{name}: from needs a column of the family: {any_of(lab.columns)}")
        elif one["from"] is not None and (unknown := _unknown(one["from"], lab)):
            problems.add(tree.mark, f"{name}: from names {unknown}, which the family has not")
        elif (options := questions[name].options) and one["right"] not in options:
            problems.add(tree.mark, f"{name}: the right answer is none of its options: {any_of(options)}")
        found[name] = Answer(
            one["right"], one["from"], one["column"], one["within"], one["factor"], one["explain"] or ""
        )
    if missing := [name for name in lab.lesson.questions if name not in found]:
        problems.add(tree.mark, f"there is no answer for {', '.join(missing)}")
    problems.raise_if_any()
    return found


def _sides(origin: str) -> list[tuple[str, str]]:
    """Scheme and case of each value that `from` names."""
    parts = [part.partition("@") for part in origin.split(" / ")]
    return [(scheme.strip(), case.strip()) for scheme, _, case in parts]


def _unknown(origin: str, lab: Lab) -> str | None:
    for scheme, case in _sides(origin):
        if scheme not in lab.schemes:
            return f'the scheme "{shorten(scheme)}"'
        if case not in lab.cases:
            return f'the case "{shorten(case)}"'
    return None


def mark(folder: Path, solution: Path | None) -> dict[str, Any]:
    """The marks of a student's folder, or of all such folders in one. A student whose folder can't be
    marked costs one sentence. Raises `DataError` if there is nobody to mark."""
    folders = [folder] if (folder / NOTE).is_file() else []
    if not folders and folder.is_dir():
        folders = sorted(path for path in folder.iterdir() if (path / NOTE).is_file())
    if not folders:
        raise DataError(f"{folder}: no lesson was run here; narrows lab run NAME -o {folder} runs one")
    students, problems = [], []
    for one in folders:
        try:
            students.append(_student(one, solution))
        except NarrowsError as error:
            if len(folders) == 1:
                raise
            problems.append({"folder": str(one), "problem": str(error)})
    return {"format": FORMAT, "students": students, "problems": problems}


def _student(folder: Path, solution: Path | None) -> dict[str, Any]:
    run = open_run(folder)
    lab = run.lab
    if lab.lesson is None:
        raise DataError(f"{folder}: {lab.name} is no lesson, so there are no answers to mark")
    right = read_solution(lab, solution)
    if not (folder / FILE).is_file():
        raise DataError(
            f"{folder}: there is no {FILE}; narrows lab run {lab.name} -o {folder} writes one to fill in"
        )
    name, answers = read_answers(lab, folder)
    document = compare(run)
    marked = [
        _marked(key, question, answers.get(key), right[key], document)
        for key, question in lab.lesson.questions.items()
    ]
    return {
        "name": name,
        "folder": str(folder),
        "lab": lab.name,
        "points": sum(one["points"] for one in marked),
        "of": sum(one["of"] for one in marked),
        "answers": marked,
    }


def _marked(
    key: str, question: Question, answer: str | None, right: Answer, document: Mapping[str, Any]
) -> dict[str, Any]:
    expected = right.right if right.right is not None else _from_runs(right, document)
    good = answer is not None and expected is not None and _is_right(answer, expected, question, right.within)
    outcome = EMPTY if answer is None else RIGHT if good else WRONG
    why = None
    if expected is None:
        why = f"the runs gave no value of {right.origin}"
    return {
        "question": key,
        "ask": question.ask,
        "answer": answer,
        "right": expected,
        "unit": question.unit,
        "outcome": outcome,
        "points": question.points if good else 0.0,
        "of": question.points,
        "explain": right.explain,
        "why": why,
    }


def _is_right(answer: str, expected: str, question: Question, within: float) -> bool:
    if question.options:
        return answer.casefold() == expected.casefold()
    given, wanted = _number(answer, question.unit), _number(expected, None)
    if given is None or wanted is None:
        return False
    return abs(given - wanted) <= within * abs(wanted) + 1e-12


def _number(text: str, unit: str | None) -> float | None:
    """A number that a person wrote: `12.5`, `12,5`, `12.5 ms` where ms are asked for, `80 %`."""
    plain = text.replace(",", ".") if text.count(",") == 1 and "." not in text else text
    if unit and plain.endswith(unit):
        plain = plain.removesuffix(unit)
    try:
        return float(plain)
    except ValueError:
        return None


def _from_runs(right: Answer, document: Mapping[str, Any]) -> str | None:
    """The value that the student's own runs gave; of two, their quotient."""
    columns = {column["name"]: column for column in document["columns"]}
    if right.column not in columns:
        return None
    values = []
    for scheme, case in _sides(str(right.origin)):
        found = [
            cell["ours"]
            for cell in columns[right.column]["cells"]
            if (cell["scheme"], cell["case"]) == (scheme, case)
        ]
        if len(found) != 1 or found[0] is None:
            return None
        values.append(found[0])
    if len(values) == 2:
        return trimmed(values[0] / values[1] * right.factor, 6) if values[1] else None
    return trimmed(values[0] * right.factor, 6)


def print_marks(console: Console, document: Mapping[str, Any]) -> None:
    """One student answer by answer, several as a table."""
    from narrows.analysis.terminal import Column, FittedTable, fold, width

    students = document["students"]
    if len(students) == 1 and not document["problems"]:
        one = students[0]
        for answer in one["answers"]:
            unit = f" {answer['unit']}" if answer["unit"] else ""
            given = "" if answer["answer"] is None else f" {answer['answer']}"
            text = f"{answer['outcome']}: {answer['question']}{':' if given else ''}{given}"
            if answer["outcome"] != RIGHT:
                text += (
                    f"; right is {answer['right']}{unit}"
                    if answer["right"] is not None
                    else f"; {answer['why']}"
                )
            lines = fold(f"{text}. {answer['explain']}".rstrip(), width(console.file))
            for line in lines:
                console.print(line, soft_wrap=True, markup=False)
        console.print(f"{one['name']}: {one['points']:g} of {plural(int(one['of']), 'point')}", style="bold")
        return
    table = FittedTable(
        Column("student", "left"),
        Column("lesson", "left", rank=1),
        Column("points"),
        Column("of"),
        Column("not right", "left", folded=True),
    )
    for one in sorted(students, key=lambda student: -float(student["points"])):
        wrong = ", ".join(answer["question"] for answer in one["answers"] if answer["outcome"] != RIGHT)
        table.add(one["name"], one["lab"], f"{one['points']:g}", f"{one['of']:g}", wrong)
    table.print(console)
    for problem in document["problems"]:
        console.print(problem["problem"], soft_wrap=True, markup=False)
