"""The folder of a sweep: `sweep.json`, and one Parquet data set that grows while the sweep runs.

    sweep.json                      format narrows/sweep/1: the keys and the progress
    data/slug=cubic/part-000001-5d41402a.parquet ...

A row is one flow of one cell, or all flows together (`flow` is null). Parts appear complete, by renaming, so
they can be read at any time, and a killed process loses only unwritten cells: those of some seconds. Cells
are identified by their addresses, and a cell in the data set is never run again.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import UNSET
from msgspec.structs import replace

from narrows import scratch
from narrows.campaign import sealing
from narrows.campaign.columns import FIXED, free_name, infer_types
from narrows.campaign.entries import now
from narrows.campaign.json_files import read_json, read_rewritable, read_typed, write_atomically
from narrows.campaign.measurement import list_metrics
from narrows.documents.campaign import Override
from narrows.documents.data import Value, to_data
from narrows.documents.run import Simulated
from narrows.documents.sweep import FORMAT, FailedCell, Sweep, SweepKey, SweepSession
from narrows.errors import DataError, NarrowsError, UsageError, reason
from narrows.files import open_regular
from narrows.locks import FolderLock
from narrows.sweep import parts
from narrows.sweep.loading import LoadedSweep, SweepCell

if TYPE_CHECKING:
    import pyarrow

DOCUMENT, DATA = "sweep.json", "data"
#: Seconds of work between two parts, or alternatively the share of the elapsed time that may be lost.
LEAST_S, SHARE = 1.0, 0.02
_ALSO = ("point", "reasons", "slug")


@dataclass(frozen=True)
class SweepRow:
    """A flow of a cell in the data set."""

    #: That of its scheme, which names the folder of its part.
    slug: str
    #: The address of the cell.
    cell: str
    #: Its values by column.
    values: dict[str, Value]


@dataclass
class SweepFolder:
    """An open sweep; only one process at a time may write to it."""

    path: Path
    document: Sweep
    #: Addresses of the existing cells.
    done: set[str] = field(default_factory=set)
    _lock: FolderLock | None = field(default=None, repr=False)
    _rows: list[SweepRow] = field(default_factory=list, repr=False)
    _began: float = field(default_factory=time.monotonic, repr=False)
    _written: float = field(default_factory=time.monotonic, repr=False)
    _part: int = 0
    #: Digests of the existing parts.
    _digests: dict[str, str] = field(default_factory=dict, repr=False)

    # -- opening ---------------------------------------------------------------------------------

    @classmethod
    def open(cls, path: Path, loaded: LoadedSweep) -> SweepFolder:
        """Opens the folder of this sweep: creates it, or continues it if it exists."""
        there = (path / DOCUMENT).exists()
        if there and read_document(path).hash != loaded.hash:
            raise UsageError(f"{path} holds another sweep; choose another folder with -o")
        return cls.adopting(path, None if there else _new_document(loaded), loaded.version)

    @classmethod
    def adopting(cls, path: Path, document: Sweep | None, version: str = "") -> SweepFolder:
        """Opens the folder for writing: creates it with this document, or takes the existing one."""
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise NarrowsError(f"{path}: can't be created: {reason(error)}; choose another with -o") from None
        lock = FolderLock(path, "sweep")
        try:
            if document is not None:
                left = [place.name for place in path.iterdir() if not place.name.startswith(".")]
                if left and left != [DATA]:
                    raise UsageError(f"{path} is not empty and holds no sweep; choose another folder with -o")
            else:
                document = read_rewritable(path / DOCUMENT, FORMAT, Sweep)
            session = SweepSession(started_at=now(), version=version)
            folder = cls(path, replace(document, sessions=[*document.sessions, session]), _lock=lock)
            folder._sweep_up()
            # Missing cells run again.
            folder._digests = parts.digests(path / DATA, document.parts or {})
            folder.done = set(folder.column("cell"))
            folder.save()
        except BaseException:
            lock.close()
            raise
        return folder

    @classmethod
    def read(cls, path: Path) -> SweepFolder:
        """Opens a sweep for reading, which may grow meanwhile. Raises `DataError` if parts of it are lost,
        were changed or do not belong to it.
        """
        while True:
            folder = cls(path, read_document(path))
            problem = parts.problem(path, folder.document) or folder._lost_cells()
            if problem is None:
                return folder
            # A session may have started and written a part since.
            if read_document(path) == folder.document:
                raise DataError(problem)

    def close(self) -> None:
        """Releases the folder for other processes."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def _sweep_up(self) -> None:
        """Removes incomplete files of a killed process."""
        for folder in (self.path, *self.path.glob(f"{DATA}/*")):
            scratch.remove_left(folder)

    # -- reading ---------------------------------------------------------------------------------

    @property
    def parts(self) -> list[Path]:
        """The files of the data set."""
        return parts.files(self.path / DATA)

    def table(self, columns: list[str] | None = None) -> pyarrow.Table:
        """The existing rows; `columns` selects some columns. Raises `DataError` if a part is damaged."""
        import pyarrow as pa

        tables = [self._part_table(part, columns) for part in self.parts]
        return pa.concat_tables(tables) if tables else self._choose(columns).empty_table()

    def rows_of(self, part: Path) -> list[SweepRow]:
        """The rows of one part."""
        slug, table = part.parent.name.removeprefix("slug="), self._part_table(part, None)
        cells = table.column("cell").to_pylist()
        return [SweepRow(slug, cell, values) for cell, values in zip(cells, table.to_pylist(), strict=True)]

    def _choose(self, columns: list[str] | None) -> pyarrow.Schema:
        import pyarrow as pa

        schema = self.schema()
        return schema if columns is None else pa.schema([schema.field(name) for name in columns])

    def _part_table(self, part: Path, columns: list[str] | None) -> pyarrow.Table:
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            with open_regular(part) as stream, pq.ParquetFile(stream) as file:
                return file.read(columns).cast(self._choose(columns))
        except (OSError, pa.ArrowException, ValueError) as error:
            text = reason(error) if isinstance(error, OSError) else str(error).splitlines()[0]
            raise DataError(f"{part}: is damaged ({text}); remove it, and run the sweep again") from None

    def column(self, name: str) -> list[Any]:
        """The values of one column."""
        return list(self.table([name]).column(0).to_pylist())

    def schema(self) -> pyarrow.Schema:
        """The columns of the data set with their types."""
        import pyarrow as pa

        texts, whole = pa.string(), pa.int64()
        fields = [
            ("point", whole), ("cell", texts), ("scenario", texts), ("plane", texts), ("scheme", texts),
            ("run", whole), ("seed", whole), ("duration_ns", whole), ("flow", whole), ("flow_scheme", texts),
            ("background", pa.bool_()), ("verdict", texts), ("reasons", texts),
        ]  # fmt: skip
        kinds = {"text": texts, "flag": pa.bool_()}
        fields += [(key.name, kinds.get(key.kind, pa.float64())) for key in self.document.parameters]
        fields += [(name, pa.float64()) for name in self.document.metrics]
        return pa.schema(fields)

    # -- writing ---------------------------------------------------------------------------------

    def add(self, cell: SweepCell, result: Simulated) -> None:
        """Stores the metrics of a cell, and writes a part when it is due."""
        if cell.address in self.done:
            return
        self.done.add(cell.address)
        self._rows += self._of_cell(cell, result)
        self._write_if_due()

    def adopt(self, rows: list[SweepRow]) -> int:
        """Adopts rows of another folder of the same sweep for missing cells; returns their number."""
        new = [row for row in rows if row.cell not in self.done]
        added = {row.cell for row in new}
        self.done |= added
        self._rows += new
        self._write_if_due()
        return len(added)

    def _of_cell(self, cell: SweepCell, result: Simulated) -> Iterator[SweepRow]:
        front: dict[str, Value] = {
            "point": cell.point.number,
            "cell": cell.address,
            "scenario": self.document.name,
            "plane": "simulate",
            "scheme": cell.row.label,
            "run": cell.run,
            "seed": cell.seed,
            "duration_ns": cell.duration_ns,
            "verdict": result.verdict,
            "reasons": " ".join(reason.code or "" for reason in result.reasons),
        }
        for key in self.document.parameters:
            text = cell.point.words[key.label]
            value: Any = infer_types([text])[1][text]
            front[key.name] = value if key.kind == "flag" else _as(key.kind, value, text)
        for flow in result.measured.flows if result.measured else ():
            values = {
                **front,
                "flow": None if flow.flow == "all" else int(flow.flow),
                "flow_scheme": flow.scheme,
                "background": flow.background,
                **{name: None if value is None else float(value) for name, value in flow.metrics.items()},
            }
            yield SweepRow(cell.row.slug, cell.address, values)

    def _write_if_due(self) -> None:
        passed = time.monotonic() - self._written
        if passed > max(LEAST_S, SHARE * (time.monotonic() - self._began)):
            self.flush()

    def flush(self) -> None:
        """Writes the stored rows as parts, one for each scheme. Raises `NarrowsError` if the folder no longer
        exists.
        """
        import pyarrow as pa
        import pyarrow.parquet as pq

        if self._lock is not None:
            self._lock.check()
        by_slug: dict[str, list[dict[str, Value]]] = {}
        for row in self._rows:
            by_slug.setdefault(row.slug, []).append(row.values)
        schema = self.schema()
        for slug, rows in by_slug.items():
            table = pa.Table.from_pylist(rows, schema=schema)
            sink = pa.BufferOutputStream()
            pq.write_table(table, sink, compression="zstd")
            target = self.path / DATA / f"slug={slug}"
            self._part += 1
            try:
                target.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise NarrowsError(f"{target}: can't be created: {reason(error)}") from None
            name = f"part-{self._part:06}-{uuid.uuid4().hex[:8]}.parquet"
            content = sink.getvalue().to_pybytes()
            write_atomically(target / name, content)
            self._digests[f"{target.name}/{name}"] = parts.digest_of(content)
        self._rows = []
        self._written = time.monotonic()

    def save(self) -> None:
        """Writes sweep.json."""
        self.document = replace(self.document, parts=dict(sorted(self._digests.items())))
        write_atomically(self.path / DOCUMENT, sealing.seal(to_data(self.document), FORMAT))

    def end(self, outcome: str, failed: list[FailedCell]) -> None:
        """Writes everything, and records how the work ended and which cells exist, since parts may have been
        removed. Raises `NarrowsError` if some were although the sweep seemed complete.
        """
        self.flush()
        kept = self.done
        self._digests = parts.digests(self.path / DATA, self._digests)
        self.done = set(self.column("cell"))
        lost = len(kept - self.done)
        complete = outcome in ("done", "merged")
        if lost and complete:
            outcome = "incomplete"
        *earlier, last = self.document.sessions
        sessions = [*earlier, replace(last, ended_at=now(), outcome=outcome)]
        self.document = replace(self.document, cells=len(self.done), failed=failed, sessions=sessions)
        self.save()
        if lost and complete:
            raise NarrowsError(
                f"{self.path}: {lost} of {len(kept)} cells are gone: parts of its data were removed while the"
                f" sweep was at work; run the same command with -o {self.path} again, which makes them anew"
            )

    def _lost_cells(self) -> str | None:
        """The loss of cells in sweeps without digests of parts, by their number."""
        if self.document.parts is not UNSET or self.document.is_open:
            return None
        noted, there = self.document.cells, len(set(self.column("cell")))
        if there >= noted:
            return None
        return (
            f"{self.path}: has lost {noted - there} of its {noted} cells; run the same sweep with"
            f" -o {self.path} again, which makes them anew"
        )


