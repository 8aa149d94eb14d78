"""Tables that fit the terminal and never truncate a number or a name.

A column has a short head and a rank. Columns that do not fit are omitted, the highest rank first, and a line
below the table names them and explains how to show them. Where the first column, usually a name, takes too
much room, it has a separate line with the other columns below it; a last column of sentences is wrapped
between words. Columns are aligned in all rows.
"""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from rich.cells import cell_len
from rich.text import Text

from narrows.console import WIDTH_OF_FILES

if TYPE_CHECKING:
    from rich.console import Console

#: The gap between two columns.
GAP = "  "
#: The indentation of cells below a name on a separate line.
_INDENT = "  "
#: The smallest width of a column of sentences; below it, sentences appear below their row.
_LEAST_FOLDED = 28
#: A name may take this share of the width before it gets a separate line.
_MOST_FOR_NAMES = 0.5
#: Below this width the layout gives up: lines are longer than the terminal.
NARROWEST = 40

HOW = "a wider terminal (COLUMNS=160) or --json shows them"


def width(stream: object = None) -> int:
    """The width in columns: `COLUMNS` if set, else that of the terminal, or a large number for a file."""
    try:
        said = int(os.environ.get("COLUMNS", ""))
    except ValueError:
        said = 0
    if said > 0:
        return max(said, NARROWEST)
    stream = stream or sys.stdout
    if not getattr(stream, "isatty", bool)():
        return WIDTH_OF_FILES
    return max(shutil.get_terminal_size().columns, NARROWEST)


@dataclass(frozen=True)
class Column:
    """One column: its head (lines between newlines), its alignment, and its rank."""

    head: str
    align: Literal["left", "right"] = "right"
    #: Columns of rank 0 are never omitted; of the others the highest rank goes first, and among equal ranks
    #: the last column.
    rank: int = 0
    #: A column of sentences, wrapped between words; only the last column can be one.
    folded: bool = False


