"""Files that may be models, and words out of them that may be printed."""

from __future__ import annotations

from pathlib import Path

from narrows.errors import DataError
from narrows.reading import read_whole, unreadable


def content_of(path: Path, what: str) -> bytes:
    """The content of a file; raises `DataError`, without the path, for one that can't be `what`."""
    try:
        # Whatever else there may be (a pipe, a device) might block, or never end.
        if path.exists() and not path.is_file():
            raise DataError("is a folder; name a file" if path.is_dir() else "is no regular file")
    except OSError as error:
        raise unreadable(error) from None
    return read_whole(path, what)


def printable(text: object) -> str:
    """The text with what would move a terminal's cursor, or change its colours, made visible."""
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in str(text)
    )
