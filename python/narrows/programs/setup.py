"""Prepares wrappers of Pantheon: their packages and their set-up."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass

from narrows.errors import DataError, NarrowsError, UnavailableError
from narrows.scenario.programs import wrapper
from narrows.scenario.programs.program import Program
from narrows.text import shorten

#: Steps of a wrapper that run once, and after each reboot.
ONCE, AFTER_REBOOT = "setup", "setup_after_reboot"
_PACKAGE = re.compile(r"[a-z0-9][a-z0-9.+:-]*$")


@dataclass(frozen=True)
class Needs:
    """The packages that a wrapper needs, and those of them that are not installed (None: unknown)."""

    packages: tuple[str, ...]
    missing: tuple[str, ...] | None


def needs(program: Program) -> Needs:
    """The packages that a wrapper lists as `deps`. Raises `DataError` if it doesn't answer."""
    try:
        done = wrapper.call(program.path, _interpreter(program), "deps")
    except (OSError, subprocess.TimeoutExpired) as error:
        raise DataError(f"{program.path.name} deps: {shorten(str(error), 200)}") from None
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["nothing"])[-1]
        how = f"ended with exit code {done.returncode}"
        raise DataError(f'{program.path.name} deps {how}; its last line was "{shorten(last)}"')
    packages = tuple(word for word in done.stdout.split() if _PACKAGE.match(word))
    return Needs(packages, _not_installed(packages))


def set_up(program: Program, steps: tuple[str, ...]) -> None:
    """Runs the set-up of a wrapper, which may take long and prints to the terminal.

    Raises `UnavailableError` if the wrapper can't run here, `NarrowsError` if a step fails.
    """
    if program.unavailable:
        raise UnavailableError(program.unavailable)
    for step in steps:
        try:
            done = subprocess.run([*_interpreter(program), str(program.path), step], check=False)
        except OSError as error:
            raise NarrowsError(f"{program.path} {step}: {error.strerror or error}") from None
        if done.returncode:
            raise NarrowsError(f"{program.path.name} {step} ended with exit code {done.returncode}")


def _interpreter(program: Program) -> tuple[str, ...]:
    """The interpreter of a wrapper and its arguments: the part of its command before the path."""
    words = program.listener.command[: program.listener.command.index(str(program.path))]
    named = program.parameters.get(wrapper.INTERPRETER)
    return (named.default, *words[1:]) if named else words


def _not_installed(packages: tuple[str, ...]) -> tuple[str, ...] | None:
    """Those packages that Debian's tools do not report as installed."""
    query = shutil.which("dpkg-query")
    if query is None:
        return None
    missing = []
    for name in packages:
        command = [query, "--show", "--showformat=${db:Status-Status}", name]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.stdout != "installed":
            missing.append(name)
    return tuple(missing)
