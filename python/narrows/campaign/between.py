"""The plane `hosts`: one end of every flow here, the other on a host that is reached by ssh.

For each cell an agent is started here and one there. They open a tunnel, run the flows, and each writes a
folder; the other host's is fetched, and `narrows-agent side-record` makes the record out of both.
"""

from __future__ import annotations

import base64
import contextlib
import secrets
import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from narrows.campaign.agent import AgentRun, CellOutcome
from narrows.campaign.planes import BEFORE, Progress
from narrows.campaign.sides import FORMAT, Side, Sides, SidesFailed, Stopped
from narrows.campaign.unpack import unpack, watched
from narrows.errors import UnavailableError
from narrows.hosts.partner import Meeting, Partner
from narrows.hosts.place import SUDO, Place
from narrows.hosts.place import end as end_process
from narrows.scenario.files import stored_name
from narrows.scenario.model import Cell
from narrows.scenario.realpath import HERE, STOP, THERE, sender_is_here

#: Kind of failure: the other host is gone.
VANISHED = "vanished"
#: Time for an order to get there before everything starts: one round trip and the scheduling of three
#: programs on the way. (Pantheon waits three seconds here.)
_START_NS = 500_000_000
#: Share of a cell's progress that is the run itself; the rest is fetching and making the record.
_RUN_SHARE = 0.9


class BetweenHosts:
    """The plane of a campaign between two hosts."""

    def __init__(self, partner: Partner, meeting: Meeting | None, agent: Path, folder: Path) -> None:
        self.partner = partner
        self.meeting = meeting
        self.agent = agent
        #: The folder of the campaign.
        self.folder = folder
        self.retries = int(partner.wishes["retries"])

    def workers(self, _cells: int) -> int:
        """The path is one, so one cell at a time."""
        return 1

    def run_of(self, cell: Cell, cell_file: Path, out: Path, log_file: Path, progress: Progress) -> PairRun:
        """Both agents for a cell."""
        return PairRun(self, cell, cell_file, out, log_file, progress)

    def around_round(self, number: int, when: str) -> dict[str, Any]:
        """The state of both machines; if the other one can't be asked, why."""
        try:
            if when == BEFORE:
                self.partner.ensure()
            elif not self.partner.alive:
                raise UnavailableError(self.partner.failure())
            state: dict[str, Any] = self.partner.state()
        except UnavailableError as error:
            state = {"error": str(error)}
        return {"round": number, "when": when, **state}

    def ends_campaign(self, outcome: CellOutcome) -> bool:
        """If the user wants to be asked when the other host is gone."""
        return outcome.kind == VANISHED and self.partner.wishes["vanished"] == STOP


