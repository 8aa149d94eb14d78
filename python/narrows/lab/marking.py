"""Marks the answers of students: against fixed answers, or against the results of their own runs."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import field
from msgspec.structs import replace

from narrows.documents.data import Part
from narrows.documents.laboratory import LabReport
from narrows.documents.lessons import MARKS_FORMAT, Mark, Marks, Student, Unmarked
from narrows.errors import DataError, NarrowsError
from narrows.files import find_shipped_labs
from narrows.lab.comparing import compare
from narrows.lab.keys import FORMAT
from narrows.lab.lesson import FILE, read_answers
from narrows.lab.reading import Lab
from narrows.lab.running import NOTE, open_run
from narrows.lab.store import SOLUTIONS, user_folder
from narrows.lab.tasks import Question
from narrows.lab.written_numbers import read_number
from narrows.report.units import trim
from narrows.scenario.declarations.reader import read_file
from narrows.text import any_of, did_you_mean, plural, shorten

if TYPE_CHECKING:
    from rich.console import Console

RIGHT, WRONG, EMPTY = "right", "wrong", "not answered"


MARKED, NO_ANSWERS, NOT_RUN, UNREADABLE = "marked", "no answers", "not run", "unreadable"


class Answer(Part, frozen=True, kw_only=True):
    """A right answer: a fixed one, or its origin in the student's runs; `within` is a relative tolerance."""

    right: str | None
    origin: str | None = field(name="from")
    column: str | None
    within: float
    factor: float
    explain: str | None


class _Solution(Part, frozen=True, kw_only=True):
    answers: dict[str, Answer]


def read_solution(lab: Lab, path: Path | None) -> dict[str, Answer]:
    """The right answers by `TASK.QUESTION`. Raises `DataError` if the file does not exist or is
    incomplete.
    """
    assert lab.lesson is not None
    file = path or _find_solution(lab, lab.lesson.solution)
    if file is None or not file.is_file():
        missing = file or lab.folder / lab.lesson.solution
        raise DataError(f"{missing}: the right answers do not exist; name their file with --solution")
    written = read_file(file, FORMAT, "solution", "solution", _Solution)
    content, problems = written.content, written.problems
    questions = lab.lesson.questions
    for name, answer in content.answers.items():
        at = f"answers.{name}"
        if name not in questions:
            hint = did_you_mean(name, questions) or ""
            written.note(at, f'question "{shorten(name)}" does not exist{hint}')
        elif (answer.right is None) == (answer.origin is None):
            written.note(at, f"{name}: write one of right and from")
        elif answer.origin is not None and answer.column not in lab.columns:
            written.note(at, f"{name}: from needs a column of the family: {any_of(lab.columns)}")
        elif answer.origin is not None and (unknown := _unknown(answer.origin, lab)):
            written.note(at, f"{name}: from names {unknown}, which the family has not")
        elif (options := questions[name].options) and answer.right not in options:
            written.note(at, f"{name}: the right answer is none of its options: {any_of(options)}")
    if unanswered := [name for name in questions if name not in content.answers]:
        written.note("answers", f"there is no answer for {', '.join(unanswered)}")
    problems.raise_if_any()
    return content.answers


def _find_solution(lab: Lab, name: str) -> Path | None:
    """The file of right answers: in the family's folder, or in `solutions` beside families."""
    homes: list[Path] = [lab.folder, lab.folder.parent / SOLUTIONS, user_folder() / SOLUTIONS]
    shipped = find_shipped_labs()
    if shipped is not None:
        homes.append(shipped / SOLUTIONS)
    return next((home / name for home in homes if (home / name).is_file()), None)


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


def mark_folder(folder: Path, solution: Path | None, *, reveal: bool) -> Marks:
    """The marks of a student's folder, or of every folder in a class's folder, in which students without a
    run or answers are listed too. Only with `reveal` do the marks contain right answers and explanations.

    Raises `DataError` if no lesson was run below the folder, or the only student cannot be marked.
    """
    if (folder / NOTE).is_file():
        student = mark_student(folder, solution, reveal)
        if student.problem:
            raise DataError(student.problem)
        return _marks([student])
    folders = list_folders(folder)
    if not any((path / NOTE).is_file() for path in folders):
        raise DataError(f"{folder}: no lesson was run here; narrows lab run NAME -o {folder} runs one")
    return _marks([mark_student(path, solution, reveal) for path in folders])


def list_folders(folder: Path) -> list[Path]:
    """The folders in a folder, by name, without hidden ones."""
    parts = folder.iterdir() if folder.is_dir() else ()
    return sorted(path for path in parts if path.is_dir() and not path.name.startswith("."))


def _marks(students: list[Student]) -> Marks:
    return Marks(format=MARKS_FORMAT, students=students, problems=list_unmarked(students))


def list_unmarked(students: Iterable[Student]) -> list[Unmarked]:
    """Those that could not be marked, with the reasons."""
    return [
        Unmarked(folder=student.folder, problem=student.problem) for student in students if student.problem
    ]


