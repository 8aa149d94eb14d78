"""SIGTERM, as the programs of this folder take it."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from types import FrameType


class Stopped(Exception):  # noqa: N818 - it is not an error of anybody
    """We were told to stop."""


class Stop:
    """SIGTERM. Only a wait for others is interrupted by it, never what Chromium answers."""

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
        """Raises `Stopped` within, or if it was told before."""
        cls._waits = True
        try:
            if cls.wanted.is_set():
                raise Stopped
            yield
        finally:
            cls._waits = False
