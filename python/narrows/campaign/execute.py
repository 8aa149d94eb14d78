"""Runs the cells of a plan: simulated ones on all cores, real-time ones one after the other.

Each worker thread runs one agent and reports to a queue; only the main thread writes the journal, shows
progress and receives signals.
"""

from __future__ import annotations

import json
import queue
import shutil
import signal
import threading
import time
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from types import FrameType
from typing import Protocol

from narrows.agent.cell import CellOutcome
from narrows.campaign import disk, integrity
from narrows.campaign.entries import now
from narrows.campaign.planes import AFTER, BEFORE, Plane, Run
from narrows.campaign.store import CampaignFolder
from narrows.documents.campaign import PENDING, CellEntry
from narrows.errors import DataError, Interrupted, NarrowsError, UnavailableError
from narrows.scenario.model import Cell

#: Less free space than this counts as a full disk, regardless of the message.
_LEAST_FREE_BYTES = 1_000_000


class Watcher(Protocol):
    """Observes the progress of a campaign (a progress bar, a log)."""

    def cell_started(self, cell: Cell) -> None:
        """A cell begins."""

    def cell_progress(self, cell: Cell, share: float) -> None:
        """A cell has reached this share (0 to 1)."""

    def cell_again(self, cell: Cell, why: str) -> None:
        """A cell has failed and will be tried again."""

    def cell_ended(self, cell: Cell, entry: CellEntry, seconds: float) -> None:
        """A cell has finished or failed."""

    def message(self, text: str) -> None:
        """A message for the user."""


@dataclass
class _Event:
    kind: str
    cell: Cell
    share: float = 0.0
    outcome: CellOutcome | None = None
    #: True if no cell can run here, judging by the outcome.
    hits_all: bool = False
    #: Notes about a round.
    state: dict[str, object] | None = None


