"""Files that may be models, and words out of them that may be printed."""

from __future__ import annotations

from pathlib import Path

from narrows.errors import DataError

#: The largest network that is published has some megabytes.
MOST_BYTES = 200_000_000


def content_of(path: Path, what: str) -> bytes:
    """The content of a file; raises `DataError`, without the path, for one that can't be `what`."""
    try:
        # Whatever else there may be (a pipe, a device) might block, or never end.
        if path.exists() and not path.is_file():
            raise DataError("is a folder; name a file" if path.is_dir() else "is no regular file")
        with path.open("rb") as stream:
            content = stream.read(MOST_BYTES + 1)
    except OSError as error:
        raise DataError(f"can't be read: {(error.strerror or str(error)).lower()}") from None
    if len(content) > MOST_BYTES:
        raise DataError(f"is larger than {MOST_BYTES // 1_000_000} MB, so it is no {what}")
    return content


def printable(text: object) -> str:
    """The text with what would move a terminal's cursor, or change its colours, made visible."""
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in str(text)
    )
