"""Wrapper scripts of Pantheon as programs: `pantheon:PATH`, unchanged.

A wrapper is called with one word: `run_first` prints the side that listens, `receiver PORT` and `sender IP
PORT` (or `sender PORT` and `receiver IP PORT`) run the two sides; data always flow from the sender to the
receiver.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shlex
import shutil
import signal
import subprocess
from functools import lru_cache
from pathlib import Path

from narrows.documents.programs import CONNECTOR, LISTENER
from narrows.errors import DataError
from narrows.files import read_whole, resolve_path
from narrows.names import PANTHEON
from narrows.scenario.programs.keys import End, Limits
from narrows.scenario.programs.program import Parameter, Program, SideOf, Variant
from narrows.text import shorten

#: The program name of all wrappers; the wrapper's name is the variant.
NAME = PANTHEON.rstrip(":")
#: The parameter for another interpreter than the one in the wrapper's first line.
INTERPRETER = "python"
#: Pantheon runs all wrappers with this interpreter, whatever their first line.
_USUAL = "python"
_SIDES = {"receiver": CONNECTOR, "sender": LISTENER}
_MOST_BYTES = 1_000_000
#: Time limit in s for a call that only prints something.
_LIMIT_S = 10.0
_ELF = b"\x7fELF"


def is_wrapper(scheme: str) -> bool:
    """True if a scheme is `pantheon:PATH`."""
    return scheme.startswith(PANTHEON)


def find(scheme: str, base: Path) -> Path:
    """The wrapper of a scheme, by its path relative to `base`. Raises `DataError` if there is none."""
    text = scheme.removeprefix(PANTHEON)
    path = resolve_path(text, base) if text else base
    if not path.is_file():
        raise DataError(f'wrapper "{shorten(text)}" does not exist (looked for at {path})')
    return path.absolute()


def load(path: Path, interpreter: str | None = None) -> Program:
    """The program of a wrapper; its first line names the interpreter, unless `interpreter` does.

    A wrapper that cannot say which side listens, for example because its Python does not exist, becomes an
    unavailable program. Raises `DataError` for a file that can't be read.
    """
    try:
        content = read_whole(path, "wrapper", _MOST_BYTES)
    except DataError as error:
        raise DataError(f"{path}: {error}") from None
    return _program(path, content, interpreter)


@lru_cache(maxsize=64)
def _program(path: Path, content: bytes, interpreter: str | None) -> Program:
    words = [interpreter] if interpreter else interpreter_of(content)
    first, unavailable = _first(path, tuple(words))
    second = "sender" if first == "receiver" else "receiver"
    # The interpreter is a parameter, so that a scenario can override it.
    start = (f"{{{INTERPRETER}}}", *words[1:], str(path)) if words else (str(path),)
    default = Parameter(INTERPRETER, words[0] if words else "", "the interpreter that runs the wrapper")
    variant = Variant(path.stem, "", {})
    return Program(
        name=NAME,
        path=path,
        sha256=hashlib.sha256(content).hexdigest(),
        what=f"Wrapper {path.name} of Pantheon",
        source="",
        licence="",
        version=(),
        data=_SIDES[first],
        listener=SideOf((*start, first, "{port}"), {}, None, "null", {"port": None}),
        connector=SideOf((*start, second, "{address}", "{port}"), {}, None, "null", None),
        variants={path.stem: variant},
        parameters={INTERPRETER: default} if words else {},
        files=(str(path),),
        end=End.default(),
        limits=Limits.default(),
        build=None,
        root=None,
        schemes=(f"{NAME}:{path.stem}",),
        unavailable=unavailable,
    )


def interpreter_of(content: bytes) -> list[str]:
    """The interpreter of a wrapper and its arguments, from its first line. Empty for machine code; `python`,
    as in Pantheon, without such a line.
    """
    if content.startswith(_ELF):
        return []
    line = content.split(b"\n", 1)[0].decode(errors="replace").strip()
    if not line.startswith("#!"):
        return [_USUAL]
    words = line.removeprefix("#!").split(maxsplit=1)
    if not words:
        return [_USUAL]
    if Path(words[0]).name != "env" or len(words) == 1:
        return words
    # env searches the program on PATH; with -S it splits the rest.
    rest = words[1].removeprefix("-S").strip()
    texts = shlex.split(rest) if words[1].startswith("-S") else [rest]
    while texts and re.match(r"[A-Za-z_]\w*=", texts[0]):
        texts.pop(0)
    return texts or [_USUAL]


def call(path: Path, words: tuple[str, ...], *arguments: str) -> subprocess.CompletedProcess[str]:
    """Calls a wrapper with a word that prints something. Raises `OSError` if it can't be started, and
    `subprocess.TimeoutExpired` if it doesn't end."""
    process = subprocess.Popen(
        [*words, str(path), *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        out, err = process.communicate(timeout=_LIMIT_S)
    except subprocess.TimeoutExpired:
        # Its child processes may keep the pipes open.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def _first(path: Path, words: tuple[str, ...]) -> tuple[str, str]:
    """The side that listens, or `receiver` and the reason why the wrapper can't say."""
    another = f'name another one: {{scheme: "{PANTHEON}PATH", {INTERPRETER}: /path/of/python}}'
    if words and shutil.which(words[0]) is None:
        where = "" if "/" in words[0] else " on PATH"
        return "receiver", f"{path.name} is for {words[0]}, and there is no {words[0]}{where}; {another}"
    try:
        done = call(path, words, "run_first")
    except OSError as error:
        return "receiver", f"{path} can't be started: {error.strerror or error}"
    except subprocess.TimeoutExpired:
        return "receiver", f"{path} run_first has not answered within {_LIMIT_S:.0f} s"
    lines = done.stdout.split("\n")
    said = next((line.strip() for line in reversed(lines) if line.strip()), "")
    if done.returncode == 0 and said in _SIDES:
        return said, ""
    errors = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    failed = f"{path.name} run_first ended with exit code {done.returncode}"
    if done.returncode == 0:
        return "receiver", f'{path.name} run_first printed "{shorten(said)}", not receiver or sender'
    if done.returncode == 127 and errors:
        # A name without a program behind it: a version manager's shim.
        return (
            "receiver",
            f"{path.name} is for {words[0]}, which doesn't run here: {shorten(errors[0])}; {another}",
        )
    last = shorten(errors[-1], 200) if errors else "nothing"
    if last.startswith("SyntaxError"):
        return "receiver", f"{path.name} can't be read by {words[0]} ({last}); {another}"
    return "receiver", f'{failed}; its last line was "{last}"'
