"""What `narrows verify-schemes` found, as it ships with the package.

`verification.json` names for each scheme the checks that were made, with their numbers. A scheme without an
entry has not been checked: it is `unverified`. The kernel's schemes are what ours are compared with.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from narrows.pantheon import PREFIX as IMPORTED_PREFIX
from narrows.scenario.prefixes import KERNEL_PREFIX, UDP

FILE = Path(__file__).resolve().parent.parent / "verification.json"
FORMAT = "narrows/verification/1"

VERIFIED, UNVERIFIED, REFERENCE = "verified", "unverified", "reference"

#: The mark beside a scheme in reports and tables, and what it means.
MARKS = {VERIFIED: "✓", UNVERIFIED: "?", REFERENCE: "="}
MEANINGS = {
    VERIFIED: "agrees with its closed forms, and with its counterpart in the kernel where there is one",
    UNVERIFIED: "not checked against anything but its own tests yet, or outside the tolerances of a check",
    REFERENCE: "the running kernel's own code, which ours is compared with",
}
_NEVER = "narrows verify-schemes has not checked it yet"


@dataclass(frozen=True)
class Status:
    """How far a scheme is verified."""

    word: str
    #: Why it is not verified, one sentence; empty if it is.
    reason: str = ""
    date: str = ""
    version: str = ""
    checks: tuple[dict[str, Any], ...] = field(default=())

    @property
    def mark(self) -> str:
        """The mark beside the scheme's name."""
        return MARKS[self.word]

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "status": self.word,
            "reason": self.reason or None,
            "date": self.date or None,
            "version": self.version or None,
            "checks": list(self.checks),
        }


def status_of(name: str, file: Path = FILE) -> Status:
    """The status of a scheme (its name alone, without parameters)."""
    if name.startswith(KERNEL_PREFIX):
        return Status(REFERENCE)
    entry = _entries(file).get(name)
    if entry is None:
        return Status(UNVERIFIED, _NEVER)
    return Status(
        VERIFIED if entry.get("status") == VERIFIED else UNVERIFIED,
        str(entry.get("reason") or ""),
        str(entry.get("date") or ""),
        str(entry.get("version") or ""),
        tuple(entry.get("checks") or ()),
    )


def statuses_of(names: list[str]) -> dict[str, Status]:
    """The statuses of all schemes among these names, each once; traffic without a scheme has none, and
    schemes of others that were imported are not ours to judge."""
    own = (name for name in dict.fromkeys(names) if name and not name.startswith(IMPORTED_PREFIX))
    return {name: status_of(name) for name in own if name != UDP}


def weakest(names: list[str]) -> Status | None:
    """The status of a row in which several schemes may take part: that of the one known least of."""
    known = statuses_of(names)
    for word in (UNVERIFIED, VERIFIED, REFERENCE):
        for status in known.values():
            if status.word == word:
                return status
    return None


def legend(names: list[str]) -> list[tuple[str, str, str]]:
    """Mark, word and meaning of each status that occurs among these schemes."""
    words = {status.word for status in statuses_of(names).values()}
    return [(MARKS[word], word, MEANINGS[word]) for word in MARKS if word in words]


@lru_cache(maxsize=4)
def _entries(file: Path) -> dict[str, dict[str, Any]]:
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        # Reports must not fail because nothing was ever verified.
        return {}
    found = document.get("schemes") if document.get("format") == FORMAT else None
    return found if isinstance(found, dict) else {}
