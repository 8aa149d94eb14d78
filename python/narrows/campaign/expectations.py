"""Checks the expectations of a scenario against the results."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import fmean
from typing import Final, Literal

from narrows.documents.results import Answer, Expectation, Metric, Outcome, Quantity, Row
from narrows.scenario.expect import ALL, kind_of
from narrows.scenario.quantity import show
from narrows.statistics.runs import median_over_runs

HOLDS: Final = "holds"
FAILS: Final = "fails"
SKIPPED: Final = "skipped"
INVALID = "invalid"

_STATISTICS: dict[str, Callable[[Sequence[float]], float]] = {
    "median": median_over_runs,
    "mean": fmean,
    "min": min,
    "max": max,
}


def judge(
    expectations: Sequence[Expectation],
    labels: list[str],
    rows: Sequence[Row],
    skipped: dict[str, str],
    metrics: Iterable[Metric],
) -> list[Outcome]:
    """One finding per expectation and scheme concerned; `skipped` has the reasons by scheme.

    A skipped scheme can't fail; a scheme that ran without producing a value does.
    """
    known = {metric.name: metric for metric in metrics}
    outcomes = []
    for expectation in expectations:
        for label in [expectation.scheme] if expectation.scheme is not None else labels:
            own = [row for row in rows if row.scheme == label and row.flow == expectation.flow]
            metric = known.get(expectation.metric)
            outcome, value, reason = _judge(
                expectation, own, skipped.get(label), metric.happened if metric else None
            )
            name = next((row.label for row in own if row.label), None)
            outcomes.append(
                Outcome(
                    **{key: getattr(expectation, key) for key in Expectation.__struct_fields__}
                    | {"scheme": label},
                    text=in_words(expectation, label, _about(expectation, known), name),
                    outcome=outcome,
                    value=value,
                    reason=reason,
                )
            )
    return outcomes


def _about(expectation: Expectation, known: Mapping[str, Metric]) -> Quantity:
    """The quantity that an expectation limits."""
    if expectation.about is not None:
        return expectation.about
    return known.get(expectation.metric, Quantity.unknown(expectation.metric))


def questions(expectations: Iterable[Expectation]) -> list[Expectation]:
    """The expectations about the states of senders, which no metric covers."""
    return [expectation for expectation in expectations if expectation.question is not None]


def add_answers(rows: Sequence[Row], asked: Sequence[Expectation], answers: Sequence[Answer]) -> None:
    """Adds the answers for one cell to its rows, beside the metrics."""
    for question, answer in zip(asked, answers, strict=True):
        for row in rows:
            if row.flow == question.flow:
                row.metrics[question.metric] = answer.value
                if answer.absent is not None:
                    row.absent[question.metric] = answer.absent


def _judge(
    expectation: Expectation, rows: Sequence[Row], skipped: str | None, happened: str | None
) -> tuple[Literal["holds", "fails", "skipped"], float | None, str | None]:
    """The outcome, the value and a reason. `happened` is the metric that is 0 in runs in which the timed
    event never happened.
    """
    if skipped is not None:
        return SKIPPED, None, skipped
    valid = [row for row in rows if row.verdict != INVALID]
    values = [value for row in valid if (value := row.metrics.get(expectation.metric)) is not None]
    # The event would have taken longer than the run: a scheme gains nothing by never reaching it.
    values += [math.inf for row in valid if happened and row.metrics.get(happened) == 0]
    if not values:
        texts = [row.absent.get(expectation.metric) for row in valid]
        why = next((reason for reason in texts if reason), None)
        return FAILS, None, why or "no valid run gave a value"
    value = _STATISTICS[expectation.statistic](values)
    low, high = expectation.at_least, expectation.at_most
    holds = (low is None or value >= low) and (high is None or value <= high)
    outcome: Literal["holds", "fails"] = HOLDS if holds else FAILS
    if math.isinf(value):
        never = sum(map(math.isinf, values))
        return outcome, None, f"in {never} of {len(values)} runs it did not happen"
    return outcome, value, None


def in_words(expectation: Expectation, scheme: str, about: Quantity, name: str | None = None) -> str:
    """`cubic, flow 2 (web): median throughput at least 5 Mbit/s`."""
    flow = expectation.flow
    where = "all flows" if flow == ALL else f"flow {flow} ({name})" if name else f"flow {flow}"
    limits = [
        f"{word} {amount(limit, about)}"
        for limit, word in ((expectation.at_least, "at least"), (expectation.at_most, "at most"))
        if limit is not None
    ]
    return f"{scheme}, {where}: {expectation.statistic} {about.label} {' and '.join(limits)}"


def amount(value: float | None, metric: Quantity) -> str:
    """A value of a metric with its unit."""
    kind = kind_of(metric)
    if value is None:
        return "no value"
    if kind == "ratio":
        return f"{value * 100:.4g} %"
    if kind == "number":
        return f"{value:.4g}"
    if kind in ("rate", "span"):
        # Four digits suffice to show by how much it failed.
        digits = max(0, len(str(int(abs(value)))) - 4)
        return show(kind, round(value, -digits)) if value >= 1 else f"0 {'s' if kind == 'span' else 'bit/s'}"
    return show(kind, value)


def lines(outcomes: Sequence[Outcome], metrics: Iterable[Metric]) -> list[str]:
    """The outcomes as sentences for the terminal."""
    known = {metric.name: metric for metric in metrics}
    texts = []
    for outcome in outcomes:
        if outcome.outcome == SKIPPED:
            continue
        what = outcome.reason or amount(outcome.value, _about(outcome, known))
        texts.append(
            f"{outcome.outcome:7} {outcome.text}" + (f": {what}" if outcome.reason else f" ({what})")
        )
    left_out = [outcome.scheme for outcome in outcomes if outcome.outcome == SKIPPED]
    if left_out:
        texts.append(f"{SKIPPED} {len(left_out)} about {', '.join(dict.fromkeys(map(str, left_out)))}")
    return texts
