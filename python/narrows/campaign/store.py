"""The folder of a campaign: created whole, locked while in use, resumable after any interruption.

`campaign.json` is replaced atomically at both ends of a session, cells that end in between are lines of the
journal beside it (narrows.campaign.journal), and the agent renames a cell's folder into place when it is
complete. After any interruption, existing cells are therefore intact and missing ones are run again.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from narrows import scratch
from narrows.campaign import entries, integrity, journal, sealing
from narrows.campaign.entries import now
from narrows.campaign.folders import check_vacant, make_folder, no_folder
from narrows.campaign.journal import Journal
from narrows.campaign.json_files import read_json, read_run, read_typed, write_atomically
from narrows.campaign.schema import read_scenario
from narrows.documents.campaign import (
    FAILED,
    FINISHED,
    FORMAT,
    PENDING,
    Campaign,
    CellEntry,
    Failure,
    Header,
    ScenarioSource,
    Session,
    Versions,
)
from narrows.documents.data import DamagedError, to_data
from narrows.errors import DataError, NarrowsError, UsageError, reason
from narrows.files import read_bytes
from narrows.hashes import content_hash
from narrows.locks import FolderLock
from narrows.threads import in_threads

if TYPE_CHECKING:
    # Reading a campaign imports neither scenarios nor plans.
    from narrows.campaign.plan import Plan
    from narrows.documents.agent import Facts
    from narrows.documents.resolved import Resolved
    from narrows.scenario import Cell, Loaded, Scenario
    from narrows.scenario.files import Files

FILE = "campaign.json"


@dataclass
class CampaignFolder:
    """An open campaign. Only one process at a time can open it for writing."""

    path: Path
    #: The content of campaign.json, with members of newer versions.
    document: dict[str, Any]
    #: Its typed members, since the last change.
    _header: Header | None = field(default=None, repr=False)
    _lock: FolderLock | None = field(default=None, repr=False)
    #: Facts about the running session.
    _journal: Journal | None = field(default=None, repr=False)
    #: Entries by cell name, and the content of campaign.json for each, which may have more members; indexed,
    #: because campaigns may have tens of thousands.
    _entries: dict[str, CellEntry] = field(default_factory=dict, repr=False)
    _contents: dict[str, dict[str, Any]] = field(default_factory=dict, repr=False)
    #: Cells whose records have been compared with their digests.
    _verified: set[str] = field(default_factory=set, repr=False)

    # -- opening ---------------------------------------------------------------------------------

    @classmethod
    def create(
        cls,
        path: Path,
        loaded: Loaded,
        plan: Plan,
        facts: Facts,
        versions: Versions,
        argv: list[str],
    ) -> CampaignFolder:
        """Creates a campaign in a folder that does not exist yet, is empty or contains only leftovers of a
        killed start."""
        scenario = plan.scenario
        make_folder(path)
        source = ScenarioSource(
            file=loaded.path.name,
            written=loaded.text,
            overrides=entries.new_overrides(loaded),
            resolved=scenario.to_json(),
        )
        cells = list(map(entries.new_planned, plan.cells))
        document = entries.new_document(scenario.name, scenario.where, source, versions, cells)
        document |= {"hash": scenario.hash, "host": to_data(facts), "skipped": to_data(plan.skipped)}
        if scenario.files.choices:
            document |= {"choices": [f"{item.key}: {item.text}" for item in scenario.files.choices]}
        folder = cls(path, document)
        folder._acquire()
        try:
            # Again, because another process may have been at work until the lock was ours.
            check_vacant(path)
        except BaseException:
            folder.close()
            raise
        folder._sweep(_remove)
        try:
            (path / "cells").mkdir(exist_ok=True)
        except OSError as error:
            raise NarrowsError(f"{path}: can't be written: {(error.strerror or '').lower()}") from None
        folder._keep_files(scenario.files)
        folder.begin_session(argv)
        return folder

    @classmethod
    def resume(
        cls, path: Path, plan: Plan, argv: list[str], remove: Callable[[Path], None] | None = None
    ) -> CampaignFolder:
        """Opens the campaign in the folder, if it is the same one. `remove` removes leftover folders of cells
        if that requires other rights than ours."""
        folder = cls(path, {})
        folder._acquire()
        try:
            # Only now: until then another process may write to it.
            folder.document, _ = check_same(path, plan.scenario)
            folder._continue(plan, argv, remove or _remove)
        except BaseException:
            folder.close()
            raise
        return folder

    @classmethod
    def read(cls, path: Path) -> CampaignFolder:
        """Opens a campaign for reading."""
        if not path.is_dir():
            raise no_folder(path)
        document, campaign = _read_content(path)
        entries = {entry.id: entry for entry in campaign.cells}
        contents = {content["id"]: content for content in document["cells"]}
        return cls(path, document, campaign, _entries=entries, _contents=contents)

    def close(self) -> None:
        """Releases the folder for other processes."""
        if self._journal is not None:
            self._journal.close()
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    @property
    def header(self) -> Header:
        """The members of campaign.json that are not about single cells."""
        if self._header is None:
            self._header = read_typed(self.path / FILE, self.document, Header)
        return self._header

    @property
    def resolved(self) -> Resolved:
        """The resolved scenario."""
        return read_scenario(self.path, self.header)

    def _change_header(self, **members: object) -> None:
        self.document.update(to_data(members))
        self._header = None

    # -- cells -----------------------------------------------------------------------------------

    @property
    def cells(self) -> list[CellEntry]:
        """The entries of all cells."""
        self._index()
        return list(self._entries.values())

    def entry(self, cell_id: str) -> CellEntry:
        """The entry of one cell."""
        self._index()
        return self._entries[cell_id]

    def content_of(self, cell_id: str) -> dict[str, Any]:
        """The content of campaign.json for one cell, with members of newer versions."""
        self._index()
        return self._contents[cell_id]

    def change(self, cell_id: str, **members: Any) -> CellEntry:
        """Changes members of an entry; removes those that are `UNSET`."""
        content = self.content_of(cell_id)
        content.update(members)
        for name in [name for name, value in members.items() if value is UNSET]:
            del content[name]
        (self._entries[cell_id],) = entries.read_entries(self.path / FILE, [content])
        return self._entries[cell_id]

    def _index(self) -> None:
        """Reads the entries on first use."""
        contents = self.document["cells"]
        if len(self._entries) != len(contents):
            self._contents = {content["id"]: content for content in contents}
            self._entries = {entry.id: entry for entry in entries.read_entries(self.path / FILE, contents)}

    def cell_dir(self, cell_id: str) -> Path:
        """The folder of a cell's complete record."""
        return self.path / "cells" / cell_id

    def record_dir(self, cell_id: str) -> Path:
        """The record of a finished cell for reading; compares its files with their digest once. Raises
        `DataError` if they differ."""
        if cell_id not in self._verified:
            problem = integrity.describe_change(self.cell_dir(cell_id), self.entry(cell_id))
            if problem:
                raise DataError(problem)
            self._verified.add(cell_id)
        return self.cell_dir(cell_id)

    def finish(self, cell_id: str, digest: str | None = None) -> None:
        """Records that a cell's record is complete, with its verdict. `digest` is that of its files, if
        already known."""
        cell = self.cell_dir(cell_id)
        digest = digest or integrity.digest(cell)
        run = read_run(cell)
        self.change(
            cell_id,
            state=FINISHED,
            verdict=run.verdict,
            reasons=to_data(run.reasons),
            error=None,
            digest=digest,
        )
        self._verified.add(cell_id)

    def check_records(self) -> None:
        """Refuses records and cell files that have changed since they were recorded."""
        in_threads(self.record_dir, [cell.id for cell in self.cells if cell.is_finished])
        for problem in integrity.find_changed_files(self.files_dir, self.header.scenario):
            raise DataError(problem)

    def fail(self, cell_id: str, kind: str, message: str) -> None:
        """Records that a cell produced no record."""
        error = {"kind": kind, "message": message}
        self.change(cell_id, state=FAILED, verdict=None, reasons=[], error=error)

    def note_failure(self, cell_id: str, kind: str, message: str) -> None:
        """Records a failed attempt of a cell that is tried again; reports show these attempts."""
        self._add_failure(cell_id, Failure(at=now(), kind=kind, message=message))

    def _add_failure(self, cell_id: str, failure: Failure) -> None:
        self.change(cell_id, failures=to_data([*self.entry(cell_id).failures, failure]))

    def keep(self, cell_id: str) -> None:
        """Makes the entry of a cell survive this process."""
        self._write(journal.CELL, self.content_of(cell_id))

    def note_round(self, state: dict[str, Any]) -> None:
        """Records the state of the machines of a campaign between hosts before or after a round."""
        self._change_header(rounds=[*(self.header.rounds or ()), state])
        self._write(journal.ROUND, state)

    def note_session(self, **facts: object) -> None:
        """Records facts about the process that is working on the campaign."""
        self._change_session(facts)
        self._write(journal.SESSION, facts)

    def _change_session(self, facts: dict[str, object]) -> None:
        self.document["sessions"][-1].update(facts)
        self._header = None

    def sync_if_due(self) -> None:
        """Syncs to the disk what has waited long enough."""
        if self._journal is not None:
            self._journal.sync_if_due()

    def _write(self, kind: str, content: dict[str, object]) -> None:
        if self._journal is None:
            self._journal = Journal(self.path, self.header.hash, len(self.header.sessions))
        self._journal.write(kind, content)

    def save(self) -> None:
        """Writes campaign.json."""
        if self._lock is not None:
            self._lock.check()
        write_atomically(self.path / FILE, sealing.seal(self.document, FORMAT))

    @property
    def files_dir(self) -> Path:
        """The folder of the files that cells name, such as traces."""
        return self.path / "files"

    # -- sessions --------------------------------------------------------------------------------

    def begin_session(self, argv: list[str]) -> None:
        """Records that a process is working on the campaign."""
        self.document["sessions"].append(to_data(Session(argv=argv, started_at=now())))
        self._change_header(ended_at=None)
        self.save()

    def reword(self, loaded: Loaded, words: dict[str, str | None]) -> None:
        """Changes words for people (`name`, `title`, `question`) to those of a scenario; keeps its text."""
        source = self.document["scenario"]
        source["resolved"].update(words)
        source.update(written=loaded.text, overrides=to_data(entries.new_overrides(loaded)))
        self._change_header(name=loaded.scenario.name)

    def replan(self, loaded: Loaded, plan: Plan) -> None:
        """Replaces the scenario by one whose only cell is the one that has run."""
        source = ScenarioSource(
            file=loaded.path.name, written=loaded.text, overrides=[], resolved=plan.scenario.to_json()
        )
        self._change_header(scenario=source, hash=plan.scenario.hash)
        for cell in plan.cells:
            self.change(cell.id, hash=cell.hash, seed=cell.seed)
            self.keep(cell.id)

    def settle(self, settings: dict[str, object]) -> None:
        """Sets members of the resolved scenario of an import, and its hash."""
        resolved = {**self.header.scenario.resolved, **settings}
        self.document["scenario"].update(resolved=resolved)
        self._change_header(hash=content_hash(resolved))

    def end_session(self, outcome: str) -> None:
        """Records how the work ended."""
        self._change_session({"ended_at": now(), "outcome": outcome})
        if outcome == "done":
            self._change_header(ended_at=now())
        self.save()
        (self._journal or Journal(self.path, "", 0)).remove()
        self._journal = None

    # -- inside ----------------------------------------------------------------------------------

    def _acquire(self) -> None:
        self._lock = FolderLock(self.path, "campaign")

    def _continue(self, plan: Plan, argv: list[str], remove: Callable[[Path], None]) -> None:
        """Merges the stored cells into the plan."""
        document = self.document
        self._sweep(remove)
        self._keep_files(plan.scenario.files)
        # Expectations may change; they are judged again.
        resolved = document["scenario"]["resolved"]
        expect = to_data(plan.scenario.expect)
        if expect != resolved.get("expect", []):
            resolved["expect"] = expect
        stored = self.cells
        known = {entry.id for entry in stored}
        planned = {cell.id: cell for cell in plan.cells}
        for entry in stored:
            cell = planned.get(entry.id)
            if cell is not None:
                self._adopt(entry, cell, remove)
        # A scheme that was skipped and can run now (a module was loaded) is added; in the reverse case
        # existing measurements stay.
        for cell in plan.cells:
            if cell.id not in known:
                document["cells"].append(entries.new_planned(cell))
        measured = {entry.scheme for entry in self.cells if entry.is_finished}
        self._change_header(skipped=[row for row in plan.skipped if row.scheme not in measured])
        self.begin_session(argv)

    def _keep_files(self, files: Files) -> None:
        """Stores the files that cells name, so that the results can be repeated without the originals."""
        from narrows.scenario.files import name_in_store

        for sha256, content in files.contents.items():
            target = self.files_dir / name_in_store(files.names[sha256], sha256)
            try:
                self.files_dir.mkdir(exist_ok=True)
                if not target.exists() or read_bytes(target) != content:
                    partial = target.with_name(f".{target.name}.tmp")
                    partial.write_bytes(content)
                    partial.replace(target)
            except OSError as error:
                raise NarrowsError(f"{target}: can't be written: {reason(error)}") from None

    def _sweep(self, remove: Callable[[Path], None]) -> None:
        """Removes incomplete files of an interrupted process."""
        for leftover in (self.path / "cells").glob(".*"):
            if leftover.is_dir():
                remove(leftover)
            else:
                leftover.unlink(missing_ok=True)
        scratch.remove_left(self.path)
        scratch.remove_left(self.files_dir)

    def _adopt(self, entry: CellEntry, cell: Cell, remove: Callable[[Path], None]) -> None:
        """Reconciles the entry of a cell in campaign.json with its folder."""
        folder = self.cell_dir(entry.id)
        known = entry.is_finished
        if folder.exists() and not known and integrity.is_torn(folder):
            remove(folder)
        if not folder.exists():
            if entry.error:
                # The cell runs again, and its failure stays in the record.
                failure = Failure(at=entry.ended_at, kind=entry.error.kind, message=entry.error.message)
                self._add_failure(entry.id, failure)
            self.change(entry.id, state=PENDING, verdict=None, reasons=[], error=None, digest=UNSET)
            return
        integrity.check_plain(folder)
        if read_run(folder).cell != cell.to_json():
            raise DataError(
                f"{folder}: is not the record of this campaign's cell {entry.id}; remove the folder to run"
                " the cell again"
            )
        if known and (problem := integrity.describe_change(folder, entry)):
            raise DataError(problem)
        self.finish(entry.id, entry.digest if known else None)


