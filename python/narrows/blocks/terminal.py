"""Blocks on a terminal, with tables that fit and never truncate a number or a name.

A column of a table has a short head and a rank. Columns that do not fit are omitted, the highest rank
first, and a line below the table names them and explains how to show them. Where the first column, usually a
name, takes too much room, it has a separate line with the other columns below it; a last column of sentences
is wrapped between words. Columns are aligned in all rows.
"""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.text import Text

from narrows.blocks.model import (
    Block,
    Cell,
    Document,
    Either,
    Facts,
    Figure,
    Items,
    Paragraph,
    Preformatted,
    Section,
    Table,
)
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

#: Styles of cells, items and paragraphs by their kind.
STYLES = {
    "absent": "dim",
    "quiet": "dim",
    "remark": "dim",
    "total": "bold",
    "lead": "bold",
    "good": "green",
    "warn": "yellow",
    "bad": "red",
    "outcome-ok": "green",
    "outcome-degraded": "yellow",
    "outcome-invalid": "red",
    "outcome-failed": "red",
    "outcome-worse": "red",
    "outcome-better": "green",
    "hint": "dim",
}
#: The largest width of the names of facts; longer ones only move their value.
_MOST_FOR_FACTS = 20

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


def print_table(console: Console, table: Table, how: str = HOW) -> list[str]:
    """Prints a table, and returns the heads of the omitted columns; `how` explains how to show them."""
    lines, left_out = fit_table(table, width(console.file))
    for line in lines:
        console.print(line, soft_wrap=True)
    for note in table.notes:
        print_text(console, f"({note.mark}) {note.text}" if note.mark else note.text, "remark")
    if left_out:
        print_text(console, no_room(left_out, how), "remark", "")
    return left_out


def fit_table(table: Table, most: int) -> tuple[list[Text], list[str]]:
    """The lines of a table in a terminal of `most` columns, and the heads of the omitted columns."""
    return _Layout(table).lines(most)


def _show_cell(cell: Cell) -> Text:
    text = cell.text
    if cell.small:
        text += f" {cell.small}" if cell.small.startswith(("[", "(")) or not text else f" ({cell.small})"
    if cell.marks:
        text += f" ({', '.join(cell.marks)})"
    if cell.status_mark:
        text += f" {cell.status_mark}"
    return Text(text, style=STYLES.get(cell.kind, ""))


