"""What several commands share: consoles and printing of documents."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console

#: Width of tables that are not printed on a terminal, so that no line is folded in a log.
WIDTH_OF_FILES = 200
#: How other hosts are reached.
SSH = typer.Option("--ssh", metavar="COMMAND", help="The ssh program and its options, such as 'ssh -F FILE'.")
REMOTE_FOLDER = typer.Option(
    "--remote-folder",
    metavar="FOLDER",
    help="Where the agent is kept there. [default: .cache/narrows/agents in the home folder]",
)


def find_validation() -> None:
    """Makes the package `validation` importable, which is part of the source tree and not of this package."""
    from narrows.errors import UnavailableError

    root = Path(__file__).resolve().parents[3]
    if not (root / "validation" / "__init__.py").is_file():
        raise UnavailableError("this command needs the source tree of Narrows; run it from a checkout")
    sys.path.append(str(root))


def stdout_console() -> Console:
    """Where results go."""
    return _console(sys.stdout.isatty(), stderr=False)


def stderr_console() -> Console:
    """Where progress and messages go."""
    return _console(sys.stderr.isatty(), stderr=True)


def _console(terminal: bool, *, stderr: bool) -> Console:
    from rich.console import Console

    # Labels, reasons and names of files stand as they are: "[red]" and ":x:" mean nothing in them.
    width = None if terminal else WIDTH_OF_FILES
    return Console(stderr=stderr, width=width, highlight=False, markup=False, emoji=False)


def print_expectations(console: Console, results: dict[str, Any]) -> None:
    """What the scenario expected, and whether it holds."""
    if results.get("expect"):
        from narrows.campaign.expectations import lines

        console.print()
        console.print("expected:")
        for line in lines(results["expect"], results["metrics"]):
            console.print(f"  {line}", soft_wrap=True)


def print_json(document: Any) -> None:
    """One document on standard output."""
    print(json.dumps(document, indent=1, ensure_ascii=False))
