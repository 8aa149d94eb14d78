"""The marks of a lesson (`narrows/lab-marks/1`), those of a class over several lessons
(`narrows/lab-class/1`), and the ranking of a contest (`narrows/contest/1`)."""

from __future__ import annotations

from msgspec import UNSET, UnsetType, field

from narrows.documents.data import Count, Number, Part

MARKS_FORMAT = "narrows/lab-marks/1"
CLASS_FORMAT = "narrows/lab-class/1"
CONTEST_FORMAT = "narrows/contest/1"


class Mark(Part, frozen=True, kw_only=True):
    """The mark of one answer."""

    question: str
    ask: str
    answer: str | None
    #: The right answer; null unless it is revealed. `explain` is then empty as well.
    right: str | None
    unit: str | None
    outcome: str
    points: Number
    most: Number = field(name="of")
    explain: str
    why: str | None


class Student(Part, frozen=True, kw_only=True, omit_defaults=False):
    """The marks of one student."""

    name: str
    folder: str
    state: str
    lab: str | None = None
    points: Number = 0.0
    #: The points of the lesson; null if they are not known.
    most: Number | None = field(default=None, name="of")
    answers: tuple[Mark, ...] = ()
    #: The predictions of the student, by the names of the tasks; not marked.
    predictions: dict[str, str] = field(default_factory=dict)
    problem: str | None = None


class Unmarked(Part, frozen=True, kw_only=True):
    """A student who could not be marked, with the reason."""

    folder: str
    problem: str


class Marks(Part, frozen=True, kw_only=True):
    """The marks of a student or of a class."""

    format: str
    students: list[Student]
    problems: list[Unmarked]


class Pupil(Part, frozen=True, kw_only=True):
    """A student of a class, with the marks of each lesson that was handed in."""

    #: Students with the same number of points share a place.
    place: Count
    name: str
    folder: str
    points: Number
    lessons: list[Student]


class QuestionMarks(Part, frozen=True, kw_only=True):
    """The answers of a class to one question."""

    lab: str
    question: str
    ask: str
    unit: str | None
    #: The right answer; null if it follows from the runs of each student.
    right_answer: str | None
    #: Numbers of answers.
    right: Count
    wrong: Count
    empty: Count
    #: The most frequent wrong answer, if several students gave it, and their number.
    common_wrong: str | None
    common: Count


class ClassMarks(Part, frozen=True, kw_only=True):
    """The marks of a class."""

    format: str
    #: The lessons, with the points that each has.
    lessons: dict[str, Number]
    students: list[Pupil]
    questions: list[QuestionMarks]
    problems: list[Unmarked]


class Place(Part, frozen=True, kw_only=True):
    """A submission and its place."""

    place: Count
    #: The 95 % interval of the place.
    place_low: Count
    place_high: Count
    name: str
    #: The mean rank over the paths.
    score: Number
    won: Count
    failed: Count
    #: On each path the power and the rank; absent if students may not see them.
    values: list[Number | None] | UnsetType = UNSET
    ranks: list[Number] | UnsetType = UNSET
    problems: list[str]

    @property
    def powers(self) -> list[float | None]:
        """The power on each path that students may see."""
        return [] if self.values is UNSET else self.values


class Contest(Part, frozen=True, kw_only=True):
    """The ranking of submissions over paths."""

    format: str
    where: str
    paths: list[str]
    ranking: list[Place]

    @property
    def shown_paths(self) -> list[str]:
        """The paths whose values students may see."""
        return [] if self.ranking[0].values is UNSET else self.paths
