"""Settings of the whole machine that runs between hosts need, and holding them as long as such a run lasts.

The agent does it: it ends with its standard input, and puts back what it has changed. So they are undone
also when this process is killed or the connection breaks; should the agent itself be killed, its journal
there tells the next one what to put back.
"""

from __future__ import annotations

import contextlib
import json
import select
import subprocess
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from narrows.errors import UnavailableError
from narrows.hosts.place import USER, Place, end

#: The least that buffers of sockets may grow to: 1 Gbit/s for 128 ms, which is a long path at a high rate.
LEAST = {"net.core.rmem_max": 16 << 20, "net.core.wmem_max": 16 << 20}
_ANSWER_S = 30.0


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
        if text.isdigit() and int(text) < least:
            found.append(Change(name, int(text), least))
    return found


class Holding:
    """Settings that are held; use it with `with`."""

    def __init__(self, place: Place, journal: str | None = None) -> None:
        self._place = place
        self._journal = journal
        self._agent: subprocess.Popen[bytes] | None = None
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
        wishes = [word for name, least in LEAST.items() for word in ("--least", f"{name}={least}")]
        journal = ["--journal", self._journal] if self._journal else []
        self._agent = self._place.start("settings", *wishes, *journal)
        try:
            answer = self._line()
        except BaseException:
            self._end()
            raise
        self.changed = _changes(answer.get("changed"))
        self.recovered = _changes(answer.get("recovered"))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._agent and self._agent.stdin
        try:
            with contextlib.suppress(OSError):
                self._agent.stdin.close()
            self.restored = _changes(self._line().get("restored"))
        except UnavailableError:
            # What went wrong before is what matters; the caller compares `changed` and `restored`.
            pass
        finally:
            self._end()

    @property
    def not_restored(self) -> list[Change]:
        """What was changed and has not been put back, because somebody else changed it or the host
        vanished."""
        return [change for change in self.changed if change not in self.restored]

    def _line(self) -> dict[str, Any]:
        assert self._agent and self._agent.stdout and self._agent.stderr
        ready, _, _ = select.select([self._agent.stdout], [], [], _ANSWER_S)
        text = self._agent.stdout.readline() if ready else b""
        try:
            answer = json.loads(text)
        except ValueError:
            answer = None
        if isinstance(answer, dict) and answer.get("event") != "error":
            return answer
        if isinstance(answer, dict):
            raise UnavailableError(f"{self._place.name}: {answer.get('message')}")
        raise UnavailableError(
            f"{self._place.name}: the agent that changes settings says nothing; look whether the host is"
            " still there"
        )

    def _end(self) -> None:
        assert self._agent
        end(self._agent)


def _changes(found: Any) -> list[Change]:
    return [Change(str(one["name"]), int(one["before"]), int(one["now"])) for one in found or []]