class _Layout:
    """Finds the lines of a table."""

    def __init__(self, table: Table) -> None:
        self.columns = table.columns
        self.heads = [
            f"{column.head}\n{column.unit}" if column.unit else column.head for column in table.columns
        ]
        self.rows = [[_show_cell(cell) for cell in row] for row in table.pad_rows()]

    def lines(self, most: int) -> tuple[list[Text], list[str]]:
        """The lines in a terminal of `most` columns, and the heads of the omitted columns."""
        shown = list(range(len(self.columns)))
        layout = self._layout(shown, most)
        while layout is None:
            spare = [index for index in shown if self.columns[index].rank]
            if not spare:
                layout = self._stack(shown, most)
                break
            shown.remove(max(spare, key=lambda index: (self.columns[index].rank, index)))
            layout = self._layout(shown, most)
        return layout(), [
            " ".join(head.split()) for index, head in enumerate(self.heads) if index not in shown
        ]

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
        names = sorted(cell_len(cells[shown[0]].plain) for cells in self.rows)
        if room >= self._head_width(shown[0]) and names and names[(len(names) - 1) // 2] <= room:
            # Half of the names fit; the others get a separate line above their numbers.
            return lambda: self._side_by_side(shown, [room, *widths[1:]], most)
        if widths[0] > most * _MOST_FOR_NAMES and len(_INDENT) + _total(widths[1:]) <= most:
            return self._stack(shown, most)
        return None

    def _head_width(self, index: int) -> int:
        return max(cell_len(line) for line in self.heads[index].split("\n"))

    def _widths(self, shown: Sequence[int]) -> list[int]:
        widths = []
        for index in shown:
            cells = (cell_len(cells[index].plain) for cells in self.rows)
            widths.append(max([self._head_width(index), *cells]))
        return widths

    def _side_by_side(self, shown: Sequence[int], widths: Sequence[int], most: int = 0) -> list[Text]:
        lines = self._heads(shown, widths)
        for cells in self.rows:
            rest = list(cells)
            if cell_len(cells[shown[0]].plain) > widths[0]:
                lines += _fold_cell(cells[shown[0]], most)
                rest[shown[0]] = Text()
            lines += self._row([rest[index] for index in shown], shown, widths)
        return lines

    def _row(self, cells: Sequence[Text], shown: Sequence[int], widths: Sequence[int]) -> list[Text]:
        """The lines of one row: several if its last cell is wrapped."""
        parts = [_fold_cell(cell, room) for cell, room in zip(cells, widths, strict=True)]
        return [
            self._line([part[number] if number < len(part) else Text() for part in parts], shown, widths)
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

        def build() -> list[Text]:
            lines = [Text(self.heads[first].replace("\n", " "), style="bold")]
            lines += [Text(_INDENT) + line for line in self._heads(rest, widths)] if rest else []
            for cells in self.rows:
                lines += _fold_cell(cells[first], most)
                if rest:
                    row = self._row([cells[index] for index in rest], rest, widths)
                    lines += [Text(_INDENT) + line for line in row]
                if below is not None and cells[below].plain:
                    folded = _fold_cell(cells[below], most - 2 * len(_INDENT))
                    lines += [Text(2 * _INDENT) + line for line in folded]
            return lines

        return build

    def _heads(self, shown: Sequence[int], widths: Sequence[int]) -> list[Text]:
        heads = [self.heads[index].split("\n") for index in shown]
        height = max(map(len, heads), default=0)
        lines = []
        for number in range(height):
            row = [
                Text(head[number - height + len(head)] if number >= height - len(head) else "")
                for head in heads
            ]
            line = self._line(row, shown, widths)
            line.stylize_before("bold")
            lines.append(line)
        return lines

    def _line(self, row: Sequence[Text], shown: Sequence[int], widths: Sequence[int]) -> Text:
        line = Text()
        for place, (cell, index, room) in enumerate(zip(row, shown, widths, strict=True)):
            pad = " " * max(0, room - cell_len(cell.plain))
            if place:
                line.append(GAP)
            left = self.columns[index].align == "left"
            line = line + cell + pad if left else line + pad + cell
        line.rstrip()
        return line


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


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + len(GAP) * max(0, len(widths) - 1)


def print_document(console: Console, document: Document, how: str = HOW) -> None:
    """Prints a document: facts and preamble, then its title and its blocks."""
    facts = (Facts(document.facts),) if document.facts else ()
    if above := (*facts, *document.preamble):
        print_blocks(console, above, how)
        console.print()
    print_text(console, document.title, "lead", "")
    if document.blocks:
        console.print()
    print_blocks(console, document.blocks, how)


def print_blocks(console: Console, blocks: Iterable[Block], how: str = HOW) -> None:
    """Prints blocks below each other; `how` explains how to show the columns that do not fit."""
    before: Block | None = None
    for block in _without_pages(blocks):
        if before is not None and not _belong_together(before, block):
            console.print()
        _print_block(console, block, how)
        before = block


def _without_pages(blocks: Iterable[Block]) -> Iterable[Block]:
    for block in blocks:
        if isinstance(block, Either):
            yield from _without_pages(block.text)
        elif not isinstance(block, Figure) or block.file:
            yield block


def _belong_together(before: Block, block: Block) -> bool:
    """True for two blocks of text, and for a remark below its table."""
    text = (Paragraph, Items, Figure)
    if isinstance(before, Table):
        return isinstance(block, Paragraph) and block.kind == "remark"
    return isinstance(before, text) and isinstance(block, text)


def _print_block(console: Console, block: Block, how: str) -> None:
    match block:
        case Table():
            print_table(console, block, how)
        case Paragraph():
            print_text(console, block.text, block.kind, "")
        case Items():
            for item in block.items:
                text = f"- {item.text} ({item.small})" if item.small else f"- {item.text}"
                print_text(console, text, item.kind)
        case Facts():
            column = min(_MOST_FOR_FACTS, max(len(name) for name, _ in block.rows))
            for name, value in block.rows:
                print_text(console, f"{name:{column}}  {value}", indent=" " * (column + 2))
        case Preformatted():
            for line in block.text.splitlines():
                console.print(line, soft_wrap=True)
        case Figure():
            print_text(console, f"{block.title}: {block.file}")
        case Section():
            title = f"{block.title}, {block.small}" if block.small else block.title
            print_text(console, title, "lead", "")
            print_blocks(console, block.blocks, how)


def print_text(console: Console, text: str, kind: str = "", indent: str = "  ") -> None:
    """Prints a sentence in the available width; all lines after the first are indented."""
    room = width(console.file)
    first, *rest = fold(text, room)
    lines = [first, *(indent + line for line in fold(" ".join(rest), room - len(indent)) if rest)]
    for line in lines:
        console.print(Text(line, style=STYLES.get(kind, "")), soft_wrap=True)
