"""The agent: finding the binary, asking it for facts, and running one cell with it.

The agent is started in a process group of its own with a pipe on its standard input. When this process
dies, however it dies, the pipe closes and the agent stops and cleans up.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from narrows.errors import UnavailableError

#: The version of the agent's command line that this package speaks.
PROTOCOL = 1
#: How long the agent may take to clean up before it is killed.
GRACE_S = 15.0
#: An agent that says nothing for this long is taken for hung.
SILENCE_S = {"emulate": 180.0, "simulate": 900.0}

_PACKAGED = Path(__file__).resolve().parent.parent / "_bin" / "narrows-agent"


def find_agent() -> Path:
    """The agent's binary: $NARROWS_AGENT, the one in the package, the one on the PATH."""
    named = os.environ.get("NARROWS_AGENT")
    if named:
        if not os.access(named, os.X_OK):
            raise UnavailableError(
                f"$NARROWS_AGENT names {named}, which is not a program; correct or unset it"
            )
        return Path(named)
    if os.access(_PACKAGED, os.X_OK):
        return _PACKAGED
    found = shutil.which("narrows-agent")
    if found:
        return Path(found)
    raise UnavailableError(
        "the program narrows-agent is not there; build it in the source tree with: make build"
    )


def ask(agent: Path, question: str, *more: str | Path, pass_fds: Sequence[int] = ()) -> dict[str, Any]:
    """The answer of `narrows-agent doctor`, `version` or `bpf`."""
    try:
        done = subprocess.run(
            [agent, question, *more],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            stdin=subprocess.DEVNULL,
            pass_fds=pass_fds,
        )
        answer = json.loads(done.stdout)
    except (OSError, subprocess.TimeoutExpired, ValueError) as error:
        reason = str(error).split("\n")[0]
        raise UnavailableError(
            f"{agent} {question} gives no answer ({reason}); build the agent again with: make build"
        ) from None
    if not isinstance(answer, dict):
        raise UnavailableError(
            f"{agent} {question} gives a strange answer; build the agent again with: make build"
        )
    return answer


def check_version(agent: Path) -> dict[str, Any]:
    """The agent's version, after making sure that we understand each other."""
    version = ask(agent, "version")
    if version.get("protocol") != PROTOCOL:
        raise UnavailableError(
            f"{agent} speaks protocol {version.get('protocol')}, this package {PROTOCOL}; build both"
            " from the same source with: make build"
        )
    return version


@dataclass
class CellOutcome:
    """How a cell ended: `finished` (a record was written), `failed` or `interrupted`."""

    state: str
    kind: str = ""
    message: str = ""
    exit_code: int = 0
    seconds: float = 0.0
    #: Of the files of a finished cell.
    digest: str | None = None


@dataclass
class AgentRun:
    """One agent working on one cell. `stop` may be called from any thread."""

    agent: Path
    plane: str
    cell_file: Path
    out_dir: Path
    log_file: Path
    on_progress: Callable[[float], None]
    #: Where the files are that the cell names.
    files: Path
    #: More words of the command.
    more: tuple[str, ...] = ()
    _process: subprocess.Popen[bytes] | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _stopped: bool = False
    _hung: bool = False
    _last: dict[str, Any] = field(default_factory=dict)

    def stop(self, kill: bool = False) -> None:
        """Asks the agent to stop and clean up; with `kill` ends it at once."""
        with self._lock:
            self._stopped = True
            process = self._process
            if process is None or process.poll() is not None:
                return
            process.send_signal(signal.SIGKILL if kill else signal.SIGTERM)

    def run(self) -> CellOutcome:
        """Runs the cell to its end."""
        started = time.monotonic()
        with self.log_file.open("wb") as log:
            command = [
                str(self.agent),
                self.plane,
                "--cell",
                str(self.cell_file),
                "--out",
                str(self.out_dir),
                "--files",
                str(self.files),
                "--watch-stdin",
                *self.more,
            ]
            with self._lock:
                if self._stopped:
                    return CellOutcome("interrupted")
                try:
                    # A session of its own: the kernel's scheduler gives the emulator its fair share,
                    # however busy the terminal that we run in.
                    self._process = subprocess.Popen(
                        command,
                        stdin=subprocess.PIPE,
                        stdout=subprocess.PIPE,
                        stderr=log,
                        start_new_session=True,
                    )
                except OSError as error:
                    return CellOutcome(
                        "failed", "unavailable", f"{self.agent} can't be started: {error.strerror}", 4
                    )
            process = self._process
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
        """Reads the agent's lines until it closes its output, says nothing for too long, or must go."""
        assert process.stdout
        stream = process.stdout.fileno()
        rest = b""
        heard = time.monotonic()
        stop_asked: float | None = None
        while True:
            ready, _, _ = select.select([stream], [], [], 0.5)
            now = time.monotonic()
            if ready:
                data = os.read(stream, 65536)
                if not data:
                    return
                heard = now
                *lines, rest = (rest + data).split(b"\n")
                for line in lines:
                    self._line(line)
            if self._stopped:
                stop_asked = stop_asked or now
                if now - stop_asked > GRACE_S:
                    process.kill()
                    return
            elif now - heard > SILENCE_S.get(self.plane, 900.0):
                self._hung = True
                process.kill()
                return
            elif process.poll() is not None and not ready:
                return

    @staticmethod
    def _wait(process: subprocess.Popen[bytes]) -> int:
        try:
            return process.wait(timeout=GRACE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            return process.wait()

    def _line(self, line: bytes) -> None:
        try:
            event = json.loads(line)
        except ValueError:
            return
        if not isinstance(event, dict):
            return
        if event.get("event") == "progress":
            total = event.get("of_ns") or 0
            if total:
                self.on_progress(min(1.0, event.get("time_ns", 0) / total))
        elif event.get("event") in ("done", "error"):
            self._last = event

    def _judge(self, exit_code: int) -> CellOutcome:
        if exit_code == 0:
            if (self.out_dir / "run.json").is_file():
                return CellOutcome("finished")
            return CellOutcome("failed", "internal", "the agent ended without leaving a record", exit_code)
        if self._hung:
            silence = SILENCE_S.get(self.plane, 900.0)
            return CellOutcome(
                "failed", "internal", f"the agent gave no sign of life for {silence:g} s and was killed", 1
            )
        if self._stopped or exit_code in (130, 143):
            return CellOutcome("interrupted", exit_code=exit_code)
        if self._last.get("event") == "error":
            return CellOutcome(
                "failed",
                str(self._last.get("kind", "internal")),
                str(self._last.get("message", "the agent failed")),
                exit_code,
            )
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
