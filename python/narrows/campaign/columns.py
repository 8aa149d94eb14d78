"""The columns that distinguish the rows of a campaign: keys of the matrix and parameters of schemes.

Names end in the unit (`rate_bps`, `delay_ns`), values are in base units. A parameter has a column if some
scheme of the campaign has it at a value other than its default, or if it differs between two set-ups of one
scheme.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from narrows.documents import results
from narrows.documents.data import Value
from narrows.documents.resolved import Resolved
from narrows.scenario import registry as registries
from narrows.scenario.derived import quantity_of, suffix
from narrows.scenario.quantity import show
from narrows.scenario.registry import Param

#: Suffixes of names, and units, by the kind of value.
_UNITS = {
    "rate": ("bps", "bit/s"),
    "span": ("ns", "ns"),
    "bytes": ("bytes", "bytes"),
    "packets": ("packets", "packets"),
    "bdp": ("bdp", "bdp"),
    "ratio": ("ratio", "1"),
}
#: Columns that every row has.
FIXED = (
    "scenario", "plane", "scheme", "row", "run", "seed", "duration_ns", "flow", "link", "flow_scheme",
    "background", "verdict", "cell", "campaign",
)  # fmt: skip
_FLAGS = {"true": True, "false": False}


@dataclass(frozen=True)
class Column:
    """One column: its name in files, its name for people, its origin and the unit of its values."""

    name: str
    label: str
    #: `matrix`, `derived` (from the matrix), `scheme` or `transport`.
    source: str
    #: For a key of the matrix, its address.
    key: str | None
    kind: str

    def to_document(self) -> results.Column:
        """The column in the form of results."""
        return results.Column(
            name=self.name, label=self.label, source=self.source, key=self.key or None, unit=self.unit
        )

    @property
    def unit(self) -> str:
        """The unit of values in files; empty for text and plain numbers."""
        return _UNITS.get(self.kind, ("", ""))[1]


class Columns:
    """The columns of a campaign and their values; `metrics` are reserved names."""

    def __init__(self, scenario: Resolved, metrics: Collection[str] = ()) -> None:
        self.scenario = scenario
        self.rows = {row.label: row for row in self.scenario.schemes}
        self._taken = {name.lower() for name in (*FIXED, *metrics)}

    @cached_property
    def listed(self) -> list[Column]:
        """All columns, those of the matrix first."""
        return [column for column, _ in self._found]

    def values(self, label: str, flow: int | None = None) -> dict[str, Value]:
        """The values of a row of the scenario by column name, for one flow or for all; None if the row has no
        such value, or its flows have different ones.
        """
        result = {}
        for column, cells in self._found:
            of_row = cells.get(label, {})
            if None in of_row:
                result[column.name] = of_row[None]
            elif flow is not None:
                result[column.name] = of_row.get(flow)
            else:
                result[column.name] = self._common_value(label, of_row)
        return result

    def base(self, label: str) -> str:
        """The scheme of a row without the values of the matrix."""
        row = self.rows.get(label)
        return label.removesuffix(suffix(row.values)) if row and row.values else label

    def duration_ns(self, label: str) -> int | None:
        """The length of a row's runs."""
        return self.scenario.with_row(self.rows.get(label)).duration_ns or None

    # -- inside ----------------------------------------------------------------------------------

    #: The values of each column, by the labels of rows and the numbers of flows; the key `None` represents
    #: all flows.
    @cached_property
    def _found(self) -> list[tuple[Column, dict[str, dict[int | None, Any]]]]:
        pairs: list[tuple[Column, dict[str, dict[int | None, Any]]]] = []
        rows = self.rows.items()
        for source, keys, written in (
            ("matrix", self.scenario.matrix, {label: row.values for label, row in rows}),
            ("derived", {}, {label: row.derived for label, row in rows}),
        ):
            for name in dict.fromkeys(name for values in written.values() for name in values):
                texts = {label: values.get(name) for label, values in written.items()}
                kind, values = infer_types(text for text in texts.values() if text is not None)
                key = keys.get(name)
                column = Column(self._name(name, kind, key or f"{source}_{name}"), name, source, key, kind)
                pairs.append(
                    (column, {label: {None: values.get(text or "")} for label, text in texts.items()})
                )
        return pairs + self._parameters()

    def _parameters(self) -> list[tuple[Column, dict[str, dict[int | None, Any]]]]:
        registry = registries.load()
        entries = {**registry.schemes, **registry.bpf}
        of_transport = {param.name: param for param in registry.transport}
        kinds: dict[tuple[str, str], str] = {}
        wanted: dict[tuple[str, str], None] = {}
        seen: dict[tuple[str, str], Any] = {}
        values: dict[tuple[str, str], dict[str, dict[int | None, Any]]] = {}
        for label, row in self.rows.items():
            general = self.scenario.with_row(row).transport
            for flow in row.flows:
                entry = entries.get(flow.scheme)
                known = {param.name: param for param in entry.params} if entry else {}
                own = flow.transport
                ours = entry is not None and entry.name in registry.schemes and not entry.media
                for source, params, result in (
                    ("scheme", known, flow.params),
                    ("transport", of_transport, {**(general if ours else {}), **own}),
                ):
                    for name, value in result.items():
                        param = params.get(name) or Param(name, "text")
                        column = (source, name)
                        kinds.setdefault(column, param.kind)
                        values.setdefault(column, {}).setdefault(label, {})[flow.number] = _plain(
                            value, param
                        )
                        if flow.background:
                            continue
                        before = seen.setdefault((f"{source} {flow.scheme}", name), value)
                        off = source == "scheme" and name in params and value != param.default
                        if off or value != before or (source == "transport" and name in own):
                            wanted[column] = None
        columns = []
        for source, name in wanted:
            kind = kinds[source, name]
            # A share that is written as a plain number keeps its name: beta, not beta_ratio.
            end = "number" if kind == "ratio" else kind
            made = Column(self._name(name, end, f"{source}_{name}"), name, source, None, end)
            columns.append((made, values[source, name]))
        return columns

    def _common_value(self, label: str, of_row: dict[int | None, Any]) -> Any:
        """The value that all flows under test of a row share."""
        row = self.rows.get(label)
        result = [of_row.get(flow.number) for flow in (row.flows if row else ()) if not flow.background]
        return result[0] if result and all(value == result[0] for value in result) else None

    def _name(self, name: str, kind: str, longer: str) -> str:
        return free_name(name, kind, longer, self._taken)


