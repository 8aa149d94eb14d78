"""The rows of a campaign as schemes and conditions, and the selection of rows by name.

A matrix makes a row of every scheme in every combination of its values. The label of a row has both, for
example `cubic (droptail 1 bdp, delay 10 ms)`; here they are separate.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from narrows.documents.resolved import Resolved
from narrows.errors import UsageError
from narrows.scenario.derived import quantity_of, suffix
from narrows.text import did_you_mean, shorten

#: An error message lists up to this many names.
_LISTED = 30


@dataclass(frozen=True, slots=True)
class Row:
    """A scheme under one combination of the matrix values, as the scenario writes them."""

    label: str
    scheme: str
    values: tuple[tuple[str, str], ...] = ()
    #: Values derived from those of the matrix, and further names of the keys: `--only` accepts them as well.
    also: tuple[tuple[str, str], ...] = ()

    @property
    def condition(self) -> str:
        """The values in words: `droptail 1 bdp, delay 10 ms`; empty without a matrix."""
        return ", ".join(f"{name} {value}" for name, value in self.values)


def rows_of(resolved: Resolved, labels: Iterable[str]) -> dict[str, Row]:
    """The rows with these labels; a label that the resolved scenario does not list counts as a scheme without
    conditions.
    """
    listed = {row.label: row for row in resolved.schemes}
    rows = {}
    for label in labels:
        row = listed.get(label)
        if not row or not row.values:
            rows[label] = Row(label, label)
            continue
        keys = ((key, row.values[name]) for name, key in resolved.matrix.items() if name in row.values)
        also = (*row.derived.items(), *keys)
        rows[label] = Row(label, label.removesuffix(suffix(row.values)), tuple(row.values.items()), also)
    return rows


def read_only(texts: Sequence[str]) -> dict[str, list[str]]:
    """The values of each name in options such as `droptail=1 bdp`; raises `UsageError` for invalid texts."""
    only: dict[str, list[str]] = {}
    for text in texts:
        name, sign, value = (part.strip() for part in text.partition("="))
        if not (name and sign and value):
            raise UsageError(
                f'--only: "{shorten(text)}" is not a name and a value;'
                ' write for example --only droptail="1 bdp"'
            )
        only.setdefault(name, []).append(" ".join(value.split()))
    return only


def choose(
    rows: Sequence[Row], schemes: Sequence[str] = (), only: Mapping[str, Sequence[str]] | None = None
) -> list[Row]:
    """The rows of these schemes (by name, or by the label of a row) that match a value for every name in
    `only`; an empty selection takes all. Raises `UsageError` for names and values that no row has.
    """
    kept = list(rows)
    if schemes:
        known = list(dict.fromkeys(row.scheme for row in rows))
        for wanted in schemes:
            if not any(wanted in (row.scheme, row.label) for row in rows):
                labels = [*known, *(row.label for row in rows)]
                raise UsageError(
                    f"scheme {shorten(wanted)!r} does not exist"
                    f"{did_you_mean(wanted, labels) or '; there is ' + _some(known)}"
                )
        kept = [row for row in kept if row.scheme in schemes or row.label in schemes]
    for name, values in (only or {}).items():
        _check_name(rows, name)
        for value in values:
            _check_value(rows, name, value)
        kept = [row for row in kept if any(_has(row, name, value) for value in values)]
    asked = [*schemes, *(f"{name} {' or '.join(values)}" for name, values in (only or {}).items())]
    if asked and not kept:
        raise UsageError(f"no row has {' and '.join(asked)}")
    return kept


def _values(row: Row, name: str) -> list[str]:
    """The values of a row for a name. A value of two words, such as `droptail 1 bdp`, may be named by its
    first word.
    """
    pairs = (*row.values, *row.also)
    texts = [value for own, value in pairs if own == name]
    return texts or [value[len(name) + 1 :] for _, value in pairs if value.startswith(f"{name} ")]


def _has(row: Row, name: str, wanted: str) -> bool:
    quantity = quantity_of(wanted)
    for value in _values(row, name):
        if value == wanted:
            return True
        own = quantity_of(value)
        if quantity and own and (own.kind, own.value) == (quantity.kind, quantity.value):
            return True
    return False


def _check_name(rows: Sequence[Row], name: str) -> None:
    if any(_values(row, name) for row in rows):
        return
    names = list(dict.fromkeys(own for row in rows for own, _ in row.values))
    if not names:
        raise UsageError(f"--only {shorten(name)}: the scenario has no matrix whose values could be chosen")
    hint = did_you_mean(name, names) or f"; it has {_some(names)}"
    raise UsageError(f"--only: the matrix has no {shorten(name)!r}{hint}")


def _check_value(rows: Sequence[Row], name: str, value: str) -> None:
    if any(_has(row, name, value) for row in rows):
        return
    there = list(dict.fromkeys(own for row in rows for own in _values(row, name)))
    raise UsageError(f"--only: {name} is never {shorten(value)!r}; its values are {_some(there)}")


def _some(names: Sequence[str]) -> str:
    more = len(names) - _LISTED
    return ", ".join(names[:_LISTED]) + (f" and {more} more" if more > 0 else "")
