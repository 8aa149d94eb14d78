"""Cells and notes of tables, and the cells that name a row.

A table is `{"head": [cell], "rows": [[cell]], "notes": [note]}`; a cell is `{"text", "align", "small",
"marks", "kind", "span", "links"}` (only `text` is always there), a note `{"mark", "text"}`. Whatever is not
available says `N/A` and points at a note with the reason.
"""

from __future__ import annotations

from typing import Any

from narrows.analysis.row_names import RowNames
from narrows.report.data import Campaign

Cell = dict[str, Any]
Table = dict[str, Any]


class Notes:
    """Footnotes: the same text gets the same mark."""

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

    def list_notes(self) -> list[dict[str, str]]:
        """All notes in order of their first use."""
        return [{"mark": mark, "text": text} for text, mark in self._marks.items()]


def cell(text: str, **more: Any) -> Cell:
    """A cell of a table."""
    return {"text": text, **more}


def row_names(campaign: Campaign) -> RowNames:
    """The names of a campaign's rows, those of skipped schemes included."""
    skipped = [str(entry.get("scheme")) for entry in campaign.skipped]
    return RowNames(campaign.rows, dict.fromkeys([*campaign.schemes, *skipped]))


def name_heads(names: RowNames) -> list[Cell]:
    """The heads of the columns that name a row: the scheme, and the values of the matrix that differ."""
    return [cell("scheme"), *(cell(name) for name in names.heads)]


def name_cells(names: RowNames, label: str, **more: Any) -> list[Cell]:
    """The cells that name a row; `more` are members of the first one. `key` is the label, by which pages know
    the colour of the row."""
    span = {"span": more["span"]} if "span" in more else {}
    first = cell(names.scheme(label), kind="scheme", key=label, **more)
    return [first, *(cell(value, kind="whole", **span) for value in names.values(label))]
