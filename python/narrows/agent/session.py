"""A session with an agent: JSON lines on its standard input and output.

The agent may run on another machine, so every line has a time limit and a length limit.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import time
from collections import deque
from typing import IO, Any, TypeVar

from narrows.agent import schema
from narrows.agent.location import Location
from narrows.agent.process import end
from narrows.errors import UnavailableError

Kind = TypeVar("Kind")
#: The default length limit of a line.
LONGEST = 1 << 20


class Lines:
    """The output of a program, line by line."""

    def __init__(self, stream: IO[bytes], longest: int = LONGEST) -> None:
        self._stream = stream.fileno()
        self._longest = longest
        #: Complete lines that were not consumed yet, without line endings.
        self.whole: deque[bytes] = deque()
        self._rest = b""
        #: Set when the program has closed its output.
        self.ended = False
        #: Set when a line exceeds the length limit.
        self.endless = False

    def read(self) -> None:
        """Reads the available output; waits for some if there is none."""
        data = os.read(self._stream, 1 << 16)
        self.ended = not data
        *lines, self._rest = (self._rest + data).split(b"\n")
        self.whole.extend(lines)
        if len(self._rest) > self._longest:
            self._rest = b""
            self.endless = True

    def next(self, seconds: float) -> bytes | None:
        """The next line; None if it is not complete within this time, or the output has ended."""
        limit = time.monotonic() + seconds
        while not self.whole:
            ready, _, _ = select.select([self._stream], [], [], max(0.0, limit - time.monotonic()))
            if not ready:
                return None
            self.read()
            if self.ended or self.endless:
                break
        return self.whole.popleft() if self.whole else None


class Session:
    """An agent that answers commands one by one."""

    def __init__(self, location: Location, *arguments: str, longest: int = LONGEST) -> None:
        self.location = location
        self.process = location.start(*arguments)
        assert self.process.stdout
        self._lines = Lines(self.process.stdout, longest)

    def write(self, line: bytes) -> None:
        """Writes a line; if the agent has ended, the missing answer shows it."""
        assert self.process.stdin
        with contextlib.suppress(OSError, ValueError):
            self.process.stdin.write(line + b"\n")
            self.process.stdin.flush()

    def command(self, kind: type[Kind], seconds: float, **command: Any) -> Kind:
        """Sends a command; returns the answer, which is of this kind."""
        self.write(json.dumps(command).encode())
        return self.answer(kind, seconds)

    def answer(self, kind: type[Kind], seconds: float) -> Kind:
        """The next answer; raises `UnavailableError` if it is missing, does not fit or takes too long."""
        line = self._lines.next(seconds)
        if line is None:
            raise UnavailableError(
                f"{self.location.name}: the agent does not answer any more{self._complaint()}; see whether"
                " the host is still there"
            )
        answer = schema.parse(line)
        if answer is None:
            raise UnavailableError(
                f"{self.location.name}: the agent answers with something that is not a JSON object:"
                f" {line[:80]!r}"
            )
        return schema.read_answer(self.location.name, answer, kind)

    def close_input(self) -> None:
        """Lets the agent end."""
        assert self.process.stdin
        with contextlib.suppress(OSError):
            self.process.stdin.close()

    def end(self) -> None:
        """Ends the agent and discards its remaining output."""
        end(self.process)

    def _complaint(self) -> str:
        """The last line that the agent writes to its standard error, in brackets."""
        assert self.process.stderr
        self.close_input()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(5)
            lines = self.process.stderr.read().decode(errors="replace").strip().splitlines()
            return f" ({lines[-1]})" if lines else ""
        return ""
