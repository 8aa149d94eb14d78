"""The lines of two cards that differ by more than chance and the method's resolution explain."""

from __future__ import annotations

from collections import Counter

from narrows.documents.identify import Card, Differences, Line, LineDifference
from narrows.identify.estimates import Estimate, holm, p_of_words, p_value

#: The probability of at least one wrong difference between equal senders, among all lines.
LEVEL = 0.05


def compare_cards(base: Card, other: Card) -> Differences:
    """The differences of `other` from `base`, with Holm's correction over all lines that both have."""
    known = {line.key: line for line in base.lines if line.why is None}
    pairs = [(known[line.key], line) for line in other.lines if line.why is None and line.key in known]
    tested: list[tuple[Line, Line, float]] = []
    undecided = 0
    for first, second in pairs:
        p = _p_value(first, second)
        if p is None:
            undecided += 1
        else:
            tested.append((first, second, p))
    rejected = holm([p for *_, p in tested], LEVEL)
    lines = [
        LineDifference(
            name=first.name,
            title=first.title,
            probe=first.probe,
            unit=first.unit,
            base=first,
            other=second,
            p=p,
        )
        for (first, second, p), differs in zip(tested, rejected, strict=True)
        if differs
    ]
    return Differences(
        base=base.what,
        other=other.what,
        compared=len(tested),
        undecided=undecided,
        level=LEVEL,
        lines=lines,
    )


def _p_value(first: Line, second: Line) -> float | None:
    if first.words and second.words:
        return p_of_words(Counter(first.words), Counter(second.words))
    a, b = _estimate(first), _estimate(second)
    if a is None or b is None:
        return None
    return p_value(a, b, max(float(first.resolution), float(second.resolution)))


def _estimate(line: Line) -> Estimate | None:
    if line.value is None:
        return None
    error = None if line.error is None else float(line.error)
    return Estimate(float(line.value), error, line.freedom)
