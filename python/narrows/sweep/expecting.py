"""The expectations of a sweep's scenario: the points at which each of them holds.

An expectation is judged at every point as in a campaign, over the valid runs of the point.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct, convert

from narrows.campaign.expectations import HOLDS, judge, questions
from narrows.campaign.measurement import list_metrics
from narrows.documents.data import Value
from narrows.documents.results import Expectation, Outcome, Row
from narrows.documents.sweep import FailingPoint, SweepExpectation
from narrows.errors import UsageError
from narrows.sweep.store import SweepFolder

#: Up to this many points with a failed expectation are named.
MOST_NAMED = 5


def check(expectations: Sequence[Expectation]) -> None:
    """Raises `UsageError` for expectations about states of senders, which a sweep does not keep."""
    if asked := questions(expectations):
        raise UsageError(
            f"expect: a sweep keeps no states, so that {asked[0].metric} can't be asked; expect a metric"
        )


class _Flow(Struct, frozen=True):
    """The columns of a row that every sweep has."""

    point: int
    scheme: str
    flow: int | None
    verdict: str | None


def judge_all(folder: SweepFolder, expectations: Sequence[Expectation]) -> list[SweepExpectation]:
    """For each expectation and scheme: the number of points at which it holds, and the first one at which it
    does not.
    """
    if not expectations:
        return []
    metrics = list_metrics()
    names = list(dict.fromkeys(expectation.metric for expectation in expectations))
    # A separate metric shows that an event never happened.
    happened = [metric.happened for metric in metrics if metric.name in names and metric.happened]
    wanted = list(dict.fromkeys([*names, *happened]))
    columns = [key.name for key in folder.document.parameters]
    points: dict[int, list[Row]] = {}
    values: dict[int, dict[str, Value]] = {}
    for row in folder.table(["point", "scheme", "flow", "verdict", *wanted, *columns]).to_pylist():
        flow = convert(row, _Flow)
        values.setdefault(flow.point, {name: row[name] for name in columns})
        points.setdefault(flow.point, []).append(
            Row(
                scenario=None,
                plane=None,
                base=flow.scheme,
                scheme=flow.scheme,
                run=1,
                seed=None,
                duration_ns=None,
                number=flow.flow,
                flow_scheme=None,
                verdict=flow.verdict,
                cell="",
                metrics={name: row[name] for name in wanted},
                absent={},
            )
        )
    outcomes: dict[str, list[tuple[int, Outcome]]] = {}
    for point, rows in sorted(points.items()):
        labels = list(dict.fromkeys(row.scheme for row in rows))
        for outcome in judge(expectations, labels, rows, {}, metrics):
            outcomes.setdefault(outcome.text, []).append((point, outcome))
    result = []
    for text, judged in outcomes.items():
        failing = [(point, outcome) for point, outcome in judged if outcome.outcome != HOLDS]
        fails = [
            FailingPoint(point=point, value=item.value, reason=item.reason, parameters=values[point])
            for point, item in failing[:MOST_NAMED]
        ]
        holds = len(judged) - len(failing)
        result.append(SweepExpectation(text=text, points=len(judged), holds=holds, fails=fails))
    return result


def lines(expectations: Sequence[SweepExpectation]) -> list[str]:
    """The findings as sentences for the terminal."""
    texts = []
    for item in expectations:
        if item.holds_everywhere:
            texts.append(f"holds   {item.text}, at all {item.points} points")
            continue
        failing = item.points - item.holds
        named = ", ".join(str(fail.point) for fail in item.fails)
        more = ", ..." if failing > len(item.fails) else ""
        texts.append(f"fails   {item.text}, at {failing} of {item.points} points ({named}{more})")
    return texts
