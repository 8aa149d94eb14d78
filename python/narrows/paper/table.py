"""A table of numbers with their intervals, for papers and spreadsheets."""

from __future__ import annotations

from typing import Literal

from narrows.documents.data import Number, Part

Datum = Number | str | None


class Column(Part, frozen=True, kw_only=True):
    """A column: its head and unit on paper, and the heads of the columns of plain data behind it."""

    head: str
    unit: str = ""
    align: Literal["left", "right"] = "right"
    fields: tuple[str, ...]

    @classmethod
    def from_head(cls, head: str) -> Column:
        """A column of text."""
        return cls(head=head, align="left", fields=(head,))


class Cell(Part, frozen=True, kw_only=True):
    """A cell: a number as text, its spread beside it, a mark, and the plain data, one for each field."""

    text: str
    spread: str = ""
    mark: str = ""
    strong: bool = False
    data: tuple[Datum, ...]

    @classmethod
    def from_text(cls, text: str) -> Cell:
        """A cell of text."""
        return cls(text=text, data=(text,))


class Table(Part, frozen=True, kw_only=True):
    """A table with the notes that belong below it, and the runs that it rests on, one a line."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...]
    sources: tuple[str, ...]
