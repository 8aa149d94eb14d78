"""Tables of results for the terminal: one row per scheme, medians over valid runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from rich.console import Console

from narrows.analysis.metrics import (
    ENDS,
    NOT_AVAILABLE,
    SUMMARY,
    has_packets,
    head_of,
    of_names,
    show_number,
    show_spread,
    unit_of,
)
from narrows.analysis.row_names import RowNames
from narrows.analysis.verdicts import runs_in_words
from narrows.blocks.model import Cell, Column, Table, quiet
from narrows.blocks.terminal import fit_table, print_table, print_text, width
from narrows.campaign import own_metrics
from narrows.campaign.conditions import Row, rows_of
from narrows.campaign.store import CampaignFolder
from narrows.documents.campaign import CellEntry
from narrows.documents.resolved import TRAINED_BY_NARROWS, Flow, Resolved
from narrows.documents.results import LinkSummary, Metric, Results, Statistics, SummaryLine
from narrows.errors import NarrowsError
from narrows.schemes.status import DEFAULTS_ONLY, UNVERIFIED, Status, legend, statuses_of, weakest
from narrows.statistics.runs import spread_of
from narrows.text import distinct_names

#: Metrics of how several flows share: when they have no value, their columns are omitted silently.
_OF_SEVERAL = ("jain_index",)
#: These columns are omitted first when space is short.
_RANKS = {"jain_index": 2, "utilization_ratio": 3, "retransmitted_ratio": 3, "goodput_bps": 4, "cov_10s": 4}
#: The spread is shown beside the first metrics, for as many as fit.
_STATUS, _STATUS_RANK = "status", 9
#: A note that concerns more rows than this does not name them.
FEW_ROWS = 4
#: With more cells than this, only cells that are not ok are listed.
FEW_CELLS = 12
_VERDICT_KINDS = {"ok": "good", "degraded": "warn"}

Campaign = tuple[Path, Results]
Metrics = Sequence[Metric]


def column_of(metric: Metric) -> Column:
    """The column of a metric: its short head above the unit."""
    rank = _RANKS.get(metric.name, 1 if metric.name != "throughput_bps" else 0)
    return Column(head_of(metric), rank=rank, unit=unit_of(metric))


def _spread(summary: Statistics | None, metric: Metric) -> str:
    """`[11.2, 11.6]` is the interval of the median, `(11.2 to 11.6)` the extremes of a few runs."""
    if summary is None or spread_of(summary).kind not in ("interval", "range"):
        return ""
    text = show_spread(summary, metric)
    return text if text.startswith("[") else f"({text})"


def beside(lines: Sequence[SummaryLine | LinkSummary | None], metric: Metric, *, spread: bool) -> list[str]:
    """The cells of one column: medians below each other, each with its spread on the right."""
    result = [None if line is None else line.metrics.get(metric.name) for line in lines]
    spreads = [_spread(statistics, metric) if spread else "" for statistics in result]
    room = max(map(len, spreads), default=0)
    values = [
        "-"
        if line is None
        else NOT_AVAILABLE
        if statistics is None
        else show_number(statistics.median, metric)
        for line, statistics in zip(lines, result, strict=True)
    ]
    if not room:
        return values
    most = max(map(len, values))
    return [f"{value:>{most}} {text:{room}}" for value, text in zip(values, spreads, strict=True)]


def _schemes(campaigns: Sequence[Campaign]) -> list[str]:
    names: dict[str, None] = {}
    for _, results in campaigns:
        names |= dict.fromkeys(line.scheme for line in results.summary)
        names |= dict.fromkeys(item.scheme for item in results.skipped)
    return list(names)


def _scenarios(campaigns: Sequence[Campaign]) -> list[Resolved]:
    """The resolved scenarios of the campaigns whose scenarios can be read."""
    scenarios = []
    for path, _ in campaigns:
        try:
            scenario = CampaignFolder.read(path).resolved
        except (NarrowsError, KeyError):
            continue
        if scenario.schemes:
            scenarios.append(scenario)
    return scenarios


def _flows(scenarios: Sequence[Resolved]) -> dict[str, list[Flow]]:
    """The flows under test of each row that a scenario describes."""
    flows: dict[str, list[Flow]] = {}
    for scenario in scenarios:
        for row in scenario.schemes:
            flows.setdefault(row.label, []).extend(flow for flow in row.flows if not flow.background)
    return flows


def rows_by_label(scenarios: Sequence[Resolved]) -> dict[str, Row]:
    """The rows of scenarios as schemes and conditions, by their labels."""
    rows: dict[str, Row] = {}
    for scenario in scenarios:
        rows = {**rows_of(scenario, [row.label for row in scenario.schemes]), **rows}
    return rows


def _names(campaigns: Sequence[Campaign], wheres: Sequence[str]) -> list[str]:
    """The name of each campaign: its plane if that is unique, else its folder."""
    if len(set(wheres)) == len(campaigns):
        return list(wheres)
    return distinct_names([path.resolve() for path, _ in campaigns])


def print_summary(
    console: Console, campaigns: Sequence[Campaign], wheres: Sequence[str] | None = None
) -> None:
    """Prints the table per scheme; several campaigns appear below each other, with the difference from the
    first in percent.
    """
    names = _names(campaigns, wheres or [""] * len(campaigns))
    seen = any(has_packets(results) for _, results in campaigns)
    usual = SUMMARY if seen else ENDS
    metrics = of_names(campaigns[0][1].metrics, (*usual, *own_metrics.names(campaigns[0][1].metrics)))
    schemes = _schemes(campaigns)
    metrics = [
        metric
        for metric in metrics
        if _has_value(metric, campaigns, schemes) or metric.name not in _OF_SEVERAL
    ]
    scenarios = _scenarios(campaigns)
    flows = _flows(scenarios)
    statuses = _statuses(flows, schemes)
    called = RowNames(rows_by_label(scenarios), schemes)
    _print_shared(console, called)
    made, spreads = fit_spread(
        console,
        len(metrics),
        lambda spreads: _table(campaigns, names, called, schemes, statuses, metrics, spreads),
    )
    marked = _STATUS not in print_table(console, made)
    notes = [
        (scheme, note)
        for scheme in schemes
        if any(status.reason == DEFAULTS_ONLY for status in statuses[scheme])
        for note in (f": {DEFAULTS_ONLY}",)
    ]
    notes += [(scheme, f": {TRAINED_BY_NARROWS}") for scheme in schemes if _has_own_model(scheme, flows)]
    for scheme in schemes:
        result = [_notes(results, scheme, metrics) for _, results in campaigns]
        for name, mine in zip(names, result, strict=True):
            # Statements about all campaigns appear once.
            notes += [
                (scheme, note if all(note in other for other in result) else f" ({name}){note}")
                for note in mine
            ]
    for line in [
        *_reading(campaigns, metrics, spreads),
        *_group(notes, len(schemes)),
        *(_marks(statuses) if marked else []),
    ]:
        print_text(console, line)


def fit_spread(console: Console, most: int, make: Callable[[int], Table]) -> tuple[Table, int]:
    """The table with the spread beside as many metrics as fit without omitting a column, and their number."""
    room = width(console.file)
    for spreads in range(most, 0, -1):
        made = make(spreads)
        if not fit_table(made, room)[1]:
            return made, spreads
    return make(0), 0


def _table(
    campaigns: Sequence[Campaign],
    names: Sequence[str],
    called: RowNames,
    schemes: Sequence[str],
    statuses: Mapping[str, Sequence[Status]],
    metrics: Metrics,
    spreads: int,
) -> Table:
    several = len(campaigns) > 1
    heads = [
        *name_columns(called),
        *([Column("campaign", "left")] if several else []),
        Column("runs", "left"),
        *(column_of(metric) for metric in metrics),
        Column(_STATUS, "left", rank=_STATUS_RANK),
    ]
    rows: list[Sequence[str | Cell]] = []
    # Schemes that are skipped in all campaigns have no row: a note gives the reason.
    shown = [scheme for scheme in schemes if any(_line(results, scheme) for _, results in campaigns)]
    lines = [_line(results, scheme) for scheme in shown for _, results in campaigns]
    columns = [beside(lines, metric, spread=place < spreads) for place, metric in enumerate(metrics)]
    values = iter(zip(*columns, strict=True) if columns else ((),) * len(lines))
    for scheme in shown:
        base = _line(campaigns[0][1], scheme)
        status = weakest(statuses[scheme])
        for number, (name, (_, results)) in enumerate(zip(names, campaigns, strict=True)):
            line = _line(results, scheme)
            row: list[str | Cell] = [
                *name_cells(called, "" if number else scheme),
                *([name] if several else []),
                _runs(results, scheme, line),
                *next(values),
                status.mark if status and not number else "",
            ]
            rows.append(row if line else quiet(row))
            if number and line and base:
                changes = [_change(base, line, metric) for metric in metrics]
                rows.append(quiet([*name_cells(called, ""), "  difference", "", *changes, ""]))
    return Table.new(heads, rows)


def name_columns(called: RowNames) -> list[Column]:
    """The columns that identify a row."""
    return [Column("scheme", "left", names=True), *(Column(name, "left") for name in called.heads)]


def name_cells(called: RowNames, label: str) -> list[str]:
    """The cells that identify a row; empty without a label."""
    return [called.scheme(label), *called.values(label)] if label else [""] * (1 + len(called.heads))


def _print_shared(console: Console, called: RowNames) -> None:
    """Prints the values that all rows share, once above their table."""
    if called.sentence:
        print_text(console, called.sentence, indent="")


def _change(base: SummaryLine, line: SummaryLine, metric: Metric) -> str:
    """The difference of the medians in percent of the first campaign's."""
    before, after = (summary_line.metrics.get(metric.name) for summary_line in (base, line))
    if not before or not after or not before.median or after.median is None:
        return ""
    percent = 100 * (after.median / before.median - 1)
    digits = 1 if abs(percent) < 100 else 0
    return f"{percent:+.{digits}f} %"


