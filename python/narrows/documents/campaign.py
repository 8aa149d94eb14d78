"""campaign.json: the cells of a campaign, and their outcomes (`narrows/campaign/1`)."""

from __future__ import annotations

from typing import Any, ClassVar

from msgspec import UNSET, UnsetType, field

from narrows.documents.data import Count, Integer, Part

FORMAT = "narrows/campaign/1"
FINISHED, FAILED, PENDING, SKIPPED = "finished", "failed", "pending", "skipped"
#: Runs with this verdict are counted and shown, but excluded from statistics.
INVALID = "invalid"


class Reason(Part, frozen=True, kw_only=True):
    """Why the verdict of a run is not `ok`."""

    code: str | None = None
    severity: str | None = None
    text: str | None = None


class CellError(Part, frozen=True, kw_only=True):
    """The failure of a cell that left no record."""

    kind: str | None = None
    message: str | None = None


class Failure(Part, frozen=True, kw_only=True):
    """An attempt that failed before a cell was tried again."""

    at: str | UnsetType | None = UNSET
    kind: str | None = None
    message: str | None = None


class CellEntry(Part, frozen=True, kw_only=True):
    """A cell of a campaign: a run of a scheme, and its state."""

    UNCHECKED: ClassVar[frozenset[str]] = frozenset({"error", "failures", "input"})

    id: str
    #: The row of the tables: the scheme, with the values of a matrix if there is one.
    scheme: str
    run: Count
    seed: Integer | None = None
    #: Digest of the content of the cell.
    hash: str | None = None
    #: `pending`, `finished`, `failed` or `skipped`.
    state: str
    #: `ok`, `degraded` or `invalid`, of a finished cell.
    verdict: str | None = None
    reasons: list[Reason] = field(default_factory=list)
    error: CellError | None = None
    started_at: str | None = None
    ended_at: str | None = None
    attempts: Count = 0
    failures: list[Failure] = field(default_factory=list)
    #: Digest of the files of the record.
    digest: str | None = None
    #: Only in imports: the settings of a run that has no record.
    input: dict[str, Any] | None = None

    @property
    def is_finished(self) -> bool:
        """True if the cell has a record."""
        return self.state == FINISHED

    @property
    def is_usable(self) -> bool:
        """True if the cell has a record that may enter statistics."""
        return self.is_finished and self.verdict != INVALID

    @property
    def error_message(self) -> str:
        """Why the cell failed; empty if no reason was recorded."""
        return (self.error and self.error.message) or ""
