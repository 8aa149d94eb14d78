"""Ends programs that were started with pipes and may belong to root."""

from __future__ import annotations

import contextlib
import subprocess

#: A killed program ends within this time, unless it is stuck inside the kernel.
_DEATH_S = 10.0


def end(process: subprocess.Popen[bytes]) -> None:
    """Ends a program that was started with pipes, by closing its standard input; kills it if that does not
    suffice.
    """
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
    # The program runs behind sudo; closing its pipes must suffice.
    with contextlib.suppress(PermissionError):
        process.kill()


def exit_code(words: list[str], seconds: float) -> int:
    """Runs a program that may belong to root, and returns its exit code; a program that takes too long is
    left running.
    """
    quiet = subprocess.DEVNULL
    process = subprocess.Popen(words, stdin=quiet, stdout=quiet, stderr=quiet)
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        kill(process)
        end(process)
        raise
