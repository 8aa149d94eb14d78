"""The network for the comparison: this program again, inside a shell with a transparent path.

The outer shell's namespace forwards packets of inner shells; the receiver lives there, and a shell inside it
has the emulated path. There is therefore no relay between sender and receiver.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NoReturn

from narrows.shell import ShellOptions, run

#: The option that marks the inner invocation.
WITHIN = "--within"


def enter(agent: Path, words: list[str]) -> NoReturn:
    """Starts the command again inside, with these words; does not return."""
    program = [sys.executable, "-m", "validation", "tunnel", WITHIN, *words]
    run(agent, ShellOptions(up="[]", down="[]", quiet=True), program)
