"""`narrows ls --json`: the campaigns and sweeps in folders (`narrows/list/1`)."""

from __future__ import annotations

from msgspec import UNSET, UnsetType, field

from narrows.documents.data import Count, Part
from narrows.documents.notes import Note

FORMAT = "narrows/list/1"


class SweepOutcomes(Part, frozen=True, kw_only=True):
    """Cells by verdict, and points with such cells."""

    cells: dict[str, Count]
    points: Count
    points_with_invalid: Count
    points_with_failed: Count
    points_without_valid: Count


class ListLine(Part, frozen=True, kw_only=True):
    """A campaign or a sweep; one that can't be read has its folder and its problem alone."""

    path: str
    name: str | UnsetType = UNSET
    title: str | UnsetType | None = UNSET
    #: The plane, or `sweep`.
    plane: str | UnsetType = UNSET
    created_at: str | UnsetType | None = UNSET
    running: bool | UnsetType = UNSET
    cells: Count | UnsetType = UNSET
    finished: Count | UnsetType = UNSET
    #: The verdicts in words.
    verdicts: str | UnsetType = UNSET
    #: The skipped schemes of a campaign.
    skipped: list[str] | UnsetType = UNSET
    #: The cells and points of a sweep by outcome.
    outcomes: SweepOutcomes | UnsetType = UNSET
    schemes: list[str] | UnsetType = UNSET
    tags: list[str] | UnsetType = UNSET
    notes: list[Note] | UnsetType = UNSET
    #: In a sentence.
    problem: str | None = None

    @property
    def is_readable(self) -> bool:
        """True if the campaign or sweep could be read."""
        return self.name is not UNSET


class Listing(Part, frozen=True, kw_only=True, omit_defaults=False):
    """The campaigns and sweeps in folders, the newest last; unreadable ones come after them."""

    format: str = FORMAT
    campaigns: list[ListLine] = field(default_factory=list)


#: The kind of a laboratory that is a lesson.
LESSON = "lesson"


class ListedLaboratory(Part, frozen=True, kw_only=True, omit_defaults=False):
    """A laboratory or lesson in `narrows lab list`; one that can't be read has a problem instead."""

    name: str
    origin: str
    path: str
    kind: str | None = None
    number: Count | None = None
    question: str | None = None
    quick: bool | UnsetType = UNSET
    problem: str | None = None
