"""How the agent gets to another host: copied once into a cache folder of the remote user, under its hash.

Beside it goes the program that loads congestion controls into the kernel, where there is one here. Nothing
else is installed. Copies are verified each time before they are used, and lie where nobody but root and the
user may write, so that what was verified is what runs. A statically linked agent, as `make build` makes it
where the C library allows, runs on any Linux of its architecture.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import posixpath
import shutil
import stat
import struct
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from narrows.errors import DataError, UnavailableError, UsageError

#: e_machine of ELF files, by what `uname -m` says (elf.h).
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
#: The names of what travels.
AGENT, LOADER = "narrows-agent", "narrows-bpf"
_CHUNK = 1 << 20


@dataclass(frozen=True)
class Program:
    """An agent that can be sent."""

    path: Path
    sha256: str
    size: int
    #: Names by which `uname -m` may call the machines that it runs on.
    machines: tuple[str, ...]
    #: Whether it needs no libraries of the host.
    static: bool

    def runs_on(self, machine: str) -> bool:
        """Whether its architecture is that of a machine."""
        return machine in self.machines


def examine(path: Path) -> Program:
    """What an agent needs, read from the file itself."""
    try:
        with path.open("rb") as file:
            head = file.read(1 << 16)
            file.seek(0)
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            size = file.tell()
    except OSError as error:
        raise DataError(f"{path} cannot be read: {(error.strerror or str(error)).lower()}") from None
    machine, static = _header(path, head)
    names = _MACHINES.get(machine, (f"machine {machine} of ELF",))
    return Program(path, digest, size, names, static)


def _header(path: Path, head: bytes) -> tuple[int, bool]:
    """Architecture, and whether no loader of libraries is asked for."""
    if len(head) < 64 or head[:4] != b"\x7fELF" or head[4] not in (1, 2) or head[5] not in (1, 2):
        raise DataError(f"{path} is no program for Linux; name a narrows-agent with --agent")
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


def lightened(original: Program) -> Program:
    """A program without symbols and tables for debuggers, which are most of a fresh build; kept in our own
    cache folder.

    Where no program `strip` is, or others may write into that folder, the program itself.
    """
    strip = shutil.which("strip") or shutil.which("llvm-strip")
    if strip is None:
        return original
    # Not the folder that other hosts, or this one as another host, keep agents in.
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
            # A program of another architecture, which this one does not know.
            new.unlink(missing_ok=True)
            return original
        new.chmod(0o755)
        new.replace(kept)
    except (OSError, subprocess.TimeoutExpired):
        return original
    _forget_others(folder, kept)
    return examine(kept)


def _is_private(folder: Path) -> bool:
    """Whether nobody but root and we may write into a folder here: what `private_script` asks there."""
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
    """Removes what was kept of earlier builds."""
    for other in folder.iterdir():
        if other != kept:
            with contextlib.suppress(OSError):
                other.unlink()


def cache_folder() -> Path:
    """Our folder for what can be made again."""
    base = os.environ.get("XDG_CACHE_HOME")
    return Path(base if base and base.startswith("/") else Path.home() / ".cache") / "narrows"


def fitting(program: Program, machine: str, host: str) -> None:
    """Refuses a program that cannot run there."""
    if program.runs_on(machine):
        return
    raise UnavailableError(
        f"{host} is {machine}, and {program.path} is for {' or '.join(program.machines)}; build"
        " narrows-agent on such a machine (make build), copy it here, and name it with --agent"
    )


def wire_size(program: Program) -> str:
    """Its size, for people."""
    return f"{program.size / 1e6:.1f} MB"


# -- on the other host -----------------------------------------------------------------------------


def named_folder(text: str | None) -> str | None:
    """The argument of `--remote-folder`: absolute, or from the home folder there, with or without `~/`.

    It must be a folder of its own, which goes when it is cleaned.
    """
    if text is None:
        return None
    from_home = text.startswith("~/")
    meant = posixpath.normpath("./" + text.removeprefix("~/") if from_home else text)
    of_others = text.startswith("~") and not from_home
    if of_others or meant.split("/")[0] in (".", "..") or not meant.strip("/ "):
        raise UsageError(
            "--remote-folder takes a folder of its own, from the root (/var/tmp/narrows) or from the home"
            f" folder there (~/narrows), not {text!r}"
        )
    return meant


#: Prints the SHA-256 of the file $f. (Scripts contain no single quotes, line ends, backslashes or
#: exclamation marks, which login shells understand differently.)
_HASH = (
    "{ if command -v sha256sum >/dev/null 2>&1; then sha256sum; elif command -v shasum >/dev/null 2>&1; then"
    " shasum -a 256; elif command -v openssl >/dev/null 2>&1; then openssl dgst -sha256 -r; else echo none;"
    " fi; }"
    ' <"$f" | cut -c 1-64'
)


#: What `private_script` ends with where others may write.
EXIT_NOT_PRIVATE = 5


def private_script(folder: str, make: bool = True) -> str:
    """Prints where a folder really is, if nobody but root and the user may write into it or into any folder
    above it; else the one that others may write into, and why. With `make`, the folder is made.

    What lies in such a folder is what the user has put there: it cannot be exchanged between a look at it and
    its start. A folder above may be writable for all where only owners may remove things (sticky, as /tmp).
    """
    place = quoted(folder)
    begin = 'umask 077; mkdir -p "$d" || exit 3' if make else '[ -d "$d" ] || exit 0'
    return (
        f'd={place}; {begin}; d=$(cd -P "$d" && pwd -P) || exit 3; u=$(id -u); p=$d;'
        f' bad() {{ echo "$p"; echo "$1"; exit {EXIT_NOT_PRIVATE}; }};'
        ' while :; do q=$p; [ -n "$q" ] || q=/; l=$(ls -ldn "$q") || exit 3; set -f; set -- $l; m=$1; o=$3;'
        ' case "$o" in 0|"$u") ;; *) bad "belongs to user $o";; esac;'
        ' w=; case "$m" in ?????w*|????????w*) w=yes;; esac;'
        ' case "$w$m" in yes?????????[tT]*) [ "$p" = "$d" ] || w=;; esac;'
        ' [ -z "$w" ] || bad "is writable for others";'
        ' [ -n "$p" ] || break; p=${p%/*}; done; echo "$d"'
    )


def seek_script(folder: str, name: str) -> str:
    """Prints the hash of the copy of that name in a folder, or `absent`; only what belongs to root or the
    user, and what nobody else may write, is such a copy."""
    place = quoted(f"{folder}/{name}")
    return (
        f'f={place}; set -f; set -- $(ls -ldn "$f" 2>/dev/null);'
        ' case "$1" in -????-??-*) case "$3" in 0|"$(id -u)") ;; *) f=/;; esac;; *) f=/;; esac;'
        f' if [ -f "$f" ]; then {_HASH}; else echo absent; fi'
    )


def put_script(folder: str, name: str, sha256: str) -> str:
    """Takes a program from standard input into a folder, if it arrives whole; prints what its hash is."""
    place = quoted(folder)
    return (
        f'umask 077; d={place}; mkdir -p "$d" || exit 3; f="$d/.new.$$"; fail() {{ rm -f "$f"; exit "$1"; }};'
        f' cat >"$f" || fail 3; h=$({_HASH}); echo "$h"; [ "$h" = {sha256} ] || fail 4;'
        f' chmod 700 "$f" && mv -f "$f" "$d/{name}" || fail 3'
    )


#: What the folders of copies and of runs are called, as patterns of shell: nothing else is removed, since
#: somebody may have named a folder of other things.
_HEX = "[0-9a-f]"
COPIES, RUNS = _HEX * 64, _HEX * 16 + "-*"


def clean_script(folder: str, before: str = "") -> str:
    """Removes all copies, and what runs have left beside them; prints how many copies there were.

    `before` gives the rights that agents have there, since what they write is theirs. Folders go if nothing
    else is in them.
    """
    place = quoted(folder)
    return (
        f'd={place}; n=0; for a in "$d"/{COPIES}; do [ -d "$a" ] || continue;'
        f' [ -f "$a/narrows-agent" ] && n=$((n+1)); {before}rm -rf "$a"; done;'
        f' {before}rm -rf "$d"/runs/{RUNS}; echo "$n";'
        f' {before}rmdir "$d/runs" "$d" 2>/dev/null; rmdir "$(dirname "$d")" 2>/dev/null; true'
    )


def quoted(path: str) -> str:
    """A path as one word of shell, inside of double quotes. It is refused where that would need more."""
    if any(letter in path for letter in "\"'\\$`!\n"):
        raise UnavailableError(
            f"the folder {path!r} has a name with quotes or the like; choose another one with --remote-folder"
        )
    return f'"{path}"'
