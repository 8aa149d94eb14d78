"""The marks of a lesson (`narrows/lab-marks/1`) and the ranking of a contest (`narrows/contest/1`)."""

from __future__ import annotations

from msgspec import UNSET, UnsetType, field

from narrows.documents.data import Count, Number, Part

MARKS_FORMAT = "narrows/lab-marks/1"
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
