"""The two agents of one cell between hosts: `narrows-agent side` on this machine and on the other one.

Each receives a plan and then commands on its standard input, and writes JSON lines to its standard output.
When its input ends, for whatever reason, it stops and leaves nothing behind.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import subprocess
import time
from collections.abc import Callable
from functools import partial
from typing import IO

from narrows.agent import schema
from narrows.agent.location import Location
from narrows.agent.process import kill
from narrows.agent.session import Session
from narrows.campaign.live_peers import LivePeers
from narrows.documents.agent import Event
from narrows.hosts.path_probe import ClockOffset
from narrows.hosts.ssh import CONNECTION_FAILED
from narrows.scenario.real_path import LOCAL, REMOTE

FORMAT = "narrows/side/1"
#: Arguments of the agent.
ARGUMENTS = ("side", "--plan", "-")
#: Two agents that are both silent for this long are considered hung; their longest silence is the start of
#: programs.
_SILENCE_S = 120.0
#: Time for a stopping agent to end its processes and to write the remaining data.
_GRACE_S = 15.0
#: When one end has failed the other fails soon afterwards; wait until the more informative error is known.
_OTHER_S = 3.0
#: An incomplete line of standard error is buffered up to this many bytes.
_LONGEST_LINE = 1 << 16
_TURN_S = 0.2
#: The agent's kinds of failures (agent/src/events.rs).
_KINDS = ("input", "unavailable", "io", "internal", "interrupted")
#: Their events.
_EVENTS = ("ready", "open", "prepared", "starting", "progress", "done", "error")
_STARTING = "starting"
#: Those about a run that is under way.
_LIVE = ("counts", "rescheduled")


class PeerFailure(Exception):  # noqa: N818 - what became of a cell, and no error of this program
    """Why a cell produced no record: the kind of failure, and a sentence."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message


class Stopped(Exception):  # noqa: N818
    """A stop was requested."""


class Peer(Session):
    """One of the two agents, whose standard error goes to `log`."""

    def __init__(self, location: Location, log: IO[bytes], *arguments: str) -> None:
        super().__init__(location, *arguments)
        self.log = log
        #: Bytes to be written to its standard input.
        self._unsent = b""
        #: An incomplete line of its standard error.
        self._unlogged = b""
        #: The last event of each name.
        self.events: dict[str, Event] = {}
        #: Receives its lines about the run, if it is watched.
        self.on_live: Callable[[bytes], None] | None = None

    def send(self, command: dict[str, object]) -> None:
        """Queues a command, which is written as soon as the pipe accepts it."""
        self._unsent += json.dumps(command, separators=(",", ":")).encode() + b"\n"

    @property
    def error(self) -> Event | None:
        """The event that says that it has failed."""
        return self.events.get("error")

    @property
    def ended(self) -> bool:
        """True when it has closed its output."""
        return self._lines.ended

    @property
    def failed(self) -> bool:
        """True if it has reported a failure, or has ended before the run did."""
        return bool(self.error or (self.ended and "done" not in self.events))

    # -- pipes -------------------------------------------------------------------------------------

    def register(self, selector: selectors.BaseSelector) -> None:
        """Registers the pipes with a selector."""
        assert self.process.stdin and self.process.stdout and self.process.stderr
        if not self.ended:
            selector.register(self.process.stdout, selectors.EVENT_READ, self.read)
        if not self.process.stderr.closed:
            selector.register(self.process.stderr, selectors.EVENT_READ, self.keep_log)
        if self._unsent and not self.process.stdin.closed:
            os.set_blocking(self.process.stdin.fileno(), False)
            selector.register(self.process.stdin, selectors.EVENT_WRITE, self.write_some)

    def write_some(self) -> None:
        """Writes as much as the pipe accepts."""
        assert self.process.stdin
        try:
            written = os.write(self.process.stdin.fileno(), self._unsent[: 1 << 16])
        except BlockingIOError:
            return
        except OSError:
            # It has ended; its output has the reason.
            self.close_input()
            return
        self._unsent = self._unsent[written:]

    def read(self) -> None:
        """Reads its events."""
        self._lines.read()
        while self._lines.whole:
            line = self._lines.whole.popleft()
            event = schema.read_event(line)
            if event is None:
                continue
            if event.event in _EVENTS:
                self.events[event.event] = event
            elif event.event in _LIVE and self.on_live is not None:
                self.on_live(line)
        if self._lines.endless:
            self.events["error"] = Event(event="error", message="the agent sent a line without an end")

    def keep_log(self) -> None:
        """Copies its standard error to the log."""
        assert self.process.stderr
        data = os.read(self.process.stderr.fileno(), 1 << 16)
        self._unlogged += data
        # Both agents share the log, so write whole lines, or a last line without an end.
        whole = self._unlogged.rfind(b"\n") + 1
        if not data or len(self._unlogged) - whole > _LONGEST_LINE:
            whole = len(self._unlogged)
        self.log.write(self._unlogged[:whole])
        self._unlogged = self._unlogged[whole:]
        if not data:
            self.process.stderr.close()

    def close_input(self) -> None:
        """Closes its standard input: it stops and cleans up."""
        self._unsent = b""
        super().close_input()

    def kill(self) -> None:
        """Kills it at once; its children detect that."""
        kill(self.process)

    def finish(self, seconds: float) -> None:
        """Waits for its end; kills it if that takes longer."""
        self.close_input()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(seconds)
        self.end()
        self.log.write(self._unlogged)
        self._unlogged = b""

    def failure(self, is_connected: bool) -> tuple[str, str]:
        """The kind and the sentence of its failure."""
        if self.error is not None:
            kind = next((kind for kind in _KINDS if kind == self.error.kind), "internal")
            return kind, f"{self.location.name}: {schema.sentence(self.error.message)}"
        code = self.process.poll()
        if self.location.ssh is not None and (not is_connected or code == CONNECTION_FAILED):
            return "vanished", f"{self.location.name} has vanished: the connection by ssh broke off"
        return "internal", f"{self.location.name}: the agent ended without giving a reason ({_how(code)})"


