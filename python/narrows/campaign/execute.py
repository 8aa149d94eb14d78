"""Runs the cells of a plan: simulated ones on all cores, emulated ones one at a time.

Worker threads run one agent each and report to a queue; the main thread alone writes campaign.json,
shows progress and receives signals.
"""

from __future__ import annotations

import json
import os
import queue
import shutil
import signal
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, Protocol

from narrows.campaign.agent import AgentRun, CellOutcome
from narrows.campaign.store import CampaignFolder, now
from narrows.errors import DataError, Interrupted, NarrowsError, UnavailableError
from narrows.scenario.model import Cell

_DISK_FULL = ("no space left", "disk is full", "disk quota", "enospc")


class Watcher(Protocol):
    """Whoever wants to know how the campaign goes (a progress bar, a log)."""

    def cell_started(self, cell: Cell) -> None:
        """A cell begins."""

    def cell_progress(self, cell: Cell, share: float) -> None:
        """A cell has come this far (0 to 1)."""

    def cell_ended(self, cell: Cell, entry: dict[str, Any], seconds: float) -> None:
        """A cell is finished or has failed."""

    def message(self, text: str) -> None:
        """Something the user should read."""


@dataclass
class _Event:
    kind: str
    cell: Cell
    share: float = 0.0
    outcome: CellOutcome | None = None


def workers_for(where: str, cells: int) -> int:
    """How many cells run at the same time."""
    if where != "simulate":
        return 1
    return max(
        1,
        min(cells, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1),
    )


class Executor:
    """Runs cells that are still to be run."""

    def __init__(self, folder: CampaignFolder, where: str, agent: Path, watcher: Watcher) -> None:
        self.folder = folder
        self.where = where
        self.agent = agent
        self.watcher = watcher
        self.events: queue.Queue[_Event] = queue.Queue()
        self.waiting: deque[Cell] = deque()
        self.running: dict[str, AgentRun] = {}
        self.lock = threading.Lock()
        self.stopping = False
        self.signal_number: int | None = None
        self.fatal: NarrowsError | None = None

    def run(self, cells: list[Cell]) -> None:
        """Runs the cells; raises when the campaign can't go on or was interrupted."""
        self.waiting.extend(cells)
        workers = [
            threading.Thread(target=self._work, daemon=True, name=f"cell worker {number}")
            for number in range(workers_for(self.where, len(cells)))
        ]
        with self._signals():
            for worker in workers:
                worker.start()
            while any(worker.is_alive() for worker in workers) or not self.events.empty():
                try:
                    event = self.events.get(timeout=0.2)
                except queue.Empty:
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
            entry = self.folder.entry(event.cell.id)
            entry.update(started_at=now(), ended_at=None, attempts=entry["attempts"] + 1)
            self.watcher.cell_started(event.cell)
        elif event.kind == "progress":
            self.watcher.cell_progress(event.cell, event.share)
        elif event.outcome is not None:
            self._ended(event.cell, event.outcome)

    def _ended(self, cell: Cell, outcome: CellOutcome) -> None:
        entry = self.folder.entry(cell.id)
        entry["ended_at"] = now()
        if outcome.state == "interrupted":
            entry.update(state="pending", started_at=None, ended_at=None)
            if not self.stopping:
                # Somebody stopped the agent itself; that is no reason to stop the campaign.
                self.folder.fail(cell.id, "interrupted", "the agent was stopped by a signal")
        elif outcome.state == "finished":
            try:
                self.folder.finish(cell.id)
            except DataError as error:
                self.folder.fail(cell.id, "internal", str(error))
        else:
            self.folder.fail(cell.id, outcome.kind, outcome.message)
            self._judge_failure(outcome)
        if self.fatal is None and not (outcome.state == "interrupted" and self.stopping):
            self.watcher.cell_ended(cell, entry, outcome.seconds)
        if self.fatal is not None:
            # The cell itself is not to blame: it runs again when the campaign is resumed.
            entry["state"] = "pending"
        self.folder.save()

    def _judge_failure(self, outcome: CellOutcome) -> None:
        """Ends the campaign if the same would happen to every other cell."""
        text = outcome.message.lower()
        if any(sign in text for sign in _DISK_FULL) or _free_bytes(self.folder.path) < 1_000_000:
            self._give_up(
                NarrowsError(
                    f"the disk of {self.folder.path} is full; make room and run the same command again,"
                    " finished cells are kept"
                )
            )
            return
        any_finished = any(cell["state"] == "finished" for cell in self.folder.cells)
        if outcome.kind == "unavailable" and not any_finished:
            self._give_up(UnavailableError(outcome.message))

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
            self.events.put(_Event("started", cell))
            try:
                outcome = self._run_cell(cell)
            except OSError as error:
                outcome = CellOutcome(
                    "failed", "io", f"{error.filename or self.folder.path}: {error.strerror}", 1
                )
            except Exception as error:  # a bug of ours must not leave the campaign waiting for ever
                outcome = CellOutcome("failed", "internal", f"{type(error).__name__}: {error}", 1)
            self.events.put(_Event("ended", cell, outcome=outcome))

    def _run_cell(self, cell: Cell) -> CellOutcome:
        cells = self.folder.path / "cells"
        cell_file = cells / f".{cell.id}.cell.json"
        log_file = cells / f".{cell.id}.log"
        cell_file.write_text(json.dumps(cell.content, indent=1), encoding="utf-8")
        last = [0.0]

        def progress(share: float) -> None:
            if time.monotonic() - last[0] > 0.1:
                last[0] = time.monotonic()
                self.events.put(_Event("progress", cell, share))

        out = self.folder.cell_dir(cell.id)
        files = self.folder.files_dir
        run = AgentRun(self.agent, self.where, cell_file, out, log_file, progress, files)
        with self.lock:
            if self.stopping:
                return CellOutcome("interrupted")
            self.running[cell.id] = run
        try:
            outcome = run.run()
        finally:
            with self.lock:
                self.running.pop(cell.id, None)
            cell_file.unlink(missing_ok=True)
        self._keep_log(cell, log_file, outcome)
        return outcome

    def _keep_log(self, cell: Cell, log_file: Path, outcome: CellOutcome) -> None:
        """What the agent wrote to its standard error is kept only if the cell failed."""
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
