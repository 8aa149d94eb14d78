"""Digests of our JSON files, stored inside them.

The last member of a sealed file, on its own line, is `digest`: the SHA-256 of all bytes before that line.

    head -n -2 campaign.json | sha256sum

computes it by hand. It is written with the file in one step, so no interruption leaves one without the other.
It detects accidents, mix-ups and edits, but not fraud: a forger can compute it anew.

Minor version 1 of a format says that its files are sealed: a file that has lost its digest is refused, too.
Files of minor version 0 predate digests.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path

from narrows.errors import DataError
from narrows.files import open_regular

DIGEST = "digest"
#: Sealed formats, and the remedy if a file does not match its digest.
_REMEDIES = {
    "narrows/campaign/1": "put the original back, or run the scenario again in another folder",
    "narrows/results/2": "narrows report {folder} makes it again from the records",
    "narrows/sweep/1": "put the original back, or run the sweep again in another folder",
    "narrows/hunt/1": "put the original back, or hunt again in another folder",
    "narrows/calibration/1": "calibrate again in another folder",
    "narrows/calibration-input/1": "put the original back, or calibrate again in another folder",
    "narrows/lab-run/1": "put the original back, or run the laboratory again in another folder",
    "narrows/archive/1": "narrows archive make -o {folder} makes it again",
    "narrows/site/1": "remove {folder} and make the site again",
}
_MINOR = ".1"
_TAIL = re.compile(rb' "digest": "sha256:([0-9a-f]{64})"\n\}\n\Z')
_TAIL_BYTES = 128


def seal(document: Mapping[str, object], file_format: str, *, allow_nan: bool = True) -> str:
    """The text of a sealed file; `file_format` has no minor version."""
    content: dict[str, object] = {"format": file_format + _MINOR}
    content |= {name: value for name, value in document.items() if name not in ("format", DIGEST)}
    text = json.dumps(content, indent=1, ensure_ascii=False, allow_nan=allow_nan)
    head = text.removesuffix("\n}") + ",\n"
    return f'{head} "{DIGEST}": "sha256:{hashlib.sha256(head.encode()).hexdigest()}"\n}}\n'


def check_seal(path: Path, content: bytes, document: dict[str, object], file_format: str) -> bool:
    """Compares a file with its digest, and removes the digest from the document and the minor version from
    its format. Returns False if the file predates digests. Raises `DataError` if it does not match.
    """
    if file_format not in _REMEDIES:
        return False
    tail = _TAIL.search(content[-_TAIL_BYTES:])
    sealed = document.get("format") != file_format or DIGEST in document
    if tail is None and not sealed:
        return False
    if tail is None or hashlib.sha256(content[: -len(tail[0])]).hexdigest() != tail[1].decode():
        said = "has lost its digest" if tail is None else "its digest does not fit"
        raise DataError(f"{path}: was changed after it was written ({said}); {remedy(path, file_format)}")
    del document[DIGEST]
    document["format"] = file_format
    return True


def is_sealed(path: Path) -> bool:
    """True if a file has a digest; the file has been read before."""
    with open_regular(path) as stream:
        stream.seek(-min(_TAIL_BYTES, path.stat().st_size), os.SEEK_END)
        return _TAIL.search(stream.read()) is not None


def remedy(path: Path, file_format: str) -> str | None:
    """How to obtain a correct file of this format."""
    text = _REMEDIES.get(file_format)
    return text and text.format(folder=path.parent)
