"""The comparison for the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from narrows.analysis.metrics import head_of, unit_of
from narrows.blocks.model import Cell, Column, Table
from narrows.blocks.terminal import fit_table, fold, no_room, print_table, width
from narrows.comparison import margins, rows, words
from narrows.comparison.equivalence import UNDECIDED
from narrows.comparison.findings import BETTER, WORSE
from narrows.documents.comparison import Comparison, Frontier
from narrows.documents.results import Metric, Quantity

if TYPE_CHECKING:
    from rich.console import Console

_STYLES = {WORSE: "bad", BETTER: "good"}
#: Columns that are omitted first when space is short: among equal ranks those further to the right.
_RANKS = {"utilization_ratio": 3, "queueing_delay_p95_ns": 2}
#: If more comparisons than this have a margin, only decided ones are printed.
_MANY = 60
_HOW = "a wider terminal (COLUMNS=160), --metrics or --json shows them"


def print_comparison(console: Console, document: Comparison) -> None:
    """Prints the whole comparison in the available width."""
    room = width(console.file)

    def say(text: str, indent: str = "", style: str = "") -> None:
        lines = fold(text, room - len(indent))
        for number, line in enumerate(lines):
            console.print(indent * bool(number) + line, soft_wrap=True, style=style or None)

    for side in document.sides:
        say(f"{side.name}  {words.side_line(side)}", "   ")
    for unread in document.unread:
        say(f"-  {unread.why}", "   ", "red")
    console.print()
    _print_set_up(console, document, room)
    say(words.headline(document), style="bold")
    if shared := rows.shared_values(document):
        say(shared)
    if document.ranks is None:
        _print_claims(console, document)
    if document.margin:
        _print_margins(console, document)
    console.print()
    if document.ranks is not None:
        _print_ranks(console, document)
    else:
        _print_differences(console, document)
    for note in words.notes(document) if document.ranks is None else _short(document):
        say(note, "  ")
    for text in words.provenance(document):
        say(text, "  ")
    console.print()
    for text in filter(None, [*words.method(document), margins.method(document)]):
        say(text)
    for text in [*words.trace_sentences(document), *words.envelope_sentences(document)]:
        console.print()
        say(text, "  ")
    if not document.looked_behind:
        say(
            "--traces compares the states of senders and the performance envelopes too; it reads all packets."
        )
    if document.limits:
        console.print()
        for text, limit in zip(words.limit_sentences(document), document.limits, strict=True):
            say(text, " " * 8, "red" if limit.broken else "")


def _short(document: Comparison) -> list[str]:
    """The reasons without the pairs of schemes, which may be many."""
    return list(dict.fromkeys(note.partition(": ")[2] for note in words.notes(document)))


def _print_set_up(console: Console, document: Comparison, room: int) -> None:
    if len(document.sides) < 2 and not document.differences:
        return
    if not document.differences:
        console.print(
            "The set-ups are the same: scenario, seed, versions, kernel and machine.", soft_wrap=True
        )
        console.print()
        return
    console.print("The set-ups differ in", soft_wrap=True)
    for kind, entries in words.set_up(document):
        console.print(f"  {kind}", soft_wrap=True)
        column = min(20, max(len(what) for what, _ in entries))
        for what, texts in entries:
            lines = fold(f"{what:{column}}  {texts}", room - 6 - column)
            for number, line in enumerate(lines):
                console.print((" " * (6 + column) if number else " " * 4) + line, soft_wrap=True)
    console.print()


def _heads(document: Comparison) -> tuple[str, str]:
    """The heads of the two columns of values."""
    names = [side.name for side in document.sides]
    return (names[0], names[1]) if len(names) == 2 else ("base", "other")


def _print_claims(console: Console, document: Comparison) -> None:
    """Prints the differences that are shown, one per line."""
    pairs = words.claims(document)
    if not pairs:
        return
    console.print()
    first, second = _heads(document)
    _, names = rows.conditions(document)
    heads = (
        Column(_name_head(document), "left"),
        *(Column(name, "left") for name in names),
        Column("metric", "left"),
        Column(first, rank=2),
        Column(second, rank=2),
        Column("difference"),
        Column("95 % interval", rank=1),
        Column("", "left"),
    )
    rows_of: list[list[str | Cell]] = []
    for row, metric, finding in pairs:
        unit = unit_of(metric)
        rows_of.append(
            [
                rows.brief_name(row, document),
                *rows.values_of(row, names),
                head_of(metric) + (f" [{unit}]" if unit else ""),
                words.value(finding.base, metric),
                words.value(finding.other, metric),
                words.difference(finding, metric),
                words.interval(finding, metric),
                Cell(words.verdict(finding), kind=_STYLES.get(finding.outcome, "")),
            ]
        )
    print_table(console, Table.new(heads, rows_of), _HOW)


def _print_margins(console: Console, document: Comparison) -> None:
    """Prints the outcomes about the margin, one per line; if there are many, only decided ones."""
    pairs = margins.in_order(document)
    shown = [pair for pair in pairs if pair[3].outcome != UNDECIDED] if len(pairs) > _MANY else pairs
    console.print()
    console.print(margins.headline(document), soft_wrap=True, style="bold")
    _, names = rows.conditions(document)
    heads = (
        Column(_name_head(document), "left"),
        *(Column(name, "left") for name in names),
        Column("metric", "left"),
        Column("margin", rank=1),
        Column("difference"),
        Column("95 % interval", rank=2),
        Column("", "left", folded=True),
    )
    rows_of: list[list[str | Cell]] = []
    for row, metric, finding, margin in shown:
        rows_of.append(
            [
                rows.brief_name(row, document),
                *rows.values_of(row, names),
                head_of(metric),
                margins.amount(margin, metric),
                words.difference(margins.as_told(finding), metric),
                words.interval(margins.as_told(finding), metric),
                margins.verdict(margin),
            ]
        )
    if shown:
        print_table(console, Table.new(heads, rows_of), _HOW)
    if len(shown) < len(pairs):
        console.print(f"{len(pairs) - len(shown)} that are undecided are in --json.", soft_wrap=True)


def _name_head(document: Comparison) -> str:
    return rows.base_heading(document)


def _print_differences(console: Console, document: Comparison) -> None:
    """Prints the differences of all rows in all metrics, with marks at those that are shown."""
    several = len(document.sides) > 2
    against = document.kind == "schemes"
    first, second = _heads(document)
    _, names = rows.conditions(document)
    heads = (
        Column(_name_head(document), "left"),
        *(Column(name, "left") for name in names),
        *([Column("in", "left")] if several else []),
        *([] if against else [Column(f"runs\n{first}", "left")]),
        Column("runs" if against else f"runs\n{second}", "left"),
        *(Column(head_of(metric), rank=_rank(document, metric)) for metric in document.metrics),
    )
    rows_of: list[list[str | Cell]] = []
    alone = replace(document, sides=[])
    for row in document.rows:
        cells: list[str | Cell] = [
            rows.brief_name(row, alone),
            *rows.values_of(row, names),
        ]
        if several:
            cells.append(row.other.side)
        if not against:
            cells.append(words.runs_of(row.base))
        cells.append(words.runs_of(row.other))
        for metric in document.metrics:
            finding = row.metrics[metric.name]
            cells.append(Cell(words.show_marked(finding, metric), kind=_STYLES.get(finding.outcome, "")))
        rows_of.append([*cells])
    print_table(console, Table.new(heads, rows_of), _HOW)
    used = {finding.outcome for row in document.rows for finding in row.metrics.values()}
    legend = [f"{mark} {word}" for word, mark in words.MARKS.items() if word in used]
    legend += ["= identical"] if "identical" in used else []
    if any(metric.show_unit == "%" for metric in document.metrics):
        legend.append("pp percentage points")
    if legend:
        console.print("; ".join(legend), soft_wrap=True, style="dim")


def _rank(document: Comparison, metric: Metric) -> int:
    """The first metric is never omitted."""
    return 0 if metric is document.metrics[0] else _RANKS.get(metric.name, 1)


def _print_ranks(console: Console, document: Comparison) -> None:
    """Prints the ranks of the schemes of one campaign that the runs support, and the schemes on the
    frontier.
    """
    left_out: dict[str, None] = {}
    _, names = rows.conditions(document)
    frontiers = document.frontiers or []
    for frontier in frontiers:
        if title := rows.heading(frontier.conditions, names):
            console.print(title, soft_wrap=True, style="bold")
        table = _rank_table(document, frontier)
        lines, missing = fit_table(table, width(console.file))
        left_out |= dict.fromkeys(missing)
        for line in lines:
            console.print(line, soft_wrap=True)
    axes = " and ".join(head_of(Quantity.unknown(name)) for name in frontiers[0].metrics)
    texts = [no_room(list(left_out), _HOW)] if left_out else []
    texts.append(
        "In parentheses: the ranks that the runs leave open; with 1-3 no scheme is shown to be better, and"
        " it is not"
        f" shown to be better than two others. On the frontier of {axes}: no scheme is better in both, by"
        " the medians,"
        " and in how many of 10 000 resamples of the runs. --against SCHEME shows the differences from one."
    )
    for text in texts:
        for part in fold(text, width(console.file)):
            console.print(part, soft_wrap=True, style="dim")


def _rank_table(document: Comparison, frontier: Frontier) -> Table:
    ranks = [rank for rank in document.ranks or [] if rank.values == frontier.values]
    metrics = {metric.name: metric for metric in document.metrics}
    heads = (
        Column("scheme", "left"),
        Column("runs", "left"),
        *(
            Column(_with_unit(metrics[rank.metric]), rank=_rank(document, metrics[rank.metric]))
            for rank in ranks
        ),
        Column("on the\nfrontier", "left", rank=1),
    )
    rows_of: list[list[str | Cell]] = []
    counts = words.samples(document)
    for entry in frontier.schemes:
        cells: list[str | Cell] = [
            words.without_values(entry.scheme, frontier.values),
            words.runs_of(counts[entry.scheme]),
        ]
        for rank in ranks:
            mine = words.entry_of(rank, entry.scheme)
            shown = words.value(mine.summary, metrics[rank.metric])
            cells.append(f"{shown} ({words.rank(mine)})" if mine.first else shown)
        rows_of.append([*cells, words.on_frontier(entry)])
    return Table.new(heads, rows_of)


def _with_unit(metric: Metric) -> str:
    unit = unit_of(metric)
    return f"{head_of(metric)}\n{f'[{unit}]' if unit else ''}"
