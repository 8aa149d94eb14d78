"""System-wide settings that runs between hosts need, overridden for the duration of such a run.

The agent overrides them: it ends with its standard input, or when we fall silent, and restores what it has
changed. They are therefore restored even if this process is killed, the connection breaks or this machine
loses power. If the agent itself is killed, the next one finds the values to restore in its journal there.
"""

from __future__ import annotations

import contextlib
import threading

from narrows.agent.location import USER, Location
from narrows.agent.session import Session
from narrows.documents.agent import Facts, Overridden, Restored, SysctlChange
from narrows.errors import UnavailableError

#: The required limit of socket buffers: 1 Gbit/s for 128 ms, which is a long path at a high rate.
LEAST = {"net.core.rmem_max": 16 << 20, "net.core.wmem_max": 16 << 20}
_ANSWER_S = 30.0
#: The agent gives up after this much silence, no later than the local ssh gives up the connection, so that a
#: new connection finds the settings released.
_PATIENCE_S = 15
_BEAT_S = 2.0


def plan_changes(host: Facts) -> list[SysctlChange]:
    """The changes that a host needs, by its own facts."""
    changes = []
    for name, least in LEAST.items():
        text = str(host.sysctls.get(name, ""))
        # Settings that a host does not show (some containers) are not its own.
        if text.isdecimal() and int(text) < least:
            changes.append(SysctlChange(name=name, before=int(text), now=least))
    return changes


class SysctlOverride:
    """Overridden settings; a context manager."""

    def __init__(self, location: Location, journal: str | None = None) -> None:
        self._location = location
        self._journal = journal
        self._session: Session | None = None
        self._over = threading.Event()
        self.changed: list[SysctlChange] = []
        #: Leftovers of an earlier run that was killed, which were put back before.
        self.recovered: list[SysctlChange] = []
        #: Changes that were put back at the end.
        self.restored: list[SysctlChange] = []

    def __enter__(self) -> SysctlOverride:
        if self._location.rights == USER:
            raise UnavailableError(
                f"{self._location.name}: settings of the machine can be changed by root only; log in as root,"
                " or allow sudo without a password, or leave out --prepare"
            )
        self._begin(*(word for name, least in LEAST.items() for word in ("--least", f"{name}={least}")))
        return self

    def _begin(self, *wanted: str) -> None:
        journal = ["--journal", self._journal] if self._journal else []
        self._session = Session(self._location, "settings", *wanted, *journal, "--patience", str(_PATIENCE_S))
        try:
            answer = self._session.answer(Overridden, _ANSWER_S)
        except BaseException:
            self._session.end()
            raise
        self.changed, self.recovered = answer.changed, answer.recovered
        self._beats = threading.Thread(target=self._beat, daemon=True, name="signs of life")
        self._beats.start()

    def _beat(self) -> None:
        """Shows the agent that we are alive."""
        assert self._session
        while self.is_held and not self._over.wait(_BEAT_S):
            self._session.write(b"")

    @property
    def is_held(self) -> bool:
        """True while the agent is running."""
        return self._session is not None and self._session.process.poll() is None

    def __exit__(self, *_: object) -> None:
        # The earlier error is the important one; the caller compares `changed` and `restored`.
        with contextlib.suppress(UnavailableError):
            self.restored = self._finish()
        if self.not_restored:
            # The agent may have been killed. If the host still exists, so does its journal.
            another = SysctlOverride(self._location, self._journal)
            with contextlib.suppress(UnavailableError):
                another._begin()
                self.restored += another.recovered
                another.close()

    def _finish(self) -> list[SysctlChange]:
        """Lets the agent end; gives what it has put back."""
        assert self._session
        try:
            self._over.set()
            self._beats.join()
            self._session.close_input()
            return self._session.answer(Restored, _ANSWER_S).restored
        finally:
            self._session.end()

    def close(self) -> None:
        """Ends the agent, discarding its remaining output."""
        with contextlib.suppress(UnavailableError):
            self._finish()

    @property
    def not_restored(self) -> list[SysctlChange]:
        """Changes that have not been put back, because another user changed it or the host
        vanished."""
        return [change for change in self.changed if change not in self.restored]
