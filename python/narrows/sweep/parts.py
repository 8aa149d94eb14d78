"""Checks that the parts of a sweep's data set are those that it wrote.

sweep.json has the SHA-256 of each part (`parts`, by its path below `data/`) that existed when it was last
written. Parts of a running session are not included yet.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from msgspec import UNSET

from narrows.documents.sweep import Sweep
from narrows.errors import DataError, reason
from narrows.files import open_regular


def digest_of(content: bytes) -> str:
    """The digest of a part, in the form of sweep.json."""
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def digests(data: Path, known: dict[str, str]) -> dict[str, str]:
    """The digests of the existing parts. Raises `DataError` for a part that no longer matches its digest in
    `known`.
    """
    result = {}
    for path in files(data):
        name = path.relative_to(data).as_posix()
        try:
            with open_regular(path) as stream:
                result[name] = f"sha256:{hashlib.file_digest(stream, 'sha256').hexdigest()}"
        except OSError as error:
            raise DataError(
                f"{path}: can't be read: {reason(error)}; remove it, and run the sweep again"
            ) from None
        if known.get(name, result[name]) != result[name]:
            raise DataError(
                f"{path}: was changed after it was written (its digest does not fit); remove it, and run the"
                " sweep again"
            )
    return result


def files(data: Path) -> list[Path]:
    """The files of a data set, in order."""
    return sorted(data.glob("*/*.parquet"))


def problem(folder: Path, document: Sweep) -> str | None:
    """The parts of sweep.json that a folder lacks, or its additional ones, in a sentence. Raises `DataError`
    for a part that has changed.
    """
    known = document.parts
    if known is UNSET:
        return None
    result = digests(folder / "data", known)
    if lost := [name for name in known if name not in result]:
        return (
            f"{folder}: has lost {len(lost)} of its {len(known)} parts (data/{lost[0]}"
            f"{' and more' if len(lost) > 1 else ''}); run the same sweep with -o {folder} again, which makes"
            " their cells anew"
        )
    more = [name for name in result if name not in known]
    if more and (not document.sessions or not document.is_open):
        return f"{folder / 'data' / more[0]}: was not written by this sweep; remove it"
    return None
