"""The two agents of one cell between hosts: `narrows-agent side` here and there, told what to do and heard.

Each gets a plan and then orders on its standard input, and says JSON lines on its standard output. When its
input ends, however that comes, it stops and leaves nothing behind.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import IO, Any

from narrows.hosts import answers
from narrows.hosts.between import Apart
from narrows.hosts.lines import Lines
from narrows.hosts.place import Place, kill
from narrows.hosts.ssh import CONNECTION_FAILED

FORMAT = "narrows/side/1"
#: Agents that both say nothing for this long are taken for hung; the longest wait of theirs is that of
#: starting programs.
_SILENCE_S = 120.0
#: How long an agent may take to end its processes and to write what is missing, when it was told to stop.
_GRACE_S = 15.0
#: When one end has failed the other one fails soon; which of them tells more is known then.
_OTHER_S = 3.0
_TURN_S = 0.2
#: The agent's kinds of failures (agent/src/events.rs).
_KINDS = ("input", "unavailable", "io", "internal", "interrupted")
#: What they say.
_EVENTS = ("ready", "open", "prepared", "starting", "progress", "done", "error")
#: Longest line that is heard to its end.
_LONGEST = 1 << 20


class SidesFailed(Exception):  # noqa: N818 - what became of a cell, and no error of this program
    """Why a cell gave no record: the kind of failure, and a sentence."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message


class Stopped(Exception):  # noqa: N818
    """Somebody asked to stop."""


@dataclass
class Side:
    """One of the two agents."""

    place: Place
    process: subprocess.Popen[bytes]
    #: Takes what it writes to its standard error.
    log: IO[bytes]
    #: What is still to be written to it.
    _out: bytes = b""
    _lines: Lines = field(init=False)
    #: The last event of each name.
    seen: dict[str, dict[str, Any]] = field(default_factory=dict)
    #: Whether it has closed its output.
    ended: bool = False

    def __post_init__(self) -> None:
        assert self.process.stdout
        self._lines = Lines(self.process.stdout, _LONGEST)

    def order(self, order: dict[str, Any]) -> None:
        """Tells it something."""
        self._out += json.dumps(order, separators=(",", ":")).encode() + b"\n"

    @property
    def error(self) -> dict[str, Any] | None:
        """What it says has gone wrong."""
        return self.seen.get("error")

    # -- pipes -------------------------------------------------------------------------------------

    def register(self, selector: selectors.BaseSelector) -> None:
        """Notes what is to be waited for."""
        assert self.process.stdin and self.process.stdout and self.process.stderr
        if not self.ended:
            selector.register(self.process.stdout, selectors.EVENT_READ, self.hear)
        if not self.process.stderr.closed:
            selector.register(self.process.stderr, selectors.EVENT_READ, self.keep)
        if self._out and not self.process.stdin.closed:
            os.set_blocking(self.process.stdin.fileno(), False)
            selector.register(self.process.stdin, selectors.EVENT_WRITE, self.write)

    def write(self) -> None:
        """Writes as much as its input takes."""
        assert self.process.stdin
        try:
            written = os.write(self.process.stdin.fileno(), self._out[: 1 << 16])
        except BlockingIOError:
            return
        except OSError:
            # It has ended; its output tells why.
            self.hang_up()
            return
        self._out = self._out[written:]

    def hear(self) -> None:
        """Takes what it says."""
        self._lines.hear()
        self.ended = self._lines.ended
        while self._lines.whole:
            event = answers.parse(self._lines.whole.popleft())
            if event is not None and event.get("event") in _EVENTS:
                self.seen[event["event"]] = event
        if self._lines.endless:
            self.seen["error"] = {"event": "error", "message": "the agent says a line that does not end"}

    def keep(self) -> None:
        """Keeps what it complains about."""
        assert self.process.stderr
        data = os.read(self.process.stderr.fileno(), 1 << 16)
        if data:
            self.log.write(data)
        else:
            self.process.stderr.close()

    def hang_up(self) -> None:
        """Ends its input: it stops and cleans up."""
        assert self.process.stdin
        self._out = b""
        with contextlib.suppress(OSError):
            self.process.stdin.close()

    def kill(self) -> None:
        """Ends it at once; what it has started notices."""
        kill(self.process)

    def end(self, seconds: float) -> int:
        """Waits for its end, and kills it if that takes too long; gives its exit code."""
        self.hang_up()
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            with contextlib.suppress(subprocess.TimeoutExpired):
                return self.process.wait(_GRACE_S)
            return -1
        finally:
            for stream in (self.process.stdout, self.process.stderr):
                if stream is not None:
                    with contextlib.suppress(OSError):
                        stream.close()

    def what_happened(self, connection_stands: bool) -> tuple[str, str]:
        """Kind and sentence of its failure."""
        if self.error is not None:
            kind = self.error.get("kind")
            known = kind if kind in _KINDS else "internal"
            return known, f"{self.place.name}: {answers.complaint(self.error)}"
        code = self.process.poll()
        if self.place.ssh is not None and (not connection_stands or code == CONNECTION_FAILED):
            return "vanished", f"{self.place.name} has vanished: the connection by ssh broke off"
        return "internal", f"{self.place.name}: the agent has ended without a reason ({_how(code)})"


