"""Marks a class over several lessons: the points and places of students, and the answers by question."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from narrows.documents.lessons import CLASS_FORMAT, ClassMarks, Mark, Pupil, QuestionMarks, Student, Unmarked
from narrows.errors import DataError
from narrows.lab.marking import EMPTY, NOT_RUN, RIGHT, WRONG, list_folders, list_unmarked, mark_student
from narrows.lab.running import NOTE
from narrows.progress import progress

#: A wrong answer is common from this number of students on.
FEWEST_COMMON = 2
#: Progress is shown after this many seconds.
_PATIENCE_S = 1.0


def mark_all(folder: Path, solution: Path | None) -> ClassMarks:
    """The marks of the students in a folder, with right answers and explanations.

    Each folder in it belongs to a student: a lesson was run there, or in each of several folders below it.
    Raises `DataError` if no lesson was run anywhere.
    """
    if (folder / NOTE).is_file():
        raise DataError(
            f"{folder}: is the folder of one student; narrows lab mark {folder} marks it, and a class is"
            " a folder of such folders"
        )
    handed_in = {path: _list_runs(path) for path in list_folders(folder)}
    count = sum(map(len, handed_in.values()))
    if not count:
        raise DataError(
            f"{folder}: no lesson was run in the folders of a class; narrows lab run NAME -o FOLDER"
        )
    marked: dict[Path, list[Student]] = {}
    with progress("marking", after_s=_PATIENCE_S) as bar:
        done = 0
        for path, runs in handed_in.items():
            marked[path] = []
            for run in runs:
                marked[path].append(mark_student(run, solution, reveal=True))
                done += 1
                bar.count(done, count, "lessons")
    lessons: dict[str, float] = {}
    for student in (student for students in marked.values() for student in students):
        if student.lab is not None and student.most is not None:
            lessons[student.lab] = max(student.most, lessons.get(student.lab, 0.0))
    return ClassMarks(
        format=CLASS_FORMAT,
        lessons=dict(sorted(lessons.items())),
        students=_rank(marked),
        questions=_count_answers(marked.values(), lessons),
        problems=[problem for path, students in marked.items() for problem in _list_problems(path, students)],
    )


def _list_runs(folder: Path) -> list[Path]:
    """The folders of a student in which a lesson was run."""
    if (folder / NOTE).is_file():
        return [folder]
    return [path for path in list_folders(folder) if (path / NOTE).is_file()]


def _rank(marked: dict[Path, list[Student]]) -> list[Pupil]:
    """The students, those with most points first; of several attempts at a lesson the best counts."""
    points: dict[Path, float] = {}
    for path, students in marked.items():
        best: dict[str | None, float] = {}
        for student in students:
            best[student.lab] = max(student.points, best.get(student.lab, 0.0))
        points[path] = sum(best.values())
    return [
        Pupil(
            place=1 + sum(other > points[path] for other in points.values()),
            name=_name(path, marked[path]),
            folder=str(path),
            points=points[path],
            lessons=marked[path],
        )
        for path in sorted(marked, key=lambda path: (-points[path], path.name))
    ]


def _name(folder: Path, students: Iterable[Student]) -> str:
    """The name that the student has written into some file of answers; without any, that of the folder."""
    written = (student.name for student in students if student.name != Path(student.folder).resolve().name)
    return next(written, folder.resolve().name)


def _list_problems(folder: Path, students: list[Student]) -> list[Unmarked]:
    if not students:
        return [Unmarked(folder=str(folder), problem=f"{folder}: {NOT_RUN}: no lesson was run here")]
    return list_unmarked(students)


def _count_answers(marked: Iterable[list[Student]], lessons: Iterable[str]) -> list[QuestionMarks]:
    """The answers by question, lesson by lesson, those that most students got wrong first."""
    answers: dict[tuple[str, str], list[Mark]] = {}
    for student in (student for students in marked for student in students):
        for mark in student.answers:
            answers.setdefault((student.lab or "", mark.question), []).append(mark)
    counted = [_count(lab, question, marks) for (lab, question), marks in answers.items()]
    order = sorted(lessons)
    return sorted(
        counted, key=lambda row: (order.index(row.lab), row.right / (row.right + row.wrong + row.empty))
    )


def _count(lab: str, question: str, marks: list[Mark]) -> QuestionMarks:
    outcomes = Counter(mark.outcome for mark in marks)
    wrong = Counter(mark.answer.casefold() for mark in marks if mark.outcome == WRONG and mark.answer)
    common, count = wrong.most_common(1)[0] if wrong else ("", 0)
    right = {mark.right for mark in marks}
    return QuestionMarks(
        lab=lab,
        question=question,
        ask=marks[0].ask,
        unit=marks[0].unit,
        right_answer=next(iter(right)) if len(right) == 1 else None,
        right=outcomes[RIGHT],
        wrong=outcomes[WRONG],
        empty=outcomes[EMPTY],
        common_wrong=common if count >= FEWEST_COMMON else None,
        common=count if count >= FEWEST_COMMON else 0,
    )
