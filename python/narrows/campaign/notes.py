"""Notes and tags of a campaign: users' annotations, in `notes.json` beside its results.

They are separate from `campaign.json`, which belongs to the process that runs the campaign.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from msgspec.structs import replace

from narrows.campaign.entries import now
from narrows.campaign.json_files import read_json, read_typed, write_atomically
from narrows.campaign.store import read_document
from narrows.documents.data import to_data
from narrows.documents.notes import FORMAT, Note, Notes
from narrows.errors import DataError, UsageError
from narrows.text import any_of, shorten

FILE = "notes.json"
LONGEST_NOTE = 2000
_TAG = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,39}")


def read(campaign: Path) -> Notes:
    """The notes of a campaign. Raises `DataError` if the file is damaged or of a newer version."""
    file = campaign / FILE
    if not file.exists():
        return Notes()
    return read_typed(file, read_json(file, FORMAT), Notes)


def write(campaign: Path, notes: Notes) -> None:
    """Writes the notes of a campaign; the folder must contain one."""
    read_document(campaign)
    write_atomically(campaign / FILE, json.dumps(to_data(notes), indent=1, ensure_ascii=False) + "\n")


def add_note(campaign: Path, text: str) -> Notes:
    """Adds a note. Raises `UsageError` if it has no visible text."""
    text = text.strip()
    if not text or len(text) > LONGEST_NOTE or not all(line.isprintable() for line in text.splitlines()):
        raise UsageError(f"a note is some text of at most {LONGEST_NOTE} letters, without control characters")
    notes = read(campaign)
    notes = replace(notes, notes=[*notes.notes, Note(at=now(), text=text)])
    write(campaign, notes)
    return notes


def remove_note(campaign: Path, number: int) -> Notes:
    """Removes a note by its number, from 1."""
    notes = read(campaign)
    if not 1 <= number <= len(notes.notes):
        there = f"there are notes 1 to {len(notes.notes)}" if notes.notes else "there is none"
        raise UsageError(f"{campaign}: has no note {number}; {there}")
    notes = replace(notes, notes=notes.notes[: number - 1] + notes.notes[number:])
    write(campaign, notes)
    return notes


def add_tags(campaign: Path, tags: list[str]) -> Notes:
    """Adds missing tags. Raises `UsageError` for text that cannot be a tag."""
    for tag in tags:
        if not _TAG.fullmatch(tag):
            raise UsageError(
                f'"{shorten(tag)}" is not a tag; use at most 40 letters, digits and . _ + -, such as paper'
            )
    notes = read(campaign)
    notes = replace(notes, tags=list(dict.fromkeys([*notes.tags, *tags])))
    write(campaign, notes)
    return notes


def remove_tags(campaign: Path, tags: list[str]) -> Notes:
    """Removes tags. Raises `DataError` if the campaign does not have one of them."""
    notes = read(campaign)
    for tag in tags:
        if tag not in notes.tags:
            there = f"it has {any_of(notes.tags)}".replace(" or ", " and ") if notes.tags else "it has none"
            raise DataError(f'{campaign}: has no tag "{shorten(tag)}"; {there}')
    notes = replace(notes, tags=[tag for tag in notes.tags if tag not in tags])
    write(campaign, notes)
    return notes
