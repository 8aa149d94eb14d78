"""The plane `hosts`: one end of every flow runs here, the other on a host that is reached by ssh.

For each cell one agent is started here and one there. They open a tunnel and run the flows, and each writes a
folder; the remote folder is fetched, and `narrows-agent side-record` makes the record from both.
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

from narrows.agent.cell import CellOutcome, CellRun
from narrows.agent.location import SUDO, Location
from narrows.agent.process import end as end_process
from narrows.campaign.live_peers import LivePeers
from narrows.campaign.peers import ARGUMENTS, FORMAT, Peer, PeerFailure, PeerPair, Stopped
from narrows.campaign.planes import BEFORE, Progress
from narrows.campaign.unpack import unpack, watch_program
from narrows.errors import UnavailableError
from narrows.files import read_bytes
from narrows.hosts.remote_host import RemoteHost, Rendezvous
from narrows.live.watch import Watch
from narrows.scenario.files import name_in_store
from narrows.scenario.model import Cell
from narrows.scenario.real_path import LOCAL, REMOTE, STOP, sender_is_local

#: Kind of failure: the other host has vanished.
VANISHED = "vanished"
#: Time for a command to arrive before everything starts: one round trip and the scheduling of three programs.
_START_NS = 500_000_000
#: Time from an order until it takes effect, in addition to two round trips: by then both agents have read it.
_AHEAD_NS = 1_000_000_000
#: Share of a cell's progress that is the run itself; the rest is fetching and writing the record.
_RUN_SHARE = 0.9


class RealPathPlane:
    """The plane of a campaign between two hosts."""

    def __init__(
        self,
        remote: RemoteHost,
        rendezvous: Rendezvous | None,
        agent: Location,
        folder: Path,
        watch: Watch | None = None,
    ) -> None:
        self.remote = remote
        self.rendezvous = rendezvous
        self.agent = agent
        #: The folder of the campaign.
        self.folder = folder
        self.retries = remote.settings.retries
        #: Shows the runs.
        self.watch = watch

    def workers(self, _cells: int) -> int:
        """There is one path, so one cell at a time."""
        return 1

    def run_of(
        self, cell: Cell, cell_file: Path, out: Path, log_file: Path, progress: Progress
    ) -> RealPathRun:
        """Runs a cell with both agents."""
        return RealPathRun(self, cell, cell_file, out, log_file, progress)

    def around_round(self, number: int, when: str) -> dict[str, object]:
        """The state of both machines, or the reason why the other one can't be queried."""
        try:
            if when == BEFORE:
                self.remote.ensure()
            elif not self.remote.alive:
                raise UnavailableError(self.remote.failure())
            state: dict[str, object] = self.remote.state()
        except UnavailableError as error:
            state = {"error": str(error)}
        return {"round": number, "when": when, **state}

    def ends_campaign(self, outcome: CellOutcome) -> bool:
        """True if the other host has vanished and the user wants the campaign to stop then."""
        return outcome.kind == VANISHED and self.remote.settings.vanished == STOP


