"""The scenario that results from a hunt: minimal, with its finding as expectations, for `narrows run`."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence

from narrows.documents.hunt import HuntExpectation, HuntRun, Replay
from narrows.documents.results import Results
from narrows.hunt.evaluate import Evaluator, Question
from narrows.hunt.search import CONFIRMED
from narrows.hunt.space import Values
from narrows.scenario.quantity import show
from narrows.statistics.runs import median_over_runs

#: Runs of the scenario, with seeds that the search has not used.
FRESH = 6
#: The share of the gap between two schemes that each may lose before the scenario's expectations fail.
GIVEN_AWAY = 0.15


def expectations(question: Question, evaluator: Evaluator, values: Values, promised: float) -> list[str]:
    """The finding of the minimal scenario, as entries of `expect`."""
    objective, scheme = question.objective, question.scheme
    if objective.beside:
        ratio = promised / (1 - promised) if promised < 1 else math.inf
        if promised >= 0.5:
            return []
        starved, rate = (1 if objective.name == "share" else 2), float(values["rate"] or 0)
        most = show("rate", round(_outwards(promised * rate, up=True)))
        return [
            f"{{metric: throughput_ratio, at_most: {_number(_outwards(ratio, up=True))}}}",
            f"{{metric: throughput_bps, flow: {starved}, at_most: {most}}}",
        ]
    if not question.compared:
        word = "at_least" if objective.high else "at_most"
        limit = _limit_text(question, _outwards(promised, up=not objective.high))
        return [f"{{metric: {objective.metric}, scheme: {scheme}, {word}: {limit}}}"]
    own, other = (median_over_runs(runs) for runs in zip(*_both(evaluator, values), strict=True))
    spare = GIVEN_AWAY * (own - other)
    entries = []
    for name, least, high in (
        (scheme, own - spare, objective.high),
        (question.against, other + spare, not objective.high),
    ):
        word, text = "at_least" if high else "at_most", _limit_text(question, _outwards(least, up=not high))
        entries.append(f"{{metric: {objective.metric}, scheme: {name}, {word}: {text}}}")
    return entries


def _both(evaluator: Evaluator, values: Values) -> list[list[float]]:
    """The values of both schemes by run."""
    return [
        [float(value) for value in of_run if value is not None]
        for of_run in evaluator.apart(values, CONFIRMED)
    ]


def _outwards(value: float, *, up: bool) -> float:
    """A limit with two digits, no stricter than the value."""
    if value <= 0:
        return 0.0
    scale = 10 ** (math.floor(math.log10(value)) - 1)
    return float(f"{(math.ceil if up else math.floor)(round(value / scale, 6)) * scale:.3g}")


def _number(value: float) -> str:
    return f"{value:.6g}"


def _limit_text(question: Question, value: float) -> str:
    if question.objective.described.unit == "ns":
        return show("span", round(value))
    return f"{_number(100 * value)} %"


def scenario(
    question: Question,
    values: Values,
    *,
    name: str,
    claim: str,
    expect: Sequence[str],
    comment: Sequence[str] = (),
) -> str:
    """The text of a hunt's scenario, with its history as a comment."""
    quoted = [json.dumps(text, ensure_ascii=False) for text in (claim, ask(question))]
    head = [f"name: {name}", f"title: {quoted[0]}", f"question: {quoted[1]}", "where: simulate"]
    text = question.scenario(values, question.seed + 1, FRESH, head)
    if expect:
        text += "expect:\n" + "".join(f"  - {entry}\n" for entry in expect)
    return "".join(f"# {line}".rstrip() + "\n" for line in comment) + text


def ask(question: Question) -> str:
    """The hunt as a question."""
    objective, scheme, other = question.objective, question.scheme, question.against
    if objective.name == "share":
        return f"On which path does {scheme} starve beside {other}?"
    if objective.name == "rival":
        return f"On which path does {scheme} starve {other}?"
    most = "most" if objective.high else "least"
    if question.compared:
        return f"On which path has {scheme} the {most} {objective.label} against {other}?"
    return f"On which path has {scheme} the {most} {objective.label}?"


def claim(question: Question, value: float) -> str:
    """The result of a point, as a sentence without its end."""
    objective, scheme = question.objective, question.scheme
    words = objective.words(abs(value))
    if objective.beside:
        loser, winner = (
            (scheme, question.against) if objective.name == "share" else (question.against, scheme)
        )
        return f"{loser} gets {words} beside {winner}"
    if question.compared:
        more = "more" if value > 0 else "less"
        return f"{scheme} has {words} {more} {objective.label} than {question.against}"
    return f"{scheme} has {words} {objective.label}"


def outcome(question: Question, results: Results, folder: str) -> Replay:
    """The results of a campaign: value and verdict of each run, the median of the valid ones, and whether all
    expectations hold.
    """
    order = [question.scheme, *([question.against] if question.compared and question.against else [])]
    by_run: dict[int, dict[str, dict[str, dict[str, float | None]]]] = {}
    verdicts: dict[int, str] = {}
    for row in results.rows:
        # Together the two form one row of the scenario, with a separate name.
        scheme = question.scheme if question.objective.beside else row.scheme
        if scheme not in order:
            continue
        by_run.setdefault(row.run, {}).setdefault(scheme, {})[str(row.flow)] = row.metrics
        known = verdicts.get(row.run, "ok")
        verdicts[row.run] = max(known, str(row.verdict), key=("ok", "degraded", "invalid").index)
    runs = []
    for run, metrics in sorted(by_run.items()):
        whole = all(scheme in metrics for scheme in order)
        value = question.objective.of_runs([metrics[scheme] for scheme in order]) if whole else None
        runs.append(HuntRun(run=run, verdict=verdicts[run], value=value))
    valid = [float(run.value) for run in runs if run.verdict != "invalid" and run.value is not None]
    expect = [
        HuntExpectation(text=outcome.text, outcome=outcome.outcome, value=outcome.value)
        for outcome in results.expect
    ]
    return Replay(
        runs=runs,
        median=median_over_runs(valid) if valid else None,
        expect=expect,
        holds=bool(valid) and all(outcome.outcome == "holds" for outcome in expect),
        folder=folder,
        schemes=_medians(question, results),
    )


def _medians(question: Question, results: Results) -> dict[str, float | None]:
    """The median of the metric for each scheme that met the path."""
    if question.objective.beside:
        return {}
    return {
        line.scheme: statistics.median
        if (statistics := line.metrics.get(question.objective.metric))
        else None
        for line in results.summary
        if str(line.flow) == question.objective.flow
    }