def _how(code: int | None) -> str:
    if code is None:
        return "it closed its output"
    return f"killed by signal {-code}" if code < 0 else f"exit code {code}"


class Sides:
    """Both agents; use it with `with`. `near` is the one here."""

    def __init__(
        self,
        near: Side,
        far: Side,
        stopped: Callable[[], bool],
        stands: Callable[[], bool],
        progress: Callable[[float], None],
    ) -> None:
        self.near = near
        self.far = far
        self._stopped = stopped
        #: Whether the connection to the far one stands.
        self._stands = stands
        self._progress = progress
        self._heard = time.monotonic()

    @property
    def both(self) -> tuple[Side, Side]:
        """Both of them."""
        return self.near, self.far

    def __enter__(self) -> Sides:
        return self

    def __exit__(self, *_: object) -> None:
        for side in self.both:
            side.hang_up()
        limit = time.monotonic() + _GRACE_S
        # What they still say is heard, so that none waits for us.
        while not all(side.ended for side in self.both) and time.monotonic() < limit:
            self._turn()
        for side in self.both:
            side.end(max(0.1, limit - time.monotonic()))

    def run(
        self, plans: tuple[dict[str, Any], dict[str, Any]], start_in_ns: int, apart: Apart | None
    ) -> None:
        """From the plans (near, far) to the end of the run; raises `SidesFailed` or `Stopped`.

        `apart` is how far the clocks are apart where no tunnel compares them, else None.
        """
        for side, plan in zip(self.both, plans, strict=True):
            side.order(plan)
        if apart is None:
            self._await("open", self.both)
        self._await("prepared", self.both)
        if apart is None:
            self.near.order({"order": "start", "in_ns": start_in_ns})
            self._await("starting", (self.near,))
            # The other end reckons with its own estimate of the clocks.
            self.far.order({"order": "start", "at_ns": self.near.seen["starting"]["at_ns"]})
        else:
            real_ns = time.time_ns() + start_in_ns
            order = {"order": "start", "error_ns": apart.error_ns()}
            self.near.order({**order, "real_ns": real_ns})
            self.far.order({**order, "real_ns": real_ns + apart.offset_ns})
        self._await("done", self.both)

    # -- waiting -----------------------------------------------------------------------------------

    def _await(self, name: str, sides: tuple[Side, ...]) -> None:
        """Until these have said something."""
        self._heard = time.monotonic()
        while not all(name in side.seen for side in sides):
            if self._stopped():
                raise Stopped
            if self._turn():
                self._heard = time.monotonic()
            self._check(sides, name)

    def _check(self, sides: tuple[Side, ...], name: str) -> None:
        gone = [side for side in self.both if side.error or (side.ended and "done" not in side.seen)]
        if gone:
            raise self._failure(gone[0])
        if not self._stands():
            raise SidesFailed(*self.far.what_happened(connection_stands=False))
        silent = time.monotonic() - self._heard
        if silent > _SILENCE_S:
            who = " and ".join(side.place.name for side in sides if name not in side.seen)
            raise SidesFailed("internal", f"{who}: no sign of life for {_SILENCE_S:g} s; the agent was ended")

    def _failure(self, first: Side) -> SidesFailed:
        """What became of both when one has failed: it may only have noticed what happened at the other."""
        limit = time.monotonic() + _OTHER_S
        other = self.far if first is self.near else self.near
        while not (other.error or other.ended) and time.monotonic() < limit and not self._stopped():
            self._turn()
        for side in self.both:
            # Now their exit codes are known.
            if side.ended:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    side.process.wait(2)
        stands = self._stands()
        failed = [side for side in (first, other) if side.error or (side.ended and "done" not in side.seen)]
        found = [side.what_happened(stands) for side in failed]
        vanished = [one for one in found if one[0] == "vanished"]
        if vanished:
            return SidesFailed(*vanished[0])
        return SidesFailed(found[0][0], "; ".join(dict.fromkeys(message for _, message in found)))

    def _turn(self) -> bool:
        """Hears and writes for a moment; whether anything was heard."""
        with selectors.DefaultSelector() as selector:
            for side in self.both:
                side.register(selector)
            if not selector.get_map():
                time.sleep(_TURN_S)
                return False
            before = [side.seen.get("progress") for side in self.both]
            ready = selector.select(_TURN_S)
            for key, _ in ready:
                key.data()
        told = self.near.seen.get("progress")
        if told is not None and told is not before[0] and told.get("of_ns"):
            self._progress(min(1.0, told.get("time_ns", 0) / told["of_ns"]))
        return any(mask & selectors.EVENT_READ for _, mask in ready)
