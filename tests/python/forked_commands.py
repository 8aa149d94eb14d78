"""Runs many commands, each in a process forked from one that has already imported them, at a fraction of
their start-up cost. Each has a time limit."""

from __future__ import annotations

import atexit
import contextlib
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
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NoReturn

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
    answers = _ask({"cwd": str(cwd), "commands": asked})
    return [Ended(words, code, output) for words, (code, output, _) in zip(asked, answers, strict=True)]


def run_in(
    environment: Mapping[str, str],
    words: Sequence[str | Path],
    cwd: Path,
    *,
    program: str = "narrows.cli",
    terminal: str | None = None,
    seconds: float = 240,
) -> subprocess.CompletedProcess[str]:
    """Runs `main` of a module in a folder, with these variables alone, and with the terminal of this name as
    its input and outputs if there is one."""
    asked = [str(word) for word in words]
    request = {"cwd": str(cwd), "commands": [asked], "environment": dict(environment), "program": program}
    ((code, output, errors),) = _ask(request | {"terminal": terminal, "seconds": seconds})
    assert code is not None, f"{asked} has not ended after {seconds} s: {output} {errors}"
    return subprocess.CompletedProcess(asked, code, output, errors)


def _ask(request: dict[str, Any]) -> list[tuple[int | None, str, str]]:
    server = _server()
    assert server.stdin and server.stdout
    server.stdin.write(json.dumps(request) + "\n")
    server.stdin.flush()
    answer = server.stdout.readline()
    assert answer, "the process that forks commands has ended"
    return [tuple(ended) for ended in json.loads(answer)]


def count_processor_seconds() -> float:
    """The processor seconds of the process that forks commands and of the commands, since it was started."""
    if _server.cache_info().currsize == 0:
        return 0.0
    fields = Path(f"/proc/{_server().pid}/stat").read_text().rpartition(")")[2].split()
    # utime, stime, cutime and cstime: proc(5).
    return sum(int(field) for field in fields[11:15]) / os.sysconf("SC_CLK_TCK")


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
        request = json.loads(line)
        os.chdir(request["cwd"])
        ended = [_fork(request, words) for words in request["commands"]]
        print(json.dumps(ended), flush=True)


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


def _fork(request: dict[str, Any], words: list[str]) -> tuple[int | None, str, str]:
    """Runs a command in a fork. Without an environment it has the server's, and one file for both outputs."""
    with tempfile.TemporaryFile() as said, tempfile.TemporaryFile() as complained:
        child = os.fork()
        if child == 0:
            errors = complained if "environment" in request else said
            _run(request, words, said.fileno(), errors.fileno())
        began = time.monotonic()
        code = None
        while time.monotonic() < began + request.get("seconds", LIMIT_S):
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                code = os.waitstatus_to_exitcode(status)
                break
            time.sleep(0.005)
        else:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        return code, _content(said), _content(complained)


def _content(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode(errors="replace")


def _run(request: dict[str, Any], words: list[str], output: int, errors: int) -> NoReturn:
    main = importlib.import_module(request.get("program", "narrows.cli")).main
    os.setsid()
    if terminal := request.get("terminal"):
        streams = [os.open(terminal, os.O_RDWR)] * 3
    else:
        streams = [os.open(os.devnull, os.O_RDONLY), output, errors]
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    # As in a new process: the old ones know whether their files were terminals.
    sys.stdin, sys.stdout, sys.stderr = (
        open(number, mode, encoding="utf-8", closefd=False)  # noqa: SIM115 - until the process ends
        for number, mode in enumerate("rww")
    )
    if "environment" in request:
        os.environ.clear()
        os.environ.update(request["environment"])
    code = 70
    try:
        sys.argv = ["narrows", *words]
        main()
        code = 0
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 1
    except BaseException:
        os.write(2, traceback.format_exc().encode())
    finally:
        for text in (sys.stdout, sys.stderr):
            # The program may have detached it from its output.
            with contextlib.suppress(ValueError):
                text.flush()
        os._exit(code)


if __name__ == "__main__":
    _main()
