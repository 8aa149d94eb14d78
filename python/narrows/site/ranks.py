"""The ranking of the schemes of a campaign that its runs support."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from narrows.analysis.metrics import show_number, unit_of
from narrows.blocks.model import Cell, Column, Table
from narrows.comparison import words
from narrows.comparison.leaders import is_judged
from narrows.documents.comparison import Comparison
from narrows.documents.site import CampaignPage, RankedMetric, RankedScheme, Ranking
from narrows.report.cells import Notes
from narrows.statistics.runs import FEWEST_FOR_INTERVAL

_NO_RANK = (
    f"no rank: not part of the campaign, no value, or fewer than the {FEWEST_FOR_INTERVAL} runs that"
    " are needed"
)


def of_campaign(compared: Comparison | str) -> list[Ranking]:
    """For each metric and each set of schemes that met the same conditions: the possible ranks, ties
    included, from the comparison of a campaign's rows. Empty if there is none.
    """
    if isinstance(compared, str):
        return []
    counts = words.samples(compared)
    metrics = {metric.name: metric for metric in compared.metrics}
    entries = []
    for ranks in compared.ranks or []:
        metric = metrics[ranks.metric]
        outcomes: dict[str, set[str]] = {}
        for row in compared.rows:
            for side in (row.base, row.other):
                outcomes.setdefault(side.scheme, set()).add(row.metrics[ranks.metric].outcome)
        schemes = [
            RankedScheme(
                scheme=words.without_values(entry.scheme, ranks.values),
                rank=words.rank(entry),
                value=show_number(entry.summary.median, metric),
                runs=counts[entry.scheme].valid,
            )
            for entry in ranks.schemes
            if entry.summary is not None and is_judged(outcomes[entry.scheme])
        ]
        about = RankedMetric(name=metric.name, label=metric.label, unit=unit_of(metric), better=metric.better)
        entries.append(Ranking(metric=about, values=ranks.values, schemes=schemes))
    return entries


@dataclass(frozen=True, slots=True)
class MetricTable:
    """The table of the ranks in a metric."""

    metric: RankedMetric
    table: Table


def tables(campaigns: Mapping[str, CampaignPage]) -> list[MetricTable]:
    """For each metric a table of experiments by schemes, from the latest campaign of each experiment: a
    scenario on a plane. `campaigns` are by page name.
    """
    latest: dict[tuple[str, str], str] = {}
    for name, page in sorted(campaigns.items(), key=lambda pair: (pair[1].listed.made, pair[0])):
        latest[page.listed.name, page.listed.plane] = name
    metrics: dict[str, RankedMetric] = {}
    for name in latest.values():
        for ranking in campaigns[name].ranking:
            metrics.setdefault(ranking.metric.name, ranking.metric)
    made = []
    for metric in metrics.values():
        rows = [
            (key, name, ranking)
            for key, name in sorted(latest.items())
            for ranking in campaigns[name].ranking
            if ranking.metric.name == metric.name and ranking.schemes
        ]
        if rows:
            made.append(MetricTable(metric, _table(metric, rows)))
    return made


def _table(metric: RankedMetric, rows: list[tuple[tuple[str, str], str, Ranking]]) -> Table:
    schemes = list(dict.fromkeys(entry.scheme for _, _, ranking in rows for entry in ranking.schemes))
    notes = Notes()
    lines = []
    for (experiment, plane), name, ranking in rows:
        own = {entry.scheme: entry for entry in ranking.schemes}
        counts = sorted({entry.runs for entry in own.values()})
        line = [
            Cell(experiment, kind="scheme", small=ranking.values, to=f"campaigns/{name}/index.html"),
            Cell(plane),
            Cell("–".join(str(n) for n in dict.fromkeys((counts[0], counts[-1])))),
        ]
        for scheme in schemes:
            if (entry := own.get(scheme)) is None:
                line.append(Cell("–", kind="absent", marks=(notes.mark(_NO_RANK),)))
                continue
            value = f"{entry.value} {metric.unit}".strip()
            line.append(Cell(entry.rank, small=value))
        lines.append(line)
    head = [Column("experiment", "left", names=True), Column("plane", "left"), Column("runs")]
    head += map(Column, schemes)
    return Table.new(head, lines, notes.list_notes())
