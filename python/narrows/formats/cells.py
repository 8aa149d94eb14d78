"""Exports that write each cell separately."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from narrows.campaign.json_files import read_run
from narrows.campaign.store import CampaignFolder
from narrows.documents.campaign import CellEntry
from narrows.documents.data import Count, DamagedError, Part, Value
from narrows.documents.resolved import Cell, read_cell
from narrows.documents.run import RunRecord
from narrows.errors import DataError, NarrowsError
from narrows.filled import fill
from narrows.progress import progress

#: Time zero (since 1970) of runs that depend on no clock: 2000-01-01.
SIMULATED_NS = 946_684_800 * 1_000_000_000


class ExportedCell(Part, frozen=True, kw_only=True):
    """The files of a cell that was exported, and their content."""

    cell: str = ""
    files: list[str] | UnsetType = UNSET
    #: Rows by table.
    rows: dict[str, Count] | UnsetType = UNSET
    #: Events of each flow.
    flows: dict[str, Value] | UnsetType = UNSET
    #: Packets by end, and the retransmissions among them.
    packets: dict[str, Count] | UnsetType = UNSET
    retransmissions: Count | UnsetType = UNSET
    #: The number of series.
    series: Count | UnsetType = UNSET


@dataclass(frozen=True)
class CellToExport:
    """One finished cell of a campaign."""

    campaign: CampaignFolder
    entry: CellEntry
    record: RunRecord

    @property
    def id(self) -> str:
        """Name of the cell."""
        return self.entry.id

    @property
    def path(self) -> Path:
        """Folder of its record."""
        return self.campaign.cell_dir(self.id)

    @property
    def cell(self) -> Cell:
        """The cell that ran. Raises `DataError` if the record's is damaged."""
        try:
            return read_cell(self.record.cell)
        except DamagedError as error:
            raise DataError(f"{self.path}/run.json: is damaged: {error}") from None

    @property
    def base_ns(self) -> int:
        """Its time zero, in ns since 1970: its start, or 2000-01-01 if no clock was involved."""
        started = self.record.started_at
        if not started:
            return SIMULATED_NS
        try:
            moment = datetime.fromisoformat(started.replace("Z", "+00:00")).astimezone(UTC)
        except (ValueError, OverflowError):
            raise DataError(f"{self.path}/run.json: {started[:40]} is not a time of day") from None
        return max(round(moment.timestamp() * 1e6) * 1000, 1000)

    @property
    def title(self) -> str:
        """The run in a few words."""
        return f"{self.campaign.header.name}: {self.entry.scheme}, run {self.entry.run}"

    @property
    def description(self) -> str:
        """A description of the run, in a sentence or two."""
        question = self.campaign.resolved.question
        seed = self.entry.seed
        parts = [f"plane {self.record.plane}", f"verdict {self.record.verdict}"]
        parts += [] if seed is None else [f"seed {seed}"]
        return f"{question} ({', '.join(parts)}; Narrows {self.record.versions.narrows or '?'})".strip()


def export_cells(
    folder: CampaignFolder,
    target: Path,
    write: Callable[[CellToExport, Path], ExportedCell],
    finish: Callable[[list[CellToExport], Path], None] | None = None,
) -> list[ExportedCell]:
    """Writes every finished cell with `write` (which receives the output folder, and returns facts about the
    output) and then the files about all cells with `finish`. The folder `target` appears when it is complete.

    Raises `DataError` if a record is damaged or does not match its digest.
    """
    entries = [entry for entry in folder.cells if entry.is_finished]
    if not entries:
        raise DataError(f"{folder.path}: the campaign has no finished run to export")
    folder.check_records()

    def export(cell: CellToExport, partial: Path) -> ExportedCell:
        with raise_as_data_errors():
            return replace(write(cell, partial), cell=cell.id)

    with fill(target, last=entries[-1].id) as partial:
        cells = [CellToExport(folder, entry, read_run(folder.cell_dir(entry.id))) for entry in entries]
        written: list[ExportedCell] = []
        # The core releases Python's lock while writing, so threads use all cores; only a few, to limit
        # memory.
        with progress("writing", len(cells)) as bar, ThreadPoolExecutor(max_workers=2) as pool:
            for facts in pool.map(lambda cell: export(cell, partial), cells):
                written.append(facts)
                bar.advance()
        if finish:
            finish(cells, partial)
    return written


@contextmanager
def raise_as_data_errors() -> Iterator[None]:
    """Turns errors of the core into errors that users see."""
    try:
        yield
    except ValueError as error:
        raise DataError(str(error)) from None
    except OSError as error:
        raise NarrowsError(str(error)) from None
