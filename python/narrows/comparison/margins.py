"""Findings about the smallest difference that matters, in words."""

from __future__ import annotations

from msgspec.structs import replace

from narrows.analysis.metrics import unit_of
from narrows.comparison.equivalence import BEYOND, UNDECIDED, WITHIN
from narrows.documents.comparison import ComparedMetric, ComparedRow, Comparison, MarginOutcome
from narrows.documents.results import Metric


def method(document: Comparison) -> str:
    """The certainty of the statements; empty without a margin."""
    pairs = _with_margin(document)
    if not pairs:
        return ""
    return (
        f"About the margin: two one-sided tests (equivalence test) at {document.level * 100:g} %, with"
        f" which the 95 % interval must agree; the chance that any of these {len(pairs)} statements is false"
        f" is at most {document.error_rate * 100:g} %. Undecided is neither of the two: more runs may"
        " decide."
    )


def _with_margin(document: Comparison) -> list[tuple[ComparedRow, Metric, ComparedMetric, MarginOutcome]]:
    return [
        (row, metric, finding, finding.margin)
        for metric in document.metrics
        for row in document.rows
        if (finding := row.metrics[metric.name]).margin is not None
    ]


def in_order(document: Comparison) -> list[tuple[ComparedRow, Metric, ComparedMetric, MarginOutcome]]:
    """Row, metric, finding and margin of everything that has a margin: larger differences first, then
    equivalent, then undecided ones.
    """
    order = {BEYOND: 0, WITHIN: 1, UNDECIDED: 2}
    return sorted(_with_margin(document), key=lambda pair: order[pair[3].outcome])


def headline(document: Comparison) -> str:
    """The number of comparisons with each outcome about their margin; empty without a margin."""
    pairs = _with_margin(document)
    if not pairs:
        return ""
    counts: dict[str, int] = {}
    for *_, margin in pairs:
        outcome = margin.outcome
        counts[outcome] = counts.get(outcome, 0) + 1
    words = {
        BEYOND: ("differs by more", "differ by more"),
        WITHIN: ("is equivalent within it", "are equivalent within it"),
        UNDECIDED: ("is undecided", "are undecided"),
    }
    told = [
        f"{counts[outcome]} {forms[counts[outcome] > 1]}"
        for outcome, forms in words.items()
        if outcome in counts
    ]
    texts = list(dict.fromkeys(margin.text for *_, margin in pairs))
    return f"Margin {', '.join(texts)}: of {len(pairs)} comparisons {', '.join(told)}."


def as_told(finding: ComparedMetric) -> ComparedMetric:
    """The finding with its difference in the form of its margin: as a share, or in the metric's unit."""
    is_share = finding.margin is not None and finding.margin.share and finding.relative is not None
    return replace(finding, told_as="relative" if is_share else "absolute")


def amount(margin: MarginOutcome, metric: Metric) -> str:
    """`1 %` of the base, `2 ms`, `0.5 pp`."""
    if margin.share:
        return f"{margin.amount * 100:g} %"
    unit = unit_of(metric)
    size = f"{margin.amount * metric.show_scale:g}"
    return f"{size} {'pp' if unit == '%' else unit}".rstrip()