class FittedTable:
    """Rows of cells under heads. Cells are text, or `rich.text.Text` where they have a colour."""

    def __init__(self, *columns: Column) -> None:
        self.columns = columns
        self.rows: list[tuple[list[Text], str]] = []

    def add(self, *cells: str | Text, style: str = "") -> None:
        """Adds a row, one cell for each column."""
        if len(cells) != len(self.columns):
            raise ValueError(f"{len(cells)} cells for {len(self.columns)} columns")
        self.rows.append(([cell if isinstance(cell, Text) else Text(cell) for cell in cells], style))

    def lines(self, most: int) -> tuple[list[Text], list[str]]:
        """The lines of the table in a terminal of `most` columns, and the heads of the omitted columns."""
        shown = list(range(len(self.columns)))
        layout = self._layout(shown, most)
        while layout is None:
            spare = [index for index in shown if self.columns[index].rank]
            if not spare:
                layout = self._stack(shown, most)
                break
            shown.remove(max(spare, key=lambda index: (self.columns[index].rank, index)))
            layout = self._layout(shown, most)
        left_out = [
            " ".join(column.head.split()) for index, column in enumerate(self.columns) if index not in shown
        ]
        return layout(), left_out

    def print(self, console: Console, how: str = HOW) -> list[str]:
        """Prints the table, and returns the heads of the omitted columns; `how` explains how to show them."""
        lines, left_out = self.lines(width(console.file))
        for line in lines:
            console.print(line, soft_wrap=True)
        if left_out:
            for text in fold(no_room(left_out, how), width(console.file)):
                console.print(Text(text, style="dim"), soft_wrap=True)
        return left_out

    # -- layouts ---------------------------------------------------------------------------------

    def _layout(self, shown: Sequence[int], most: int) -> Callable[[], list[Text]] | None:
        """The layout in which these columns fit; None if none does."""
        widths = self._widths(shown)
        if _total(widths) <= most:
            return lambda: self._side_by_side(shown, widths)
        if len(shown) == 1:
            return None
        if self.columns[shown[-1]].folded:
            room = most - _total(widths[:-1]) - len(GAP)
            if room >= _LEAST_FOLDED:
                return lambda: self._side_by_side(shown, [*widths[:-1], room])
        room = most - _total(widths[1:]) - len(GAP)
        names = sorted(cell_len(cells[shown[0]].plain) for cells, _ in self.rows)
        if room >= self._head_width(shown[0]) and names and names[(len(names) - 1) // 2] <= room:
            # Half of the names fit; the others get a separate line above their numbers.
            return lambda: self._side_by_side(shown, [room, *widths[1:]], most)
        if widths[0] > most * _MOST_FOR_NAMES and len(_INDENT) + _total(widths[1:]) <= most:
            return self._stack(shown, most)
        return None

    def _head_width(self, index: int) -> int:
        return max(cell_len(line) for line in self.columns[index].head.split("\n"))

    def _widths(self, shown: Sequence[int]) -> list[int]:
        widths = []
        for index in shown:
            cells = (cell_len(cells[index].plain) for cells, _ in self.rows)
            widths.append(max([self._head_width(index), *cells]))
        return widths

    def _side_by_side(self, shown: Sequence[int], widths: Sequence[int], most: int = 0) -> list[Text]:
        lines = self._heads(shown, widths)
        for cells, style in self.rows:
            rest = list(cells)
            if cell_len(cells[shown[0]].plain) > widths[0]:
                lines += [_style(line, style) for line in _fold_cell(cells[shown[0]].copy(), most)]
                rest[shown[0]] = Text()
            lines += self._row([rest[index] for index in shown], shown, widths, style)
        return lines

    def _row(
        self, cells: Sequence[Text], shown: Sequence[int], widths: Sequence[int], style: str
    ) -> list[Text]:
        """The lines of one row: several if its last cell is wrapped."""
        parts = [_fold_cell(cell, room) for cell, room in zip(cells, widths, strict=True)]
        return [
            self._line(
                [part[number] if number < len(part) else Text() for part in parts], shown, widths, style
            )
            for number in range(max(map(len, parts)))
        ]

    def _stack(self, shown: Sequence[int], most: int) -> Callable[[], list[Text]]:
        """The first column on separate lines, the others below it; sentences below these if necessary."""
        first, rest = shown[0], list(shown[1:])
        below: int | None = None
        widths = self._widths(rest)
        if rest and self.columns[rest[-1]].folded and len(_INDENT) + _total(widths) > most:
            room = most - len(_INDENT) - _total(widths[:-1]) - len(GAP)
            if room >= _LEAST_FOLDED:
                widths[-1] = room
            else:
                below, rest, widths = rest[-1], rest[:-1], widths[:-1]

        def made() -> list[Text]:
            lines = [Text(self.columns[first].head.replace("\n", " "), style="bold")]
            lines += [Text(_INDENT) + line for line in self._heads(rest, widths)] if rest else []
            for cells, style in self.rows:
                lines += [_style(line, style) for line in _fold_cell(cells[first], most)]
                if rest:
                    row = self._row([cells[index] for index in rest], rest, widths, style)
                    lines += [Text(_INDENT) + line for line in row]
                if below is not None and cells[below].plain:
                    folded = _fold_cell(cells[below], most - 2 * len(_INDENT))
                    lines += [Text(2 * _INDENT) + _style(line, style) for line in folded]
            return lines

        return made

    def _heads(self, shown: Sequence[int], widths: Sequence[int]) -> list[Text]:
        heads = [self.columns[index].head.split("\n") for index in shown]
        height = max(map(len, heads), default=0)
        lines = []
        for number in range(height):
            row = [
                Text(head[number - height + len(head)] if number >= height - len(head) else "")
                for head in heads
            ]
            lines.append(self._line(row, shown, widths, "bold"))
        return lines

    def _line(self, row: Sequence[Text], shown: Sequence[int], widths: Sequence[int], style: str) -> Text:
        line = Text()
        for place, (cell, index, room) in enumerate(zip(row, shown, widths, strict=True)):
            pad = " " * max(0, room - cell_len(cell.plain))
            if place:
                line.append(GAP)
            left = self.columns[index].align == "left"
            line = line + cell + pad if left else line + pad + cell
        line.rstrip()
        return _style(line, style)


def no_room(heads: Sequence[str], how: str = HOW) -> str:
    """The sentence about omitted columns."""
    return f"No room for {', '.join(heads)}: {how}."


def fold(text: str, most: int) -> list[str]:
    """Wraps a sentence at `most` columns; keeps a longer word whole, and a number together with its percent
    sign.
    """
    joined = text.replace(" %", "\N{NO-BREAK SPACE}%")
    lines = textwrap.wrap(joined, most, break_long_words=False, break_on_hyphens=False)
    return [line.replace("\N{NO-BREAK SPACE}%", " %") for line in lines] or [""]


def _fold_cell(cell: Text, room: int) -> list[Text]:
    """Wraps a cell, if it has spaces at which it can be wrapped."""
    if cell_len(cell.plain) <= room:
        return [cell]
    return [Text(line, style=cell.style) for line in fold(cell.plain, room)]


def _style(line: Text, style: str) -> Text:
    if style:
        line.stylize_before(style)
    return line


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + len(GAP) * max(0, len(widths) - 1)