class PairRun:
    """One cell between two hosts. `stop` may be called from any thread."""

    def __init__(
        self,
        plane: BetweenHosts,
        cell: Cell,
        cell_file: Path,
        out: Path,
        log_file: Path,
        progress: Progress,
    ) -> None:
        self._plane = plane
        self._partner = plane.partner
        self._cell = cell
        self._cell_file = cell_file
        self._out = out
        self._log_file = log_file
        self._progress = progress
        self._lock = threading.Lock()
        self._stopped = False
        self._record: AgentRun | None = None
        #: The agents while they run.
        self._sides: tuple[Side, ...] = ()
        #: Where the folders of both ends are brought together; of one try alone, whatever is left of others.
        token = secrets.token_hex(4)
        self._folders = {name: out.parent / f".{cell.id}.{name}-{token}" for name in (HERE, THERE)}

    def stop(self, kill: bool = False) -> None:
        """Asks both agents to stop and clean up; they do so at once."""
        with self._lock:
            self._stopped = True
            if self._record is not None:
                self._record.stop(kill)
            for side in self._sides if kill else ():
                side.kill()

    def run(self) -> CellOutcome:
        """Runs the cell to its end."""
        started = time.monotonic()
        try:
            outcome = self._run()
        except Stopped:
            outcome = CellOutcome("interrupted")
        except SidesFailed as error:
            outcome = CellOutcome("failed", error.kind, error.message, 1)
        except UnavailableError as error:
            kind = "unavailable" if self._partner.alive else VANISHED
            outcome = CellOutcome("failed", kind, str(error), error.exit_code)
        finally:
            for folder in (*self._folders.values(), self._own):
                self._partner.here.remove(folder)
        outcome.seconds = time.monotonic() - started
        return outcome

    def _run(self) -> CellOutcome:
        self._partner.ensure()
        far_folder = self._partner.new_folder(self._cell.id)
        near_folder = self._folders[HERE]
        try:
            with self._log_file.open("wb") as log:
                self._measure(log, near_folder, far_folder)
            self._fetch(self._partner.there, far_folder, self._folders[THERE])
            self._take_over()
        except BaseException:
            self._keep_logs(far_folder)
            raise
        return self._make_record()

    # -- the run -----------------------------------------------------------------------------------

    def _measure(self, log: IO[bytes], near_folder: Path, far_folder: str) -> None:
        plans = self._plans(near_folder, far_folder)
        # Nothing else compares the clocks where there is no tunnel.
        apart = self._partner.apart() if self._plane.meeting is None else None
        with contextlib.ExitStack() as stack:
            near, far = (
                stack.enter_context(_started(place, log))
                for place in (self._partner.here, self._partner.there)
            )
            sides = stack.enter_context(
                Sides(
                    near,
                    far,
                    lambda: self._stopped,
                    lambda: self._partner.alive,
                    lambda share: self._progress(share * _RUN_SHARE),
                )
            )
            with self._lock:
                self._sides = sides.both
            sides.run(plans, _START_NS + 4 * self._partner.rtt_ns, apart)

    def _plans(self, near_folder: Path, far_folder: str) -> tuple[dict[str, Any], dict[str, Any]]:
        secret = secrets.token_hex(32)
        files = self._files()
        near_host = 0 if sender_is_here(self._cell.content) else 1

        def plan(place: str, host: int, folder: str) -> dict[str, Any]:
            meeting, wishes = self._plane.meeting, self._partner.wishes
            ends = (
                {"tunnel": meeting.tunnel(place, secret, wishes["interface"])}
                if meeting is not None
                else {"tunnel": None, "addresses": self._addresses(place)}
            )
            return {
                "format": FORMAT,
                "cell": self._cell.content,
                "files": files,
                "host": host,
                "folder": folder,
                **ends,
            }

        near = plan(HERE, near_host, str(near_folder.absolute()))
        return near, plan(THERE, 1 - near_host, far_folder)

    def _addresses(self, place: str) -> dict[str, str]:
        """Without a tunnel: the addresses of this end and of the other one."""
        way = self._partner.way
        assert way is not None
        ours = self._partner.wishes["our_address"] or way.seen_address or way.our_address
        pair = {HERE: ours, THERE: way.their_address}
        other = THERE if place == HERE else HERE
        return {"here": pair[place], "there": pair[other]}

    def _files(self) -> dict[str, str]:
        """What the cell names, such as models."""
        found: dict[str, str] = {}
        for one in _named_files(self._cell.content):
            name = stored_name(one["name"], one["sha256"])
            content = (self._plane.folder / "files" / name).read_bytes()
            found[name] = base64.b64encode(content).decode()
        return found

    # -- what both have written --------------------------------------------------------------------

    def _fetch(self, place: Place, folder: str, target: Path) -> None:
        """Brings a folder here, and removes it there."""
        if self._stopped:
            raise Stopped
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir()
        process = place.start("pack", folder, "--remove")
        try:
            with watched(process, lambda: self._stopped) as watch:
                code, complaint = unpack(process, target, watch.beat)
        finally:
            end_process(process)
        if self._stopped:
            raise Stopped
        if code == 0:
            return
        if not self._partner.alive and place.ssh is not None:
            raise SidesFailed(VANISHED, self._partner.failure())
        raise SidesFailed(
            "io", f"{place.name}: the logs of {self._cell.id} could not be fetched: {complaint}"
        )

    @property
    def _own(self) -> Path:
        """Where our copy of the near folder is made."""
        near_folder = self._folders[HERE]
        return near_folder.with_name(f"{near_folder.name}.own")

    def _take_over(self) -> None:
        """Makes ours what the near agent has written as root."""
        if self._partner.here.rights != SUDO:
            return
        near_folder = self._folders[HERE]
        self._fetch(self._partner.here, str(near_folder.absolute()), self._own)
        self._own.replace(near_folder)

    def _keep_logs(self, far_folder: str) -> None:
        """After a failure: what the programs of both ends have said, beside the records; and nothing is left
        there."""
        with contextlib.suppress(SidesFailed, UnavailableError, Stopped, OSError):
            if self._partner.alive and not self._stopped:
                self._fetch(self._partner.there, far_folder, self._folders[THERE])
        with contextlib.suppress(UnavailableError, OSError):
            if self._partner.alive:
                self._partner.remove(far_folder)
        if self._stopped:
            return
        with contextlib.suppress(SidesFailed, UnavailableError, Stopped, OSError):
            self._take_over()
        for name, folder in self._folders.items():
            kept = self._plane.folder / "logs" / f"{self._cell.id}-{name}"
            with contextlib.suppress(OSError):
                if any((folder / "logs").iterdir()):
                    shutil.rmtree(kept, ignore_errors=True)
                    shutil.copytree(folder / "logs", kept)

    def _make_record(self) -> CellOutcome:
        hosts = (HERE, THERE) if sender_is_here(self._cell.content) else (THERE, HERE)
        more = [
            word for number, name in enumerate(hosts) for word in (f"--host{number}", self._folders[name])
        ]
        record = AgentRun(
            self._plane.agent,
            "side-record",
            self._cell_file,
            self._out,
            self._log_file,
            lambda share: self._progress(_RUN_SHARE + (1 - _RUN_SHARE) * share),
            self._plane.folder / "files",
            tuple(map(str, more)),
        )
        with self._lock:
            if self._stopped:
                raise Stopped
            self._record = record
        return record.run()


@contextlib.contextmanager
def _started(place: Place, log: IO[bytes]) -> Iterator[Side]:
    """An agent that is ended afterwards, whatever happens before its `Sides` take care of it."""
    side = Side(place, place.start("side", "--plan", "-"), log)
    try:
        yield side
    finally:
        if side.process.poll() is None:
            side.end(1.0)


def _named_files(content: Any) -> Iterator[dict[str, str]]:
    """The files that a part of a cell names, each by its name and SHA-256."""
    if isinstance(content, dict):
        if content.get("sha256") and "name" in content:
            yield content
        else:
            for value in content.values():
                yield from _named_files(value)
    elif isinstance(content, list):
        for value in content:
            yield from _named_files(value)
