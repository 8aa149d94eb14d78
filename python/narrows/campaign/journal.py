"""journal.jsonl: the changes to a campaign since its campaign.json was written, one JSON object per line.

    {"format": "narrows/journal/1", "hash": "3fa9c1...", "session": 1, "sum": "..."}
    {"cell": {"id": "cubic-r1", "state": "finished", ...}, "sum": "..."}

The first line names the campaign and the number of its session. Every other line replaces the entry of a cell
(`cell`), extends `rounds` (`round`) or updates the last session (`session`). `sum` is over all lines so far,
so that an edited, missing or moved line is found. A process that is killed while writing leaves a last line
without an end, which does not count.

At the end of a session campaign.json is written with all changes and the journal is removed. A journal of a
session that has ended, or that was followed by another one, is already part of campaign.json: a process was
killed between both steps.

A line reaches the kernel at once, so `kill -9` loses none. It reaches the disk within a second: after a power
cut, cells with missing lines are recovered from their folders.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from narrows.documents.campaign import Header
from narrows.documents.data import DamagedError, Part, from_data, to_data
from narrows.errors import DataError, NarrowsError, reason
from narrows.files import read_whole

FILE = "journal.jsonl"
FORMAT = "narrows/journal/1"
#: Kinds of lines.
CELL, ROUND, SESSION = "cell", "round", "session"
#: Seconds of lines that a power cut may destroy.
_SYNC_S = 1.0
_SUM = re.compile(rb'(\{.*), "sum": "([0-9a-f]{32})"\}', re.DOTALL)
_REMEDY = "remove the file: finished cells are then taken from their folders"


class Head(Part, frozen=True, kw_only=True, omit_defaults=False):
    """The first line of a journal: the campaign, and the number of its session."""

    format: str = FORMAT
    hash: str
    session: int


def _sum_of(previous: str, text: bytes) -> str:
    return hashlib.sha256(previous.encode() + text).hexdigest()[:32]


class Journal:
    """The journal of a session, for the one process that writes it. Nothing is created before the first
    line."""

    def __init__(self, campaign: Path, campaign_hash: str, session: int) -> None:
        self.path = campaign / FILE
        self._head = Head(hash=campaign_hash, session=session)
        self._handle: int | None = None
        self._sum = ""
        self._size = 0
        #: True while lines have not reached the disk, and the time when they last did.
        self._dirty = False
        self._synced = 0.0

    def write(self, kind: str, content: dict[str, object]) -> None:
        """Adds a line."""
        try:
            if self._handle is None:
                flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
                self._handle = os.open(self.path, flags, 0o644)
                self._write(to_data(self._head))
                self.sync()
                _sync_folder(self.path.parent)
            self._write({kind: content})
            self.sync_if_due()
        except OSError as error:
            raise NarrowsError(
                f"{self.path}: can't be written: {reason(error)}; what was finished before is kept, make room"
                " and run the same command again"
            ) from None

    def _write(self, line: dict[str, object]) -> None:
        assert self._handle is not None
        text = json.dumps(line, ensure_ascii=False).encode()
        summed = _sum_of(self._sum, text[:-1])
        whole = text[:-1] + f', "sum": "{summed}"}}\n'.encode()
        try:
            written = 0
            while written < len(whole):
                written += os.write(self._handle, whole[written:])
        except OSError:
            # The next line must not be joined to an incomplete one.
            os.ftruncate(self._handle, self._size)
            os.lseek(self._handle, self._size, os.SEEK_SET)
            raise
        self._sum = summed
        self._size += len(whole)
        self._dirty = True

    def sync_if_due(self) -> None:
        """Syncs lines to the disk if they have waited long enough."""
        if self._dirty and time.monotonic() - self._synced >= _SYNC_S:
            self.sync()

    def sync(self) -> None:
        """Syncs all lines to the disk."""
        if self._handle is not None and self._dirty:
            getattr(os, "fdatasync", os.fsync)(self._handle)  # macOS has no fdatasync.
            self._dirty, self._synced = False, time.monotonic()

    def close(self) -> None:
        """Closes the file without removing it."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def remove(self) -> None:
        """Removes the journal after its lines were written to campaign.json."""
        self.close()
        self._sum, self._size, self._dirty = "", 0, False
        self.path.unlink(missing_ok=True)


def _sync_folder(path: Path) -> None:
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


@dataclass(frozen=True)
class Written:
    """The content of a journal."""

    path: Path
    head: Head
    #: Kind and content of each line, in order.
    lines: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    def apply(self, document: dict[str, Any], header: Header) -> bool:
        """Applies the journal to the content of a campaign.json, plain and typed; returns False if nothing
        changed. Raises `DataError` if the journal does not belong to it.
        """
        session, sessions = self.head.session, header.sessions
        if session < len(sessions) or (session == len(sessions) and not header.is_open):
            return False
        if session > len(sessions) or self.head.hash != header.hash:
            raise DataError(f"{self.path}: does not belong to the campaign.json beside it; {_REMEDY}")
        places = {entry["id"]: place for place, entry in enumerate(document["cells"])}
        for number, (kind, content) in enumerate(self.lines, 2):
            if kind == CELL:
                place = places.get(str(content.get("id")))
                if place is None:
                    raise DataError(f"{self.path}: line {number} is about a cell that the campaign lacks")
                document["cells"][place] = content
            elif kind == ROUND:
                document.setdefault("rounds", []).append(content)
            elif kind == SESSION:
                document["sessions"][-1].update(content)
        return True


def read(campaign: Path) -> Written | None:
    """The journal of a campaign; None if there is none. Raises `DataError` if it was modified."""
    path = campaign / FILE
    if not os.path.lexists(path):
        return None
    try:
        content = read_whole(path, "journal of a campaign")
    except DataError as error:
        if not os.path.lexists(path):
            # The session has just ended.
            return None
        raise DataError(f"{path}: {error}") from None
    entries: list[dict[str, Any]] = []
    summed = ""
    # The line after the last line ending was being written.
    for number, line in enumerate(content.split(b"\n")[:-1], 1):
        parts = _SUM.fullmatch(line)
        if parts is None or (expected := _sum_of(summed, parts[1])) != parts[2].decode():
            raise DataError(f"{path}: line {number} is damaged or was tampered with; {_REMEDY}")
        summed = expected
        entries.append(_parse(path, number, parts[1] + b"}"))
    if not entries:
        return None
    first, *lines = entries
    try:
        head = from_data(first, Head)
    except DamagedError:
        raise DataError(f"{path}: line 1 names no campaign; {_REMEDY}") from None
    if head.format.partition(".")[0] != FORMAT:
        raise DataError(f"{path}: is in the format {head.format}, this version of narrows reads {FORMAT}")
    return Written(path, head, [pair for line in lines for pair in line.items()])


def _parse(path: Path, number: int, text: bytes) -> dict[str, Any]:
    try:
        result = json.loads(text)
    except (ValueError, RecursionError):
        result = None
    if not isinstance(result, dict) or (number > 1 and not all(isinstance(v, dict) for v in result.values())):
        raise DataError(f"{path}: line {number} is damaged: it is not an object of objects; {_REMEDY}")
    return dict(result)
