"""Cargo, which builds crates of users: extensions, and submissions of contests."""

from __future__ import annotations

import re
import shutil

from narrows.errors import UnavailableError
from narrows.text import printable, shorten

#: Lines that report an error without naming it.
_SUMMARIES = ("error: test failed", "error: 1 target")


def find_cargo(what: str) -> str:
    """The path of cargo. Raises `UnavailableError` if this machine has none to build `what` with."""
    cargo = shutil.which("cargo")
    if cargo is None:
        raise UnavailableError(f"there is no cargo to build {what} with; install Rust (https://rustup.rs)")
    return cargo


def first_error(said: str) -> str:
    """The first error of the compiler with its place, in one line; "" if there is none."""
    lines = said.splitlines()
    for at, line in enumerate(lines):
        if re.match(r"error(\[E\d+\])?:", line) and not line.startswith(_SUMMARIES):
            place = next((text.split("-->")[1].strip() for text in lines[at : at + 8] if "-->" in text), "")
            rest = [text.strip() for text in lines[at + 1 : at + 4]] if not place else []
            return printable(
                shorten(" ".join([line, *rest]).strip() + (f" at {place}" if place else ""), 300)
            )
    return ""