def read_document(path: Path) -> dict[str, Any]:
    """The content of a folder's campaign.json, whose cells are known to lie in the folder."""
    return _read_content(path)[0]


def _read_content(path: Path) -> tuple[dict[str, Any], Campaign]:
    """The same, and its typed members."""
    if (path / "sweep.json").is_file():
        raise DataError(
            f"{path}: holds a sweep, of which there are no records; 'narrows sweep show', 'narrows plot' and"
            " 'narrows query' show its results"
        )
    file = path / FILE
    while True:
        before = _identity(file)
        document = read_json(file, FORMAT)
        written = journal.read(path)
        # Another process may end its session between the two reads, which moves cells from the journal to
        # campaign.json.
        if _identity(file) == before:
            break
    campaign = _check_content(file, document)
    if written is not None and written.apply(document, campaign):
        campaign = _check_content(written.path, document)
    return document, campaign


def _check_content(file: Path, document: dict[str, Any]) -> Campaign:
    """The typed members of campaign.json, perhaps with its journal. Raises `DataError` if they do not fit."""
    try:
        campaign = Campaign.from_members(document)
    except DamagedError as error:
        raise DataError(f"{file}: is damaged: {error}") from None
    integrity.check_cells(file, campaign.cells)
    return campaign


def _identity(file: Path) -> tuple[int, int] | None:
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns


def check_same(path: Path, scenario: Scenario) -> tuple[dict[str, Any], Header]:
    """The content of a folder's campaign.json, plain and typed, which must belong to this scenario."""
    document, header = _read_content(path)
    if header.hash != scenario.hash:
        raise UsageError(
            f"{path} holds another campaign ({header.name}, {header.hash}) than the one asked for"
            f" ({scenario.name}, {scenario.hash}); choose another folder with -o"
        )
    return document, header


def _remove(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
