"""The marks of a class as a page, a table and files, for the teacher."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import TYPE_CHECKING

from narrows.blocks import html
from narrows.blocks.model import Block, Cell, Column, Document, Facts, Items, Note, Paragraph, Table, section
from narrows.campaign.json_files import write_atomically
from narrows.csv_text import Rows
from narrows.documents.data import to_data
from narrows.documents.lessons import ClassMarks, Pupil, QuestionMarks, Student
from narrows.lab.marking import MARKED, describe_mark
from narrows.text import plural

if TYPE_CHECKING:
    from rich.console import Console


def write(folder: Path, title: str, marks: ClassMarks) -> list[Path]:
    """Writes page, table and document of a class; returns the files, the page first."""
    texts = {
        "class.html": html.page(compose(title, marks), made_from="from the students' folders alone"),
        "class.csv": csv_text(marks),
        "class.json": json.dumps(to_data(marks), indent=1, ensure_ascii=False, allow_nan=False) + "\n",
    }
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        write_atomically(folder / name, text)
    return [folder / name for name in texts]


def csv_text(marks: ClassMarks) -> str:
    """A line for each student and lesson of the class; lessons that were not handed in have no state."""
    text = io.StringIO()
    rows = Rows(text)
    rows.write(("place", "name", "folder", "lesson", "points", "of", "state"))
    for student in marks.students:
        for lab, most in marks.lessons.items():
            own = _of_lesson(student, lab)
            points = f"{own.points if own else 0.0:g}"
            state = own.state if own else ""
            rows.write((student.place, student.name, student.folder, lab, points, f"{most:g}", state))
    return text.getvalue()


def print_class(console: Console, marks: ClassMarks) -> None:
    """Prints the ranking, the questions, and the problems."""
    from narrows.blocks.terminal import print_table, print_text

    print_table(console, _ranking(marks))
    if marks.questions:
        console.print()
        print_table(console, _questions(marks.questions))
    for problem in marks.problems:
        print_text(console, problem.problem)


def compose(title: str, marks: ClassMarks) -> Document:
    """The document of a class."""
    total = sum(marks.lessons.values())
    mean = sum(student.points for student in marks.students) / len(marks.students)
    facts = (
        ("students", str(len(marks.students))),
        ("lessons", ", ".join(marks.lessons)),
        ("mean", f"{mean:.3g} of {total:g} points"),
    )
    by_lesson = [
        section(
            lab,
            _questions([row for row in marks.questions if row.lab == lab]),
            *(_answers(student, own) for student in marks.students if (own := _of_lesson(student, lab))),
        )
        for lab in marks.lessons
    ]
    return Document.new(
        title,
        (
            section("Students", _ranking(marks)),
            section("Not marked", Items.new(problem.problem for problem in marks.problems)),
            *by_lesson,
        ),
        kind="marks of a class",
        facts=facts,
        preamble=(Paragraph("With right answers and names: for the teacher alone.", "remark"),),
    )


def _of_lesson(student: Pupil, lab: str) -> Student | None:
    """The marks of a student in a lesson; of several attempts, the best."""
    attempts = [own for own in student.lessons if own.lab == lab]
    return max(attempts, key=lambda own: own.points) if attempts else None


def _ranking(marks: ClassMarks) -> Table:
    columns = (
        Column("place"),
        Column("student", "left", names=True),
        *(Column(lab, unit=f"of {most:g}", rank=1) for lab, most in marks.lessons.items()),
        Column("points", unit=f"of {sum(marks.lessons.values()):g}"),
    )
    rows = []
    for student in marks.students:
        cells: list[str | Cell] = [str(student.place), student.name]
        for lab in marks.lessons:
            own = _of_lesson(student, lab)
            state = None if own is None or own.state == MARKED else own.state
            cells.append(Cell("–", kind="absent") if own is None else Cell(f"{own.points:g}", small=state))
        rows.append([*cells, Cell(f"{student.points:g}", kind="total")])
    return Table.new(columns, rows, label="Students by points")


def _questions(questions: list[QuestionMarks]) -> Table:
    several = len({row.lab for row in questions}) > 1
    columns = (
        *((Column("lesson", "left"),) if several else ()),
        Column("question", "left", names=True),
        Column("right"),
        Column("wrong"),
        Column("empty", rank=2),
        Column("right answer", "left", rank=3),
        Column("most frequent wrong answer", "left", folded=True),
    )
    rows = []
    own = False
    for row in questions:
        own = own or row.right_answer is None
        unit = f" {row.unit}" if row.unit else ""
        wrong = f"{row.common_wrong} ({plural(row.common, 'student')})" if row.common_wrong else ""
        right = Cell("–", marks=("a",)) if row.right_answer is None else Cell(f"{row.right_answer}{unit}")
        counts = (str(row.right), str(row.wrong), str(row.empty))
        rows.append([*((row.lab,) if several else ()), row.question, *counts, right, wrong])
    notes = [Note("a", "It follows from the runs of each student.")] if own else []
    return Table.new(columns, rows, notes, label="Answers by question")


def _answers(student: Pupil, own: Student) -> Block | None:
    """The answers and predictions of a student."""
    texts = [(mark.question, describe_mark(mark, mark.outcome)) for mark in own.answers]
    expected = [(f"{task}, expected", text) for task, text in own.predictions.items()]
    title = f"{student.name}: {own.points:g} points"
    return section(title, Facts.new([*texts, *expected]), closed=True)
