"""`narrows.query`: SQL over whole folders of campaigns, by DuckDB.

The views follow from the names in a query: `results` (a row per run and flow), `packets`, `states`, `queues`
and the other files of records, each preceded by the columns `campaign`, `cell`, `scheme`, `row`, `run` and
`verdict`. Records are read from their files, and only the requested columns.

DuckDB runs with the rights of the user. Unless a query is `unrestricted`, it can only select, and can open
only the files of these campaigns.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

from narrows.campaign.frames import Frame, OtherFrame, convert_table, read_parquet
from narrows.campaign.gathering import Gathered, gather
from narrows.campaign.integrity import parquet_problem
from narrows.errors import DataError, NarrowsError, UnavailableError, UsageError
from narrows.sweep.store import SweepFolder
from narrows.sweep.store import folders as sweep_folders

if TYPE_CHECKING:
    import duckdb
    import pyarrow

    from narrows.api.campaign import Campaign
    from narrows.campaign.store import CampaignFolder

#: Files of records that have views.
RECORDS = (
    "packets", "states", "queues", "bins", "delays", "transfers", "completions", "frames", "traces",
    "capacity",
)  # fmt: skip
RESULTS = "results"
#: Columns that precede those of a record.
_FRONT = ("campaign", "cell", "scheme", "row", "run", "verdict")
#: The start of a query that selects, after spaces, comments and parentheses.
_SELECTS = re.compile(r"(?:\s|\(|--[^\n]*\n|/\*.*?\*/)*(?:select|with|from|pivot|unpivot)\b", re.I | re.S)


@overload
def query(
    sql: str,
    *places: str | os.PathLike[str] | Campaign,
    to: Literal["arrow"] = ...,
    unrestricted: bool = ...,
) -> pyarrow.Table: ...
@overload
def query(
    sql: str, *places: str | os.PathLike[str] | Campaign, to: OtherFrame, unrestricted: bool = ...
) -> Any: ...
def query(
    sql: str,
    *places: str | os.PathLike[str] | Campaign,
    to: Frame = "arrow",
    unrestricted: bool = False,
) -> Any:
    """Answers an SQL query over the campaigns at and below these folders (`results` if none is named).

    `select scheme, median(throughput_bps) from results where verdict <> 'invalid' and flow is null group by
    scheme`

    The views are `results`, `packets`, `states`, `queues` and the other files of records; columns and units
    are those of the files. Unreadable folders are omitted with a warning of one sentence. With `unrestricted`
    the query may do everything that DuckDB can with your rights: write files, read others, attach databases,
    load extensions. Raises `UsageError` for a query that is wrong, `DataError` if a folder does not exist, or
    no table has the names of the query.
    """
    import warnings

    paths = [Path(place) if isinstance(place, str | os.PathLike) else place.path for place in places]
    table = ask(
        sql,
        paths or [Path("results")],
        lambda text: warnings.warn(text, stacklevel=3),
        unrestricted=unrestricted,
    )
    return convert_table(table, to)


def ask(
    sql: str,
    places: Iterable[Path],
    say: Callable[[str], None],
    execute: Callable[[Any, str], Any] | None = None,
    *,
    unrestricted: bool = False,
) -> pyarrow.Table:
    """The answer as an Arrow table; `say` receives a sentence per omission, `execute` runs the query."""
    return _Database(list(places), say, unrestricted).ask(sql, execute or answer_of)


def answer_of(connection: duckdb.DuckDBPyConnection, sql: str) -> pyarrow.Table | None:
    """The answer to a query; None if the statement returns nothing."""
    relation = connection.sql(sql)
    return None if relation is None else relation.to_arrow_table()


@dataclass
class _Cell:
    """A finished run: its campaign, its folder, and the values that precede its rows."""

    campaign: CampaignFolder
    path: Path
    front: dict[str, int | str | None]


@dataclass
class _Database:
    """The views over some folders."""

    places: list[Path]
    say: Callable[[str], None]
    unrestricted: bool = False
    campaigns: list[tuple[str, Gathered]] = field(default_factory=list)
    left_out: set[Path] = field(default_factory=set)
    #: Folders of sweeps, by their names.
    sweeps: list[tuple[str, Path]] = field(default_factory=list)

    def __post_init__(self) -> None:
        for item in gather(self.places):
            # Damaged records are reported when a query would read them.
            if item.note and (item.busy or item.folder is None):
                self.say(item.note)
            if item.folder is not None:
                self.campaigns.append((self._name(item.path), item))
        self.sweeps = [(self._name(path), path) for path in sweep_folders(self.places)]
        if not self.campaigns and not self.sweeps:
            where = ", ".join(map(str, self.places))
            raise DataError(f"{where}: there is no campaign that can be read; narrows run makes one")

    def _name(self, path: Path) -> str:
        """The name of a campaign: its folder relative to the named place."""
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
            # Unknown names are mistakes; they must never refer to variables of this program.
            with duckdb.connect(config={"python_enable_replacements": self.unrestricted}) as connection:
                files = [file for name in wanted for file in self._view(connection, name)]
                try:
                    if not self.unrestricted:
                        _restrict(connection, sql, files)
                    answer = execute(connection, sql)
                    if answer is None:
                        raise UsageError("the query has no answer; write one that selects something")
                    return answer
                except (duckdb.ParserException, duckdb.BinderException, duckdb.CatalogException) as error:
                    raise UsageError(f"the query can't be run: {_sentence(error)}") from None
                except duckdb.PermissionException as error:
                    raise UsageError(
                        f"the query can't be run: {_sentence(error)}; --unrestricted (in Python"
                        " unrestricted=True) allows everything that DuckDB can do with your rights"
                    ) from None
                except duckdb.Error as error:
                    # A file whose ends look right may still be damaged inside.
                    if attempt == 0 and self._find_damaged([name for name in wanted if name != RESULTS]):
                        continue
                    raise DataError(f"the query failed: {_sentence(error)}") from None
        raise AssertionError("the second attempt gives an answer or fails")

    def _view(self, connection: duckdb.DuckDBPyConnection, name: str) -> list[str]:
        """Makes a view; returns the files that it reads."""
        if name == RESULTS:
            return self._view_of_results(connection)
        files: list[str] = []
        fronts: dict[str, list[Any]] = {"file": [], **{column: [] for column in _FRONT}}
        cells = self._cells()
        with ThreadPoolExecutor() as pool:
            problems = list(pool.map(lambda cell: _problem(cell, cell.path / f"{name}.parquet"), cells))
        for cell, problem in zip(cells, problems, strict=True):
            path = cell.path / f"{name}.parquet"
            if path in self.left_out or problem == "":
                continue
            if problem:
                self.left_out.add(path)
                self.say(f"{problem}; it is left out")
                continue
            files.append(str(path))
            fronts["file"].append(str(path))
            for column in _FRONT:
                fronts[column].append(cell.front[column])
        if not files:
            raise DataError(f"no finished run of these campaigns has {name}")
        import pyarrow

        connection.register("narrows_cells", pyarrow.table(fronts))
        listed = ", ".join(map(_quote, files))
        front = ", ".join(f'c."{column}"' for column in _FRONT)
        connection.execute(
            f'create view "{name}" as select {front}, r.* exclude (narrows_file)'
            f" from read_parquet([{listed}], union_by_name = true, filename = 'narrows_file') r"
            " join narrows_cells c on c.file = r.narrows_file"
        )
        return files

    def _view_of_results(self, connection: duckdb.DuckDBPyConnection) -> list[str]:
        """Defines the view `results` over campaigns, and over the data sets of sweeps, which are read only if
        the query needs them.
        """
        selects, read_files = [], []
        if self.campaigns:
            connection.register("narrows_results", self._results())
            selects.append("select * from narrows_results")
        for name, path in self.sweeps:
            try:
                files = [str(part) for part in SweepFolder.read(path).parts]
            except DataError as error:
                self.say(f"{error}; it is left out")
                continue
            if files:
                read_files += files
                listed = ", ".join(map(_quote, files))
                read = f"read_parquet([{listed}], union_by_name = true, hive_partitioning = false)"
                selects.append(f"select {_quote(name)} as campaign, * from {read}")
        if not selects:
            raise DataError("the sweeps have no cells yet")
        connection.execute(f'create view "{RESULTS}" as {" union all by name ".join(selects)}')
        return read_files

    def _cells(self) -> list[_Cell]:
        from narrows.campaign.columns import Columns

        cells = []
        for name, item in self.campaigns:
            assert item.folder is not None
            columns = Columns(item.folder.resolved)
            for entry in item.folder.cells:
                if entry.is_finished:
                    label = entry.scheme
                    values = (
                        name,
                        entry.id,
                        columns.base(label),
                        label,
                        entry.run,
                        entry.verdict,
                    )
                    front = dict(zip(_FRONT, values, strict=True))
                    cells.append(_Cell(item.folder, item.folder.cell_dir(entry.id), front))
        return cells

    def _results(self) -> pyarrow.Table:
        from narrows.campaign.results import read
        from narrows.campaign.results_file import table

        tables: list[pyarrow.Table] = []
        for name, item in self.campaigns:
            try:
                made = table(read(item.path, item.folder))
            except NarrowsError as error:
                self.say(f"{error}; it is left out")
                continue
            import pyarrow

            names = pyarrow.array([name] * made.num_rows, pyarrow.string())
            tables.append(made.replace_schema_metadata(None).add_column(0, "campaign", names))
        if not tables:
            raise DataError("the results of none of these campaigns can be read")
        return concatenate(tables)

    def _find_damaged(self, names: list[str]) -> bool:
        """Reads all files of these views whole; returns True if it finds damage in a file that was not
        excluded before.
        """
        flag = False
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
                    flag = True
        return flag


def concatenate(tables: list[pyarrow.Table]) -> pyarrow.Table:
    """Concatenates tables. A column that one of them lacks is null there; a column that is text in some and
    numeric in others becomes text.
    """
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


def _problem(cell: _Cell, path: Path) -> str | None:
    """Why a file of a record can't be read or differs from the one that the run left, as a sentence without
    its end; empty if the run left no such file.
    """
    there = os.path.lexists(path)
    if there and (problem := parquet_problem(path)):
        return f"{path}: {problem}"
    try:
        cell.campaign.record_dir(cell.path.name)
    except DataError as error:
        return str(error)
    return None if there else ""


def _restrict(connection: duckdb.DuckDBPyConnection, sql: str, files: list[str]) -> None:
    """Restricts a connection to these files, and refuses every statement that does not merely select: DuckDB
    could write to files that it may read.
    """
    import duckdb

    for statement in duckdb.extract_statements(sql):
        kind = statement.type
        # A pivot becomes several statements, as a copy of one does.
        if kind != duckdb.StatementType.SELECT and not (
            kind == duckdb.StatementType.MULTI and _SELECTS.match(statement.query)
        ):
            raise UsageError(
                f"queries only select, and this one has a statement of another kind ({kind.name.lower()});"
                " --unrestricted (in Python unrestricted=True) allows everything that DuckDB can do with your"
                " rights"
            )
    connection.execute(f"set allowed_paths = [{', '.join(map(_quote, files))}]")
    connection.execute("set enable_external_access = false")
    connection.execute("set lock_configuration = true")


def _quote(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _sentence(error: Exception) -> str:
    """The first paragraph of a DuckDB message, on one line."""
    lines: list[str] = []
    for line in str(error).splitlines():
        if not line.strip() or line.startswith("LINE "):
            break
        lines.append(line.strip())
    return " ".join(lines).rstrip(".") or type(error).__name__
