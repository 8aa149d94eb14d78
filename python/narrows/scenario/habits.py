"""Words that people bring along from other tools, with what is meant here (`habits.toml`)."""

from __future__ import annotations

import tomllib
from fnmatch import fnmatchcase
from pathlib import Path

#: The tables of `habits.toml`.
HABITS: dict[str, dict[str, str]] = tomllib.loads(
    Path(__file__).with_name("habits.toml").read_text(encoding="utf-8")
)


def meant_key(address: str) -> str:
    """`; ` and the key that is meant by one at this address, or nothing."""
    texts = (text for pattern, text in HABITS["keys"].items() if fnmatchcase(address, pattern))
    text = next(texts, "")
    return text and f"; {text}"
