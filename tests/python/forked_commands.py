"""Runs many commands, each in a process forked from one that has already imported them, at a fraction of
their start-up cost. Each has a time limit."""

from __future__ import annotations

import json
import os
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
    done = subprocess.run(
        [sys.executable, __file__],
        input=json.dumps(asked),
        capture_output=True,
        text=True,
        cwd=cwd,
        check=True,
    )
    return [Ended(words, *one) for words, one in zip(asked, json.loads(done.stdout), strict=True)]


def _main() -> None:
    import matplotlib.pyplot  # noqa: F401
    import pyarrow.parquet  # noqa: F401

    import narrows.cli.all_commands  # noqa: F401

    os.environ.update(NO_COLOR="1", COLUMNS="200", NARROWS_TRACEBACK="")
    print(json.dumps([_forked(words) for words in json.load(sys.stdin)]))


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