def _statuses(flows: Mapping[str, Sequence[Flow]], schemes: Iterable[str]) -> dict[str, list[Status]]:
    return {
        scheme: list(
            statuses_of(flows.get(scheme) or [Flow.from_scheme(scheme.split(" ", maxsplit=1)[0])]).values()
        )
        for scheme in schemes
    }


def _has_own_model(scheme: str, flows: Mapping[str, Sequence[Flow]]) -> bool:
    return any(flow.has_own_model for flow in flows.get(scheme, ()))


def _has_value(metric: Metric, campaigns: Sequence[Campaign], schemes: Iterable[str]) -> bool:
    lines = [_line(results, scheme) for scheme in schemes for _, results in campaigns]
    return any(line is not None and line.metrics.get(metric.name) for line in lines)


def _reading(campaigns: Sequence[Campaign], metrics: Metrics, spreads: int) -> list[str]:
    """How to read the numbers when there are several runs; `spreads` of the metrics show their spread."""
    result = [
        line.metrics[metric.name]
        for _, results in campaigns
        for line in results.summary
        if line.flow == "all"
        for metric in metrics
        if line.metrics.get(metric.name)
    ]
    if not any(statistics.n > 1 for statistics in result):
        return []
    kinds = {spread_of(statistics).kind for statistics in result if statistics.n > 1}
    medians = "Medians over the valid runs, of all flows together"
    if kinds == {"identical"}:
        return [f"{medians}; all runs gave identical numbers."]
    if not spreads:
        return [
            f"{medians}.",
            "No room for the spread of the runs: a wider terminal (COLUMNS=160) or --json shows it.",
        ]
    shown = {"interval": " [95 % interval of the median]", "range": " (smallest to largest run)"}
    return [medians + "".join(text for kind, text in shown.items() if kind in kinds) + "."]


