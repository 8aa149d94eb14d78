"""Words out of files of models that may be printed."""

from __future__ import annotations


def printable(text: object) -> str:
    """The text with what would move a terminal's cursor, or change its colours, made visible."""
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in str(text)
    )
