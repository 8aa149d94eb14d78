"""Finds the requirements of a program that this machine lacks, before anything runs."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
from functools import lru_cache
from pathlib import Path
from typing import Any

from narrows.errors import NarrowsError
from narrows.files import open_regular
from narrows.scenario.programs.manifest import CONNECTOR, LISTENER
from narrows.scenario.programs.recipe import builds_folder
from narrows.scenario.programs.scheme import UNAVAILABLE, is_filled
from narrows.scenario.programs.store import find, load

#: The first bytes of programs in machine code.
_ELF = b"\x7fELF"
_NOT_FOUND = re.compile(r"^\s*(\S+) => not found", re.MULTILINE)
#: The dynamic linker answers at once, or not at all.
_LIMIT_S = 5.0


def why_missing(program: dict[str, Any], sides: tuple[str, ...] = (LISTENER, CONNECTOR)) -> str | None:
    """Why these sides of a program, in the form of cells, can't run here; None if no obstacle is known."""
    if UNAVAILABLE in program:
        return str(program[UNAVAILABLE])
    for path in program.get("files", ()):
        if is_filled(path) and not Path(path).exists():
            return f"its file {path} does not exist{_remedy(program)}"
    for side in sides:
        plan = program[side]
        name = plan["command"][0]
        if not is_filled(name):
            continue
        env = plan.get("env", {})
        path = shutil.which(name, path=env.get("PATH"))
        if path is None and Path(name).is_relative_to(builds_folder()):
            return f"{program['name']} has not been built; run: narrows programs build {program['name']}"
        if path is None:
            where = "" if "/" in name else " on PATH"
            return f"there is no program {name}{where} (the {side}){_remedy(program)}"
        library = env.get("LD_LIBRARY_PATH", "")
        missing = _libraries(path, library if is_filled(library) else "")
        if missing:
            several = "libraries" if len(missing) > 1 else "library"
            return f"{path} needs the {several} {', '.join(missing)}, which can't be found (the {side})"
    return None


def _remedy(program: dict[str, Any]) -> str:
    """How to install the missing parts, as the end of a sentence, if the manifest describes the build."""
    with contextlib.suppress(NarrowsError, OSError):
        known = load(find(program["name"], Path()))
        if known.build is not None and known.sha256 == program["manifest"]:
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