def _how(code: int | None) -> str:
    if code is None:
        return "it closed its output"
    return f"killed by signal {-code}" if code < 0 else f"exit code {code}"


class PeerPair:
    """Both agents; a context manager."""

    def __init__(
        self,
        local: Peer,
        remote: Peer,
        stopped: Callable[[], bool],
        is_connected: Callable[[], bool],
        progress: Callable[[float], None],
        live: LivePeers | None = None,
    ) -> None:
        self._live = live
        if live is not None:
            local.on_live, remote.on_live = partial(live.hear, LOCAL), partial(live.hear, REMOTE)
        self.local = local
        self.remote = remote
        self._stopped = stopped
        self._is_connected = is_connected
        self._progress = progress
        self._last_heard = time.monotonic()

    @property
    def both(self) -> tuple[Peer, Peer]:
        """Both of them."""
        return self.local, self.remote

    def __enter__(self) -> PeerPair:
        return self

    def __exit__(self, *_: object) -> None:
        for peer in self.both:
            peer.close_input()
        limit = time.monotonic() + _GRACE_S
        # The remaining output is read, so that neither blocks.
        while not all(peer.ended for peer in self.both) and time.monotonic() < limit:
            self._turn()
        for peer in self.both:
            peer.finish(max(0.1, limit - time.monotonic()))

    def run(
        self, plans: tuple[dict[str, object], dict[str, object]], start_in_ns: int, offset: ClockOffset | None
    ) -> None:
        """Runs the cell from the plans (local, remote) to its end; raises `PeerFailure` or `Stopped`.

        `offset` is the difference of the clocks if no tunnel compares them, else None.
        """
        for peer, plan in zip(self.both, plans, strict=True):
            peer.send(plan)
        if offset is None:
            self._await("open", self.both)
        self._await("prepared", self.both)
        if offset is None:
            self.local.send({"order": "start", "in_ns": start_in_ns})
            self._await("starting", (self.local,))
            # The other end reckons with its own estimate of the clocks.
            self.remote.send({"order": "start", "at_ns": self.local.events[_STARTING].at_ns})
        else:
            real_ns = time.time_ns() + start_in_ns
            command = {"order": "start", "error_ns": offset.error_ns()}
            self.local.send({**command, "real_ns": real_ns})
            self.remote.send({**command, "real_ns": real_ns + offset.offset_ns})
        self._await("done", self.both)

    # -- waiting -----------------------------------------------------------------------------------

    def _await(self, name: str, peers: tuple[Peer, ...]) -> None:
        """Waits until these have sent an event of this name."""
        self._last_heard = time.monotonic()
        while not all(name in peer.events for peer in peers):
            if self._stopped():
                raise Stopped
            if self._turn():
                self._last_heard = time.monotonic()
            self._check(peers, name)

    def _check(self, peers: tuple[Peer, ...], name: str) -> None:
        gone = [peer for peer in self.both if peer.failed]
        if gone:
            raise self._failure(gone[0])
        if not self._is_connected():
            raise PeerFailure(*self.remote.failure(is_connected=False))
        silent = time.monotonic() - self._last_heard
        if silent > _SILENCE_S:
            who = " and ".join(peer.location.name for peer in peers if name not in peer.events)
            raise PeerFailure("internal", f"{who}: no output for {_SILENCE_S:g} s; the agent was ended")

    def _failure(self, first: Peer) -> PeerFailure:
        """The failure of the pair when one has failed: that one may only have reacted to a failure of the
        other.
        """
        limit = time.monotonic() + _OTHER_S
        other = self.remote if first is self.local else self.local
        while not (other.error or other.ended) and time.monotonic() < limit and not self._stopped():
            self._turn()
        for peer in self.both:
            # By now their exit codes are known.
            if peer.ended:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    peer.process.wait(2)
        is_connected = self._is_connected()
        pairs = [peer.failure(is_connected) for peer in (first, other) if peer.failed]
        vanished = [pair for pair in pairs if pair[0] == "vanished"]
        if vanished:
            return PeerFailure(*vanished[0])
        return PeerFailure(pairs[0][0], "; ".join(dict.fromkeys(message for _, message in pairs)))

    def _turn(self) -> bool:
        """Reads and writes for a moment; true if anything was read."""
        with selectors.DefaultSelector() as selector:
            for peer in self.both:
                peer.register(selector)
            if not selector.get_map():
                time.sleep(_TURN_S)
                return False
            before = self.local.events.get("progress")
            ready = selector.select(_TURN_S)
            for key, _ in ready:
                key.data()
        progress = self.local.events.get("progress")
        if progress is not None and progress is not before and progress.progress is not None:
            self._progress(progress.progress)
        self._obey()
        return any(mask & selectors.EVENT_READ for _, mask in ready)

    def _obey(self) -> None:
        """Passes on the next order, if one can be carried out now."""
        start = self.local.events.get(_STARTING)
        if self._live is None or start is None or start.real_ns is None:
            return
        command = self._live.next_command(time.time_ns() - start.real_ns)
        if command is not None:
            for peer in self.both:
                peer.send(command)
