"""The agent's binary for another host: its architecture, and a stripped copy.

A statically linked agent, which `make build` makes if the C library allows it, runs on any Linux of its
architecture.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import stat
import struct
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from narrows.errors import DataError, UnavailableError, reason
from narrows.files import cache_folder, open_regular

#: e_machine of ELF files, by the output of `uname -m` (elf.h).
_MACHINES = {
    3: ("i386", "i486", "i586", "i686"),
    21: ("ppc64le", "ppc64"),
    22: ("s390x",),
    40: ("armv7l", "armv6l", "armv8l"),
    62: ("x86_64",),
    183: ("aarch64",),
    243: ("riscv64",),
    258: ("loongarch64",),
}
_PT_INTERP = 3
#: The names of copied binaries.
AGENT, LOADER = "narrows-agent", "narrows-bpf"


@dataclass(frozen=True)
class Program:
    """An agent binary that can be copied."""

    path: Path
    sha256: str
    size: int
    #: Names of compatible machines in the output of `uname -m`.
    machines: tuple[str, ...]
    #: True if it needs no libraries of the host.
    static: bool

    def runs_on(self, machine: str) -> bool:
        """True if its architecture is that of a machine."""
        return machine in self.machines


def examine(path: Path) -> Program:
    """The requirements of an agent, read from the file itself."""
    try:
        with open_regular(path) as file:
            head = file.read(1 << 16)
            file.seek(0)
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            size = file.tell()
    except OSError as error:
        raise DataError(f"{path} cannot be read: {reason(error)}") from None
    machine, static = _header(path, head)
    names = _MACHINES.get(machine, (f"machine {machine} of ELF",))
    return Program(path, digest, size, names, static)


def _header(path: Path, head: bytes) -> tuple[int, bool]:
    """The architecture, and whether a dynamic loader is requested."""
    if len(head) < 64 or head[:4] != b"\x7fELF" or head[4] not in (1, 2) or head[5] not in (1, 2):
        raise DataError(f"{path} is not a Linux program; name a narrows-agent with --agent")
    order = "<" if head[5] == 1 else ">"
    wide = head[4] == 2
    machine = struct.unpack_from(f"{order}H", head, 18)[0]
    table = struct.unpack_from(f"{order}{'Q' if wide else 'I'}", head, 32 if wide else 28)[0]
    size, count = struct.unpack_from(f"{order}HH", head, 54 if wide else 42)
    kinds = []
    for number in range(count):
        place = table + number * size
        if place + 4 > len(head):
            raise DataError(f"{path} is damaged: its table of segments lies outside; build it again")
        kinds.append(struct.unpack_from(f"{order}I", head, place)[0])
    return machine, _PT_INTERP not in kinds


def strip_symbols(original: Program) -> Program:
    """A program without symbols and debugging tables, which are most of a fresh build; kept in the cache
    folder of Narrows.

    The unchanged program, if `strip` does not exist or others may write into that folder.
    """
    strip = shutil.which("strip") or shutil.which("llvm-strip")
    if strip is None:
        return original
    # Not the folder in which agents are kept by other hosts, or by this one when it is another's remote host.
    folder = cache_folder() / "stripped" / original.path.name
    kept = folder / original.sha256
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not _is_private(folder):
            return original
        if kept.is_file():
            return examine(kept)
        handle, name = tempfile.mkstemp(dir=folder)
        os.close(handle)
        new = Path(name)
        done = subprocess.run(
            [strip, "--strip-all", "-o", new, original.path], capture_output=True, timeout=120, check=False
        )
        if done.returncode != 0:
            # A program of another architecture, which the local `strip` does not support.
            new.unlink(missing_ok=True)
            return original
        new.chmod(0o755)
        new.replace(kept)
    except (OSError, subprocess.TimeoutExpired):
        return original
    _forget_others(folder, kept)
    return examine(kept)


def _is_private(folder: Path) -> bool:
    """True if only root and this user may write into a local folder; `private_script` checks the same
    remotely.
    """
    folder = folder.resolve()
    for place in (folder, *folder.parents):
        facts = place.stat()
        shared = facts.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
        if facts.st_uid not in (0, os.geteuid()) or (
            shared and (place == folder or not facts.st_mode & stat.S_ISVTX)
        ):
            return False
    return True


def _forget_others(folder: Path, kept: Path) -> None:
    """Removes copies of earlier builds."""
    for other in folder.iterdir():
        if other != kept:
            with contextlib.suppress(OSError):
                other.unlink()


def fitting(program: Program, machine: str, host: str) -> None:
    """Raises if a program cannot run there."""
    if program.runs_on(machine):
        return
    raise UnavailableError(
        f"{host} is {machine}, and {program.path} is for {' or '.join(program.machines)}; build"
        " narrows-agent on such a machine (make build), copy it here, and name it with --agent"
    )


def wire_size(program: Program) -> str:
    """Its size on the wire, in words."""
    return f"{program.size / 1e6:.1f} MB"
