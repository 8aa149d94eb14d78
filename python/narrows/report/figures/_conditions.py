"""Parts that figures of a matrix share: titles of panels, styles of schemes, columns of numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from narrows.report.data import Campaign
from narrows.report.drawing import Numbers
from narrows.report.style import Style


def groups(data: Campaign, labels: Sequence[str]) -> dict[str, list[str]]:
    """The labels of these rows by condition, in the order of the scenario; conditions without rows are
    omitted.
    """
    wanted = set(labels)
    result = {
        title: [row.label for row in rows if row.label in wanted] for title, rows in data.conditions.items()
    }
    return {title: own for title, own in result.items() if own}


def scheme_of(data: Campaign, label: str) -> str:
    """The scheme of a row."""
    return data.rows[label].scheme


def look(data: Campaign, label: str) -> Style:
    """The style of a row's scheme, the same in all figures of the campaign."""
    return data.styles[scheme_of(data, label)]


def columns(data: Campaign, labels: Sequence[str], numbers: Mapping[str, Any]) -> Numbers:
    """Numbers of rows, with the scheme and each value of the matrix in separate columns."""
    rows = [data.rows[label] for label in labels]
    names = dict.fromkeys(name for row in rows for name, _ in row.values)
    taken = {"scheme", *numbers}
    return {
        "scheme": [row.scheme for row in rows],
        **{
            f"value of {name}" if name in taken else name: [dict(row.values).get(name) for row in rows]
            for name in names
        },
        **numbers,
    }


def says_conditions(data: Campaign) -> str:
    """The sentence of a caption about the panels; empty without a matrix."""
    shared = [
        f"{name} {value}"
        for name, value in (next(iter(data.rows.values())).values if data.rows else ())
        if all(dict(row.values).get(name) == value for row in data.rows.values())
    ]
    several = len(data.conditions) > 1
    text = f" A panel for each of the {len(data.conditions)} combinations of the matrix." if several else ""
    return text + (f" All rows have {', '.join(shared)}." if shared else "")