def _marks(statuses: Mapping[str, Sequence[Status]]) -> list[str]:
    """The meaning of the marks that question the status of a scheme."""
    marks = legend(status for result in statuses.values() for status in result if status.word == UNVERIFIED)
    return [f"{mark} {word}: {meaning}" for mark, word, meaning in marks]


def _group(notes: Iterable[tuple[str, str]], rows: int) -> list[str]:
    """One line per note, with all schemes that it concerns."""
    schemes: dict[str, dict[str, None]] = {}
    for scheme, note in notes:
        schemes.setdefault(note, {})[scheme] = None
    return [
        ("all rows" if len(names) == rows > FEW_ROWS else ", ".join(names)) + note
        for note, names in schemes.items()
    ]


def _line(results: Results, scheme: str) -> SummaryLine | None:
    return next((line for line in results.summary if line.scheme == scheme and line.flow == "all"), None)


def _runs(results: Results, scheme: str, line: SummaryLine | None) -> Cell:
    """`2 ok`, `2, 1 degraded`, `1 of 2, 1 invalid`."""
    if line is None:
        # A scheme that this campaign did not request was not skipped.
        skipped = any(item.scheme == scheme for item in results.skipped)
        return Cell("skipped" if skipped else "-")
    degraded = {row.run for row in results.rows if row.scheme == scheme and row.verdict == "degraded"}
    words = runs_in_words(line.started, line.finished, line.valid, len(degraded))
    if line.valid < line.started:
        return Cell(words, kind="bad")
    return Cell(words, kind="warn" if degraded else "")


