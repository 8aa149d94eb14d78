"""Words that users bring from other tools, with their meaning here (`habits.toml`)."""

from __future__ import annotations

import tomllib
from fnmatch import fnmatchcase
from pathlib import Path

#: The tables of `habits.toml`.
HABITS: dict[str, dict[str, str]] = tomllib.loads(
    Path(__file__).with_name("habits.toml").read_text(encoding="utf-8")
)


def suggest_key(address: str) -> str:
    """`; ` and the intended key for one at this address; empty if unknown."""
    texts = (text for pattern, text in HABITS["keys"].items() if fnmatchcase(address, pattern))
    text = next(texts, "")
    return text and f"; {text}"
