"""Expectations of a scenario, held against the results: does what was asserted hold?"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from statistics import fmean
from typing import Any

from narrows.scenario.expect import ALL, kind_of
from narrows.scenario.quantity import show
from narrows.statistics.runs import median_over_runs

HOLDS, FAILS, SKIPPED = "holds", "fails", "skipped"
INVALID = "invalid"

_STATISTICS: dict[str, Callable[[Sequence[float]], float]] = {
    "median": median_over_runs,
    "mean": fmean,
    "min": min,
    "max": max,
}


def judge(
    expectations: list[dict[str, Any]],
    labels: list[str],
    rows: list[dict[str, Any]],
    skipped: list[dict[str, Any]],
    metrics: list[dict[str, Any]],
) -> list[dict[str, Any]]:
    """One finding per expectation and scheme that it speaks of.

    A scheme that was skipped can't fail; one that ran and gave no value does.
    """
    known = {metric["name"]: metric for metric in metrics}
    reasons = {one["scheme"]: one["reason"] for one in skipped}
    findings = []
    for expectation in expectations:
        wanted = [expectation["scheme"]] if expectation["scheme"] is not None else labels
        for label in wanted:
            own = [row for row in rows if row["scheme"] == label and row["flow"] == expectation["flow"]]
            happened = known.get(expectation["metric"], {}).get("happened")
            found = _judge_one(expectation, own, reasons.get(label), happened)
            metric = expectation.get("about") or known.get(expectation["metric"], {"unit": ""})
            name = next((row["label"] for row in own if "label" in row), None)
            text = in_words({**expectation, "scheme": label}, metric, name)
            findings.append({**expectation, "scheme": label, "text": text, **found})
    return findings


def questions(expectations: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The expectations about the states of senders, which no metric answers."""
    return [one for one in expectations if "question" in one]


def add_answers(
    rows: list[dict[str, Any]], asked: list[dict[str, Any]], answers: list[dict[str, Any]]
) -> None:
    """Puts the answers for one cell into its rows, beside the metrics."""
    for one, found in zip(asked, answers, strict=True):
        for row in rows:
            if row["flow"] == one["flow"]:
                row["metrics"][one["metric"]] = found.get("value")
                if "absent" in found:
                    row["absent"][one["metric"]] = found["absent"]


def _judge_one(
    expectation: dict[str, Any], rows: list[dict[str, Any]], skipped: str | None, happened: str | None = None
) -> dict[str, Any]:
    """`happened` is the metric that is 0 in runs in which what is timed never happened."""
    if skipped is not None:
        return {"outcome": SKIPPED, "value": None, "reason": skipped}
    valid = [row for row in rows if row["verdict"] != INVALID]
    values = [
        row["metrics"][expectation["metric"]]
        for row in valid
        if row["metrics"].get(expectation["metric"]) is not None
    ]
    # It would have taken longer than the run: a scheme gains nothing by never getting there.
    values += [math.inf for row in valid if happened and row["metrics"].get(happened) == 0]
    if not values:
        texts = [row["absent"].get(expectation["metric"]) for row in valid]
        why = next((reason for reason in texts if reason), None)
        return {"outcome": FAILS, "value": None, "reason": why or "no valid run gave a value"}
    value = _STATISTICS[expectation["of"]](values)
    low, high = expectation["at_least"], expectation["at_most"]
    holds = (low is None or value >= low) and (high is None or value <= high)
    outcome = HOLDS if holds else FAILS
    if math.isinf(value):
        never = sum(math.isinf(one) for one in values)
        reason = f"in {never} of {len(values)} runs it did not happen"
        return {"outcome": outcome, "value": None, "reason": reason}
    return {"outcome": outcome, "value": value, "reason": None}


def in_words(expectation: dict[str, Any], metric: dict[str, Any], name: str | None = None) -> str:
    """`cubic, flow 2 (web): median throughput at least 5 Mbit/s`."""
    flow = expectation["flow"]
    where = "all flows" if flow == ALL else f"flow {flow} ({name})" if name else f"flow {flow}"
    limits = [
        f"{word} {amount(expectation[key], metric)}"
        for key, word in (("at_least", "at least"), ("at_most", "at most"))
        if expectation[key] is not None
    ]
    label = metric.get("label", expectation["metric"])
    return f"{expectation['scheme']}, {where}: {expectation['of']} {label} {' and '.join(limits)}"


def amount(value: float | None, metric: dict[str, Any]) -> str:
    """A value of a metric with its unit."""
    kind = kind_of(metric)
    if value is None:
        return "no value"
    if kind == "ratio":
        return f"{value * 100:.4g} %"
    if kind == "number":
        return f"{value:.4g}"
    if kind in ("rate", "span"):
        # Four digits are enough to see by how much it failed.
        digits = max(0, len(str(int(abs(value)))) - 4)
        return show(kind, round(value, -digits)) if value >= 1 else f"0 {'s' if kind == 'span' else 'bit/s'}"
    return show(kind, value)


def lines(findings: list[dict[str, Any]], metrics: list[dict[str, Any]]) -> list[str]:
    """The findings as sentences for the terminal."""
    known = {metric["name"]: metric for metric in metrics}
    texts = []
    left_out = [one["scheme"] for one in findings if one["outcome"] == SKIPPED]
    for one in findings:
        if one["outcome"] == SKIPPED:
            continue
        metric = one.get("about") or known.get(one["metric"], {"unit": ""})
        what = f": {one['reason']}" if one["reason"] else f" ({amount(one['value'], metric)})"
        texts.append(f"{one['outcome']:7} {one['text']}{what}")
    if left_out:
        texts.append(f"{SKIPPED} {len(left_out)} about {', '.join(dict.fromkeys(left_out))}")
    return texts
