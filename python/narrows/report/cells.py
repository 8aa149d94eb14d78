"""The notes of tables, and the cells that identify a row. A cell without a value says `N/A` and refers to a
note with the reason.
"""

from __future__ import annotations

from narrows.analysis.row_names import RowNames
from narrows.blocks.model import Cell, Column, Note
from narrows.report.data import Campaign
from narrows.schemes.status import Status


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


def name_heads(names: RowNames) -> list[Column]:
    """The heads of the columns that identify a row: the scheme, and the matrix values that differ."""
    return [Column("scheme", "left", names=True), *(Column(head, "left") for head in names.heads)]


def name_cells(names: RowNames, label: str, span: int = 1, status: Status | None = None) -> list[Cell]:
    """The cells that identify a row, and the verification of its scheme."""
    sign = (status.word, status.mark) if status else ("", "")
    first = Cell(
        names.scheme(label), kind="scheme", span=span, key=label, status=sign[0], status_mark=sign[1]
    )
    return [first, *(Cell(value, kind="whole", span=span) for value in names.values(label))]
