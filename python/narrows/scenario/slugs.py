"""Names of folders, made from labels."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

LONGEST = 80
_LONGEST_PART = 60
#: Longer texts are not spelt out in a name.
_MOST_SPELT = 8
_OTHERS = re.compile(r"[^a-z0-9.+]+")


def slug_of(text: str) -> str:
    """The text with everything but a-z, 0-9, `.`, `+` and `-` replaced by dashes; it begins and ends with a
    letter or a digit. A text without any such character (`日本`, `Δ`, `+`) is spelt by code points:
    `u65e5-u672c`. Empty only for an empty text.
    """
    return _plain(text) or _plain(_decompose(text)) or _spelt(text)


def _plain(text: str) -> str:
    return _OTHERS.sub("-", text.lower()).strip("-.+")[:_LONGEST_PART].rstrip("-.+")


def _decompose(text: str) -> str:
    """The text with letters in place of ligatures and other compatibility forms, and without accents."""
    return unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()


def _spelt(text: str) -> str:
    letters = [f"u{ord(letter):04x}" for letter in text]
    more = ["etc"] if len(letters) > _MOST_SPELT else []
    return "-".join(letters[:_MOST_SPELT] + more)


class Slugs:
    """Unique slugs, for any number of labels."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        #: The number that the next equal slug tries first: all lower ones are taken.
        self._next: dict[str, int] = {}

    def add(self, slug: str) -> str:
        """Returns and reserves the slug, with a numeric suffix if it is taken."""
        slug = slug[:LONGEST]
        result, self._next[slug] = _free(slug, self._taken, self._next.get(slug, 2))
        self._taken.add(result)
        return result


def free_slug(slug: str, taken: Iterable[str]) -> str:
    """The slug, with a numeric suffix if it is taken. For many slugs use `Slugs`."""
    return _free(slug[:LONGEST], taken if isinstance(taken, set) else set(taken), 2)[0]


def _free(slug: str, taken: set[str], number: int) -> tuple[str, int]:
    """A slug that is not taken, and the number that the next one tries."""
    result = slug
    while result in taken:
        result = f"{slug}.{number}"
        number += 1
    return result, number
