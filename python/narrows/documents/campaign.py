"""campaign.json: the cells of a campaign, and their outcomes (`narrows/campaign/1`)."""

from __future__ import annotations

from typing import Any, ClassVar

from msgspec import UNSET, UnsetType, field

from narrows.documents.agent import MachineFacts
from narrows.documents.data import Count, Integer, Part, from_data
from narrows.documents.extensions import Extension, labels
from narrows.documents.results import Skipped

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


class Override(Part, frozen=True, kw_only=True):
    """An option that changed the scenario."""

    option: str
    #: The address of the key, and the value as it was written.
    path: str
    value: str


class ScenarioSource(Part, frozen=True, kw_only=True, omit_defaults=False):
    """The scenario of a campaign, as it was written and resolved."""

    UNCHECKED: ClassVar[frozenset[str]] = frozenset({"written", "overrides", "resolved"})

    #: The name of its file; of an import, the source of the measurements.
    file: str | UnsetType | None = UNSET
    written: str = ""
    overrides: list[Override] = field(default_factory=list)
    resolved: dict[str, Any] = field(default_factory=dict)


class FlowOutline(Part, frozen=True, kw_only=True):
    """A flow of a row of a resolved scenario."""

    UNCHECKED: ClassVar[frozenset[str]] = frozenset({"params", "transport"})

    flow: Count = 0
    scheme: str = ""
    direction: str = ""
    params: dict[str, object] | None = None
    transport: dict[str, object] | None = None
    label: str | None = None


class RowOutline(Part, frozen=True, kw_only=True):
    """A row of a resolved scenario."""

    UNCHECKED: ClassVar[frozenset[str]] = frozenset({"params", "overlay"})

    label: str
    scheme: str = ""
    flows: list[FlowOutline] = field(default_factory=list)
    params: dict[str, object] | None = None
    values: dict[str, str] | None = None
    derived: dict[str, str] | None = None
    overlay: dict[str, object] | None = None


class ScenarioOutline(Part, frozen=True, kw_only=True):
    """The members of a resolved scenario that are checked whenever its campaign is read."""

    UNCHECKED: ClassVar[frozenset[str]] = frozenset({"network", "expect", "measure", "transport"})

    question: str = ""
    schemes: list[RowOutline] = field(default_factory=list)
    name: str = ""
    title: str | None = None
    network: dict[str, object] | None = None
    expect: list[dict[str, object]] | None = None
    measure: dict[str, object] | None = None
    matrix: dict[str, str] | None = None
    duration_ns: Count = 0
    transport: dict[str, object] | None = None


class AgentVersion(Part, frozen=True, kw_only=True):
    """The version of the agent."""

    narrows: str | UnsetType | None = UNSET
    git: str | UnsetType | None = UNSET
    protocol: Count | UnsetType | None = UNSET
    #: Crates of users that were built in.
    extensions: list[Extension] = field(default_factory=list)


class Versions(Part, frozen=True, kw_only=True):
    """The versions of the programs that made a campaign."""

    narrows: str | None = None
    agent: AgentVersion | None = None
    python: str | None = None

    @property
    def extensions_in_words(self) -> str:
        """The user's crates that were built into the agent, in a sentence; empty if there are none."""
        extensions = self.agent.extensions if self.agent else []
        return f"Built in: {labels(extensions)}." if extensions else ""


class SessionHosts(Part, frozen=True, kw_only=True):
    """The machines of a session between two hosts."""

    here: MachineFacts | None = None
    there: MachineFacts | None = None


class Session(Part, frozen=True, kw_only=True, omit_defaults=False):
    """A process that worked on a campaign."""

    argv: list[str] = field(default_factory=list)
    started_at: str | None = None
    ended_at: str | None = None
    #: `done`, `part`, `interrupted`, `merged`, or why it stopped; null while it works, or if it was killed.
    outcome: str | None = None
    #: Words for people that differ from those of earlier sessions, each in a sentence.
    changed: dict[str, str] | UnsetType = UNSET
    hosts: SessionHosts | UnsetType | None = UNSET


class MergedCampaign(Part, frozen=True, kw_only=True, omit_defaults=False):
    """A campaign whose runs were merged into another one."""

    folder: str
    hash: str | None
    created_at: str | None = None
    versions: Versions | None = None
    host: MachineFacts | None = None
    #: The numbers of its runs, and those in the merged campaign.
    runs: dict[str, Count]


class Header(Part, frozen=True, kw_only=True, omit_defaults=False):
    """The members of campaign.json that are not about single cells. Old campaigns lack some."""

    format: str
    name: str = ""
    hash: str = ""
    #: `simulate`, `emulate`, `hosts` or `import`.
    where: str = ""
    scenario: ScenarioSource = ScenarioSource()
    created_at: str | None = None
    ended_at: str | None = None
    sessions: list[Session] = field(default_factory=list)
    versions: Versions | None = None
    #: The machine that it ran on, or that started it.
    host: MachineFacts | None = None
    skipped: list[Skipped] = field(default_factory=list)
    #: The models that the scenario's lists came to, each in a sentence with its reason.
    choices: list[str] | UnsetType = UNSET
    merged: list[MergedCampaign] | UnsetType = UNSET
    #: Between hosts: the state of both machines before and after rounds.
    rounds: list[dict[str, Any]] | UnsetType = UNSET

    @property
    def is_complete(self) -> bool:
        """True if a session has run all cells."""
        return self.ended_at is not None

    @property
    def is_open(self) -> bool:
        """True if a process works on it, or was killed."""
        return bool(self.sessions) and self.sessions[-1].ended_at is None


class Campaign(Header, frozen=True, kw_only=True):
    """The cells of a campaign, their states, and how it was made."""

    cells: list[CellEntry]

    @classmethod
    def from_members(cls, document: object) -> Campaign:
        """Reads a campaign.json. Raises `DamagedError` if it does not fit."""
        campaign = from_data(document, cls)
        from_data(campaign.scenario.resolved, ScenarioOutline, "the file.scenario.resolved")
        return campaign
