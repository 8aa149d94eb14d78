"""Findings of the verifier in words."""

from __future__ import annotations

from collections.abc import Iterable

from narrows.documents.run import FAILS, HOLDS, SKIPPED, Check


def count_in_words(checks: Iterable[Check]) -> str:
    """`14 of 14 hold`, `12 of 15 hold, 1 skipped, 2 fail`."""
    words = [check.outcome for check in checks]
    hold, skipped, fail = (words.count(text) for text in (HOLDS, SKIPPED, FAILS))
    parts = [f"{hold} of {len(words)} hold"]
    if skipped:
        parts.append(f"{skipped} skipped")
    if fail:
        parts.append(f"{fail} fails" if fail == 1 else f"{fail} fail")
    return ", ".join(parts)
