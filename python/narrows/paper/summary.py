"""The table of campaigns for a paper: a row for each scheme and campaign."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from narrows.analysis.metrics import (
    ENDS,
    NOT_AVAILABLE,
    SUMMARY,
    find,
    has_packets,
    head_of,
    of_names,
    show_number,
    show_spread,
    unit_of,
)
from narrows.analysis.row_names import RowNames
from narrows.analysis.tables import rows_by_label
from narrows.analysis.verdicts import runs_in_words
from narrows.blocks.model import Cell, Column, Note, Table
from narrows.campaign import own_metrics
from narrows.campaign.store import CampaignFolder
from narrows.documents.results import Metric, Results, Statistics, SummaryLine
from narrows.statistics.runs import spread_of
from narrows.text import distinct_names, plural

_SPREADS = {"interval": "in brackets the 95 % interval of the median", "range": "in parentheses the extremes"}


def summary_table(
    folders: Sequence[CampaignFolder], results: Sequence[Results], wanted: Sequence[str] = ()
) -> Table:
    """The medians over valid runs of all flows together, with their spread, of some metrics or the usual
    ones. Raises `UsageError` for an unknown metric.
    """
    first = results[0]
    usual = SUMMARY if any(map(has_packets, results)) else ENDS
    metrics = of_names(first.metrics, (*usual, *own_metrics.names(first.metrics)))
    if wanted:
        metrics = [find(first.metrics, name) for name in wanted]
    lines = [{line.scheme: line for line in own.summary if line.flow == "all"} for own in results]
    if not wanted:
        metrics = [metric for metric in metrics if any(_has(own, metric) for own in lines)]
    labels = list(dict.fromkeys(label for own in lines for label in own))
    called = RowNames(rows_by_label([folder.resolved for folder in folders]), labels)
    names = distinct_names([folder.path.resolve() for folder in folders])
    columns = [
        *(Column(head, "left") for head in ("scheme", *called.heads, *["campaign"] * (len(folders) > 1))),
        Column("runs", "left", fields=("runs", "valid", "degraded", "invalid", "failed")),
        *map(_column, metrics),
    ]
    rows: list[tuple[str | Cell, ...]] = []
    for label in labels:
        for name, own, result in zip(names, lines, results, strict=True):
            if label in own:
                words = [called.scheme(label), *called.values(label), *([name] if len(folders) > 1 else [])]
                numbers = [_cell(own[label].metrics.get(metric.name), metric) for metric in metrics]
                rows.append((*words, _runs(own[label], result), *numbers))
    used = [line.metrics for own in lines for line in own.values()]
    notes = [
        _reading(used, metrics),
        *_outcomes(lines, results),
        *([called.sentence] if called.sentence else []),
    ]
    sources = [f"{folder.path.name}: {_identity(folder)}" for folder in folders]
    return Table.new(columns, rows, [Note("", note) for note in notes], sources=sources)


def _identity(folder: CampaignFolder) -> str:
    versions = folder.header.versions
    made = f", Narrows {versions.narrows}" if versions is not None and versions.narrows else ""
    return f"campaign {folder.header.hash}, {folder.header.where}{made}"


def _has(lines: Mapping[str, SummaryLine], metric: Metric) -> bool:
    return any(line.metrics.get(metric.name) for line in lines.values())


def _column(metric: Metric) -> Column:
    label, unit = metric.label or metric.name, unit_of(metric)
    in_unit = f" ({unit})" if unit else ""
    fields = (label, f"{label}, low", f"{label}, high")
    return Column(
        head_of(metric),
        unit=unit,
        fields=(*(f"{field}{in_unit}" for field in fields), f"{label}, spread"),
    )


def _cell(statistics: Statistics | None, metric: Metric) -> Cell:
    if statistics is None or statistics.median is None:
        return Cell(NOT_AVAILABLE, data=(None, None, None, None))
    spread = spread_of(statistics)
    text = show_spread(statistics, metric) if spread.kind in ("interval", "range") else ""
    ends = [None if end is None else float(end * metric.show_scale) for end in (spread.low, spread.high)]
    return Cell(
        show_number(statistics.median, metric),
        small=text if text.startswith("[") or not text else f"({text})",
        data=(float(statistics.median * metric.show_scale), *ends, spread.kind),
    )


def _count_degraded(line: SummaryLine, results: Results) -> int:
    return len({row.run for row in results.rows if row.scheme == line.scheme and row.verdict == "degraded"})


def _runs(line: SummaryLine, results: Results) -> Cell:
    degraded = _count_degraded(line, results)
    return Cell(
        runs_in_words(line.started, line.finished, line.valid, degraded),
        data=(
            line.started,
            line.valid,
            degraded,
            line.finished - line.valid,
            line.started - line.finished,
        ),
    )


def _reading(used: Sequence[Mapping[str, Statistics]], metrics: Sequence[Metric]) -> str:
    """How to read the numbers."""
    shown = [own[metric.name] for own in used for metric in metrics if metric.name in own]
    kinds = {spread_of(statistics).kind for statistics in shown if statistics}
    told = [text for kind, text in _SPREADS.items() if kind in kinds]
    return f"{', '.join(['Medians over the valid runs, of all flows together', *told])}."


def _outcomes(lines: Sequence[Mapping[str, SummaryLine]], results: Sequence[Results]) -> list[str]:
    """The verdicts of all runs, and the schemes that did not run."""
    pairs = [(line, result) for own, result in zip(lines, results, strict=True) for line in own.values()]
    started = sum(line.started for line, _ in pairs)
    failed = sum(line.started - line.finished for line, _ in pairs)
    invalid = sum(line.finished - line.valid for line, _ in pairs)
    degraded = sum(_count_degraded(line, result) for line, result in pairs)
    counts = (
        (degraded, "degraded (counted)"),
        (invalid, "invalid (excluded)"),
        (failed, "failed (excluded)"),
    )
    told = [f"{count} {word}" for count, word in counts if count]
    runs = plural(started, "run")
    notes = [f"{runs}, all ok." if not told else f"{runs}: {', '.join(told)}; all others are ok."]
    skipped = {skipped.scheme: None for result in results for skipped in result.skipped}
    return [*notes, *([f"Not run: {', '.join(skipped)}."] if skipped else [])]
