"""Rows of a comparison as schemes and values of the matrix, in separate columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from narrows.documents.comparison import ComparedRow, Comparison


def conditions(document: Comparison) -> tuple[dict[str, str], list[str]]:
    """The values of the matrix that all rows share, by their names, and the names of those that differ."""
    result: dict[str, dict[str | None, None]] = {}
    samples = [sample.values for row in document.rows for sample in (row.base, row.other)]
    for name in dict.fromkeys(name for values in samples for name in values):
        result[name] = dict.fromkeys(values.get(name) for values in samples)
    shared = {name: str(next(iter(values))) for name, values in result.items() if len(values) == 1}
    return shared, [name for name in result if name not in shared]


def common_values(document: Comparison) -> str:
    """The values of the matrix that all rows share, in words; empty if there are none."""
    shared, _ = conditions(document)
    return f"All rows: {', '.join(f'{name} {value}' for name, value in shared.items())}." if shared else ""


def brief_name(row: ComparedRow, document: Comparison) -> str:
    """The name of a row when the values of the matrix are shown beside it: the scheme, or both if their names
    differ.
    """
    base, other = row.base, row.other
    if base.values != other.values and document.kind == "campaigns":
        return str(row.title)
    name = other.name or other.scheme
    if document.kind == "schemes":
        if document.against:
            return name
        return f"{name} against {base.name or base.scheme}"
    if name != base.name:
        name = f"{name} for {base.name}"
    return f"{name} in {other.side}" if len(document.sides) > 2 else name


def values_of(row: ComparedRow, names: Sequence[str]) -> list[str]:
    """The values of a row for these names."""
    return [row.other.values.get(name, "") for name in names]


def base_heading(document: Comparison) -> str:
    """The head of the column of names: the common base of all rows, if there is one."""
    if not document.against:
        return "scheme"
    bases = {row.base.scheme: row.base.name for row in document.rows}
    (label, name), *others = bases.items()
    same = all(row.base.values == row.other.values for row in document.rows)
    if same:
        # The conditions of the base are those of each row, in separate columns or stated once.
        return f"against {document.against if others else name or label}"
    return f"against {label}"


def heading(values: Mapping[str, str], names: Sequence[str]) -> str:
    """The values of these names in words: `droptail 1 bdp`; empty if there are none."""
    return ", ".join(f"{name} {values[name]}" for name in names if name in values)