def _notes(results: Results, scheme: str, metrics: Metrics) -> list[str]:
    """Remarks on a row in addition to its numbers."""
    line = _line(results, scheme)
    if line is None:
        reasons = [item.reason for item in results.skipped if item.scheme == scheme]
        return [f" skipped: {reasons[0]}" if reasons else " is not part of it"]
    notes = []
    if line.valid < line.finished:
        notes.append(
            f": {line.finished - line.valid} of {line.started} runs are invalid and enter no statistic"
        )
    if line.finished < line.started:
        notes.append(f": {line.started - line.finished} of {line.started} runs failed")
    for metric in metrics:
        if line.metrics.get(metric.name) is None:
            reason = _reason(results, scheme, metric.name)
            if reason and reason != own_metrics.NOT_REPORTED:
                notes.append(f": {metric.label} is {NOT_AVAILABLE}: {reason}")
    return notes


def _reason(results: Results, scheme: str, name: str) -> str | None:
    for row in results.rows:
        if row.scheme == scheme and row.flow == "all" and name in row.absent:
            return str(row.absent[name])
    return None


def print_cells(console: Console, cells: Sequence[CellEntry], few: int = FEW_CELLS) -> None:
    """Prints the verdict of each cell with its reasons; of more than `few` cells only those that are not ok,
    and their number.
    """
    rows = [(cell, *_explain(cell)) for cell in cells]
    if len(rows) > few:
        bad = [row for row in rows if row[1] != "ok"]
        if not bad:
            console.print(f"All {len(rows)} runs are ok.", soft_wrap=True)
            return
        good = len(rows) - len(bad)
        head = (
            f"{good} of {len(rows)} runs are ok; the others:" if good else f"None of {len(rows)} runs is ok:"
        )
        console.print(head, soft_wrap=True)
        rows = bad
    heads = (Column("cell", "left"), Column("verdict", "left"), Column("why", "left", folded=True))
    shown = (
        (cell.id, Cell(verdict, kind=_VERDICT_KINDS.get(verdict, "bad")), why) for cell, verdict, why in rows
    )
    print_table(console, Table.new(heads, shown))


def _explain(cell: CellEntry) -> tuple[str, str]:
    """The verdict or state of a cell, with the reasons."""
    if cell.is_finished:
        return str(cell.verdict), " ".join(reason.text or "" for reason in cell.reasons)
    return cell.state, cell.error_message
