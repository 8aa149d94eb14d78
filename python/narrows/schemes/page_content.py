"""The content of the page of a scheme."""

from __future__ import annotations

from dataclasses import dataclass

from narrows.schemes import header
from narrows.schemes.listing import SchemeInfo
from narrows.schemes.status import Status


@dataclass(frozen=True)
class Row:
    """A parameter."""

    name: str
    unit: str
    default: str
    allowed: str
    doc: str
    source: str


@dataclass(frozen=True)
class Counterpart:
    """The same rules (or their origin) elsewhere."""

    name: str
    what: str
    missing: str | None


@dataclass(frozen=True)
class Page:
    """One scheme, explained."""

    info: SchemeInfo
    header: header.Header
    params: tuple[Row, ...]
    transport: dict[str, str]
    #: Configurations from other implementations: name, description and settings.
    profiles: dict[str, str]
    ecn: str
    status: Status
    counterparts: tuple[Counterpart, ...]
    #: For schemes with a learned model: the one that they run by default, and its origin, in words.
    model: str = ""

    def to_json(self) -> dict[str, object]:
        """As plain data."""
        return {
            **self.info.to_json(),
            "title": self.header.first,
            "text": list(self.header.paragraphs),
            "provenance": self.header.provenance,
            "deviations": self.header.deviations,
            "params": [vars(row) for row in self.params],
            "transport": self.transport,
            "profiles": self.profiles,
            "ecn": self.ecn or None,
            "default_model": self.model or None,
            "verification": self.status.to_json(),
            "counterparts": [vars(counterpart) for counterpart in self.counterparts],
        }
