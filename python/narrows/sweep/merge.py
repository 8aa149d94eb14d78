"""Merges the results of one sweep from several folders, such as those of a job array."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace

from narrows.campaign.entries import now
from narrows.campaign.json_files import read_rewritable
from narrows.documents.sweep import FORMAT, Sweep
from narrows.errors import DataError
from narrows.sweep.store import DOCUMENT, SweepFolder


@dataclass(frozen=True)
class Merged:
    """The outcome of a merge: cells adopted, cells already present, and failures reported."""

    added: int
    known: int
    failed: int


def merge(into: Path, others: Sequence[Path]) -> Merged:
    """Adopts the cells of other folders of the same sweep; each cell is kept once. `into` is created if it
    does not exist. Raises `DataError` for a folder that is not a sweep, is another one, or is damaged.
    """
    read = [_read(path) for path in others if path.resolve() != into.resolve()]
    if not read:
        raise DataError("name the folders whose cells are to be adopted")
    folder = _open(into, read[0])
    try:
        for other in read:
            if other.document.hash != folder.document.hash:
                raise DataError(f"{other.path} holds another sweep than {into}; nothing of it was adopted")
        added = known = 0
        failed = list(folder.document.failed)
        for other in read:
            failed += other.document.failed
            for part in other.parts:
                rows = other.rows_of(part)
                new = folder.adopt(rows)
                added += new
                known += len({row.cell for row in rows}) - new
        unique = list(dict.fromkeys(failed))
        folder.end("merged", unique)
        return Merged(added, known, len(unique))
    finally:
        folder.close()


def _read(path: Path) -> SweepFolder:
    """A sweep whose cells are adopted; refuses members of a newer version, which the merge would lose."""
    folder = SweepFolder.read(path)
    read_rewritable(path / DOCUMENT, FORMAT, Sweep)
    return folder


def _open(into: Path, like: SweepFolder) -> SweepFolder:
    document = None
    if not (into / DOCUMENT).exists():
        document = replace(like.document, sessions=[], cells=0, failed=[], parts={}, created_at=now())
    return SweepFolder.adopting(into, document)
