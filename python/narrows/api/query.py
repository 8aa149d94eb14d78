"""`narrows.query`: SQL over whole folders of campaigns, by DuckDB.

Views are made of what a query names: `results` (a row per run and flow), `packets`, `states`, `queues` and
the other files of records, each with the columns `campaign`, `cell`, `scheme`, `row`, `run` and `verdict` in
front. Records are read from their files, and only the columns that are asked for.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

from narrows.campaign.frames import Frame, OtherFrame, converted, read_parquet
from narrows.campaign.gathering import Gathered, gather, parquet_problem
from narrows.errors import DataError, NarrowsError, UnavailableError, UsageError
from narrows.sweep.store import folders as sweep_folders

if TYPE_CHECKING:
    import duckdb
    import pyarrow

    from narrows.api.campaign import Campaign

#: Files of records that are views.
RECORDS = (
    "packets", "states", "queues", "bins", "delays", "transfers", "completions", "frames", "traces",
    "capacity",
)  # fmt: skip
RESULTS = "results"
#: Columns in front of those of a record.
_FRONT = ("campaign", "cell", "scheme", "row", "run", "verdict")


@overload
def query(
    sql: str, *places: str | os.PathLike[str] | Campaign, to: Literal["arrow"] = ...
) -> pyarrow.Table: ...
@overload
def query(sql: str, *places: str | os.PathLike[str] | Campaign, to: OtherFrame) -> Any: ...
def query(sql: str, *places: str | os.PathLike[str] | Campaign, to: Frame = "arrow") -> Any:
    """The answer to an SQL query over the campaigns at and below these folders (`results` if none is named).

    `select scheme, median(throughput_bps) from results where verdict <> 'invalid' and flow is null group by
    scheme`

    The views are `results`, `packets`, `states`, `queues` and the other files of records; columns and units
    are those of the files. What can't be read costs a warning with one sentence and is left out. Raises
    `UsageError` for a query that is wrong, `DataError` if a folder is not there or nothing in it has what the
    query names.
    """
    import warnings

    paths = [Path(place) if isinstance(place, str | os.PathLike) else place.path for place in places]
    table = ask(sql, paths or [Path("results")], lambda text: warnings.warn(text, stacklevel=3))
    return converted(table, to)


def ask(
    sql: str,
    places: Iterable[Path],
    say: Callable[[str], None],
    execute: Callable[[Any, str], Any] | None = None,
) -> pyarrow.Table:
    """The same as an Arrow table; `say` is told what is left out, and `execute` runs the query."""
    return _Database(list(places), say).ask(sql, execute or answer_of)


def answer_of(connection: duckdb.DuckDBPyConnection, sql: str) -> pyarrow.Table | None:
    """The answer to a query; None if it is a statement that has none."""
    relation = connection.sql(sql)
    return None if relation is None else relation.to_arrow_table()


@dataclass
class _Cell:
    """A finished run: its folder, and what stands in front of its rows."""

    path: Path
    front: dict[str, Any]


@dataclass
class _Database:
    """The views over some folders."""

    places: list[Path]
    say: Callable[[str], None]
    campaigns: list[tuple[str, Gathered]] = field(default_factory=list)
    left_out: set[Path] = field(default_factory=set)
    #: Folders of sweeps, with their names.
    sweeps: list[tuple[str, Path]] = field(default_factory=list)

    def __post_init__(self) -> None:
        for one in gather(self.places):
            # Damaged records are told where a query would read them.
            if one.note and (one.busy or one.folder is None):
                self.say(one.note)
            if one.folder is not None:
                self.campaigns.append((self._name(one.path), one))
        self.sweeps = [(self._name(path), path) for path in sweep_folders(self.places)]
        if not self.campaigns and not self.sweeps:
            where = ", ".join(map(str, self.places))
            raise DataError(f"{where}: there is no campaign that can be read; narrows run makes one")

    def _name(self, path: Path) -> str:
        """The name of a campaign: its folder below the place that was named."""
        for place in self.places:
            if path != place and path.is_relative_to(place):
                return path.relative_to(place).as_posix()
        return path.name or path.resolve().name

    def ask(self, sql: str, execute: Callable[[Any, str], Any]) -> pyarrow.Table:
        try:
            import duckdb
        except ImportError:
            raise UnavailableError(
                "queries need DuckDB, which is not installed; pip install duckdb"
            ) from None
        wanted = [name for name in (RESULTS, *RECORDS) if re.search(rf"\b{name}\b", sql, re.IGNORECASE)]
        for attempt in range(2):
            with duckdb.connect() as connection:
                for name in wanted:
                    self._view(connection, name)
                try:
                    answer = execute(connection, sql)
                    if answer is None:
                        raise UsageError("the query has no answer; write one that selects something")
                    return answer
                except (duckdb.ParserException, duckdb.BinderException, duckdb.CatalogException) as error:
                    raise UsageError(f"the query can't be run: {_sentence(error)}") from None
                except duckdb.Error as error:
                    # Files that look right at their ends may be damaged inside.
                    if attempt == 0 and self._find_damaged([name for name in wanted if name != RESULTS]):
                        continue
                    raise DataError(f"the query failed: {_sentence(error)}") from None
        raise AssertionError("the second attempt gives an answer or fails")

    def _view(self, connection: duckdb.DuckDBPyConnection, name: str) -> None:
        if name == RESULTS:
            self._view_of_results(connection)
            return
        files: list[str] = []
        fronts: dict[str, list[Any]] = {"file": [], **{column: [] for column in _FRONT}}
        for cell in self._cells():
            path = cell.path / f"{name}.parquet"
            if path in self.left_out or not path.exists():
                continue
            if problem := parquet_problem(path):
                self.left_out.add(path)
                self.say(f"{path}: {problem}; it is left out")
                continue
            files.append(str(path))
            fronts["file"].append(str(path))
            for column in _FRONT:
                fronts[column].append(cell.front[column])
        if not files:
            raise DataError(f"no finished run of these campaigns has {name}")
        import pyarrow

        connection.register("narrows_cells", pyarrow.table(fronts))
        listed = ", ".join(map(_quoted, files))
        front = ", ".join(f'c."{column}"' for column in _FRONT)
        connection.execute(
            f'create view "{name}" as select {front}, r.* exclude (narrows_file)'
            f" from read_parquet([{listed}], union_by_name = true, filename = 'narrows_file') r"
            " join narrows_cells c on c.file = r.narrows_file"
        )

    def _view_of_results(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Results of campaigns, and the data sets of sweeps, which are read where the query needs them."""
        selects = []
        if self.campaigns:
            connection.register("narrows_results", self._results())
            selects.append("select * from narrows_results")
        for name, path in self.sweeps:
            files = []
            for part in sorted(path.glob("data/*/*.parquet")):
                if problem := parquet_problem(part):
                    self.say(f"{part}: {problem}; it is left out")
                else:
                    files.append(_quoted(str(part)))
            if files:
                read = f"read_parquet([{', '.join(files)}], union_by_name = true, hive_partitioning = false)"
                selects.append(f"select {_quoted(name)} as campaign, * from {read}")
        if not selects:
            raise DataError("the sweeps have no cells yet")
        connection.execute(f'create view "{RESULTS}" as {" union all by name ".join(selects)}')

    def _cells(self) -> list[_Cell]:
        from narrows.campaign.columns import Columns

        found = []
        for name, one in self.campaigns:
            assert one.folder is not None
            columns = Columns(one.folder.document)
            for entry in one.folder.cells:
                if entry["state"] == "finished":
                    label = entry["scheme"]
                    values = (
                        name,
                        entry["id"],
                        columns.base(label),
                        label,
                        entry["run"],
                        entry.get("verdict"),
                    )
                    front = dict(zip(_FRONT, values, strict=True))
                    found.append(_Cell(one.folder.cell_dir(entry["id"]), front))
        return found

    def _results(self) -> pyarrow.Table:
        from narrows.campaign.results import read
        from narrows.campaign.results_file import table

        tables: list[pyarrow.Table] = []
        for name, one in self.campaigns:
            try:
                made = table(read(one.path))
            except NarrowsError as error:
                self.say(f"{error}; it is left out")
                continue
            import pyarrow

            names = pyarrow.array([name] * made.num_rows, pyarrow.string())
            tables.append(made.replace_schema_metadata(None).add_column(0, "campaign", names))
        if not tables:
            raise DataError("the results of none of these campaigns can be read")
        return concatenated(tables)

    def _find_damaged(self, names: list[str]) -> bool:
        """Reads all files of these views whole; True if one is damaged that was not left out before."""
        found = False
        for cell in self._cells():
            for name in names:
                path = cell.path / f"{name}.parquet"
                if path in self.left_out or not path.exists():
                    continue
                try:
                    read_parquet(path)
                except DataError as error:
                    self.left_out.add(path)
                    self.say(f"{error}; it is left out")
                    found = True
        return found