class RealPathRun:
    """One cell between two hosts. `stop` may be called from any thread."""

    def __init__(
        self,
        plane: RealPathPlane,
        cell: Cell,
        cell_file: Path,
        out: Path,
        log_file: Path,
        progress: Progress,
    ) -> None:
        self._plane = plane
        self._remote = plane.remote
        self._cell = cell
        self._cell_file = cell_file
        self._out = out
        self._log_file = log_file
        self._progress = progress
        self._lock = threading.Lock()
        self._stopped = False
        self._record: CellRun | None = None
        #: The agents during the run.
        self._peers: tuple[Peer, ...] = ()
        self._live: LivePeers | None = None
        if plane.watch is not None:
            self._live = LivePeers(cell, plane.watch, _AHEAD_NS + 2 * plane.remote.rtt_ns)
            plane.watch.begin(cell, self._live)
        #: The folders of both ends are collected here, for one attempt only, regardless of leftovers from
        #: others.
        token = secrets.token_hex(4)
        self._folders = {name: out.parent / f".{cell.id}.{name}-{token}" for name in (LOCAL, REMOTE)}
        #: The cell with the orders that were carried out.
        self._changed_file = out.parent / f".{cell.id}.changed-{token}.json"

    def stop(self, kill: bool = False) -> None:
        """Asks both agents to stop and clean up; they do so at once."""
        with self._lock:
            self._stopped = True
            if self._record is not None:
                self._record.stop(kill)
            for peer in self._peers if kill else ():
                peer.kill()

    def run(self) -> CellOutcome:
        """Runs the cell until it ends."""
        started = time.monotonic()
        try:
            outcome = self._run()
        except Stopped:
            outcome = CellOutcome("interrupted")
        except PeerFailure as error:
            outcome = CellOutcome("failed", error.kind, error.message, 1)
        except UnavailableError as error:
            kind = "unavailable" if self._remote.alive else VANISHED
            outcome = CellOutcome("failed", kind, str(error), error.exit_code)
        finally:
            for folder in (*self._folders.values(), self._own):
                self._remote.local.remove(folder)
            self._changed_file.unlink(missing_ok=True)
        outcome.seconds = time.monotonic() - started
        return outcome

    def _run(self) -> CellOutcome:
        self._remote.ensure()
        remote_folder = self._remote.new_folder(self._cell.id)
        local_folder = self._folders[LOCAL]
        try:
            with self._log_file.open("wb") as log:
                self._measure(log, local_folder, remote_folder)
            self._fetch(self._remote.remote, remote_folder, self._folders[REMOTE])
            self._take_over()
        except BaseException:
            self._keep_logs(remote_folder)
            raise
        return self._make_record()

    # -- the run -----------------------------------------------------------------------------------

    def _measure(self, log: IO[bytes], local_folder: Path, remote_folder: str) -> None:
        plans = self._plans(local_folder, remote_folder)
        # Without a tunnel nothing else compares the clocks.
        offset = self._remote.clock_offset() if self._plane.rendezvous is None else None
        with contextlib.ExitStack() as stack:
            local, remote = (
                stack.enter_context(_start(location, log))
                for location in (self._remote.local, self._remote.remote)
            )
            pair = stack.enter_context(
                PeerPair(
                    local,
                    remote,
                    lambda: self._stopped,
                    lambda: self._remote.alive,
                    lambda share: self._progress(share * _RUN_SHARE),
                    self._live,
                )
            )
            with self._lock:
                self._peers = pair.both
            pair.run(plans, _START_NS + 4 * self._remote.rtt_ns, offset)

    def _plans(self, local_folder: Path, remote_folder: str) -> tuple[dict[str, object], dict[str, object]]:
        secret = secrets.token_hex(32)
        files = self._files()
        local_host = 0 if sender_is_local(self._cell) else 1

        def plan(end: str, host: int, folder: str) -> dict[str, object]:
            rendezvous, settings = self._plane.rendezvous, self._remote.settings
            ends = (
                {"tunnel": rendezvous.tunnel(end, secret, settings.interface)}
                if rendezvous is not None
                else {"tunnel": None, "addresses": self._addresses(end)}
            )
            return {
                "format": FORMAT,
                "cell": self._cell.to_json(),
                "files": files,
                "host": host,
                "folder": folder,
                "live": self._live is not None,
                **ends,
            }

        local = plan(LOCAL, local_host, str(local_folder.absolute()))
        return local, plan(REMOTE, 1 - local_host, remote_folder)

    def _addresses(self, end: str) -> dict[str, str]:
        """Without a tunnel: the addresses of this end and of the other one."""
        path = self._remote.path
        assert path is not None
        ours = self._remote.settings.our_address or path.seen_address or path.our_address
        pair = {LOCAL: ours, REMOTE: path.their_address}
        other = REMOTE if end == LOCAL else LOCAL
        return {"here": pair[end], "there": pair[other]}

    def _files(self) -> dict[str, str]:
        """The files that the cell names, such as models."""
        files: dict[str, str] = {}
        for file in _file_entries(self._cell.to_json()):
            name = name_in_store(file["name"], file["sha256"])
            content = read_bytes(self._plane.folder / "files" / name)
            files[name] = base64.b64encode(content).decode()
        return files

    # -- the output of both ends ------------------------------------------------------------------

    def _fetch(self, location: Location, folder: str, target: Path) -> None:
        """Fetches a folder, and removes it there."""
        if self._stopped:
            raise Stopped
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir()
        process = location.start("pack", folder, "--remove")
        try:
            with watch_program(process, lambda: self._stopped) as watch:
                code, complaint = unpack(process, target, watch.beat)
        finally:
            end_process(process)
        if self._stopped:
            raise Stopped
        if code == 0:
            return
        if not self._remote.alive and location.ssh is not None:
            raise PeerFailure(VANISHED, self._remote.failure())
        raise PeerFailure(
            "io", f"{location.name}: the logs of {self._cell.id} could not be fetched: {complaint}"
        )

    @property
    def _own(self) -> Path:
        """The place of our copy of the local folder."""
        local_folder = self._folders[LOCAL]
        return local_folder.with_name(f"{local_folder.name}.own")

    def _take_over(self) -> None:
        """Changes the owner of files that the local agent has written as root."""
        if self._remote.local.rights != SUDO:
            return
        local_folder = self._folders[LOCAL]
        self._fetch(self._remote.local, str(local_folder.absolute()), self._own)
        self._own.replace(local_folder)

    def _keep_logs(self, remote_folder: str) -> None:
        """After a failure: keeps the output of both ends' programs beside the records, and leaves nothing on
        the other host.
        """
        with contextlib.suppress(PeerFailure, UnavailableError, Stopped, OSError):
            if self._remote.alive and not self._stopped:
                self._fetch(self._remote.remote, remote_folder, self._folders[REMOTE])
        with contextlib.suppress(UnavailableError, OSError):
            if self._remote.alive:
                self._remote.remove(remote_folder)
        if self._stopped:
            return
        with contextlib.suppress(PeerFailure, UnavailableError, Stopped, OSError):
            self._take_over()
        for name, folder in self._folders.items():
            kept = self._plane.folder / "logs" / f"{self._cell.id}-{name}"
            with contextlib.suppress(OSError):
                if any((folder / "logs").iterdir()):
                    shutil.rmtree(kept, ignore_errors=True)
                    shutil.copytree(folder / "logs", kept)

    def _make_record(self) -> CellOutcome:
        hosts = (LOCAL, REMOTE) if sender_is_local(self._cell) else (REMOTE, LOCAL)
        more = [
            word for number, name in enumerate(hosts) for word in (f"--host{number}", self._folders[name])
        ]
        record = CellRun(
            self._plane.agent,
            "side-record",
            self._cell_as_run(),
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

    def _cell_as_run(self) -> Path:
        """The file of the cell with the times that flows were given during the run."""
        watch = self._plane.watch
        changed = watch.orders.cell_with_changes() if watch is not None and watch.orders is not None else None
        if changed is None:
            return self._cell_file
        self._changed_file.write_text(changed.to_text())
        return self._changed_file


@contextlib.contextmanager
def _start(location: Location, log: IO[bytes]) -> Iterator[Peer]:
    """An agent that is ended afterwards, whatever happens before its `PeerPair` takes charge of it."""
    peer = Peer(location, log, *ARGUMENTS)
    try:
        yield peer
    finally:
        if peer.process.poll() is None:
            peer.finish(1.0)


def _file_entries(content: Any) -> Iterator[dict[str, str]]:
    """The files named in a part of a cell, each by name and SHA-256."""
    if isinstance(content, dict):
        if content.get("sha256") and "name" in content:
            yield content
        else:
            for value in content.values():
                yield from _file_entries(value)
    elif isinstance(content, list):
        for value in content:
            yield from _file_entries(value)
