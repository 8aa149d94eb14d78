"""One cell, run by an agent on this machine."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from narrows.agent.location import Location
from narrows.agent.schema import read_event
from narrows.agent.session import Lines
from narrows.documents.agent import Event
from narrows.errors import UnavailableError

#: Time for the agent to clean up before it is killed.
GRACE_S = 15.0
#: An agent that prints nothing for this long is considered hung.
SILENCE_S = {"emulate": 180.0}
#: Events of live runs.
LIVE = ("live", "changed", "refused")
_SILENCE_S = 900.0


@dataclass
class CellOutcome:
    """The end of a cell: `finished` (a record was written), `failed` or `interrupted`."""

    state: str
    kind: str = ""
    message: str = ""
    exit_code: int = 0
    seconds: float = 0.0
    #: Facts about the files of a finished cell.
    digest: str | None = None


@dataclass
class CellRun:
    """One agent working on one cell. `stop` may be called from any thread."""

    location: Location
    #: The agent's command: the plane, or `side-record`.
    command: str
    cell_file: Path
    out_dir: Path
    log_file: Path
    on_progress: Callable[[float], None]
    #: The folder that contains the files named by the cell.
    files: Path
    #: Additional arguments of the command.
    more: tuple[str, ...] = ()
    #: Receives the lines about a run that is under way, if they are wanted.
    on_live: Callable[[bytes], None] | None = None
    _process: subprocess.Popen[bytes] | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _stopped: bool = False
    _hung: bool = False
    _last: Event | None = None

    @property
    def _silence_s(self) -> float:
        return SILENCE_S.get(self.command, _SILENCE_S)

    def stop(self, kill: bool = False) -> None:
        """Asks the agent to stop and clean up; with `kill` ends it at once."""
        with self._lock:
            self._stopped = True
            process = self._process
            if process is None or process.poll() is not None:
                return
            process.send_signal(signal.SIGKILL if kill else signal.SIGTERM)

    def order(self, line: bytes) -> None:
        """Sends an order to the agent, which must take orders; one that has ended answers no more."""
        with self._lock:
            process = self._process
        if process is not None and process.stdin is not None:
            with contextlib.suppress(OSError, ValueError):
                process.stdin.write(line + b"\n")
                process.stdin.flush()

    def run(self) -> CellOutcome:
        """Runs the cell until it ends."""
        started = time.monotonic()
        paths = ("--cell", self.cell_file, "--out", self.out_dir, "--files", self.files)
        words = (self.command, *map(str, paths), "--watch-stdin", *self.more)
        with self.log_file.open("wb") as log, self._lock:
            if self._stopped:
                return CellOutcome("interrupted")
            try:
                process = self._process = self.location.start(*words, stderr=log)
            except UnavailableError as error:
                return CellOutcome("failed", "unavailable", str(error), 4)
        try:
            self._follow(process)
            exit_code = self._wait(process)
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
            assert process.stdin and process.stdout
            process.stdin.close()
            process.stdout.close()
        outcome = self._judge(exit_code)
        outcome.seconds = time.monotonic() - started
        return outcome

    def _follow(self, process: subprocess.Popen[bytes]) -> None:
        """Reads the agent's lines until it closes its output, stays silent for too long, or must be
        stopped.
        """
        assert process.stdout
        lines = Lines(process.stdout)
        heard = time.monotonic()
        stop_asked: float | None = None
        while not lines.ended:
            line = lines.next(0.5)
            now = time.monotonic()
            if line is not None:
                heard = now
                self._note(line)
            if self._stopped:
                stop_asked = stop_asked or now
                if now - stop_asked > GRACE_S:
                    process.kill()
                    return
            elif now - heard > self._silence_s:
                self._hung = True
                process.kill()
                return
            elif line is None and process.poll() is not None:
                return

    @staticmethod
    def _wait(process: subprocess.Popen[bytes]) -> int:
        try:
            return process.wait(timeout=GRACE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            return process.wait()

    def _note(self, line: bytes) -> None:
        event = read_event(line)
        if event is None:
            return
        if event.event in ("done", "error"):
            self._last = event
        elif event.event == "progress" and event.progress is not None:
            self.on_progress(event.progress)
        elif event.event in LIVE and self.on_live is not None:
            self.on_live(line)

    def _judge(self, exit_code: int) -> CellOutcome:
        if exit_code == 0:
            if (self.out_dir / "run.json").is_file():
                return CellOutcome("finished")
            return CellOutcome("failed", "internal", "the agent ended without leaving a record", exit_code)
        if self._hung:
            silent = f"the agent gave no output for {self._silence_s:g} s and was killed"
            return CellOutcome("failed", "internal", silent, 1)
        if self._stopped or exit_code in (130, 143):
            return CellOutcome("interrupted", exit_code=exit_code)
        if self._last is not None and self._last.event == "error":
            kind, message = self._last.kind or "internal", self._last.message or "the agent failed"
            return CellOutcome("failed", str(kind), str(message), exit_code)
        if exit_code < 0:
            name = signal.Signals(-exit_code).name if -exit_code in set(signal.Signals) else str(-exit_code)
            return CellOutcome("failed", "killed", f"the agent was killed by {name}", exit_code)
        kinds = {3: "input", 4: "unavailable"}
        return CellOutcome("failed", kinds.get(exit_code, "internal"), self._log_tail(exit_code), exit_code)

    def _log_tail(self, exit_code: int) -> str:
        try:
            lines = self.log_file.read_text(errors="replace").strip().splitlines()
        except OSError:
            lines = []
        tail = f": {lines[-1].strip()[:300]}" if lines else ""
        return f"the agent ended with exit code {exit_code}{tail}"
