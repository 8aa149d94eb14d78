"""Names of rows in tables: the scheme, and each value of the matrix in a separate column.

A matrix makes a row for every scheme under every combination of its values; the label of the row contains all
of them in one line. In a table the values that differ between rows have columns, and the values that all rows
share are stated once above it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from narrows.campaign.conditions import Row


class RowNames:
    """The rows with some labels; a label without a row counts as a scheme without conditions."""

    def __init__(self, rows: Mapping[str, Row], labels: Iterable[str]) -> None:
        self._rows = {label: rows.get(label) or Row(label, label) for label in labels}
        values = [dict(row.values) for row in self._rows.values()]
        every = dict.fromkeys(name for own in values for name in own)
        #: The values that all rows share, by their names.
        self.shared: dict[str, str] = {
            name: values[0][name]
            for name in every
            if len(values) > 1 and {own.get(name) for own in values} == {values[0].get(name)}
        }
        #: The names of the values that differ between rows: the heads of their columns.
        self.heads: list[str] = [name for name in every if name not in self.shared]

    def scheme(self, label: str) -> str:
        """The scheme of a row, without its values."""
        return self._rows[label].scheme

    def values(self, label: str) -> list[str]:
        """The values of a row for the columns of `heads`; empty where the row has no such value."""
        own = dict(self._rows[label].values)
        return [own.get(name, "") for name in self.heads]

    def brief(self, label: str) -> str:
        """The name of a row in one line, without the values that all rows share: `cubic (droptail 1 bdp)`."""
        varied = zip(self.heads, self.values(label), strict=True)
        told = ", ".join(f"{name} {value}" for name, value in varied if value)
        return f"{self.scheme(label)} ({told})" if told else self.scheme(label)

    @property
    def sentence(self) -> str:
        """The values that all rows share, as a sentence: `All rows: delay 10 ms.`; empty if there
        are none.
        """
        told = ", ".join(f"{name} {value}" for name, value in self.shared.items())
        return f"All rows: {told}." if told else ""