def _as(kind: str, value: Any, text: str) -> Any:
    return text if kind == "text" else float(value)


def _new_document(loaded: LoadedSweep) -> Sweep:
    sweep, first = loaded.sweep, loaded.first
    metrics = [metric.name for metric in list_metrics()]
    taken = {*FIXED, *_ALSO, *metrics}
    parameters = []
    for key in sweep.parameters:
        kind, _ = infer_types([key.at(share)[1] for share in key.shares])
        name = free_name(key.name, kind, key.key, taken)
        parameters.append(SweepKey(name=name, label=key.name, key=key.key, kind=kind, law=key.law.text))
    return Sweep(
        name=first.name,
        title=first.title,
        question=first.question,
        hash=loaded.hash,
        written=loaded.text,
        overrides=[Override(option=item.option, path=item.path, value=item.text) for item in loaded.changes],
        parameters=parameters,
        design=sweep.design,
        constraints=sweep.constraints,
        until=sweep.until or UNSET,
        schemes=[row.label for row in first.schemes],
        metrics=metrics,
        created_at=now(),
    )


def read_document(path: Path) -> Sweep:
    """The content of a folder's sweep.json."""
    return read_typed(path / DOCUMENT, read_json(path / DOCUMENT, FORMAT), Sweep)


def is_sweep(path: Path) -> bool:
    """True if the folder contains a sweep."""
    return (path / DOCUMENT).is_file()


def folders(places: Iterable[Path]) -> list[Path]:
    """The sweep folders at and below these."""
    paths = [path.parent for place in places for path in sorted(place.glob(f"**/{DOCUMENT}"))]
    return list(dict.fromkeys(paths))
