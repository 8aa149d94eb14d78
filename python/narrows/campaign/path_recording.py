"""Keeps a real path full for a while, to record a trace of its capacity: a cell between two hosts of which
only the receiver's log of arrivals is kept, however the cell ends.
"""

from __future__ import annotations

import shutil
import signal
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from narrows import _native
from narrows.agent.cell import CellOutcome
from narrows.agent.location import this_machine
from narrows.campaign.peers import PeerFailure, Stopped
from narrows.campaign.real_path import RealPathPlane, RealPathRun
from narrows.campaign.run import plan_campaign
from narrows.campaign.signals import STOPS, interruptible
from narrows.errors import DataError, Interrupted, UnavailableError
from narrows.hosts.remote_host import RemoteOptions
from narrows.progress import progress
from narrows.scenario import Loaded, Override, cells_of
from narrows.scenario.loading import load_text
from narrows.scenario.real_path import LOCAL, REMOTE, quote_host, sender_is_local
from narrows.traces.recorded import Recorded, derive_opportunities

#: The scheme that fills the path; `volume` counts payload.
_SCENARIO = """\
schema: narrows/scenario/1
name: trace-record
where: hosts
real_path: {{sender: {sender}}}
schemes: [{{scheme: saturator, rate: {rate_bps} bit/s, volume: {volume} B}}]
duration: {time_ns} ns
"""
#: The share of payload in the data, at least: the rest are the headers of the packet and of the tunnel.
_PAYLOAD = 0.9
#: The directions of a recording, by the sending host.
DIRECTIONS = {"down": REMOTE, "up": LOCAL}
_LOG = "arrived.ntl"


@dataclass(frozen=True)
class Limits:
    """Limits of a recording."""

    data_bytes: int
    time_ns: int
    rate_bps: int


class _RecordingRun(RealPathRun):
    """The run; `ended` has the reason if it ended early."""

    ended: str | None = None

    def _run(self) -> CellOutcome:
        self._remote.ensure()
        there = self._remote.new_folder(self._cell.id)
        try:
            with self._log_file.open("wb") as log:
                self._measure(log, self._folders[LOCAL], there)
        except Stopped:
            self.ended = "it was interrupted"
            with self._lock:
                # From now on, stop requests end it at once and discard the recording.
                self._stopped = False
        except PeerFailure as error:
            self.ended = error.message
        receiver = REMOTE if sender_is_local(self._cell) else LOCAL
        if receiver == REMOTE:
            self._fetch(self._remote.remote, there, self._folders[REMOTE])
        else:
            if self._remote.alive:
                self._remote.remove(there)
            self._take_over()
        for name in (_LOG, f"{_LOG}.part"):
            if (self._folders[receiver] / name).is_file():
                shutil.copy(self._folders[receiver] / name, self._out)
                return CellOutcome("finished")
        return CellOutcome("failed", "io", self.ended or "the receiver has left no log of arrivals", 1)


@dataclass(frozen=True)
class Ended:
    """A recorded direction."""

    direction: str
    recorded: Recorded
    #: The reason for an early end, and the signal that requested it; None otherwise.
    why: str | None = None
    signal: int | None = None


def record(
    host: str,
    directions: list[str],
    limits: Limits,
    changes: list[Override],
    reach: RemoteOptions,
    say: Callable[[str], None],
) -> Iterator[Ended]:
    """Keeps the path to a host full, in one direction after the other, until a limit is reached, a stop is
    requested, or the other host vanishes; yields the recording of each direction.
    """
    scenarios = {direction: _scenario(host, direction, limits, changes) for direction in directions}
    agent = this_machine()
    first = scenarios[directions[0]]
    with (
        interruptible("interrupted; nothing was recorded"),
        plan_campaign(first, agent, reach, say) as result,
        tempfile.TemporaryDirectory() as place,
        progress() as bar,
    ):
        assert result.remote is not None
        say(result.remote.describe(result.rendezvous))
        plane = RealPathPlane(result.remote, result.rendezvous, agent, Path(place))
        for direction, loaded in scenarios.items():
            (cell,) = cells_of(loaded.scenario)
            out = Path(place) / direction
            out.mkdir()
            run = _RecordingRun(
                plane,
                cell,
                out / "cell.json",
                out / _LOG,
                out / "log",
                lambda share, direction=direction: bar.show(direction, share, 1.0),  # type: ignore[misc]
            )
            with _stopping(run) as number:
                outcome = run.run()
            if outcome.state == "interrupted":
                raise Interrupted("interrupted; nothing was recorded", number[0])
            if outcome.state == "failed":
                raise UnavailableError(outcome.message)
            yield Ended(direction, _read(out / _LOG), run.ended, number[0] if number else None)
            if run.ended:
                return


def _scenario(host: str, direction: str, limits: Limits, changes: list[Override]) -> Loaded:
    text = _SCENARIO.format(
        sender=DIRECTIONS[direction],
        rate_bps=limits.rate_bps,
        volume=int(limits.data_bytes * _PAYLOAD),
        time_ns=limits.time_ns,
    )
    return load_text(text, [Override("HOST", "real_path.other", quote_host(host)), *changes])


def _read(log: Path) -> Recorded:
    """The trace in a log, up to its last complete block: a killed agent leaves the last block incomplete."""
    sent, arrived, sizes, problem = _native.tunnel_arrivals(str(log))
    if not len(sent) and problem:
        raise DataError(f"the receiver's log of arrivals can't be read: {problem}")
    return derive_opportunities(sent, arrived, sizes)


@contextmanager
def _stopping(run: _RecordingRun) -> Iterator[list[int]]:
    """Handles signals during the run: the first one ends it and keeps the recording, the second one discards
    it. Yields the list of received signals.
    """
    heard: list[int] = []

    def stop(number: int, _frame: FrameType | None) -> None:
        heard.append(number)
        # A separate thread, because this one may hold the lock.
        threading.Thread(target=run.stop, args=(len(heard) > 1,), daemon=True).start()

    before = {number: signal.signal(number, stop) for number in STOPS}
    try:
        yield heard
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
