"""The locations of manifests: shipped ones, users' ones, and files that scenarios name."""

from __future__ import annotations

import contextlib
from functools import lru_cache
from pathlib import Path

from narrows.errors import DataError, NarrowsError, reason
from narrows.files import Found, by_name, config_folder, find_shipped_programs, resolve_path
from narrows.names import PANTHEON
from narrows.scenario import registry
from narrows.scenario.prefixes import BPF_PREFIX, KERNEL_PREFIX, UDP
from narrows.scenario.programs.manifest import NAME, read
from narrows.scenario.programs.program import Program
from narrows.text import shorten, suggest

SUFFIXES = (".yaml", ".yml")


def user_folder() -> Path:
    """The folder of the user's manifests (it need not exist)."""
    return config_folder() / "programs"


def list_programs() -> list[Found]:
    """All manifests by name; a user's manifest hides a shipped one of the same name."""

    def entries(folder: Path) -> list[tuple[str, Path]]:
        try:
            paths = sorted(path for path in folder.iterdir() if path.suffix in SUFFIXES and path.is_file())
        except OSError as error:
            raise NarrowsError(f"{folder}: can't be read: {reason(error)}") from None
        return [(path.stem, path) for path in paths]

    return by_name(user_folder(), find_shipped_programs(), entries)


def find(name: str, base: Path) -> Path:
    """The manifest that is named by its path, relative to `base`, or by its bare name."""
    if "/" in name or name.endswith(SUFFIXES):
        path = resolve_path(name, base)
        if not path.is_file():
            raise DataError(f'manifest "{shorten(name)}" does not exist (looked for at {path})')
        return path
    known = {program.name: program.path for program in list_programs()}
    if name in known:
        return known[name]
    hint = suggest(name, known, "program")
    text = f'program "{shorten(name)}" does not exist{hint}'
    raise DataError(f"{text}; narrows programs lists them, and a file is named with its ending")


def is_name(scheme: str) -> bool:
    """True if a scheme may be a program: `NAME:variant`."""
    name, colon, variant = scheme.partition(":")
    ours = scheme.startswith((KERNEL_PREFIX, BPF_PREFIX))
    return bool(colon) and not ours and bool(NAME.match(name) and NAME.match(variant))


def schemes() -> list[str]:
    """The schemes of all valid manifests."""
    texts: list[str] = []
    for program in list_programs():
        with contextlib.suppress(DataError):
            texts += load(program.path).schemes
    return texts


def load(path: Path) -> Program:
    """The program of a manifest. Raises `DataError` with all errors in it."""
    program = _load(path.resolve(), path.stat().st_mtime_ns, path)
    taken = {
        PANTHEON.rstrip(":"),
        KERNEL_PREFIX.rstrip(":"),
        BPF_PREFIX.rstrip(":"),
        UDP,
        *registry.load().schemes,
    }
    if program.name in taken:
        raise DataError(f"{path}: {program.name} is the name of other schemes; call the file otherwise")
    return program


@lru_cache(maxsize=64)
def _load(_real: Path, _changed_ns: int, path: Path) -> Program:
    return read(path)
