"""CSV that spreadsheets can open safely: no text becomes a formula.

Spreadsheets evaluate a field that begins with `=`, `+`, `-`, `@`, a tab or a line break, and such a formula
may call programs. Such a field is preceded by an apostrophe, which marks text. Numbers stay unchanged.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable
from typing import TextIO

_FORMULAS = ("=", "+", "-", "@", "\t", "\r", "\n")


class Rows:
    """Writes rows to a stream of text."""

    def __init__(self, stream: TextIO) -> None:
        self._writer = csv.writer(_Lines(stream))

    def write(self, row: Iterable[object]) -> None:
        """Writes one row; None is an empty field."""
        self._writer.writerow([neutralise(value) for value in row])

    def write_all(self, rows: Iterable[Iterable[object]]) -> None:
        """Writes several rows."""
        self._writer.writerows([neutralise(value) for value in row] for row in rows)


class _Lines:
    """Ends rows with a line feed. The library quotes only the line breaks that it writes itself, and a
    carriage return must be quoted, too.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, row: str) -> int:
        """Writes one row."""
        return self._stream.write(row.removesuffix("\r\n") + "\n")


def neutralise(value: object) -> object:
    """The value of a field in a form that no spreadsheet evaluates."""
    if isinstance(value, str) and value.startswith(_FORMULAS) and not _is_number(value):
        return f"'{value}"
    return value


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text)) and text == text.strip() and "_" not in text
    except ValueError:
        return False
