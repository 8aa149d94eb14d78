"""The command line: one file per command, nothing heavy imported before a command runs."""

from __future__ import annotations

import os
import sys

__all__ = ["main"]

#: Columns of the help; it is folded where a terminal has fewer.
WIDTH_OF_HELP = 80


def main() -> None:
    """Entry point of the program `narrows`."""
    try:
        _main()
    except KeyboardInterrupt:
        print("narrows: interrupted", file=sys.stderr)
        sys.exit(130)


def _main() -> None:
    words = sys.argv[1:]
    if words == ["--version"]:
        from narrows import __version__

        print(f"narrows {__version__}")
        return
    if words in (["--help"], ["-h"]) and (text := _whole_help()):
        sys.stdout.write(text)
        return
    from narrows.cli.app import app, load
    from narrows.errors import EXIT_FAILURE, NarrowsError, ScenarioError, refused_path
    from narrows.extras import missing_library

    load(words[0] if words else None)
    try:
        app()
    except ScenarioError as error:
        print(error, file=sys.stderr)
        sys.exit(error.exit_code)
    except NarrowsError as error:
        print(f"narrows: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    except BrokenPipeError:
        # The reader of our output (head, less) went away: that is its right.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(EXIT_FAILURE)
    except Exception as error:
        if os.environ.get("NARROWS_TRACEBACK"):
            raise
        if (refused := missing_library(error) or refused_path(error)) is not None:
            print(f"narrows: {refused}", file=sys.stderr)
            sys.exit(refused.exit_code)
        print(
            f"narrows: internal error: {type(error).__name__}: {error}; this is a bug of narrows, please"
            " report it with"
            " the output of the same command under NARROWS_TRACEBACK=1",
            file=sys.stderr,
        )
        sys.exit(EXIT_FAILURE)


def _whole_help() -> str | None:
    """The list of commands, made beforehand (`make generated`) for the width that it has everywhere but on
    narrow terminals: to make it takes ten times as long as to read it."""
    import shutil
    from pathlib import Path

    if shutil.get_terminal_size().columns < WIDTH_OF_HELP:
        return None
    return Path(__file__).with_name("help.txt").read_text(encoding="utf-8")
