"""notes.json: the tags and notes of a campaign (`narrows/notes/1`)."""

from __future__ import annotations

from msgspec import field

from narrows.documents.data import Part

FORMAT = "narrows/notes/1"


class Note(Part, frozen=True, kw_only=True, omit_defaults=False):
    """A note about a campaign, and when it was written."""

    at: str = ""
    text: str = ""


class Notes(Part, frozen=True, kw_only=True, omit_defaults=False):
    """The tags of a campaign in the order in which they were given, and its notes."""

    format: str = FORMAT
    tags: list[str] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
