"""Lines that an agent says, perhaps on another machine: none is waited for, and none grows, without limit."""

from __future__ import annotations

import os
import select
import time
from collections import deque
from typing import IO


class Lines:
    """What a program says, line by line."""

    def __init__(self, stream: IO[bytes], longest: int) -> None:
        self._stream = stream.fileno()
        self._longest = longest
        #: Lines that are whole and were not taken yet, without their ends.
        self.whole: deque[bytes] = deque()
        self._rest = b""
        #: Whether the program has closed its output.
        self.ended = False
        #: Whether a line has become longer than any that makes sense.
        self.endless = False

    def hear(self) -> None:
        """Takes what has come; waits for something if nothing has."""
        data = os.read(self._stream, 1 << 16)
        self.ended = not data
        *lines, self._rest = (self._rest + data).split(b"\n")
        self.whole.extend(lines)
        if len(self._rest) > self._longest:
            self._rest = b""
            self.endless = True

    def next(self, seconds: float) -> bytes | None:
        """The next line; None if it is not whole within this time, or never will be."""
        limit = time.monotonic() + seconds
        while not self.whole:
            ready, _, _ = select.select([self._stream], [], [], max(0.0, limit - time.monotonic()))
            if not ready:
                return None
            self.hear()
            if self.ended or self.endless:
                break
        return self.whole.popleft() if self.whole else None
