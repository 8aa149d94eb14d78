"""results.json, results.csv and results.parquet: the same rows in three forms.

In files a row has the scheme without the values of the matrix in `scheme`, the row of the tables that it
belongs to in `row`, and a number or nothing in `flow`. In memory, `scheme` is that row and `flow` may be
`all`.
"""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any

from narrows.csv_text import Rows

if TYPE_CHECKING:
    import pyarrow

FORMAT = "narrows/results/2"
#: Formats whose results are made again from the records.
OLDER = ("narrows/results/1",)
ALL = "all"
#: Parts of results whose rows are of a scheme.
_PARTS = ("rows", "summary", "links", "link_summary")
_METADATA = b"narrows"


def to_file(results: dict[str, Any]) -> dict[str, Any]:
    """Results as files have them."""
    return {name: [_out(row) for row in part] if name in _PARTS else part for name, part in results.items()}


def from_file(document: dict[str, Any]) -> dict[str, Any]:
    """Results as they are used here."""
    return {name: [_in(row) for row in part] if name in _PARTS else part for name, part in document.items()}


def _out(row: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in row.items():
        if name == "scheme":
            found |= {"scheme": row.get("base", value), "row": value}
        elif name == "flow":
            found[name] = None if value == ALL else value
        elif name != "base":
            found[name] = value
    return found


def _in(row: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in row.items():
        if name == "scheme":
            found |= {"scheme": row.get("row", value), "base": value}
        elif name == "flow":
            found[name] = ALL if value is None else value
        elif name != "row":
            found[name] = value
    return found


def as_columns(results: dict[str, Any]) -> dict[str, list[Any]]:
    """The rows of results (as in memory) as columns of equal length, one for each metric and each value that
    sets rows apart."""
    rows = [_out(row) for row in (*results["rows"], *results.get("links", ()))]
    linked = bool(results.get("links"))
    fixed = ["scenario", "plane", "scheme", "row", "run", "seed", "duration_ns", "flow"]
    fixed += [*(["link"] if linked else []), "flow_scheme", "background", "verdict", "cell"]
    found: dict[str, list[Any]] = {name: [row.get(name) for row in rows] for name in fixed}
    found["background"] = [bool(row.get("background")) for row in rows]
    for column in results.get("columns", ()):
        name = column["name"]
        found[name] = [(row.get("values") or {}).get(name) for row in rows]
    for metric in results["metrics"]:
        name = metric["name"]
        found[name] = [row["metrics"].get(name) for row in rows]
    return found


def csv_text(results: dict[str, Any]) -> str:
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


def table(results: dict[str, Any]) -> pyarrow.Table:
    """The rows of results as an Arrow table."""
    import pyarrow as pa

    of_metrics = {metric["name"] for metric in results["metrics"]}
    texts = ("scenario", "plane", "scheme", "row", "link", "flow_scheme", "verdict", "cell")
    types: dict[str, Any] = {name: pa.string() for name in texts}
    types |= {name: pa.int64() for name in ("run", "seed", "duration_ns", "flow")}
    types |= {name: pa.float64() for name in of_metrics}
    arrays, names = [], []
    for name, values in as_columns(results).items():
        floats = name in of_metrics
        plain = [None if value is None else float(value) for value in values] if floats else values
        arrays.append(_array(plain, types.get(name)))
        names.append(name)
    described = {"format": FORMAT, "hash": results.get("hash"), "digests": results.get("digests", {})}
    made = pa.table(arrays, names=names)
    return made.replace_schema_metadata({_METADATA: json.dumps(described, sort_keys=True).encode()})


def _array(values: list[Any], kind: Any) -> Any:
    """An Arrow array of a column; `kind` is its type, or None for the one that its values have.

    Arrow's own conversion looks whether a list is one of pandas, and for that imports pandas where it is
    installed, which takes longer than all else that a short campaign does.
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


def parquet_bytes(results: dict[str, Any]) -> bytes:
    """results.parquet."""
    import pyarrow.parquet

    out = io.BytesIO()
    pyarrow.parquet.write_table(table(results), out, compression="zstd")
    return out.getvalue()
