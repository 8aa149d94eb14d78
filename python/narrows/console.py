"""Consoles and tables of the command line."""

from __future__ import annotations

import os
import sys
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

#: Width of tables outside a terminal, so that no line is wrapped in a log.
WIDTH_OF_FILES = 200


def stdout_console() -> Console:
    """The console of results."""
    return _console(sys.stdout.isatty(), stderr=False)


def stderr_console() -> Console:
    """The console of progress and messages."""
    return _console(sys.stderr.isatty(), stderr=True)


def _console(terminal: bool, *, stderr: bool) -> Console:
    from rich.console import Console

    # Labels, reasons and file names are printed literally: "[red]" and ":x:" have no special meaning in them.
    # The library itself honours COLUMNS.
    width = None if terminal or os.environ.get("COLUMNS", "").isdecimal() else WIDTH_OF_FILES
    # In a notebook, rich would print every line as a separate page.
    return Console(
        stderr=stderr, width=width, highlight=False, markup=False, emoji=False, force_jupyter=False
    )


def say(text: str) -> None:
    """Prints a message on standard error."""
    stderr_console().print(text, soft_wrap=True)


def table(*titles: str, whole: Collection[str] = (), right: Collection[str] = (), **how: Any) -> Table:
    """A table without lines; columns in `whole` are never wrapped, those in `right` are right-aligned."""
    from rich.table import Table

    made = Table(box=None, padding=(0, 1), pad_edge=False, header_style="bold")
    for title in titles:
        made.add_column(title, no_wrap=title in whole, justify="right" if title in right else "left", **how)
    return made
