"""results.csv and results.parquet: the rows of results.json as tables."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from narrows.csv_text import Rows
from narrows.documents.data import to_data
from narrows.documents.results import FORMAT, LinkRow, Results, Row

if TYPE_CHECKING:
    import pyarrow

#: Formats whose results are computed again from the records.
OLDER = ("narrows/results/1",)
_METADATA = b"narrows"
#: Columns whose types do not depend on the values.
_TEXTS = ("scenario", "plane", "scheme", "row", "link", "flow_scheme", "verdict", "cell")
_INTEGERS = ("run", "seed", "duration_ns", "flow")
_TYPES = {str: "text", int: "integer", float: "number", bool: "flag"}


def as_columns(results: Results) -> dict[str, list[Any]]:
    """The rows of results as columns of equal length, one for each metric and each value that distinguishes
    rows.
    """
    rows: list[Row | LinkRow] = [*results.rows, *results.links]
    plain = [to_data(row) for row in rows]
    linked = bool(results.links)
    fixed = ["scenario", "plane", "scheme", "row", "run", "seed", "duration_ns", "flow"]
    fixed += [*(["link"] if linked else []), "flow_scheme", "background", "verdict", "cell"]
    columns: dict[str, list[Any]] = {name: [row.get(name) for row in plain] for name in fixed}
    columns["background"] = [isinstance(row, Row) and row.background for row in rows]
    for column in results.columns:
        columns[column.name] = [(row.values or {}).get(column.name) for row in rows]
    for metric in results.metrics:
        columns[metric.name] = [row.metrics.get(metric.name) for row in rows]
    return columns


def csv_text(results: Results) -> str:
    """results.csv."""
    columns = as_columns(results)
    out = io.StringIO()
    rows = Rows(out)
    rows.write(columns)
    rows.write_all([cell_text(value) for value in row] for row in zip(*columns.values(), strict=True))
    return out.getvalue()


def cell_text(value: Any) -> str:
    """A value in CSV."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value) if isinstance(value, float) else str(value)


def table(results: Results) -> pyarrow.Table:
    """The rows of results as an Arrow table, with format, hash and digests in its metadata."""
    import pyarrow as pa
    import pyarrow.parquet

    read = pa.parquet.read_table(pa.BufferReader(parquet_bytes(results)))
    return with_common_types(read, [column.name for column in results.columns])


def with_common_types(read: pyarrow.Table, untyped: Iterable[str]) -> pyarrow.Table:
    """A table that was read from results.parquet, with our metadata alone. Columns `untyped` have no type if
    they have no values, so that tables of campaigns with other values can be joined.
    """
    import pyarrow as pa

    for name in untyped:
        place = read.schema.get_field_index(name)
        if place >= 0 and read.column(place).null_count == len(read):
            read = read.set_column(place, name, pa.nulls(len(read)))
    return read.replace_schema_metadata({_METADATA: (read.schema.metadata or {}).get(_METADATA, b"")})


def parquet_bytes(results: Results) -> bytes:
    """results.parquet. The extension module encodes it: importing pyarrow takes as long as a short run."""
    from narrows import _native

    metrics = {metric.name for metric in results.metrics}
    columns = [
        (name, "number" if name in metrics else _type_of(name, values), values)
        for name, values in as_columns(results).items()
    ]
    described = {"format": FORMAT, "hash": results.hash, "digests": results.digests}
    return _native.encode_table(columns, [(_METADATA.decode(), json.dumps(described, sort_keys=True))])


def _type_of(name: str, values: list[Any]) -> str:
    """The type of a column other than a metric's."""
    if name in _TEXTS:
        return "text"
    if name in _INTEGERS:
        return "integer"
    types = {type(value) for value in values} - {type(None)}
    return "number" if types == {int, float} else _TYPES[types.pop()] if types else "text"
