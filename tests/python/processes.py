"""Processes that tests start. None may block the tests forever: a process that takes too long is described
(the state of each thread, its output), ended with its descendants, and fails the test."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any

#: Time for a killed process to vanish.
_DEATH_S = 20.0


def run(
    command: Sequence[str | Path],
    *,
    seconds: float = 60,
    text: str = "",
    env: dict[str, str] | None = None,
    cwd: Path | None = None,
) -> subprocess.CompletedProcess[str]:
    """Runs a program to its end with `text` as its input, and returns its output.

    Its output goes to files: with a pipe, the end would only come once no descendant holds it open.
    """
    with (
        tempfile.TemporaryFile() as given,
        tempfile.TemporaryFile() as said,
        tempfile.TemporaryFile() as complained,
    ):
        given.write(text.encode())
        given.seek(0)
        process = subprocess.Popen(
            command, stdin=given, stdout=said, stderr=complained, env=env, cwd=cwd, start_new_session=True
        )
        try:
            code = process.wait(seconds)
        except subprocess.TimeoutExpired:
            state = end(process)
            raise AssertionError(
                f"{_words(command)} has not ended after {seconds} s\n{state}"
                f"standard output:\n{_content(said)}\nstandard error:\n{_content(complained)}"
            ) from None
        except BaseException:
            end(process)
            raise
        return subprocess.CompletedProcess(
            list(map(str, command)), code, _content(said), _content(complained)
        )


def finish(process: subprocess.Popen[str], seconds: float = 60) -> tuple[str, str]:
    """Waits for a process with pipes, and returns its output."""
    try:
        return process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired as late:
        state = end(process)
        said = [(part or b"").decode(errors="replace") for part in (late.stdout, late.stderr)]
        raise AssertionError(
            f"{_words(process.args)} has not ended after {seconds} s\n{state}"
            f"standard output:\n{said[0]}\nstandard error:\n{said[1]}"
        ) from None


def end(process: subprocess.Popen[Any]) -> str:
    """Kills a process with all its descendants if it still runs; describes what they were doing."""
    if process.poll() is not None:
        return ""
    pids = [process.pid, *family(process.pid)]
    state = describe(pids)
    for pid in pids:
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)
    try:
        process.wait(_DEATH_S)
    except subprocess.TimeoutExpired:
        # Nothing can be done: it is stuck inside the kernel.
        raise AssertionError(
            f"{_words(process.args)} does not even end when it is killed\n"
            f"before:\n{state}afterwards:\n{describe(pids)}"
        ) from None
    return state


def _words(command: object) -> str:
    return " ".join(map(str, command)) if isinstance(command, (list, tuple)) else str(command)


def _content(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode(errors="replace")


# -- looking at processes --------------------------------------------------------------------------


def eventually(what: str, holds: Callable[[], bool], seconds: float = 60) -> None:
    """Waits until a condition holds."""
    limit = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < limit, f"never: {what}"
        time.sleep(0.01)


def family(pid: int) -> list[int]:
    """All descendants of a process, nearest first."""
    found: list[int] = []
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            children = [int(word) for word in (task / "children").read_text().split()]
            found += children
            for child in children:
                found += family(child)
    return found


def is_alive(pid: int) -> bool:
    """True if a process runs (a zombie does not)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (OSError, IndexError):
        return False


def describe(pids: Sequence[int]) -> str:
    """The state of each thread of some processes, and where in the kernel it waits."""
    return "".join(_description(pid) for pid in pids)


def _description(pid: int) -> str:
    command = _look(Path(f"/proc/{pid}/cmdline")).replace("\0", " ").strip()
    text = f"process {pid}: {command[:200]}\n"
    with contextlib.suppress(OSError):
        for task in sorted(Path(f"/proc/{pid}/task").iterdir()):
            name = _look(task / "comm").strip()
            lines = _look(task / "status").splitlines()
            state = next((line.partition(":")[2].strip() for line in lines if line.startswith("State")), "?")
            text += f"  thread {task.name} {name}: {state}, in {_look(task / 'wchan') or '?'}\n"
            text += "".join(f"    {line}\n" for line in _look(task / "stack").splitlines())
    return text


def _look(file: Path) -> str:
    try:
        return file.read_text(errors="replace")
    except OSError:
        return ""


@contextlib.contextmanager
def running(process: subprocess.Popen[str]) -> Iterator[subprocess.Popen[str]]:
    """A started process that is ended afterwards, if it still runs."""
    try:
        yield process
    finally:
        end(process)
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                stream.close()
