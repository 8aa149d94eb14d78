"""Settings of the whole machine that runs between hosts need, and holding them as long as such a run lasts.

The agent does it: it ends with its standard input, or when we fall silent, and puts back what it has changed.
So they are undone also when this process is killed, the connection breaks or this machine loses its power.
Should the agent itself be killed, its journal there tells the next one what to put back.
"""

from __future__ import annotations

import contextlib
import subprocess
import threading
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from narrows.errors import UnavailableError
from narrows.hosts import answers
from narrows.hosts.lines import Lines
from narrows.hosts.place import USER, Place, end
from narrows.shapes import Shape

#: The least that buffers of sockets may grow to: 1 Gbit/s for 128 ms, which is a long path at a high rate.
LEAST = {"net.core.rmem_max": 16 << 20, "net.core.wmem_max": 16 << 20}
_ANSWER_S = 30.0
#: Longest answer that is read to its end.
_LONGEST = 1 << 20
#: The agent gives up when it has heard nothing for so long, which is not later than ssh here gives up the
#: connection: then a new one finds the settings free. (Three questions of ssh without an answer, 5 s apart.)
_PATIENCE_S = 15
_BEAT_S = 2.0


@dataclass(frozen=True)
class Change:
    """One setting that would be, or was, changed."""

    name: str
    before: int
    now: int

    def __str__(self) -> str:
        return f"{self.name} from {self.before} to {self.now}"


def planned(facts: dict[str, Any]) -> list[Change]:
    """What would have to be changed on a host, by its own facts."""
    found = []
    for name, least in LEAST.items():
        text = str(facts.get("sysctls", {}).get(name, ""))
        # What a host does not show (some containers) it has no say in.
        if text.isdecimal() and int(text) < least:
            found.append(Change(name, int(text), least))
    return found


class Holding:
    """Settings that are held; use it with `with`."""

    def __init__(self, place: Place, journal: str | None = None) -> None:
        self._place = place
        self._journal = journal
        self._agent: subprocess.Popen[bytes] | None = None
        self._lines: Lines | None = None
        #: What was changed.
        self.changed: list[Change] = []
        #: What an earlier run had left behind when it was killed, and was put back before.
        self.recovered: list[Change] = []
        #: What was put back at the end.
        self.restored: list[Change] = []

    def __enter__(self) -> Holding:
        if self._place.rights == USER:
            raise UnavailableError(
                f"{self._place.name}: settings of the machine can be changed by root only; log in as root,"
                " or allow sudo without a password, or leave out --prepare"
            )
        self._begin(*(word for name, least in LEAST.items() for word in ("--least", f"{name}={least}")))
        return self

    def _begin(self, *wishes: str) -> None:
        journal = ["--journal", self._journal] if self._journal else []
        self._agent = self._place.start("settings", *wishes, *journal, "--patience", str(_PATIENCE_S))
        assert self._agent.stdout
        self._lines = Lines(self._agent.stdout, _LONGEST)
        try:
            answer = self._line(answers.HELD)
        except BaseException:
            self._end()
            raise
        self.changed = _changes(answer["changed"])
        self.recovered = _changes(answer["recovered"])
        self._over = threading.Event()
        self._beats = threading.Thread(target=self._beat, daemon=True, name="signs of life")
        self._beats.start()

    def _beat(self) -> None:
        """Lets the agent know that we are still here."""
        assert self._agent and self._agent.stdin
        with contextlib.suppress(OSError, ValueError):  # it has ended
            while not self._over.wait(_BEAT_S):
                self._agent.stdin.write(b"\n")
                self._agent.stdin.flush()

    @property
    def is_held(self) -> bool:
        """Whether the agent is still there."""
        return self._agent is not None and self._agent.poll() is None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # What went wrong before is what matters; the caller compares `changed` and `restored`.
        with contextlib.suppress(UnavailableError):
            self.restored = self._finish()
        if self.not_restored:
            # Perhaps the agent was killed. If the host is still there, its journal is, too.
            another = Holding(self._place, self._journal)
            with contextlib.suppress(UnavailableError):
                another._begin()
                self.restored += another.recovered
                another.close()

    def _finish(self) -> list[Change]:
        """Lets the agent end; gives what it has put back."""
        assert self._agent and self._agent.stdin
        try:
            self._over.set()
            self._beats.join()
            with contextlib.suppress(OSError):
                self._agent.stdin.close()
            return _changes(self._line(answers.RESTORED)["restored"])
        finally:
            self._end()

    def close(self) -> None:
        """Lets the agent end, whatever it still has to say."""
        with contextlib.suppress(UnavailableError):
            self._finish()

    @property
    def not_restored(self) -> list[Change]:
        """What was changed and has not been put back, because somebody else changed it or the host
        vanished."""
        return [change for change in self.changed if change not in self.restored]

    def _line(self, shape: Shape) -> dict[str, Any]:
        assert self._lines
        answer = answers.parse(self._lines.next(_ANSWER_S) or b"")
        if answer is not None:
            return answers.checked(self._place.name, answer, shape)
        raise UnavailableError(
            f"{self._place.name}: the agent that changes settings says nothing; look whether the host is"
            " still there"
        )

    def _end(self) -> None:
        assert self._agent
        end(self._agent)


def _changes(found: list[dict[str, Any]]) -> list[Change]:
    return [Change(one["name"], one["before"], one["now"]) for one in found]
