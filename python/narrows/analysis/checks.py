"""Findings of the verifier in words: what could not be decided is skipped, and never counted as holding."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

HOLDS, SKIPPED, FAILS = "ok", "skipped", "FAIL"


def word(check: Mapping[str, Any]) -> str:
    """The outcome of one check in one word."""
    if not check.get("ok"):
        return FAILS
    return SKIPPED if check.get("skipped") else HOLDS


def count_in_words(checks: Iterable[Mapping[str, Any]]) -> str:
    """`14 of 14 hold`, `12 of 15 hold, 1 skipped, 2 fail`."""
    words = [word(check) for check in checks]
    hold, skipped, fail = (words.count(text) for text in (HOLDS, SKIPPED, FAILS))
    parts = [f"{hold} of {len(words)} hold"]
    if skipped:
        parts.append(f"{skipped} skipped")
    if fail:
        parts.append(f"{fail} fails" if fail == 1 else f"{fail} fail")
    return ", ".join(parts)
