"""Restores the terminal if this program is killed while a view takes all of it.

A shell waits at a pipe: a line says that the program has restored the terminal itself, and the end of the
pipe without one that it was killed. The shell has a separate session, so that signals for the program's group
spare it.
"""

from __future__ import annotations

import contextlib
import subprocess
from typing import IO, Any

#: xterm's control sequences, with which all terminals of today agree: leave the alternate screen (1049), show
#: the cursor (25), default colours.
_RESTORE = r"\033[0m\033[?1049l\033[?25h"
#: Letters are read line by line again, and shown.
_KEYS = "stty icanon echo <&1"
_WAIT_S = 2.0


class TerminalGuard:
    """Guards the terminal of an output from `start` to `stop`."""

    def __init__(self, output: IO[str], *, keys: bool) -> None:
        self._output = output
        #: True if the mode of the keyboard changes as well.
        self._keys = keys
        self._process: subprocess.Popen[Any] | None = None

    def start(self) -> None:
        """Begins; without a shell the terminal is not guarded."""
        restore = f"{_KEYS}; printf '{_RESTORE}'" if self._keys else f"printf '{_RESTORE}'"
        with contextlib.suppress(OSError, ValueError):
            self._process = subprocess.Popen(
                ["/bin/sh", "-c", f"read -r word || {{ {restore}; }}"],
                stdin=subprocess.PIPE,
                stdout=self._output.fileno(),
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )

    def stop(self) -> None:
        """Ends, after the terminal was restored."""
        process, self._process = self._process, None
        if process is None or process.stdin is None:
            return
        with contextlib.suppress(OSError):
            process.stdin.write(b"restored\n")
            process.stdin.close()
        try:
            process.wait(_WAIT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
