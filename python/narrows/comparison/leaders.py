"""The row with the best value of a metric, if the comparison of a campaign's rows shows one.

Everything here is read from the document of `narrows compare`: among rows that met the same conditions, those
to which no other is shown to be better may be the best. If only one remains, it is the best, since all claims
of a comparison hold simultaneously. Rows with too few runs have no rank.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from narrows.comparison.findings import BETTER, MISSING, SAME, TOO_FEW, WORSE
from narrows.documents.comparison import ComparedRow, Comparison


@dataclass(frozen=True)
class Leaders:
    """Rows that may have the best value of a metric among those that met the same conditions."""

    metric: str
    #: The values of the matrix that all of them have, by their names.
    conditions: Mapping[str, str]
    #: Labels of the rows: those that may be the best, and those to which another row is shown to be better.
    first: tuple[str, ...]
    behind: tuple[str, ...]
    #: Rows with too few runs, or without a value.
    unjudged: tuple[str, ...]
    #: Medians over the valid runs, in the metric's unit.
    medians: Mapping[str, float]
    #: True if all runs of these rows are identical, so that the order is not due to chance.
    exact: bool = False

    @property
    def best(self) -> str | None:
        """The row that is shown to have the best value; None while that is undecided."""
        return self.first[0] if len(self.first) == 1 and self.behind else None


def leaders_of(document: Comparison, metrics: Sequence[str]) -> list[Leaders]:
    """The leaders of each of these metrics under each combination of conditions, from the comparison of a
    single campaign."""
    leaders = []
    for ranks in document.ranks or []:
        if ranks.metric not in metrics:
            continue
        labels = {entry.scheme for entry in ranks.schemes}
        outcomes, exact = _outcomes(document, ranks.metric, labels)
        judged = [
            entry
            for entry in ranks.schemes
            if entry.first is not None and is_judged(outcomes.get(entry.scheme, set()))
        ]
        leaders.append(
            Leaders(
                metric=ranks.metric,
                conditions=ranks.conditions,
                first=tuple(entry.scheme for entry in judged if entry.first == 1),
                behind=tuple(entry.scheme for entry in judged if (entry.first or 0) > 1),
                unjudged=tuple(sorted(labels - {entry.scheme for entry in judged})),
                medians={
                    entry.scheme: entry.summary.median or 0.0 for entry in ranks.schemes if entry.summary
                },
                exact=exact,
            )
        )
    return leaders


def is_judged(outcomes: set[str]) -> bool:
    """True if there were enough runs for any statement about a row; equality of a few runs with those of
    another row is not one.
    """
    said = outcomes - {TOO_FEW, MISSING}
    return bool(said) and not (said == {SAME} and TOO_FEW in outcomes)


def _outcomes(document: Comparison, metric: str, labels: set[str]) -> tuple[dict[str, set[str]], bool]:
    """The outcomes of each row against the others in a metric, and whether all shown differences
    are exact.
    """
    result: dict[str, set[str]] = {}
    shown = []
    for row in document.rows:
        finding = row.metrics[metric]
        sides = [row.base.scheme, row.other.scheme]
        if not labels.issuperset(sides):
            continue
        outcome = str(finding.outcome)
        if outcome == SAME and not finding.exact and finding.runs < document.fewest_runs:
            # Equal numbers of a few runs show no more than different ones; identical runs do.
            outcome = SAME if _is_repeated(row, metric) else TOO_FEW
        for label in sides:
            result.setdefault(label, set()).add(outcome)
        if outcome in (BETTER, WORSE):
            shown.append(bool(finding.exact))
    return result, bool(shown) and all(shown)


def _is_repeated(row: ComparedRow, metric: str) -> bool:
    finding = row.metrics[metric]
    return all(side is not None and bool(side.identical) for side in (finding.base, finding.other))
