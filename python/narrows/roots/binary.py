"""Programs in machine code: the machine for which they are, and the loader that they need (elf(5))."""

from __future__ import annotations

import platform
import struct
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path

from narrows.files import open_regular
from narrows.roots.inside import follow
from narrows.text import shorten

#: Machines by `e_machine` (System V ABI, and the registry of its processor supplements).
MACHINES = {3: "i386", 8: "mips", 21: "ppc64", 22: "s390x", 40: "arm", 62: "x86_64", 183: "aarch64",
            243: "riscv64", 258: "loongarch64"}  # fmt: skip
#: Other names of machines, and machines whose programs another one runs too.
_SAME = {"amd64": "x86_64", "arm64": "aarch64", "ppc64le": "ppc64"}
_ALSO = {"x86_64": ("i386",)}
#: Names of machines in images (GOARCH).
IMAGES = {"x86_64": "amd64", "aarch64": "arm64", "i386": "386", "riscv64": "riscv64", "arm": "arm",
          "ppc64": "ppc64le", "s390x": "s390x", "loongarch64": "loong64"}  # fmt: skip
#: Where programs are looked for (drivers/endpoints/src/program/file_system.rs).
SEARCH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_LOADER = 3
_MOST_NAME = 4096


@dataclass(frozen=True)
class Binary:
    """The header of a program."""

    machine: str
    #: The path of its dynamic loader, if it needs one.
    loader: str | None


def this_machine() -> str:
    """The machine of this computer, as `MACHINES` calls it."""
    name = platform.machine().lower()
    return _SAME.get(name, name)


def read_binary(path: Path) -> Binary | None:
    """The header of a program; None if it is not machine code. Raises `OSError`."""
    with open_regular(path) as stream:
        try:
            return _read(stream)
        except (struct.error, ValueError, OverflowError):
            return None


def _read(stream: BufferedReader) -> Binary | None:
    start = stream.read(64)
    if start[:4] != b"\x7fELF" or start[4] not in (1, 2) or start[5] not in (1, 2):
        return None
    order, wide = "<" if start[5] == 1 else ">", start[4] == 2
    (machine,) = struct.unpack_from(f"{order}H", start, 18)
    headers = struct.unpack_from(f"{order}{'Q' if wide else 'I'}", start, 32 if wide else 28)[0]
    size, count = struct.unpack_from(f"{order}HH", start, 54 if wide else 42)
    loader = None
    for index in range(min(count, 1000)):
        stream.seek(headers + index * size)
        header = stream.read(size)
        if struct.unpack_from(f"{order}I", header)[0] == _LOADER:
            offset = struct.unpack_from(f"{order}{'Q' if wide else 'I'}", header, 8 if wide else 4)[0]
            length = struct.unpack_from(f"{order}{'Q' if wide else 'I'}", header, 32 if wide else 16)[0]
            stream.seek(offset)
            name = stream.read(min(length, _MOST_NAME)).split(b"\0", maxsplit=1)[0]
            loader = name.decode("utf-8", "surrogateescape")
            break
    return Binary(MACHINES.get(machine, f"machine {machine}"), loader)


def why_not(root: Path, name: str, search: str = SEARCH) -> str | None:
    """Why a program can't run with `root` as its root; None if no obstacle is known. A name with a slash is
    a path there, any other is looked for in `search`.
    """
    places = [name] if "/" in name else [f"{folder}/{name}" for folder in search.split(":")]
    for place in places:
        path = follow(root, place)
        if path is not None and path.is_file() and path.stat().st_mode & 0o111:
            return _why_not(root, place, path, inner=True)
    where = "" if "/" in name else f" ({search})"
    return f"there is no program {shorten(name)} in {root}{where}"


def _why_not(root: Path, name: str, path: Path, *, inner: bool) -> str | None:
    try:
        binary = read_binary(path)
        if binary is None:
            return _script(root, name, path) if inner else None
    except OSError:
        # The program may be unreadable and run all the same.
        return None
    here = this_machine()
    if binary.machine not in (here, *_ALSO.get(here, ())):
        return f"{shorten(name)} is a program for {binary.machine}, and this machine is {here}"
    if binary.loader is not None and follow(root, binary.loader) is None:
        return f"{shorten(name)} needs {shorten(binary.loader)}, which does not exist in {root}"
    return None


def _script(root: Path, name: str, path: Path) -> str | None:
    """Why the interpreter of a script can't run."""
    with open_regular(path) as stream:
        line = stream.read(256).split(b"\n", maxsplit=1)[0]
    words = line.removeprefix(b"#!").decode("utf-8", "replace").split()
    if not line.startswith(b"#!") or not words:
        return None
    place = follow(root, words[0])
    if place is None or not place.is_file():
        return f"{shorten(name)} is a script for {shorten(words[0])}, which does not exist in {root}"
    return _why_not(root, words[0], place, inner=False)
