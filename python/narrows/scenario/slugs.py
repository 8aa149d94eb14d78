"""Names of folders, made from labels."""

from __future__ import annotations

import re
from collections.abc import Iterable

LONGEST = 80


def slug_of(text: str) -> str:
    """The text with everything but a-z, 0-9, `.`, `+` and `-` turned into dashes."""
    return re.sub(r"[^a-z0-9.+]+", "-", text.lower()).strip("-.+")[:60].rstrip("-.+")


def free_slug(slug: str, taken: Iterable[str]) -> str:
    """The slug, with a number behind it if it is taken."""
    slug = slug[:LONGEST]
    used = taken if isinstance(taken, set) else set(taken)
    number = 2
    result = slug
    while result in used:
        result = f"{slug}.{number}"
        number += 1
    return result
