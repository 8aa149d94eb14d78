"""Users' words inside sentences: shortened, made printable, listed, corrected."""

from __future__ import annotations

import difflib
import unicodedata
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

#: Unicode categories that are invisible, or that change the display of other characters: controls, formats
#: (joiners, direction marks, tags), lone surrogates, line and paragraph separators.
_HIDDEN_CATEGORIES = frozenset(("Cc", "Cf", "Cs", "Zl", "Zp", "Zs"))
#: Further invisible characters: Unicode's default ignorable ones (without variation selectors, which emoji
#: need) and noncharacters.
_HIDDEN_RANGES = (
    (0x034F, 0x034F),
    (0x115F, 0x1160),
    (0x17B4, 0x17B5),
    (0x180B, 0x180F),
    (0x2065, 0x2065),
    (0x3164, 0x3164),
    (0xFDD0, 0xFDEF),
    (0xFFA0, 0xFFA0),
    (0xFFF0, 0xFFF8),
    (0xE0000, 0xE0FFF),
)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`; did you mean "..."?` if a known word is close; empty otherwise."""
    known = list(known)
    lowered = {name.lower(): name for name in known}
    if word.lower() in lowered:
        return f'; did you mean "{lowered[word.lower()]}"?'
    close = difflib.get_close_matches(word, known, n=1, cutoff=0.6)
    return f'; did you mean "{close[0]}"?' if close else ""


def suggest(word: str, known: Iterable[str], noun: str) -> str:
    """`; did you mean "cubic"?` if a known name is close, else all: `; schemes are cubic, reno`."""
    known = list(known)
    if (hint := did_you_mean(word, known)) or not known:
        return hint
    first, space, rest = noun.partition(" ")
    are = f"the {noun} is" if len(known) == 1 else f"{first}s{space}{rest} are"
    return f"; {are} {', '.join(known)}"


def shorten(text: str, most: int = 60) -> str:
    """The text in a form for use inside a sentence: on one line, with invisible characters as codes."""
    text = printable(" ".join(text.split()))
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
    """A table in Markdown; columns whose titles are in `numbers` are right-aligned."""
    lines = [titles, ["---:" if title in numbers else "---" for title in titles], *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def is_hidden(letter: str) -> bool:
    """True for a character that is invisible, or changes how others are shown.

    This is the only rule for names, labels, titles and questions, both for writing and for reading. Code
    points that are not assigned yet are not hidden, so that the rule does not depend on the version of
    Python.
    """
    if letter.isascii():
        return not " " <= letter <= "~"
    code = ord(letter)
    if unicodedata.category(letter) in _HIDDEN_CATEGORIES or code & 0xFFFE == 0xFFFE:
        return True
    return any(first <= code <= last for first, last in _HIDDEN_RANGES)


def is_text(value: object) -> bool:
    """True for text that may be printed: control characters would be orders to a terminal. A message of an
    agent is a sentence, so longer texts are refused."""
    return isinstance(value, str) and len(value) <= 4096 and not has_hidden(value)


def has_hidden(text: str) -> bool:
    """True if a text contains a hidden character."""
    # Nearly every text is printable ASCII and needs no check of single characters.
    if text.isascii() and text.isprintable():
        return False
    return any(map(is_hidden, text))


def name_letter(letter: str) -> str:
    """A character for a message, by code point and name: `U+202E (RIGHT-TO-LEFT OVERRIDE)`."""
    name = unicodedata.name(letter, "")
    return f"U+{ord(letter):04X}{f' ({name})' if name else ''}"


def distinct_names(paths: Sequence[Path]) -> list[str]:
    """The name of each folder, with as many parents as make it unique: `run` alone, `monday/run` beside
    `tuesday/run`.
    """
    depth = dict.fromkeys(paths, 1)
    while True:
        named: dict[tuple[str, ...], list[Path]] = {}
        for path, parts in depth.items():
            named.setdefault(path.parts[-parts:], []).append(path)
        alike = [place for group in named.values() if len(group) > 1 for place in group]
        longer = [place for place in alike if depth[place] < len(place.parts)]
        if not longer:
            return ["/".join(path.parts[-depth[path] :]) for path in paths]
        for place in longer:
            depth[place] += 1


def printable(text: object) -> str:
    """The text with terminal control characters (cursor, colours) made visible."""
    return "".join(
        letter.encode("unicode_escape").decode() if is_hidden(letter) else letter for letter in str(text)
    )
