"""Tables of published values: CSV files with a heading, stored as they were printed."""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from narrows.errors import DataError
from narrows.files import read_whole
from narrows.lab.arithmetic import combine
from narrows.text import shorten

#: A published table is a page or a few.
MOST_BYTES = 20_000_000


@dataclass(frozen=True)
class Value:
    """A published value: one line, or several combined."""

    value: float
    #: The number of lines, and their smallest and largest value.
    lines: int
    low: float
    high: float


@dataclass(frozen=True)
class Published:
    """The lines of a table, and its column of scheme names."""

    path: Path
    scheme: str
    columns: tuple[str, ...]
    rows: tuple[dict[str, str], ...]

    @classmethod
    def read(cls, path: Path, scheme: str) -> Published:
        """Reads a CSV file. Raises `DataError` if it is not one, or has no such column."""
        try:
            text = read_whole(path, "published table", MOST_BYTES).decode("utf-8-sig")
            lines = list(csv.reader(text.splitlines(), strict=True))
        except DataError as error:
            raise DataError(f"{path}: {error}") from None
        except (UnicodeDecodeError, csv.Error):
            raise DataError(f"{path}: is not CSV in UTF-8; save the table as CSV") from None
        if len(lines) < 2:
            raise DataError(f"{path}: a published table has a head and at least one line of values")
        head = tuple(name.strip() for name in lines[0])
        if len(set(head)) < len(head):
            raise DataError(f"{path}:1: two columns have the same name")
        if scheme not in head:
            raise DataError(f'{path}:1: has no column "{shorten(scheme)}"; it has {", ".join(head)}')
        rows = []
        for number, line in enumerate(lines[1:], 2):
            if not any(line):
                continue
            if len(line) != len(head):
                raise DataError(f"{path}:{number}: has {len(line)} values for {len(head)} columns")
            rows.append({name: text.strip() for name, text in zip(head, line, strict=True)})
        return cls(path, scheme, head, tuple(rows))

    @property
    def schemes(self) -> list[str]:
        """The schemes in the table, in its order."""
        return list(dict.fromkeys(row[self.scheme] for row in self.rows))

    def lines(self, scheme: str, *where: Mapping[str, Sequence[str]]) -> list[dict[str, str]]:
        """The lines of a scheme that meet all conditions; if a column is named several times the last
        condition counts.
        """
        wanted = {column: texts for entry in where for column, texts in entry.items()}
        return [
            row
            for row in self.rows
            if row[self.scheme] == scheme
            and all(any(same(row[column], text) for text in texts) for column, texts in wanted.items())
        ]

    def value(self, lines: Sequence[Mapping[str, str]], column: str, of: str, factor: float) -> Value | None:
        """The combined value of lines; `None` if none of them has a number. Raises `DataError` for text that
        is not a number."""
        values = []
        for row in lines:
            text = row[column]
            if text in ("", "N/A", "NA", "-"):
                continue
            try:
                number = float(text)
            except ValueError:
                raise DataError(
                    f'{self.path}: "{shorten(text)}" in column {column} is not a number'
                ) from None
            if not math.isfinite(number):
                raise DataError(f'{self.path}: "{shorten(text)}" in column {column} is not a finite number')
            values.append(number * factor)
        if not values:
            return None
        return Value(combine(values, of), len(values), min(values), max(values))


def same(text: str, other: str) -> bool:
    """True if two texts of a table are equal, as text or as numbers."""
    if text == other:
        return True
    try:
        return float(text) == float(other)
    except ValueError:
        return False