def mark_student(folder: Path, solution: Path | None, reveal: bool) -> Student:
    """The marks of one folder; in a class a folder that cannot be marked yields one sentence and does not
    affect the others' marks.
    """
    unmarked = Student(name=folder.resolve().name, folder=str(folder), state=NOT_RUN)
    if not (folder / NOTE).is_file():
        why = f"{folder}: no lesson was run here"
        return replace(unmarked, problem=why)
    try:
        run = open_run(folder)
        lab = run.lab
        if lab.lesson is None:
            raise DataError(f"{folder}: {lab.name} is not a lesson, so it has no answers to mark")
        right = read_solution(lab, solution)
        questions = lab.lesson.questions
        unmarked = replace(unmarked, lab=lab.name, most=sum(asked.points for asked in questions.values()))
        if not (folder / FILE).is_file():
            why = f"{folder}: {FILE} does not exist; narrows lab run {lab.name} -o {folder} writes it"
            return replace(unmarked, state=NO_ANSWERS, problem=why)
        sheet = read_answers(lab, folder)
        report = compare(run)
    except NarrowsError as error:
        return replace(unmarked, state=UNREADABLE, problem=str(error))
    marks = tuple(
        _mark_answer(key, asked, sheet.answers.get(key), right[key], report, reveal)
        for key, asked in questions.items()
    )
    return replace(
        unmarked,
        name=sheet.name,
        state=MARKED if sheet.answers else NO_ANSWERS,
        points=sum(mark.points for mark in marks),
        answers=marks,
        predictions=sheet.predictions,
    )


def _mark_answer(
    key: str,
    question: Question,
    answer: str | None,
    right: Answer,
    report: LabReport,
    reveal: bool,
) -> Mark:
    expected = right.right if right.right is not None else _from_runs(right, report)
    is_good = (
        answer is not None and expected is not None and _is_right(answer, expected, question, right.within)
    )
    why = None
    if expected is None:
        why = f"the runs have no value of {right.origin}" if reveal else "the runs have no value for it yet"
    return Mark(
        question=key,
        ask=question.ask,
        answer=answer,
        right=expected if reveal else None,
        unit=question.unit,
        outcome=EMPTY if answer is None else RIGHT if is_good else WRONG,
        points=question.points if is_good else 0.0,
        most=question.points,
        explain=(right.explain or "") if reveal else "",
        why=why,
    )


def _is_right(answer: str, expected: str, question: Question, within: float) -> bool:
    if question.options:
        return answer.casefold() == expected.casefold()
    return any(
        abs(given - wanted) <= within * abs(wanted) + 1e-12
        for given in read_number(answer, question.unit)
        for wanted in read_number(expected, None)
    )


def _from_runs(right: Answer, report: LabReport) -> str | None:
    """The value from the student's own runs; for two values, their quotient."""
    cells = [cell for column in report.columns if column.name == right.column for cell in column.cells]
    values = []
    for side in _sides(str(right.origin)):
        ours = [cell.ours for cell in cells if (cell.scheme, cell.case) == side]
        if len(ours) != 1 or ours[0] is None:
            return None
        values.append(ours[0])
    if len(values) == 2:
        return trim(values[0] / values[1] * right.factor, 6) if values[1] else None
    return trim(values[0] * right.factor, 6)


def print_marks(console: Console, marks: Marks) -> None:
    """Prints one student answer by answer, several students as a table."""
    from narrows.blocks.model import Column, Table
    from narrows.blocks.terminal import print_table, print_text

    students = marks.students
    if len(students) == 1 and not marks.problems:
        _print_student(console, students[0])
        return
    heads = (
        Column("student", "left"),
        Column("lesson", "left", rank=1),
        Column("points"),
        Column("of"),
        Column("not right", "left", folded=True),
    )
    rows = []
    for student in sorted(students, key=lambda student: -student.points):
        wrong = ", ".join(mark.question for mark in student.answers if mark.outcome != RIGHT)
        note = wrong if student.state == MARKED else student.state
        points = "–" if student.state in (NOT_RUN, UNREADABLE) else f"{student.points:g}"
        total = "–" if student.most is None else f"{student.most:g}"
        rows.append((student.name, student.lab or "", points, total, note))
    print_table(console, Table.new(heads, rows))
    for problem in marks.problems:
        print_text(console, problem.problem)


def describe_mark(mark: Mark, head: str) -> str:
    """The answer after `head`, and the right one and the reason where they are known."""
    text = head if mark.answer is None else f"{head}: {mark.answer}"
    if mark.outcome != RIGHT and mark.right is not None:
        text += f"; right is {mark.right}{f' {mark.unit}' if mark.unit else ''}"
    return f"{text}; {mark.why}" if mark.why else text


def _print_student(console: Console, student: Student) -> None:
    from narrows.blocks.terminal import print_text

    texts = [f"expected: {task}: {text}" for task, text in student.predictions.items()]
    for mark in student.answers:
        text = describe_mark(mark, f"{mark.outcome}: {mark.question}")
        texts.append(f"{text}. {mark.explain}".rstrip())
    for text in texts:
        print_text(console, text)
    points = plural(int(student.most or 0), "point")
    console.print(f"{student.name}: {student.points:g} of {points}", style="bold")
