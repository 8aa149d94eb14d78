"""Layers of images: tar streams that are applied to a folder, one after the other, without leaving it.

Deletions ("whiteouts") are entries named `.wh.NAME`, and `.wh..wh..opq` hides whatever lower layers have in a
folder (OCI image specification 1.1, layer.md). They concern lower layers alone, wherever in the layer they
are, so a layer is read twice. Owners, devices, pipes and extended attributes are left out; every file can be
read by everybody and written by its owner.
"""

from __future__ import annotations

import os
import shutil
import stat
import tarfile
import zlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from narrows.errors import DataError, reason
from narrows.roots.digest import MOST_ENTRIES
from narrows.roots.inside import find_folder, make_folder
from narrows.text import shorten

#: All layers of an image together; longer ones are more likely made to fill the disk.
MOST_BYTES = 20_000_000_000
_WHITEOUT, _OPAQUE = ".wh.", ".wh..wh..opq"
#: Headers with names and attributes are read into memory.
_MOST_HEADER = 1_000_000
_HEADERS = (
    tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE, tarfile.GNUTYPE_LONGNAME,
    tarfile.GNUTYPE_LONGLINK,
)  # fmt: skip
_BLOCK = 1 << 20
#: Exceptions that damaged archives raise.
DAMAGED = (tarfile.TarError, EOFError, ValueError, OverflowError, RecursionError, zlib.error)


@dataclass
class Budget:
    """The amount that may still be unpacked."""

    bytes: int = MOST_BYTES
    entries: int = MOST_ENTRIES

    def take(self, size: int) -> None:
        """Counts bytes; raises `DataError` if they are too many."""
        self.bytes -= size
        if self.bytes < 0:
            raise DataError(f"holds more than {MOST_BYTES // 1_000_000_000} GB when unpacked")

    def take_entry(self) -> None:
        """Counts an entry; raises `DataError` if there are too many."""
        self.entries -= 1
        if self.entries < 0:
            raise DataError(f"holds more than {MOST_ENTRIES} files")


class _Header(tarfile.TarInfo):
    """A header whose size is checked before it is read into memory."""

    def _proc_member(self, archive: tarfile.TarFile) -> tarfile.TarInfo:
        if self.size < 0 or (self.type in _HEADERS and self.size > _MOST_HEADER):
            raise tarfile.HeaderError("a header has an impossible size")
        return super()._proc_member(archive)  # type: ignore[misc,no-any-return]


def open_tar(stream: IO[bytes]) -> tarfile.TarFile:
    """A tar archive without compression, with checked headers. Raises one of `DAMAGED`."""
    return tarfile.open(fileobj=stream, mode="r:", tarinfo=_Header)


def members(archive: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
    """The entries of an archive, which are not kept in memory."""
    while (member := archive.next()) is not None:
        yield member
        archive.members = []  # type: ignore[attr-defined]


def apply(stream: IO[bytes], root: Path, budget: Budget) -> None:
    """Applies a layer, an open tar file that can be read twice, to the folder `root`. Raises `DataError` if
    it is damaged, or would leave the folder.
    """
    try:
        for act in (_delete, _add):
            stream.seek(0)
            with open_tar(stream) as archive:
                for member in members(archive):
                    act(archive, member, root, budget)
    except DAMAGED as error:
        raise DataError(f"is damaged: {shorten(str(error))}") from None
    except OSError as error:
        raise DataError(f"can't be unpacked: {reason(error)}") from None


def _parts(name: str) -> list[str]:
    """The parts of a path in a layer, which starts at the root; raises `DataError` if it climbs out."""
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise DataError(f"has the path {shorten(name)}, which leaves the root")
    return parts


def _delete(_archive: tarfile.TarFile, member: tarfile.TarInfo, root: Path, _budget: Budget) -> None:
    """Deletes what a whiteout names."""
    parts = _parts(member.name)
    if not parts or not parts[-1].startswith(_WHITEOUT):
        return
    name = parts[-1].removeprefix(_WHITEOUT)
    if name in ("", ".", ".."):
        raise DataError(f"deletes {shorten(member.name)}, which leaves the root")
    folder = find_folder(root, parts[:-1])
    if folder is None:
        return
    for entry in list(folder.iterdir()) if parts[-1] == _OPAQUE else [folder / name]:
        _remove(entry)


def _add(archive: tarfile.TarFile, member: tarfile.TarInfo, root: Path, budget: Budget) -> None:
    """Adds an entry."""
    parts = _parts(member.name)
    if not parts or parts[-1].startswith(_WHITEOUT):
        return
    budget.take_entry()
    kinds = (member.isdir(), member.isreg(), member.issym(), member.islnk())
    if not any(kinds):
        # Devices, pipes: programs have their own.
        return
    folder = find_folder(root, parts[:-1], create=True)
    if folder is None:
        raise DataError(f"has {shorten(member.name)} below a file or a circle of links")
    place = folder / parts[-1]
    if member.isdir():
        if not _is(place, stat.S_ISDIR):
            _remove(place)
            make_folder(place)
    elif member.issym():
        _remove(place)
        place.symlink_to(member.linkname)
    elif member.islnk():
        _link(member, root, place)
    else:
        _remove(place)
        _copy(archive, member, place, budget)


def _link(member: tarfile.TarInfo, root: Path, place: Path) -> None:
    """Adds another name of a file."""
    *before, last = _parts(member.linkname) or [""]
    folder = find_folder(root, before)
    if folder is None or not last or not _is(folder / last, stat.S_ISREG):
        raise DataError(
            f"links {shorten(member.name)} to {shorten(member.linkname)}, which is not a file in it"
        )
    if folder / last != place:
        _remove(place)
        os.link(folder / last, place, follow_symlinks=False)


def _copy(archive: tarfile.TarFile, member: tarfile.TarInfo, place: Path, budget: Budget) -> None:
    """Adds a file."""
    budget.take(member.size)
    source = archive.extractfile(member)
    assert source is not None
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(place, flags, 0o600), "wb") as target:
        left = member.size
        while left > 0:
            block = source.read(min(_BLOCK, left))
            if not block:
                raise DataError(f"ends within {shorten(member.name)}")
            target.write(block)
            left -= len(block)
        target.flush()
        os.fchmod(target.fileno(), 0o755 if member.mode & 0o111 else 0o644)
        # Python compiles a module again if its time is not that of the compiled one.
        with suppress(OSError, OverflowError, ValueError):
            os.utime(target.fileno(), (member.mtime, member.mtime))


def _is(path: Path, kind: object) -> bool:
    try:
        mode = path.lstat().st_mode
    except OSError:
        return False
    assert callable(kind)
    return bool(kind(mode))


def _remove(path: Path) -> None:
    """Removes whatever is at a path."""
    if _is(path, stat.S_ISDIR):
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
