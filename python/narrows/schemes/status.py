"""The findings of `python -m validation schemes` that ship with the package.

`verification.json` names for each scheme the checks that were made, with their numbers. A scheme without an
entry has not been checked: it is `unverified`. The kernel's schemes are the reference for ours.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from narrows.documents.data import DamagedError, from_data
from narrows.files import read_text
from narrows.imported import plain_name
from narrows.scenario.prefixes import KERNEL_PREFIX, UDP

if TYPE_CHECKING:
    from narrows.documents.resolved import Flow

FILE = Path(__file__).resolve().parent.parent / "verification.json"
FORMAT = "narrows/verification/1"

VERIFIED, UNVERIFIED, REFERENCE = "verified", "unverified", "reference"

#: The mark beside a scheme in reports and tables, with its meaning.
MARKS = {VERIFIED: "✓", UNVERIFIED: "?", REFERENCE: "="}
MEANINGS = {
    VERIFIED: "agrees with its closed forms, and with its counterpart in the kernel where there is one",
    UNVERIFIED: "not checked against anything but its own tests yet, outside the tolerances of a check, or"
    " run with other settings than those that were checked",
    REFERENCE: "the running kernel's own code, which ours is compared with",
}
#: Why a scheme is not verified although it is with its defaults.
DEFAULTS_ONLY = "verified with its defaults only"
_NEVER = "it has not been checked yet"


@dataclass(frozen=True)
class Status:
    """The verification of a scheme."""

    word: str
    #: Why it is not verified, as a sentence; empty if it is.
    reason: str = ""
    date: str = ""
    version: str = ""
    checks: tuple[dict[str, object], ...] = ()

    @property
    def mark(self) -> str:
        """The mark beside the scheme's name."""
        return MARKS[self.word]

    def to_json(self) -> dict[str, object]:
        """As plain data."""
        return {
            "status": self.word,
            "reason": self.reason or None,
            "date": self.date or None,
            "version": self.version or None,
            "checks": list(self.checks),
        }


def status_of(name: str, file: Path = FILE) -> Status:
    """The status of a scheme (by its name alone, without parameters)."""
    if name.startswith(KERNEL_PREFIX):
        return Status(REFERENCE)
    entry = _entries(file).get(name)
    if entry is None:
        return Status(UNVERIFIED, _NEVER)
    word = VERIFIED if entry.status == VERIFIED else UNVERIFIED
    return Status(word, entry.reason or "", entry.date or "", entry.version or "", entry.checks or ())


def statuses_of(flows: Iterable[Flow], file: Path = FILE) -> dict[str, Status]:
    """The statuses of all schemes that these flows run, without duplicates; traffic without a scheme has
    none, and imported schemes are not judged.
    """
    statuses: dict[str, Status] = {}
    for flow in flows:
        name = flow.scheme or UDP
        if name == UDP or plain_name(name) is not None:
            continue
        status = status_of(name, file)
        if status.word == VERIFIED and not _as_checked(name, flow):
            status = Status(UNVERIFIED, DEFAULTS_ONLY, status.date, status.version)
        if name not in statuses or status.word == UNVERIFIED:
            statuses[name] = status
    return statuses


def _as_checked(name: str, flow: Flow) -> bool:
    """True if a flow runs our code with default parameters and transport."""
    from narrows.scenario import registry

    if flow.object_file or flow.transport:
        return False
    if not flow.params:
        return True
    known = registry.load()
    entry = known.schemes.get(name) or known.bpf.get(name)
    defaults = {param.name: param.default for param in entry.params} if entry else {}
    return all(key in defaults and defaults[key] == value for key, value in flow.params.items())


def weakest(statuses: Iterable[Status]) -> Status | None:
    """The status of a row with several schemes: the weakest one."""
    known = list(statuses)
    for word in (UNVERIFIED, VERIFIED, REFERENCE):
        for status in known:
            if status.word == word:
                return status
    return None


def legend(statuses: Iterable[Status]) -> list[tuple[str, str, str]]:
    """Mark, word and meaning of each status that occurs."""
    words = {status.word for status in statuses}
    return [(MARKS[word], word, MEANINGS[word]) for word in MARKS if word in words]


class _Entry(msgspec.Struct, frozen=True):
    """A scheme in the file of verifications."""

    status: str | None = None
    reason: str | None = None
    date: str | None = None
    version: str | None = None
    checks: tuple[dict[str, object], ...] | None = None


class _File(msgspec.Struct, frozen=True):
    format: str
    schemes: dict[str, _Entry]


@lru_cache(maxsize=4)
def _entries(file: Path) -> dict[str, _Entry]:
    try:
        document = from_data(json.loads(read_text(file)), _File)
    except (OSError, ValueError, DamagedError):
        # Reports must not fail because nothing was ever verified.
        return {}
    return document.schemes if document.format == FORMAT else {}
