"""Runs many commands, each in a process forked from one that has already imported them, at a fraction of
their start-up cost. Each has a time limit."""

from __future__ import annotations

import atexit
import functools
import gc
import importlib
import json
import os
import pkgutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

#: Time limit of a command in seconds on a busy machine, where refusing takes milliseconds.
LIMIT_S = 60.0


@dataclass(frozen=True)
class Ended:
    """The end of a command."""

    words: list[str]
    #: Its exit code; None if it was killed because it did not end.
    code: int | None
    output: str

    @property
    def in_one_line(self) -> str:
        """Everything that it printed, without line breaks."""
        return " ".join(self.output.split())


def run_all(commands: Sequence[Sequence[str | Path]], cwd: Path) -> list[Ended]:
    """Runs commands of Narrows one after the other in a folder."""
    asked = [[str(word) for word in words] for words in commands]
    server = _server()
    assert server.stdin and server.stdout
    server.stdin.write(json.dumps([str(cwd), asked]) + "\n")
    server.stdin.flush()
    answer = server.stdout.readline()
    assert answer, "the process that forks commands has ended"
    return [Ended(words, *one) for words, one in zip(asked, json.loads(answer), strict=True)]


@functools.cache
def _server() -> subprocess.Popen[str]:
    """The process that forks the commands of all tests of this process; it ends with its input."""
    server = subprocess.Popen(
        [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    atexit.register(server.communicate)
    return server


def _main() -> None:
    import_everything()
    os.environ.update(NO_COLOR="1", COLUMNS="200", NARROWS_TRACEBACK="")
    for line in sys.stdin:
        cwd, commands = json.loads(line)
        os.chdir(cwd)
        print(json.dumps([_forked(words) for words in commands]), flush=True)


#: Libraries that commands import inside functions; duckdb looks for pandas.
LIBRARIES = (
    "matplotlib.backends.backend_agg", "matplotlib.backends.backend_pdf", "matplotlib.backends.backend_svg",
    "matplotlib.patheffects", "matplotlib.pyplot", "pandas", "pyarrow.parquet",
)  # fmt: skip


def import_packages(*names: str) -> None:
    """Imports all modules of packages of Narrows, also those that are imported inside functions.

    Otherwise every fork imports them again, which is three quarters of the processor time of a command.
    """
    for name in names:
        package = importlib.import_module(f"narrows.{name}")
        for module in pkgutil.walk_packages(package.__path__, f"narrows.{name}."):
            importlib.import_module(module.name)


def import_everything() -> None:
    """Imports all packages, and libraries that commands import inside functions."""
    import narrows

    for library in LIBRARIES:
        importlib.import_module(library)
    packages = {module.name for module in pkgutil.iter_modules(narrows.__path__) if module.ispkg}
    # No command uses the learning environments, some of whose libraries may be missing.
    import_packages(*sorted(packages - {"gym"}))
    # The collector of a fork would touch, and copy, the pages of all these objects.
    gc.collect()
    gc.freeze()


def _forked(words: list[str]) -> tuple[int | None, str]:
    with tempfile.TemporaryFile() as said:
        child = os.fork()
        if child == 0:
            _run(words, said.fileno())
        began = time.monotonic()
        code = None
        while time.monotonic() < began + LIMIT_S:
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                code = os.waitstatus_to_exitcode(status)
                break
            time.sleep(0.005)
        else:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        said.seek(0)
        return code, said.read().decode(errors="replace")


def _run(words: list[str], output: int) -> None:
    from narrows.cli import main

    os.setsid()
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    code = 70
    try:
        sys.argv = ["narrows", *words]
        main()
        code = 0
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    _main()