class Executor:
    """Runs the remaining cells of a campaign."""

    def __init__(self, folder: CampaignFolder, plane: Plane, watcher: Watcher) -> None:
        self.folder = folder
        self.plane = plane
        self.watcher = watcher
        self.events: queue.Queue[_Event] = queue.Queue()
        self.waiting: deque[Cell] = deque()
        self.running: dict[str, Run] = {}
        #: How many times failed cells are tried again.
        self.again: Counter[str] = Counter()
        #: The current round.
        self.round = 0
        self.any_finished = any(cell.is_finished for cell in folder.cells)
        self.lock = threading.Lock()
        self.stopping = False
        self.signal_number: int | None = None
        self.fatal: NarrowsError | None = None

    def run(self, cells: list[Cell]) -> None:
        """Runs the cells; raises if the campaign can't continue or was interrupted."""
        self.waiting.extend(cells)
        workers = [
            threading.Thread(target=self._work, daemon=True, name=f"cell worker {number}")
            for number in range(self.plane.workers(len(cells)))
        ]
        with self._signals():
            for worker in workers:
                worker.start()
            while any(worker.is_alive() for worker in workers) or not self.events.empty():
                try:
                    event = self.events.get(timeout=0.2)
                except queue.Empty:
                    self.folder.sync_if_due()
                    continue
                try:
                    self._handle(event)
                except NarrowsError as error:
                    self._give_up(error)
        if self.fatal is not None:
            raise self.fatal
        if self.signal_number is not None:
            raise Interrupted("interrupted; everything finished is kept", self.signal_number)

    # -- in the main thread ----------------------------------------------------------------------

    def _handle(self, event: _Event) -> None:
        if event.kind == "started":
            cell_id = event.cell.id
            attempts = self.folder.entry(cell_id).attempts + 1
            self.folder.change(cell_id, started_at=now(), ended_at=None, attempts=attempts)
            self.watcher.cell_started(event.cell)
        elif event.kind == "progress":
            self.watcher.cell_progress(event.cell, event.share)
        elif event.kind == "round" and event.state is not None:
            self.folder.note_round(event.state)
        elif event.kind == "again" and event.outcome is not None:
            self._handle_retry(event.cell, event.outcome)
        elif event.outcome is not None:
            self._handle_end(event.cell, event.outcome, event.hits_all)

    def _handle_end(self, cell: Cell, outcome: CellOutcome, hits_all: bool) -> None:
        self.folder.change(cell.id, ended_at=now())
        if outcome.state == "interrupted":
            self.folder.change(cell.id, state=PENDING, started_at=None, ended_at=None)
            if not self.stopping:
                # The agent was stopped from outside, which does not stop the campaign.
                self.folder.fail(cell.id, "interrupted", "the agent was stopped by a signal")
        elif outcome.state == "finished":
            try:
                self.folder.finish(cell.id, outcome.digest)
            except DataError as error:
                self.folder.fail(cell.id, "internal", str(error))
        else:
            self.folder.fail(cell.id, outcome.kind, outcome.message)
            self._judge_failure(outcome, hits_all)
        if self.fatal is None and not (outcome.state == "interrupted" and self.stopping):
            self.watcher.cell_ended(cell, self.folder.entry(cell.id), outcome.seconds)
        if self.fatal is not None and not self.folder.entry(cell.id).is_finished:
            # The cell is not to blame: it runs again when the campaign is resumed.
            self.folder.change(cell.id, state=PENDING)
        self.folder.keep(cell.id)

    def _handle_retry(self, cell: Cell, outcome: CellOutcome) -> None:
        """Handles a failed cell that will be tried again."""
        self.folder.note_failure(cell.id, outcome.kind, outcome.message)
        self.folder.change(cell.id, state=PENDING, started_at=None)
        self.folder.keep(cell.id)
        self.watcher.cell_again(cell, f"{outcome.message}; it is tried again at the end of the round")

    def _judge_failure(self, outcome: CellOutcome, hits_all: bool) -> None:
        """Ends the campaign if every other cell would fail in the same way."""
        if self.plane.ends_campaign(outcome):
            self._give_up(UnavailableError(f"{outcome.message}; run the same command again when it is back"))
            return
        no_room_here = _free_bytes(self.folder.path) < _LEAST_FREE_BYTES
        there = None if no_room_here else disk.full_there(outcome.message, self._other_host())
        if there is not None:
            self._give_up(NarrowsError(there))
            return
        if no_room_here or disk.is_full(outcome.message):
            self._give_up(
                NarrowsError(
                    f"the disk of {self.folder.path} is full; make room and run the same command again,"
                    " finished cells are kept"
                )
            )
            return
        if hits_all:
            self._give_up(UnavailableError(outcome.message))

    def _other_host(self) -> str | None:
        """The name of the other host of runs between two hosts."""
        real_path = self.folder.resolved.real_path
        return real_path.other if real_path else None

    def _give_up(self, error: NarrowsError) -> None:
        if self.fatal is None:
            self.fatal = error
        self._stop_all(kill=False)

    def _stop_all(self, kill: bool) -> None:
        with self.lock:
            self.stopping = True
            self.waiting.clear()
            running = list(self.running.values())
        for run in running:
            run.stop(kill)

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        again = self.signal_number is not None
        self.signal_number = self.signal_number or number
        # A separate thread, because a signal may arrive while this thread holds the lock.
        threading.Thread(target=self._stop_all, args=(again,), daemon=True).start()

    @contextmanager
    def _signals(self) -> Iterator[None]:
        numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, self._on_signal) for number in numbers}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    # -- in the worker threads -------------------------------------------------------------------

    def _work(self) -> None:
        while True:
            with self.lock:
                if self.stopping or not self.waiting:
                    return
                cell = self.waiting.popleft()
                begins, self.round = cell.run != self.round, cell.run
            if begins:
                self._around(cell, BEFORE)
            self.events.put(_Event("started", cell))
            try:
                outcome = self._run_cell(cell)
            except OSError as error:
                outcome = CellOutcome(
                    "failed", "io", f"{error.filename or self.folder.path}: {error.strerror}", 1
                )
            except Exception as error:  # A bug must not make the campaign wait forever.
                outcome = CellOutcome("failed", "internal", f"{type(error).__name__}: {error}", 1)
            self.any_finished |= outcome.state == "finished"
            # Judged here: when the main thread processes the outcome, this thread may already have finished
            # the next cell.
            hits_all = outcome.kind == "unavailable" and not self.any_finished
            again = outcome.state == "failed" and self._put_back(cell, outcome, hits_all)
            self.events.put(_Event("again" if again else "ended", cell, outcome=outcome, hits_all=hits_all))
            with self.lock:
                # Cells wait in the order of their rounds.
                over = not self.stopping and not (self.waiting and self.waiting[0].run == cell.run)
            if over:
                self._around(cell, AFTER)

    def _around(self, cell: Cell, when: str) -> None:
        """Notes the state of the machines before or after a round."""
        try:
            state = self.plane.around_round(cell.run, when)
        except Exception as error:  # Missing notes do not end the campaign.
            state = {"round": cell.run, "when": when, "error": f"{type(error).__name__}: {error}"}
        if state is not None:
            self.events.put(_Event("round", cell, state={"at": now(), **state}))

    def _put_back(self, cell: Cell, outcome: CellOutcome, hits_all: bool) -> bool:
        """Moves a failed cell to the end of its round, if it may be tried again."""
        # Problems of the cell itself persist; and if no cell has worked yet, the user is notified at once.
        hopeless = outcome.kind in ("input", "memory") or hits_all
        with self.lock:
            if hits_all or self.plane.ends_campaign(outcome):
                self.stopping = True
                self.waiting.clear()
            if self.stopping or hopeless or self.again[cell.id] >= self.plane.retries:
                return False
            self.again[cell.id] += 1
            same = sum(1 for _ in takewhile(lambda other: other.run == cell.run, self.waiting))
            # Rounds follow each other, so the rest of this one comes first.
            self.waiting.insert(same, cell)
            return True

    def _run_cell(self, cell: Cell) -> CellOutcome:
        cells = self.folder.path / "cells"
        cell_file = cells / f".{cell.id}.cell.json"
        log_file = cells / f".{cell.id}.log"
        cell_file.write_text(json.dumps(cell.to_json(), indent=1), encoding="utf-8")
        last = [0.0]

        def progress(share: float) -> None:
            if time.monotonic() - last[0] > 0.1:
                last[0] = time.monotonic()
                self.events.put(_Event("progress", cell, share))

        run = self.plane.run_of(cell, cell_file, self.folder.cell_dir(cell.id), log_file, progress)
        with self.lock:
            if self.stopping:
                return CellOutcome("interrupted")
            self.running[cell.id] = run
        try:
            outcome = run.run()
            if outcome.state == "finished":
                # Hashed here, so that no hashing happens while the next run measures.
                outcome.digest = integrity.digest(self.folder.cell_dir(cell.id))
        except DataError as error:
            outcome = CellOutcome("failed", "internal", str(error), 1)
        finally:
            with self.lock:
                self.running.pop(cell.id, None)
            cell_file.unlink(missing_ok=True)
        self._keep_log(cell, log_file, outcome)
        return outcome

    def _keep_log(self, cell: Cell, log_file: Path, outcome: CellOutcome) -> None:
        """Keeps the agent's standard error only if the cell failed."""
        try:
            if outcome.state == "failed" and log_file.stat().st_size > 0:
                logs = self.folder.path / "logs"
                logs.mkdir(exist_ok=True)
                log_file.replace(logs / f"{cell.id}.log")
            log_file.unlink(missing_ok=True)
            shutil.rmtree(self.folder.path / "cells" / f".{cell.id}.partial", ignore_errors=True)
        except OSError:
            pass


def _free_bytes(path: Path) -> int:
    try:
        return shutil.disk_usage(path).free
    except OSError:
        return 2**62
