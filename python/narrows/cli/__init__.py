"""The command line: one file per command, nothing heavy imported before a command runs."""

from __future__ import annotations

import os
import sys

__all__ = ["main"]


def main() -> None:
    """Entry point of the program `narrows`."""
    from narrows.cli.app import app
    from narrows.errors import EXIT_FAILURE, EXIT_INTERRUPTED, NarrowsError, ScenarioError, refused_path
    from narrows.extras import missing_library

    try:
        app()
    except ScenarioError as error:
        print(error, file=sys.stderr)
        sys.exit(error.exit_code)
    except NarrowsError as error:
        print(f"narrows: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        print("narrows: interrupted", file=sys.stderr)
        sys.exit(EXIT_INTERRUPTED)
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
