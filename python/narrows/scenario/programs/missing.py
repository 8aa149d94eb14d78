"""Finds the requirements of a program that this machine lacks, before anything runs."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
from functools import lru_cache
from pathlib import Path

from narrows.documents.programs import CONNECTOR, LISTENER, Plan, Root
from narrows.errors import NarrowsError
from narrows.files import open_regular
from narrows.roots.inside import follow
from narrows.scenario.programs.recipe import builds_folder
from narrows.scenario.programs.root import why_not_in
from narrows.scenario.programs.scheme import is_filled
from narrows.scenario.programs.store import find, load

#: The first bytes of programs in machine code.
_ELF = b"\x7fELF"
_NOT_FOUND = re.compile(r"^\s*(\S+) => not found", re.MULTILINE)
#: The dynamic linker answers at once, or not at all.
_LIMIT_S = 5.0


def why_missing(program: Plan, sides: tuple[str, ...] = (LISTENER, CONNECTOR)) -> str | None:
    """Why these sides of a program, in the form of cells, can't run here; None if no obstacle is known."""
    if program.unavailable:
        return program.unavailable
    if program.root is not None:
        return _why_missing_in(program, program.root, sides)
    for path in program.files:
        if is_filled(path) and not Path(path).exists():
            return f"its file {path} does not exist{_remedy(program)}"
    for side in sides:
        process = program.side(side)
        name = process.command[0]
        if not is_filled(name):
            continue
        env = process.env
        there = shutil.which(name, path=env.get("PATH"))
        if there is None and Path(name).is_relative_to(builds_folder()):
            return f"{program.name} has not been built; run: narrows programs build {program.name}"
        if there is None:
            where = "" if "/" in name else " on PATH"
            return f"there is no program {name}{where} (the {side}){_remedy(program)}"
        library = env.get("LD_LIBRARY_PATH", "")
        missing = _libraries(there, library if is_filled(library) else "")
        if missing:
            several = "libraries" if len(missing) > 1 else "library"
            return f"{there} needs the {several} {', '.join(missing)}, which can't be found (the {side})"
    return None


def _why_missing_in(program: Plan, root: Root, sides: tuple[str, ...]) -> str | None:
    """The same for a program with a root."""
    for path in program.files:
        if is_filled(path) and follow(Path(root.folder), path) is None:
            return f"its file {path} does not exist in {root.folder}"
    for side in sides:
        process = program.side(side)
        name = process.command[0]
        if is_filled(name) and (reason := why_not_in(root, name, process.env)):
            return f"{reason} (the {side})"
    return None


def _remedy(program: Plan) -> str:
    """How to install the missing parts, as the end of a sentence, if the manifest describes the build."""
    with contextlib.suppress(NarrowsError, OSError):
        known = load(find(program.name, Path()))
        if known.build is not None and known.sha256 == program.manifest:
            return f"; run: narrows programs build {known.name}"
    return ""


@lru_cache(maxsize=64)
def _libraries(path: str, library_path: str) -> tuple[str, ...]:
    """The libraries of a program that the dynamic linker would not find."""
    ldd = shutil.which("ldd")
    try:
        with open_regular(Path(path)) as stream:
            if ldd is None or stream.read(4) != _ELF:
                return ()
        env = {**os.environ, "LC_ALL": "C", **({"LD_LIBRARY_PATH": library_path} if library_path else {})}
        done = subprocess.run(
            [ldd, path], env=env, capture_output=True, text=True, timeout=_LIMIT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired, UnicodeDecodeError):
        # If it is missing, the program is not refused.
        return ()
    return tuple(dict.fromkeys(_NOT_FOUND.findall(done.stdout)))
