"""`narrows trace list --json`: the imported and the shipped traces (`narrows/traces/1`)."""

from __future__ import annotations

from msgspec import UNSET, UnsetType, field

from narrows.documents.data import Count, Part

FORMAT = "narrows/traces/1"


class ListedTrace(Part, frozen=True, kw_only=True):
    """A trace; one that can't be read has a problem instead of its format, length and mean."""

    name: str
    #: `imported` or `shipped`.
    origin: str = field(name="from")
    path: str
    format: str | UnsetType = UNSET
    length_ns: Count = 0
    #: The mean rate or delay, with its unit.
    mean: str = ""
    #: In a sentence.
    problem: str | UnsetType = UNSET
