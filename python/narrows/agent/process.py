"""Ending programs that were started with pipes and may be root's."""

from __future__ import annotations

import contextlib
import subprocess

#: A program that was killed ends within this time, unless it is stuck inside of the kernel.
_DEATH_S = 10.0


def end(process: subprocess.Popen[bytes]) -> None:
    """Ends a program that was started with pipes: it ends when its standard input does, or else is killed."""
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None:
            with contextlib.suppress(OSError):
                stream.close()
    for _ in range(2):
        try:
            process.wait(_DEATH_S)
            return
        except subprocess.TimeoutExpired:
            kill(process)


def kill(process: subprocess.Popen[bytes]) -> None:
    """Ends a program at once."""
    with contextlib.suppress(PermissionError):  # behind sudo; the end of its pipes must do
        process.kill()


def exit_code(words: list[str], seconds: float) -> int:
    """Runs a program that may be root's, and which is left alone when it takes too long."""
    quiet = subprocess.DEVNULL
    process = subprocess.Popen(words, stdin=quiet, stdout=quiet, stderr=quiet)
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        kill(process)
        end(process)
        raise