def concatenated(tables: list[pyarrow.Table]) -> pyarrow.Table:
    """Tables below each other. A column that one of them lacks is null there; one that is text in some and
    numbers in others is text."""
    import pyarrow as pa

    kinds: dict[str, set[Any]] = {}
    for table in tables:
        for column in table.schema:
            kinds.setdefault(column.name, set()).add(column.type)
    mixed = {name for name, types in kinds.items() if len({_family(kind) for kind in types} - {"null"}) > 1}
    if mixed:
        tables = [_as_text(table, mixed) for table in tables]
    return pa.concat_tables(tables, promote_options="permissive")


def _family(kind: Any) -> str:
    import pyarrow.types as kinds

    if kinds.is_null(kind):
        return "null"
    return "number" if kinds.is_integer(kind) or kinds.is_floating(kind) else str(kind)


def _as_text(table: pyarrow.Table, names: Iterable[str]) -> pyarrow.Table:
    import pyarrow as pa

    for name in names:
        if name in table.column_names:
            at = table.column_names.index(name)
            table = table.set_column(at, name, table.column(name).cast(pa.string()))
    return table


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _sentence(error: Exception) -> str:
    """The first paragraph of a message of DuckDB on one line."""
    lines: list[str] = []
    for line in str(error).splitlines():
        if not line.strip() or line.startswith("LINE "):
            break
        lines.append(line.strip())
    return " ".join(lines).rstrip(".") or type(error).__name__
