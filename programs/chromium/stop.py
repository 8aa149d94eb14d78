"""SIGTERM handling of the programs in this folder."""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType

from browser import BrowserError


class Stopped(Exception):  # noqa: N818 - it is not an error of anybody
    """A stop was requested."""


class Stop:
    """SIGTERM. It interrupts only waiting, never an exchange with Chromium."""

    wanted = threading.Event()
    _waits = False

    @classmethod
    def tell(cls, _number: int, _frame: FrameType | None) -> None:
        """Handles SIGTERM."""
        cls.wanted.set()
        if cls._waits:
            raise Stopped

    @classmethod
    @contextlib.contextmanager
    def interrupts(cls) -> Iterator[None]:
        """Raises `Stopped` inside, or at once if the request came earlier."""
        cls._waits = True
        try:
            if cls.wanted.is_set():
                raise Stopped
            yield
        finally:
            cls._waits = False


def until_stopped(work: Callable[..., None], *words: str) -> int:
    """Works until it is done or SIGTERM arrives; returns the exit code. An error is printed in one
    sentence.
    """
    signal.signal(signal.SIGTERM, Stop.tell)
    try:
        work(*words)
    except Stopped:
        pass
    except (BrowserError, OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0
