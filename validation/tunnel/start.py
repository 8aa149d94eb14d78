"""The network that the comparison needs: this program again, as that of a shell whose path does nothing.

Shells in a shell get their packets forwarded by its namespace; the receiver lives there, and a shell inside
it has the path that is emulated. So no relay is between sender and receiver.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NoReturn

from narrows.shell import ShellOptions, run

#: The option by which the program knows that it is in the shell already.
WITHIN = "--within"


def enter(agent: Path, words: list[str]) -> NoReturn:
    """Starts the command again inside, with these words; does not return."""
    program = [sys.executable, "-m", "validation", "tunnel", WITHIN, *words]
    run(agent, ShellOptions(up="[]", down="[]", quiet=True), program)
