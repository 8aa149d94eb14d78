"""The digest of a folder: names, kinds, modes, contents and links of all that is in it.

Reading a root of 300 MB takes a second, so the digest is kept in the cache folder, together with a
fingerprint of what the system says of each file (size, inode, times of change). The time of change of an
inode (`st_ctime`) can't be set by users. A change within the same tick of the clock as the reading would
not show, so nothing is kept of folders that have just changed.
"""

from __future__ import annotations

import hashlib
import os
import stat
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

from narrows.errors import DataError, reason
from narrows.files import cache_folder, open_regular, read_bytes

#: Entries of a root that programs don't see, because others take their place
#: (drivers/sys/src/isolated_root.rs).
REPLACED = frozenset(("dev", "proc", "run", "sys", "tmp"))
#: More entries are no root of programs.
MOST_ENTRIES = 500_000
#: Time that has to pass after a change until a digest is kept, in ns.
_SETTLED_NS = 2_000_000_000
_BLOCK = 1 << 20


class _Kept(msgspec.Struct, frozen=True):
    """A digest in the cache."""

    folder: str
    fingerprint: str
    digest: str


def digest_of(folder: Path) -> str:
    """`sha256:` and the digest of a folder. Raises `DataError`, without the path of the folder, if something
    in it can't be read, or changes.
    """
    root = str(folder.resolve())
    fingerprint, newest = _fingerprint(root)
    name = hashlib.sha256(os.fsencode(root)).hexdigest()
    place = cache_folder() / "roots" / "digests" / f"{name}.json"
    with suppress(OSError, msgspec.DecodeError):
        kept = msgspec.json.decode(read_bytes(place), type=_Kept)
        if kept.fingerprint == fingerprint:
            return kept.digest
    started = time.time_ns()
    digest = f"sha256:{_content_hash(root)}"
    if _fingerprint(root)[0] != fingerprint:
        raise DataError("changes while it is read; wait until it is complete")
    if newest < started - _SETTLED_NS:
        content = msgspec.json.encode(_Kept(root, fingerprint, digest))
        # Without the cache, the folder is read again the next time.
        with suppress(OSError):
            place.parent.mkdir(parents=True, exist_ok=True)
            draft = place.with_suffix(f".{os.getpid()}")
            draft.write_bytes(content)
            draft.replace(place)
    return digest


def _walk(root: str) -> Iterator[tuple[str, os.DirEntry[str], os.stat_result]]:
    """All entries of a root with their paths in it, in order."""
    left = [""]
    count = 0
    device = Path(root).stat().st_dev
    while left:
        folder = left.pop()
        inner = []
        for entry in _entries(root, folder):
            if not folder and entry.name in REPLACED:
                continue
            path = f"{folder}/{entry.name}"
            try:
                about = entry.stat(follow_symlinks=False)
            except OSError as error:
                raise _unreadable(path, error) from None
            if about.st_dev != device:
                raise DataError(f"has another file system in {path}, which programs don't see; unmount it")
            count += 1
            if count > MOST_ENTRIES:
                raise DataError(f"has more than {MOST_ENTRIES} entries, so it is not a root of programs")
            yield path, entry, about
            if stat.S_ISDIR(about.st_mode):
                inner.append(path)
        left += inner[::-1]


def _entries(root: str, folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(root + folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except OSError as error:
        raise _unreadable(folder or "/", error) from None


def _fingerprint(root: str) -> tuple[str, int]:
    """The metadata of all entries, and the time of the newest change in ns."""
    whole = hashlib.sha256()
    newest = Path(root).stat().st_ctime_ns
    for path, _, about in _walk(root):
        newest = max(newest, about.st_ctime_ns)
        members = (about.st_mode, about.st_size, about.st_ino, about.st_mtime_ns, about.st_ctime_ns)
        whole.update(b"%s\0%s\0" % (os.fsencode(path), repr(members).encode()))
    return whole.hexdigest(), newest


def _content_hash(root: str) -> str:
    whole = hashlib.sha256(b"narrows/root/1\n")
    for path, entry, about in _walk(root):
        mode = about.st_mode
        try:
            content = _content(Path(entry.path), mode)
        except OSError as error:
            raise _unreadable(path, error) from None
        # No name or content has a NUL.
        whole.update(b"%o\0%s\0%s\0" % (mode, os.fsencode(path), content))
    return whole.hexdigest()


def _content(path: Path, mode: int) -> bytes:
    if stat.S_ISLNK(mode):
        return os.fsencode(path.readlink())
    if not stat.S_ISREG(mode):
        return b""
    digest = hashlib.sha256()
    with open_regular(path) as stream:
        while block := stream.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest().encode()


def _unreadable(path: str, error: OSError) -> DataError:
    return DataError(f"can't be read in {path}: {reason(error)}")