def free_name(name: str, kind: str, longer: str, taken: set[str]) -> str:
    """A free name for a column, with the unit of its kind as a suffix; the name is reserved."""
    end = _UNITS.get(kind, ("", ""))[0]
    for number in range(1, 1000):
        word = name if number == 1 else longer if number == 2 else f"{longer}_{number}"
        text = re.sub(r"\W+", "_", word).strip("_") or "value"
        if end and not text.endswith(f"_{end}") and text != end:
            text = f"{text}_{end}"
        if text.lower() not in taken:
            break
    taken.add(text.lower())
    return text


def infer_types(texts: Iterable[str]) -> tuple[str, dict[str, object]]:
    """The common kind of written values, and the values in base units by their texts; without a common kind,
    `text` and the values as written.
    """
    texts = list(dict.fromkeys(texts))
    if texts and all(text in _FLAGS for text in texts):
        return "flag", {text: _FLAGS[text] for text in texts}
    result = {text: quantity_of(text) for text in texts}
    kinds = {quantity.kind if quantity else "text" for quantity in result.values()}
    kinds -= {"number"} if kinds == {"number", "ratio"} else set()
    kind = next(iter(kinds)) if len(kinds) == 1 else "text"
    if kind == "text":
        return kind, {text: text for text in texts}
    values = {text: quantity.value for text, quantity in result.items() if quantity}
    if all(value.denominator == 1 for value in values.values()) and kind not in ("ratio", "bdp"):
        return kind, {text: int(value) for text, value in values.items()}
    return kind, {text: float(value) for text, value in values.items()}


def _plain(value: Any, param: Param) -> Any:
    """A parameter's value as a cell of a table."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, dict):
        return str(value.get("name", ""))
    try:
        return show(param.kind, value)
    except (TypeError, ValueError):
        return str(value)
