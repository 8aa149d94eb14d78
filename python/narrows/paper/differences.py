"""The table of a comparison for a paper: differences with their intervals, or ranks."""

from __future__ import annotations

from narrows.analysis.metrics import head_of, unit_of
from narrows.blocks.model import Cell, Column, Note, Table
from narrows.comparison import rows as row_names
from narrows.comparison import words
from narrows.documents.comparison import ComparedMetric, Comparison, Rank
from narrows.documents.results import Metric, Statistics


def comparison_table(document: Comparison) -> Table:
    """A row for each scheme with its ranks, or a row for each difference in a metric."""
    columns, rows, notes = _ranks(document) if document.ranks is not None else _differences(document)
    shared = row_names.common_values(document)
    notes = [*notes, _outcomes(document), *([shared] if shared else []), *words.method(document)]
    sources = [f"{side.folder}: campaign {side.hash}, {words.side_line(side)}" for side in document.sides]
    return Table.new(columns, rows, [Note("", note) for note in notes], sources=sources)


_Parts = tuple[list[Column], list[tuple[str | Cell, ...]], list[str]]


def _differences(document: Comparison) -> _Parts:
    _, names = row_names.conditions(document)
    heads = [row_names.base_heading(document), *names, "metric", "unit"]
    fields = ("estimate", "low", "high", "kind")
    difference = Column(
        "difference", fields=(*(f"difference, {field}" for field in fields), "difference, unit")
    )
    columns = [
        *(Column(head, "left") for head in heads),
        Column("base"),
        Column("other"),
        difference,
        Column("shown", "left", fields=("shown", "p")),
    ]
    rows: list[tuple[str | Cell, ...]] = []
    for row in document.rows:
        for metric in document.metrics:
            finding = row.metrics[metric.name]
            texts = [row_names.brief_name(row, document), *row_names.values_of(row, names)]
            texts += [" ".join(head_of(metric).split()), unit_of(metric)]
            rows.append((*texts, *_finding(finding, metric)))
    notes = ["Differences are those of the other from the base."]
    return columns, rows, notes


def _finding(finding: ComparedMetric, metric: Metric) -> list[Cell]:
    estimate = finding.shown
    relative = finding.told_as == "relative"
    scale = 100.0 if relative else metric.show_scale
    unit = "%" if relative else "pp" if unit_of(metric) == "%" else unit_of(metric)
    data: tuple[float | str | None, ...] = (None, None, None, None, None)
    if estimate is not None:
        ends = (estimate.estimate, estimate.low, estimate.high)
        data = (*(float(end * scale) for end in ends), estimate.kind, unit)
    spread = words.interval(finding, metric)
    return [
        *(
            Cell(words.value(side, metric), data=(_median(side, metric),))
            for side in (finding.base, finding.other)
        ),
        Cell(words.difference(finding, metric), small=spread, data=data),
        Cell(words.verdict(finding), data=(words.verdict(finding), finding.p)),
    ]


def _median(summary: Statistics | None, metric: Metric) -> float | None:
    return None if summary is None or summary.median is None else float(summary.median * metric.show_scale)


def _ranks(document: Comparison) -> _Parts:
    _, names = row_names.conditions(document)
    metrics = {metric.name: metric for metric in document.metrics}
    ranked = list(dict.fromkeys(ranks.metric for ranks in document.ranks or []))
    columns = [Column(head, "left") for head in ("scheme", *names, "runs")]
    columns += [_rank_column(metrics[name]) for name in ranked]
    columns.append(Column("on the frontier", "left", fields=("on the frontier", "frontier, support")))
    samples = words.samples(document)
    rows: list[tuple[str | Cell, ...]] = []
    for frontier in document.frontiers or []:
        mine = {ranks.metric: ranks for ranks in document.ranks or [] if ranks.values == frontier.values}
        for entry in frontier.schemes:
            sample = samples[entry.scheme]
            texts = [sample.name or entry.scheme, *(str(sample.values.get(name) or "") for name in names)]
            cells = [
                _rank_cell(words.entry_of(mine[name], entry.scheme), metrics[name])
                for name in ranked
                if name in mine
            ]
            front = Cell(words.on_frontier(entry), data=("yes" if entry.on else "no", entry.support))
            rows.append((*texts, words.runs_of(sample), *cells, front))
    notes = [
        "Medians over the valid runs; in parentheses the ranks that the runs leave open, bold where the first"
        " rank is one of them. On the frontier: no scheme is better in both of its metrics, by the medians,"
        " and in this share of resamples."
    ]
    return columns, rows, notes


def _rank_column(metric: Metric) -> Column:
    label, unit = metric.label or metric.name, unit_of(metric)
    first = f"{label} ({unit})" if unit else label
    fields = (first, f"{label}, first rank", f"{label}, last rank")
    return Column(head_of(metric), unit=unit, fields=fields)


def _rank_cell(entry: Rank, metric: Metric) -> Cell:
    ranks = f"({words.rank(entry)})" if entry.first else None
    data = (_median(entry.summary, metric), entry.first, entry.last)
    return Cell(words.value(entry.summary, metric), small=ranks, kind="total" * (entry.first == 1), data=data)


def _outcomes(document: Comparison) -> str:
    """The verdicts of all runs that were compared."""
    samples = {
        (side.side, side.scheme): side for row in document.rows for side in (row.base, row.other)
    }.values()
    started, valid = sum(side.started for side in samples), sum(side.valid for side in samples)
    finished, degraded = sum(side.finished for side in samples), sum(side.degraded for side in samples)
    counts = (
        (degraded, "degraded (counted)"),
        (finished - valid, "invalid (excluded)"),
        (started - finished, "failed (excluded)"),
    )
    told = [f"{count} {word}" for count, word in counts if count]
    return f"{started} runs: {', '.join(told)}; all others are ok." if told else f"{started} runs, all ok."
