"""The expectations of a sweep's scenario: the points at which each of them holds.

An expectation is judged at every point as in a campaign, over the valid runs of the point.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from narrows.campaign.expectations import HOLDS, judge, questions
from narrows.campaign.results import metric_list
from narrows.documents.results import Expectation, Row
from narrows.errors import UsageError
from narrows.sweep.store import SweepFolder

Json = dict[str, Any]

#: Up to this many points with a failed expectation are named.
MOST_NAMED = 5


def check(expectations: Sequence[Expectation]) -> None:
    """Raises `UsageError` for expectations about states of senders, which a sweep does not keep."""
    if asked := questions(expectations):
        raise UsageError(
            f"expect: a sweep keeps no states, so that {asked[0].metric} can't be asked; expect a metric"
        )


def judge_all(folder: SweepFolder, expectations: Sequence[Expectation]) -> list[Json]:
    """For each expectation and scheme: the number of points at which it holds, and the first one at which it
    does not.
    """
    if not expectations:
        return []
    metrics = metric_list()
    names = list(dict.fromkeys(expectation.metric for expectation in expectations))
    # A separate metric shows that an event never happened.
    happened = [metric.happened for metric in metrics if metric.name in names and metric.happened]
    wanted = list(dict.fromkeys([*names, *happened]))
    columns = [parameter["name"] for parameter in folder.parameters]
    points: dict[int, list[Row]] = {}
    values: dict[int, Json] = {}
    for row in folder.table(["point", "scheme", "flow", "verdict", *wanted, *columns]).to_pylist():
        values.setdefault(row["point"], {name: row[name] for name in columns})
        points.setdefault(row["point"], []).append(
            Row(
                scenario=None,
                plane=None,
                base=row["scheme"],
                scheme=row["scheme"],
                run=1,
                seed=None,
                duration_ns=None,
                number=row["flow"],
                flow_scheme=None,
                verdict=row["verdict"],
                cell="",
                metrics={name: row[name] for name in wanted},
                absent={},
            )
        )
    result: dict[str, Json] = {}
    for point, rows in sorted(points.items()):
        labels = list(dict.fromkeys(row.scheme for row in rows))
        for outcome in judge(expectations, labels, rows, {}, metrics):
            entry = result.setdefault(
                outcome.text, {"text": outcome.text, "points": 0, "holds": 0, "fails": []}
            )
            entry["points"] += 1
            if outcome.outcome == HOLDS:
                entry["holds"] += 1
            elif len(entry["fails"]) < MOST_NAMED:
                told = {"point": point, "value": outcome.value, "reason": outcome.reason}
                entry["fails"].append(told | {"parameters": values[point]})
    return list(result.values())


def fails(documents: list[Json]) -> bool:
    """True if an expectation does not hold at every point."""
    return any(entry["holds"] < entry["points"] for entry in documents)


def lines(documents: list[Json]) -> list[str]:
    """The findings as sentences for the terminal."""
    texts = []
    for entry in documents:
        if entry["holds"] == entry["points"]:
            texts.append(f"holds   {entry['text']}, at all {entry['points']} points")
            continue
        named = ", ".join(str(fail["point"]) for fail in entry["fails"])
        more = ", ..." if entry["points"] - entry["holds"] > len(entry["fails"]) else ""
        texts.append(
            f"fails   {entry['text']}, at {entry['points'] - entry['holds']} of {entry['points']} points"
            f" ({named}{more})"
        )
    return texts
