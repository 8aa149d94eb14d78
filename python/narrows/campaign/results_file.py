"""results.csv and results.parquet: the rows of results.json as tables."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any

from narrows.csv_text import Rows
from narrows.documents.data import to_data
from narrows.documents.results import FORMAT, LinkRow, Results, Row

if TYPE_CHECKING:
    import pyarrow

#: Formats whose results are computed again from the records.
OLDER = ("narrows/results/1",)
_METADATA = b"narrows"


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
    """The rows of results as an Arrow table."""
    import pyarrow as pa

    of_metrics = {metric.name for metric in results.metrics}
    texts = ("scenario", "plane", "scheme", "row", "link", "flow_scheme", "verdict", "cell")
    types: dict[str, object] = {name: pa.string() for name in texts}
    types |= {name: pa.int64() for name in ("run", "seed", "duration_ns", "flow")}
    types |= {name: pa.float64() for name in of_metrics}
    arrays, names = [], []
    for name, values in as_columns(results).items():
        floats = name in of_metrics
        plain = [None if value is None else float(value) for value in values] if floats else values
        arrays.append(_array(plain, types.get(name)))
        names.append(name)
    described = {"format": FORMAT, "hash": results.hash, "digests": results.digests}
    made = pa.table(arrays, names=names)
    return made.replace_schema_metadata({_METADATA: json.dumps(described, sort_keys=True).encode()})


def _array(values: list[Any], kind: Any) -> Any:
    """An Arrow array of a column; `kind` is its type, or None to infer it from the values.

    Arrow's own conversion checks whether a list belongs to pandas, and for that imports pandas if it is
    installed, which takes longer than everything else in a short campaign.
    """
    import numpy as np
    import pyarrow as pa

    there = [value is not None for value in values]
    plain = {str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_()}
    if kind is None:
        types = {type(value) for value in values} - {type(None)}
        kind = pa.float64() if types == {int, float} else plain[types.pop()] if types else pa.null()
    if pa.types.is_null(kind):
        return pa.nulls(len(values))
    if pa.types.is_string(kind):
        texts = [(value or "").encode() for value in values]
        offsets = np.cumsum([0, *map(len, texts)], dtype=np.int32)
        content = [pa.py_buffer(offsets), pa.py_buffer(b"".join(texts))]
    elif pa.types.is_boolean(kind):
        content = [pa.py_buffer(np.packbits([bool(value) for value in values], bitorder="little"))]
    else:
        numbers = [0 if value is None else value for value in values]
        content = [pa.py_buffer(np.array(numbers, dtype=np.float64 if kind == pa.float64() else np.int64))]
    validity = None if all(there) else pa.py_buffer(np.packbits(there, bitorder="little"))
    return pa.Array.from_buffers(kind, len(values), [validity, *content])


def parquet_bytes(results: Results) -> bytes:
    """results.parquet."""
    import pyarrow.parquet

    out = io.BytesIO()
    pyarrow.parquet.write_table(table(results), out, compression="zstd")
    return out.getvalue()
