"""`narrows query`."""

from __future__ import annotations

import sys
from decimal import Decimal
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from narrows.cli.app import command
from narrows.cli.common import Json, Metrics, read_metrics
from narrows.cli.parameters import argument, option

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow

#: A terminal shows up to this many rows; the other formats have all of them.
_MOST_ROWS = 500
#: Up to this many omitted columns are named.
_NAMED = 8
#: Whole numbers up to the second limit are shown in full, others from the first one on in four digits.
_LARGE, _WHOLE = 1e5, 1e15
#: Seconds after which progress is shown.
_PATIENCE_S = 2.0


class Form(StrEnum):
    """Formats of an answer."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"


@command(example='narrows query "select scheme, median(throughput_bps) from results group by scheme"')
def query(
    sql: Annotated[str, argument(metavar="SQL", help="The query; - reads it from standard input.")],
    folders: Annotated[
        list[Path] | None,
        argument(metavar="[DIR]...", help="Folders below which campaigns are. [default: results]"),
    ] = None,
    form: Annotated[Form, option("--format", help="table, csv or json.")] = Form.TABLE,
    unrestricted: Annotated[
        bool,
        option(
            "--unrestricted",
            help="Allow everything that DuckDB can do with your rights: write files, read others, attach"
            " databases, load extensions.",
        ),
    ] = False,
    metrics: Metrics = None,
    as_json: Json = False,
) -> None:
    """Ask all campaigns below a folder in SQL (DuckDB).

    The views are results (a row per run and flow; flow is null in the row of all flows), packets, states and
    queues, and the other files of records; each has the columns campaign, cell, scheme, row, run and verdict.
    Sweeps are in results too, with a column for each of their keys, also while they run. Columns end in their
    unit: _bps, _ns, _bytes. "describe results" lists those of a view. Invalid runs are included: where
    verdict <> 'invalid' leaves them out. Queries only select, and read only the files of these campaigns.

    Exit codes: 0 done, 2 the query is wrong, 3 no campaign could be read.
    """
    from narrows.api.query import ask
    from narrows.console import say

    read_metrics(metrics)
    text = sys.stdin.read() if sql == "-" else sql
    table = ask(text, folders or [Path("results")], say, _run_watched, unrestricted=unrestricted)
    if as_json or form is Form.JSON:
        _print_json(table)
    elif form is Form.CSV:
        _print_csv(table)
    else:
        _print_table(table)


def _run_watched(connection: Any, sql: str) -> Any:
    """Runs the query; shows progress on a terminal if it takes long."""
    from concurrent.futures import ThreadPoolExecutor
    from concurrent.futures import TimeoutError as NotYet

    from narrows.api.query import answer_of
    from narrows.progress import progress

    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(answer_of, connection, sql)
        try:
            return future.result(timeout=_PATIENCE_S)
        except NotYet:
            with progress("query", 100) as bar:
                while not future.done():
                    bar.update(max(0.0, connection.query_progress()))
                    try:
                        return future.result(timeout=0.2)
                    except NotYet:
                        continue
            return future.result()
        except KeyboardInterrupt:
            connection.interrupt()
            raise


def _print_json(table: pyarrow.Table) -> None:
    from narrows.cli.common import print_json

    print_json([{name: _json(value) for name, value in row.items()} for row in table.to_pylist()])


def _json(value: Any) -> Any:
    import math

    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, list):
        return [_json(inner) for inner in value]
    if isinstance(value, dict):
        return {str(key): _json(inner) for key, inner in value.items()}
    return str(value)


def _print_csv(table: pyarrow.Table) -> None:
    from narrows.campaign.results_file import cell_text
    from narrows.csv_text import Rows

    rows = Rows(sys.stdout)
    rows.write(table.column_names)
    for batch in table.to_batches():
        columns = [column.to_pylist() for column in batch.columns]
        rows.write_all([cell_text(value) for value in row] for row in zip(*columns, strict=True))


def _print_table(table: pyarrow.Table) -> None:
    from narrows.console import Listing, say, stdout_console

    console = stdout_console()
    shown = table.slice(0, _MOST_ROWS)
    names = list(shown.column_names)
    columns = [[_show(value) for value in column.to_pylist()] for column in shown.columns]
    kept, left = _fitting(names, columns, console.width)
    right = [names[at] for at in kept if _is_number(shown.column(at).type)]
    made = Listing(*(names[at] for at in kept), whole=names, right=right)
    for number in range(shown.num_rows):
        made.add_row(*(columns[at][number] for at in kept))
    console.print(made)
    if left:
        listed = ", ".join(names[at] for at in left[:_NAMED])
        listed += f" and {len(left) - _NAMED} more" if len(left) > _NAMED else ""
        say(f"columns that don't fit: {listed}; a wider terminal shows them, --format csv has all")
    if table.num_rows > _MOST_ROWS:
        say(f"these are {_MOST_ROWS} of {table.num_rows} rows; --format csv has all")


def _fitting(names: list[str], columns: Sequence[Sequence[str]], width: int) -> tuple[list[int], list[int]]:
    """The first columns that fit side by side without truncation (at least one), and the others."""
    kept: list[int] = []
    used = 0
    for at, (name, values) in enumerate(zip(names, columns, strict=True)):
        needed = max([len(name), *map(len, values)]) + (2 if kept else 0)
        if kept and used + needed > width:
            break
        kept.append(at)
        used += needed
    return kept, list(range(len(kept), len(names)))


def _is_number(kind: Any) -> bool:
    import pyarrow.types as kinds

    return bool(kinds.is_integer(kind) or kinds.is_floating(kind) or kinds.is_decimal(kind))


def _show(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        large = _LARGE <= abs(value) < _WHOLE
        return f"{value:.0f}" if large or (value.is_integer() and abs(value) < _WHOLE) else f"{value:.6g}"
    return " ".join(str(value).split())
