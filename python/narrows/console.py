"""Consoles and tables of the command line."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
import unicodedata
from collections.abc import Collection, Iterable, Iterator
from itertools import zip_longest
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions
    from rich.text import Text

#: Width of tables outside a terminal, so that no line is wrapped in a log.
WIDTH_OF_FILES = 200
#: Columns are not wrapped to less than this, and words up to the other length are not broken.
_NARROWEST, _LONGEST_WORD = 8, 20


def stdout_console() -> Console:
    """The console of results."""
    return _console(sys.stdout.isatty(), stderr=False)


def stderr_console() -> Console:
    """The console of progress and messages."""
    return _console(sys.stderr.isatty(), stderr=True)


def _console(terminal: bool, *, stderr: bool) -> Console:
    from rich.console import Console

    # Labels, reasons and file names are printed literally: "[red]" and ":x:" have no special meaning in them.
    # The library itself honours COLUMNS.
    width = None if terminal or os.getenv("COLUMNS", "").isdecimal() else WIDTH_OF_FILES
    # In a notebook, rich would print every line as a separate page.
    return Console(
        stderr=stderr, width=width, highlight=False, markup=False, emoji=False, force_jupyter=False
    )


def say(text: str) -> None:
    """Prints a message on standard error."""
    stderr_console().print(text, soft_wrap=True)


class Listing:
    """A table without lines. Columns in `whole` are never wrapped, those in `right` are right-aligned; the
    others share the room that is left. Importing rich would take longer than all the rest of a list.
    """

    def __init__(self, *titles: str, whole: Collection[str] = (), right: Collection[str] = ()) -> None:
        self.rows = [titles]
        self.whole = [title in whole for title in titles]
        self.right = [title in right for title in titles]

    def add_row(self, *cells: str) -> None:
        """Adds a row; cells may have several lines, and the last ones may be missing."""
        self.rows.append((*cells, *[""] * (len(self.whole) - len(cells))))

    def lines(self, most: int) -> tuple[list[str], list[str]]:
        """The lines of the heads, and those of the rows, of at most this width if the columns permit it."""
        columns = [*zip(*self.rows, strict=True)]
        widths = [max(map(_width, column)) for column in columns]
        least = [
            width if whole else min(width, max(_NARROWEST, min(_LONGEST_WORD, _longest_word(column))))
            for column, width, whole in zip(columns, widths, self.whole, strict=True)
        ]
        # The widest column becomes narrower, until all fit.
        while sum(widths) > most - 2 * (len(widths) - 1) and widths != least:
            widest = max((at for at in range(len(widths)) if widths[at] > least[at]), key=widths.__getitem__)
            widths[widest] -= 1
        heads, *rows = ([*self._lines(row, widths)] for row in self.rows)
        return heads, [line for row in rows for line in row]

    def _lines(self, row: tuple[str, ...], widths: list[int]) -> Iterator[str]:
        cells = [_wrap(cell, width) for cell, width in zip(row, widths, strict=True)]
        for parts in zip_longest(*cells, fillvalue=""):
            padded = (
                " " * (width - _width(part)) + part if right else part + " " * (width - _width(part))
                for part, width, right in zip(parts, widths, self.right, strict=True)
            )
            yield "  ".join(padded).rstrip()

    def print(self) -> None:
        """Prints the table on standard output."""
        terminal = sys.stdout.isatty() and os.getenv("TERM") != "dumb"
        columns = os.getenv("COLUMNS", "")
        known = shutil.get_terminal_size().columns if terminal or columns.isdecimal() else WIDTH_OF_FILES
        heads, lines = self.lines(known)
        for line in heads:
            print(f"\x1b[1m{line}\x1b[0m" if terminal else line)
        print("\n".join(lines))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        from rich.text import Text

        heads, lines = self.lines(options.max_width)
        yield from (Text(line, "bold", no_wrap=True, overflow="ignore") for line in heads)
        yield from (Text(line, no_wrap=True, overflow="ignore") for line in lines)


def _wrap(text: str, most: int) -> list[str]:
    """The lines of a cell, wrapped between words where they are too long."""
    lines: list[str] = []
    for line in text.split("\n"):
        lines += [line] if _width(line) <= most else textwrap.wrap(line, most, break_on_hyphens=False)
    return lines


def _width(text: str) -> int:
    """The columns that a text takes in a terminal: those of its widest line."""
    return max(len(line) if line.isascii() else sum(map(_columns, line)) for line in text.split("\n"))


def _longest_word(column: Iterable[str]) -> int:
    return max((len(word) for cell in column for word in cell.split()), default=0)


def _columns(letter: str) -> int:
    if unicodedata.category(letter) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1
