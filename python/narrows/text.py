"""Words of users inside of sentences: shortened, made printable, listed, corrected."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Sequence


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`; did you mean "..."?` if one of the known words is close, or nothing."""
    known = list(known)
    lowered = {name.lower(): name for name in known}
    if word.lower() in lowered:
        return f'; did you mean "{lowered[word.lower()]}"?'
    close = difflib.get_close_matches(word, known, n=1, cutoff=0.6)
    return f'; did you mean "{close[0]}"?' if close else ""


def shorten(text: str, most: int = 60) -> str:
    """The text as it can stand inside a sentence."""
    text = " ".join(text.split())
    return text if len(text) <= most else text[: most - 1] + "…"


def plural(count: int, noun: str, many: str | None = None) -> str:
    """`1 run`, `2 runs`."""
    return f"{count} {noun if count == 1 else many or noun + 's'}"


def any_of(words: Iterable[str]) -> str:
    """`a, b or c`."""
    listed = list(words)
    if len(listed) < 2:
        return "".join(listed)
    return f"{', '.join(listed[:-1])} or {listed[-1]}"


def markdown_table(
    titles: Sequence[str], rows: Iterable[Iterable[str]], numbers: Collection[str] = ()
) -> str:
    """A table in Markdown; columns with titles in `numbers` are flush right."""
    lines = [titles, ["---:" if title in numbers else "---" for title in titles], *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def printable(text: object) -> str:
    """The text with what would move a terminal's cursor, or change its colours, made visible."""
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in str(text)
    )
