"""Arrow tables of records, and the same as data frames of Polars or pandas."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from narrows.errors import DataError, UnavailableError, UsageError, reason
from narrows.files import open_regular

if TYPE_CHECKING:
    import pyarrow

#: Kinds of tables that methods can return.
Frame = Literal["arrow", "polars", "pandas"]
OtherFrame = Literal["polars", "pandas"]
FRAMES = ("arrow", "polars", "pandas")


def convert_table(table: pyarrow.Table, to: Frame) -> Any:
    """The table as a `pyarrow.Table`, a `polars.DataFrame` or a `pandas.DataFrame`. Raises `UnavailableError`
    where that package is not installed."""
    if to == "arrow":
        return table
    if to not in FRAMES:
        raise UsageError(f'"{to}" is not a kind of table; choose arrow, polars or pandas')
    try:
        if to == "polars":
            import polars

            return polars.from_arrow(table)
        import pandas  # noqa: F401 - Arrow uses it

        return table.to_pandas()
    except ImportError:
        raise UnavailableError(f"{to} is not installed; pip install {to}, or take the Arrow table") from None


def read_parquet(path: Path, flow: int | None = None) -> pyarrow.Table:
    """One Parquet file of a record, or its rows of one flow. Raises `DataError` with one sentence if it is
    missing or damaged.
    """
    import pyarrow
    import pyarrow.compute
    import pyarrow.parquet

    try:
        with open_regular(path) as stream, pyarrow.parquet.ParquetFile(stream) as file:
            table = file.read()
    except (pyarrow.ArrowException, OSError) as error:
        why = reason(error) if isinstance(error, OSError) and error.errno else _first_line(error)
        raise DataError(f"{path}: can't be read: {why}") from None
    if flow is None:
        return table
    return table.filter(pyarrow.compute.equal(table["flow"], flow))


def _first_line(error: BaseException) -> str:
    lines = str(error).splitlines()
    return lines[0].rstrip(".") if lines else type(error).__name__
