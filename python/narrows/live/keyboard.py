"""Orders from standard input while a run is shown: typed on a terminal, or lines of a pipe."""

from __future__ import annotations

import contextlib
import os
import select
import sys
import threading
from collections.abc import Callable, Iterator

_ENTER, _ERASE, _CLEAR = "\r\n", "\x7f\b", "\x15"
_PAUSE_S = 0.2


class Keyboard:
    """A thread that reads standard input; `typed` is the unfinished line, if the view shows it."""

    def __init__(self, order: Callable[[str], object], *, shows: bool) -> None:
        self._order = order
        self._shows = shows
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._read, daemon=True, name="orders")
        self._restore: Callable[[], None] | None = None
        self.typed: str | None = "" if shows else None

    def start(self) -> None:
        """Begins to read."""
        if self._shows and sys.stdin.isatty():
            self._restore = _read_letters(sys.stdin.fileno())
        self._thread.start()

    def stop(self) -> None:
        """Stops reading, and restores the terminal."""
        self._stopped.set()
        if self._restore is not None:
            self._restore()
            self._restore = None

    def _read(self) -> None:
        line = ""
        for letter in self._letters():
            if letter in _ENTER:
                self._order(line)
                line = ""
            elif letter in _ERASE:
                line = line[:-1]
            elif letter == _CLEAR:
                line = ""
            elif letter.isprintable():
                line += letter
            if self._shows:
                self.typed = line

    def _letters(self) -> Iterator[str]:
        try:
            source = sys.stdin.fileno()
        except (OSError, ValueError):
            return
        while not self._stopped.is_set():
            try:
                ready, _, _ = select.select([source], [], [], _PAUSE_S)
                data = os.read(source, 4096) if ready else None
            except (OSError, ValueError):
                return
            if data == b"":
                return
            if data and not data.startswith(b"\x1b"):
                yield from data.decode(errors="ignore")


def _read_letters(source: int) -> Callable[[], None]:
    """Lets the terminal pass on each letter, unseen; signals stay. Returns a function that undoes it."""
    import termios

    before = termios.tcgetattr(source)
    now = termios.tcgetattr(source)
    now[3] &= ~(termios.ICANON | termios.ECHO)
    termios.tcsetattr(source, termios.TCSANOW, now)

    def restore() -> None:
        with contextlib.suppress(termios.error):
            termios.tcsetattr(source, termios.TCSANOW, before)

    return restore
