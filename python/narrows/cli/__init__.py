"""The command line: one file per command, nothing heavy imported before a command runs."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

__all__ = ["main", "run_program"]

#: Columns of the help; it is folded where a terminal has fewer.
WIDTH_OF_HELP = 80


def main() -> None:
    """The entry point of the program `narrows`."""
    run_program(lambda: _run(sys.argv[1:]))


def run_program(call: Callable[[], None]) -> NoReturn:
    """Runs a program, prints the reason of a failure in one sentence, and exits with its code."""
    from narrows import streams

    streams.prepare()
    code = 0
    try:
        call()
    except SystemExit as error:
        if isinstance(error.code, str):
            print(error.code, file=sys.stderr)
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
    except BaseException as error:
        if os.environ.get("NARROWS_TRACEBACK") and isinstance(error, Exception):
            raise
        code = _report_error(error)
    if (failed := streams.flush_output()) is not None:
        print(f"narrows: {failed}", file=sys.stderr)
        code = code or failed.exit_code
    sys.exit(code)


def _run(words: list[str]) -> None:
    if words == ["--version"]:
        from narrows import __version__

        print(f"narrows {__version__}")
        return
    if words in (["--help"], ["-h"]) and (text := _whole_help()):
        sys.stdout.write(text)
        return
    from narrows.cli.app import app, load

    load(words[0] if words else None)
    app()


def _report_error(error: BaseException) -> int:
    """Prints in one sentence why the program ends; returns its exit code."""
    from narrows.errors import EXIT_FAILURE, EXIT_INTERRUPTED, NarrowsError, ScenarioError, as_refusal
    from narrows.extras import missing_library

    if isinstance(error, BrokenPipeError):
        # The reader of our output (head, less) has ended, which is allowed.
        return EXIT_FAILURE
    if isinstance(error, KeyboardInterrupt):
        print("narrows: interrupted", file=sys.stderr)
        return EXIT_INTERRUPTED
    known = error if isinstance(error, NarrowsError) else None
    if known is None and isinstance(error, Exception):
        known = missing_library(error) or as_refusal(error)
    if known is not None:
        print(known if isinstance(known, ScenarioError) else f"narrows: {known}", file=sys.stderr)
        return known.exit_code
    print(
        f"narrows: internal error: {type(error).__name__}: {error}; this is a bug of narrows, please"
        " report it with the output of the same command under NARROWS_TRACEBACK=1",
        file=sys.stderr,
    )
    return EXIT_FAILURE


def _whole_help() -> str | None:
    """The list of commands that `make generated` has written, for terminals that are at least as wide.
    Composing it takes ten times as long as reading it.
    """
    import shutil
    from pathlib import Path

    if shutil.get_terminal_size().columns < WIDTH_OF_HELP:
        return None
    return Path(__file__).with_name("help.txt").read_text(encoding="utf-8")
