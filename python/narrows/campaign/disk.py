"""Detects a full disk in the message of a failed cell: is it here, or on the other host of runs between two
hosts?
"""

from __future__ import annotations

import re

_FULL = ("no space left", "disk is full", "disk quota", "enospc")
#: The beginning of system errors in Python, which runs only here; agents write `(os error 28)`.
_OURS = "[errno "
#: The folder of Narrows on the other host, which contains the folders of runs (`Partner.new_folder`).
_FOLDER = re.compile(r"(/[^:]*)/runs/[0-9a-f]{16}-")


def is_full(message: str) -> bool:
    """True if a message says that some disk was full."""
    return any(sign in message.lower() for sign in _FULL)


def full_there(message: str, host: str | None) -> str | None:
    """The message if the other host had no room; None if it had, or if that is unknown."""
    if host is None:
        return None
    # In runs between hosts, each end's part of a message begins with its name.
    for part in message.split("; "):
        if part.startswith(f"{host}: ") and is_full(part) and _OURS not in part.lower():
            folder = _FOLDER.search(part)
            where = folder[1] if folder else part.removeprefix(f"{host}: ")
            return (
                f"the disk of {host} is full ({where}); make room there, or choose another folder with"
                " --remote-folder, and run the same command again, finished cells are kept"
            )
    return None
