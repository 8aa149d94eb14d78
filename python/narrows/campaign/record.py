"""One run of one scheme: its settings, its verdict, its metrics and its records."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

from narrows.campaign.frames import Frame, OtherFrame, convert_table, read_parquet
from narrows.documents.campaign import FINISHED, INVALID, CellEntry
from narrows.documents.data import Value
from narrows.documents.results import MeasuredFlow, Row
from narrows.documents.run import FORMAT, RunRecord
from narrows.errors import DataError

if TYPE_CHECKING:
    import pyarrow

    from narrows.documents.resolved import Cell

#: Tables of a record, with the scenario key that controls them.
_WANTED_BY = {
    "packets": "record: packets",
    "bins": "record: bins",
    "delays": "record: bins",
    "transfers": "transfers: all, and traffic that makes transfers",
    "completions": "transfers: bins",
    "traces": "a scheme that publishes more than its states",
    "frames": "a real-time scheme with an encoder",
    "capacity": "a rate that does not follow from the scenario alone",
}


class Run:
    """One run of one scheme, as passed to functions marked with `@narrows.metric`.

    Files are read on demand and not cached: each call reads the file again.
    """

    def __init__(
        self, path: Path, entry: CellEntry | None = None, rows: Sequence[Row | MeasuredFlow] = ()
    ) -> None:
        self.path = path
        """The folder of the record."""
        self._entry = entry
        self._given = rows

    def __repr__(self) -> str:
        return f"<narrows.Run {self.cell}: {self.verdict or self.state}>"

    # -- settings --------------------------------------------------------------------------------

    @property
    def cell(self) -> str:
        """The name of the cell: `cubic-r1`."""
        return self._entry.id if self._entry else self.path.name

    @cached_property
    def document(self) -> dict[str, Any]:
        """The whole `run.json`. Raises `DataError` if it is missing, damaged or of a newer version."""
        from narrows.campaign.json_files import read_json

        self._check()
        return read_json(self.path / "run.json", FORMAT)

    @cached_property
    def _record(self) -> RunRecord:
        from narrows.campaign.json_files import read_run

        self._check()
        return read_run(self.path)

    @cached_property
    def _planned(self) -> Cell:
        from narrows.documents.resolved import read_cell

        return read_cell(self._record.cell)

    def _check(self) -> None:
        """Raises `DataError` if the files differ from those that the run left."""

    @property
    def row(self) -> str:
        """The row of the tables: the scheme, with the values of a matrix if there is one."""
        return self._entry.scheme if self._entry else self._planned.scheme

    @property
    def scheme(self) -> str:
        """The scheme as the scenario lists it, without the values of a matrix."""
        first = self._rows[0] if self._rows else None
        return first.base if isinstance(first, Row) else self.row

    @property
    def number(self) -> int:
        """The number of the run, from 1; runs of one number share their seed."""
        return self._entry.run if self._entry else self._planned.run

    @property
    def seed(self) -> int:
        """The seed of all randomness in the run."""
        noted = self._entry.seed if self._entry else None
        return noted or self._planned.seed

    @property
    def state(self) -> str:
        """`finished`, `failed` or `pending`."""
        return self._entry.state if self._entry else FINISHED

    @property
    def verdict(self) -> str | None:
        """`ok`, `degraded` or `invalid`; None if the run is not finished."""
        return self._entry.verdict if self._entry else self._record.verdict

    @property
    def valid(self) -> bool:
        """True if the run may enter statistics."""
        return self.state == FINISHED and self.verdict != INVALID

    @property
    def reasons(self) -> list[str]:
        """Why the verdict is not simply ok, in sentences."""
        return [reason.text or "" for reason in (self._entry or self._record).reasons]

    @property
    def settings(self) -> dict[str, Any]:
        """The cell as it was run: network, flows with all parameters, transport; in base units."""
        return dict(self._record.cell)

    @property
    def duration_ns(self) -> int:
        """The length of the run, in nanoseconds."""
        return self._planned.duration_ns

    @property
    def flows(self) -> list[int]:
        """The numbers of the flows under test."""
        return [flow.number for flow in self._planned.flows if not flow.background]

    @property
    def values(self) -> dict[str, Value]:
        """The values of the matrix and the parameters that distinguish the runs of this campaign, in base
        units, by the names of their columns in results.
        """
        return dict(
            next((row.values or {} for row in self._rows if isinstance(row, Row) and row.flow == "all"), {})
        )

    # -- numbers ---------------------------------------------------------------------------------

    @cached_property
    def _rows(self) -> Sequence[Row | MeasuredFlow]:
        if self._given:
            return self._given
        from narrows.campaign import measurement

        return measurement.measure_cell(self.path).flows

    def metrics(self, flow: int | str = "all") -> dict[str, float | None]:
        """The metrics of one flow or of all flows together, in base units, by name; None for a metric without
        a value.

        Raises `DataError` if the run has no such flow.
        """
        for row in self._rows:
            if str(row.flow) == str(flow):
                return dict(row.metrics)
        known = ", ".join(str(row.flow) for row in self._rows)
        raise DataError(f"{self.cell}: flow {flow} does not exist; there are {known}")

    # -- records ---------------------------------------------------------------------------------

    @overload
    def table(self, name: str, flow: int | None = ..., *, to: Literal["arrow"] = ...) -> pyarrow.Table: ...
    @overload
    def table(self, name: str, flow: int | None = ..., *, to: OtherFrame) -> Any: ...
    def table(self, name: str, flow: int | None = None, *, to: Frame = "arrow") -> Any:
        """A table of the record by the name of its file: `packets`, `states`, `queues`, `bins`, `delays`,
        `transfers`, `frames`, `traces`, `capacity` ..., of one flow or of all.

        Columns and units are those of docs/guide/records.md: times in ns since the start of the run, sizes in
        bytes, rates in bit/s. Raises `DataError` if the run has no such table or the table is damaged.
        """
        self._check()
        path = self.path / f"{name}.parquet"
        if not path.exists():
            there = sorted(place.stem for place in self.path.glob("*.parquet"))
            if not there:
                raise DataError(f"{self.path}: has no record; the run is {self.state}")
            why = f" (they are kept with {_WANTED_BY[name]})" if name in _WANTED_BY else ""
            raise DataError(f"{self.path}: has no {name}{why}; there are {', '.join(there)}")
        return convert_table(read_parquet(path, flow), to)

    @overload
    def packets(self, flow: int | None = ..., *, to: Literal["arrow"] = ...) -> pyarrow.Table: ...
    @overload
    def packets(self, flow: int | None = ..., *, to: OtherFrame) -> Any: ...
    def packets(self, flow: int | None = None, *, to: Frame = "arrow") -> Any:
        """Every packet in the order of entering the network: `flow`, `direction`, `uid`, `size_bytes`,
        `sent_ns`, `arrived_ns` (null if it did not arrive), `late_ns`, `fate`, `element`, `reason`,
        `copy_of`."""
        return self.table("packets", flow, to=to)

    @overload
    def states(self, flow: int | None = ..., *, to: Literal["arrow"] = ...) -> pyarrow.Table: ...
    @overload
    def states(self, flow: int | None = ..., *, to: OtherFrame) -> Any: ...
    def states(self, flow: int | None = None, *, to: Frame = "arrow") -> Any:
        """Samples of the senders: `flow`, `time_ns`, `cwnd_bytes`, `pacing_bps`, `srtt_ns`, `mode` ...."""
        return self.table("states", flow, to=to)

    @overload
    def queues(self, element: str | None = ..., *, to: Literal["arrow"] = ...) -> pyarrow.Table: ...
    @overload
    def queues(self, element: str | None = ..., *, to: OtherFrame) -> Any: ...
    def queues(self, element: str | None = None, *, to: Frame = "arrow") -> Any:
        """Samples of the queues: `element`, `time_ns`, `backlog_bytes`, `backlog_packets`; of one element or
        of all."""
        table = self.table("queues")
        if element is not None:
            import pyarrow.compute

            table = table.filter(pyarrow.compute.equal(table["element"], element))
        return convert_table(table, to)
