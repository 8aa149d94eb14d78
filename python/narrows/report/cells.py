"""Cells and notes of tables, and the cells that identify a row. A cell without a value says `N/A` and refers
to a note with the reason.
"""

from __future__ import annotations

from msgspec import field

from narrows.analysis.row_names import RowNames
from narrows.documents.data import Part
from narrows.report.data import Campaign
from narrows.schemes.status import Status


class Link(Part, frozen=True):
    """A word of a cell that leads to a run, unless `to` is empty."""

    text: str
    to: str


class Cell(Part, frozen=True):
    """A cell of a table."""

    text: str
    #: `right` for numbers.
    align: str = ""
    #: A remark below the text.
    small: str | None = None
    #: Marks of notes.
    marks: list[str] = field(default_factory=list)
    #: The kind of content, which determines its style: `scheme`, `absent`, `total`, `outcome-ok` ....
    kind: str = ""
    #: The number of rows that it spans.
    span: int = 1
    links: list[Link] = field(default_factory=list)
    #: The label of the row, which determines its colour on pages.
    key: str = ""
    #: The verification of a scheme: its word and its sign.
    status: str = ""
    status_mark: str = ""
    #: The page that it links to.
    to: str = ""


class Note(Part, frozen=True):
    """A note below a table."""

    mark: str
    text: str


class Table(Part, frozen=True, omit_defaults=False):
    """A table with the same layout on pages and on paper."""

    head: list[Cell]
    rows: list[list[Cell]]
    notes: list[Note] = field(default_factory=list)


class Notes:
    """Footnotes: equal texts share a mark."""

    def __init__(self) -> None:
        self._marks: dict[str, str] = {}

    def mark(self, text: str) -> str:
        """The mark of a note: a, b, ... z, aa, ab ..."""
        if text not in self._marks:
            index, name = len(self._marks), ""
            while index >= 0:
                name = chr(ord("a") + index % 26) + name
                index = index // 26 - 1
            self._marks[text] = name
        return self._marks[text]

    def list_notes(self) -> list[Note]:
        """All notes in order of first use."""
        return [Note(mark, text) for text, mark in self._marks.items()]


def row_names(campaign: Campaign) -> RowNames:
    """The names of a campaign's rows, including those of skipped schemes."""
    skipped = [row.scheme for row in campaign.skipped]
    return RowNames(campaign.rows, dict.fromkeys([*campaign.schemes, *skipped]))


def name_heads(names: RowNames) -> list[Cell]:
    """The heads of the columns that identify a row: the scheme, and the matrix values that differ."""
    return [Cell("scheme"), *map(Cell, names.heads)]


def name_cells(names: RowNames, label: str, span: int = 1, status: Status | None = None) -> list[Cell]:
    """The cells that identify a row, and the verification of its scheme."""
    sign = (status.word, status.mark) if status else ("", "")
    first = Cell(
        names.scheme(label), kind="scheme", span=span, key=label, status=sign[0], status_mark=sign[1]
    )
    return [first, *(Cell(value, kind="whole", span=span) for value in names.values(label))]
