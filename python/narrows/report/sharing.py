"""Tables of the report about several flows together, and about links by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from narrows.blocks.model import Cell, Column, Table
from narrows.documents.results import Metric, Statistics
from narrows.report import units
from narrows.report.cells import name_cells, name_heads, row_names
from narrows.report.data import Campaign
from narrows.report.tables import MORE
from narrows.text import plural


def flows(campaign: Campaign) -> Table | None:
    """The table of several flows together, by scheme; nothing for a single flow."""
    pairs = [([scheme], campaign.statistics(scheme, "all")) for scheme in campaign.schemes]
    names = MORE["flows"].metrics
    return _table(campaign, [], [pair for pair in pairs if names[0] in pair[1]], names)


def links(campaign: Campaign) -> Table | None:
    """The table of links, by scheme and link; nothing if the scenario measures none."""
    lines = campaign.results.link_summary
    pairs = [([line.scheme, line.link], line.metrics) for line in lines]
    return _table(campaign, ["link"], pairs, MORE["links"].metrics)


def _table(
    campaign: Campaign,
    titles: list[str],
    lines: Sequence[tuple[Sequence[str], Mapping[str, Statistics]]],
    names: list[str],
) -> Table | None:
    """A row per line, a column per metric with any value; `titles` are the heads of a line's words after the
    label of its row.
    """
    present = [name for name in names if any(name in result for _, result in lines)]
    metrics = [metric for name in present if (metric := campaign.metric(name)) is not None]
    if not lines or not metrics:
        return None
    called = row_names(campaign)
    head = [*name_heads(called), *(Column(title, "left") for title in titles)]
    for metric in metrics:
        head.append(Column(metric.label, unit=metric.show_unit))
    rows = []
    for words, result in lines:
        row = [*name_cells(called, words[0]), *(Cell(word) for word in words[1:])]
        rows.append(row + [_value(result.get(metric.name), metric) for metric in metrics])
    return Table.new(head, rows)


def _value(entry: Statistics | None, metric: Metric) -> Cell:
    if entry is None:
        return Cell("N/A", kind="absent")
    share = None if entry.of is None else f"{entry.happened} of {plural(entry.of, 'run')}"
    if entry.median is None:
        return Cell("–", small=share, kind="absent")
    value = entry.median * metric.show_scale
    return Cell(units.number(value, units.decimals_for([value])), small=share)
