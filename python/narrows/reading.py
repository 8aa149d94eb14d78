"""Files of users that are read whole."""

from __future__ import annotations

from pathlib import Path

from narrows.errors import DataError

#: A trace of hours, or the largest network that is published, has some megabytes; what is larger than this
#: was named by mistake.
MOST_BYTES = 200_000_000


def read_whole(path: Path, what: str) -> bytes:
    """The content of a file; raises `DataError`, without the path, if it can't be read or be `what`."""
    try:
        with path.open("rb") as stream:
            content = stream.read(MOST_BYTES + 1)
    except OSError as error:
        raise unreadable(error) from None
    if len(content) > MOST_BYTES:
        raise DataError(f"is larger than {MOST_BYTES // 1_000_000} MB, so it is no {what}")
    return content


def unreadable(error: OSError) -> DataError:
    """Why a file can't be read, without its path."""
    return DataError(f"can't be read: {(error.strerror or str(error)).lower()}")
