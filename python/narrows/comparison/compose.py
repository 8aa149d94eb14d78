"""A comparison as a document: the terminal, Markdown and the page show the same blocks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib.resources import files

from msgspec.structs import replace

from narrows.analysis.metrics import head_of, unit_of
from narrows.blocks.model import (
    Block,
    Cell,
    Column,
    Document,
    Either,
    Facts,
    Figure,
    Item,
    Items,
    Paragraph,
    Section,
    Table,
    present,
    section,
)
from narrows.comparison import margins, pictures, rows, words
from narrows.comparison.equivalence import UNDECIDED
from narrows.comparison.findings import BETTER, SAME, WORSE
from narrows.documents.comparison import ComparedMetric, ComparedRow, Comparison, Frontier
from narrows.documents.results import Metric, Quantity

#: How to show the columns for which a terminal has no room.
HOW = "a wider terminal (COLUMNS=160), --metrics or --json shows them"
_KINDS = {WORSE: "bad", BETTER: "good"}
#: Columns that are omitted first when space is short: among equal ranks those further to the right.
_RANKS = {"utilization_ratio": 3, "queueing_delay_p95_ns": 2}
#: If more comparisons than this have a margin, lines of text show decided ones only.
_MANY = 60
_TRACES = "--traces compares the states of senders and the performance envelopes too; it reads all packets."
_SOURCE = (
    "The first side has a full line, the second a dashed one. After Mishra, Lim and Leong, “Understanding"
    " Speciation in QUIC Congestion Control”, IMC 2022."
)


def style() -> str:
    """The style sheet of the page."""
    return files("narrows.comparison").joinpath("templates", "compare.css").read_text(encoding="utf-8")


def compose(document: Comparison) -> Document:
    """The whole comparison: the set-ups, the findings, then all numbers."""
    ranked = document.ranks is not None
    shared = rows.common_values(document)
    scenarios = ", ".join(str(side.scenario) for side in document.sides)
    method = [*words.method(document), margins.method(document)]
    return Document.new(
        words.headline(document),
        (
            _limits(document),
            section("Not read", Items.new(Item(unread.why, "bad") for unread in document.unread)),
            Paragraph(shared),
            None if ranked else section("Shown", _claims(document)),
            _margins(document),
            _ranks(document) if ranked else _differences(document),
            *(Paragraph(text, "remark") for text in words.provenance(document)),
            section("Without a verdict", Items.new(_notes(document))),
            section("Traces of states", Items.new(words.trace_sentences(document))),
            _envelopes(document),
            section("Method", *(Paragraph(text, "method") for text in method)),
            None if document.looked_behind else Paragraph(_TRACES, "hint"),
        ),
        kind="Narrows comparison",
        page_title=f"Comparison of {scenarios}" if scenarios else "Comparison",
        facts=[(side.name, words.side_line(side)) for side in document.sides],
        preamble=[_set_ups(document)],
    )


def _limits(document: Comparison) -> Block | None:
    pairs = zip(words.limit_sentences(document), document.limits, strict=True)
    return section("Limits", Items.new(Item(text, "bad" if limit.broken else "") for text, limit in pairs))


def _set_ups(document: Comparison) -> Block | None:
    if document.differences:
        kinds = (section(kind, Facts.new(entries, "set-up")) for kind, entries in words.set_up(document))
        return section("The set-ups differ in", *kinds)
    if len(document.sides) < 2:
        return None
    return Paragraph("The set-ups are the same: scenario, seed, versions, kernel and machine.")


def _notes(document: Comparison) -> list[str]:
    """The reasons for missing verdicts; among all schemes without the pairs, which may be many."""
    notes = words.notes(document)
    if document.ranks is None:
        return notes
    return list(dict.fromkeys(note.partition(": ")[2] for note in notes))


def _names(document: Comparison) -> list[Column]:
    """The columns that identify a row."""
    _, names = rows.conditions(document)
    heading = rows.base_heading(document)
    return [Column(heading, "left", names=True), *(Column(name, "left") for name in names)]


def _name_cells(row: ComparedRow, document: Comparison) -> list[str | Cell]:
    _, names = rows.conditions(document)
    return [rows.brief_name(row, document), *rows.values_of(row, names)]


def _sides(document: Comparison) -> tuple[str, str]:
    """The heads of the two columns of values."""
    names = [side.name for side in document.sides]
    return (names[0], names[1]) if len(names) == 2 else ("base", "other")


def _with_unit(metric: Metric) -> str:
    unit = unit_of(metric)
    return head_of(metric) + (f" [{unit}]" if unit else "")


def _verdict(finding: ComparedMetric) -> Cell:
    return Cell(words.verdict(finding), kind=f"outcome-{finding.outcome.replace(' ', '-')}")


def _claims(document: Comparison) -> Table:
    """The differences that are shown, one per line."""
    first, second = _sides(document)
    heads = (
        *_names(document),
        Column("metric", "left"),
        Column(first, rank=2),
        Column(second, rank=2),
        Column("difference"),
        Column("95 % interval", rank=1, style="whole"),
        Column("", "left"),
    )
    lines = (
        (
            *_name_cells(row, document),
            _with_unit(metric),
            words.value(finding.base, metric),
            words.value(finding.other, metric),
            words.difference(finding, metric),
            words.interval(finding, metric),
            _verdict(finding),
        )
        for row, metric, finding in words.claims(document)
    )
    return Table.new(heads, lines, label="Shown")


def _margins(document: Comparison) -> Block | None:
    """The outcomes about the margin, one per line; if there are many, text shows decided ones only."""
    pairs = margins.in_order(document)
    heads = (
        *_names(document),
        Column("metric", "left"),
        Column("margin", rank=1),
        Column("difference"),
        Column("95 % interval", rank=2, style="whole"),
        Column("", "left", folded=True),
    )
    lines = [
        (
            *_name_cells(row, document),
            head_of(metric),
            margins.amount(margin, metric),
            words.difference(margins.as_told(finding), metric),
            words.interval(margins.as_told(finding), metric),
            Cell(margin.outcome, small=margin.why),
        )
        for row, metric, finding, margin in pairs
    ]
    whole = Table.new(heads, lines, label="Margin")
    headline = Paragraph(margins.headline(document), "lead")
    if len(pairs) <= _MANY:
        return section("Margin", headline, whole)
    open_ones = [pair[3].outcome == UNDECIDED for pair in pairs]
    few = [line for line, undecided in zip(lines, open_ones, strict=True) if not undecided]
    rest = Paragraph(f"{sum(open_ones)} that are undecided are in --json.")
    text = present((Table.new(heads, few, label="Margin"), rest))
    return section("Margin", headline, Either(text, (whole,)))


def _differences(document: Comparison) -> Block:
    """All rows in all metrics: one table in lines of text, on pages one for each metric."""
    table = section("All differences", _all_differences(document), _legend(document), closed=True)
    return Either(
        present((table,)),
        tuple(
            Section(
                words.title_of(metric),
                (Paragraph(metric.definition, "remark"), _metric_table(document, metric)),
                small={"higher": "more is better", "lower": "less is better"}.get(metric.better or "", ""),
            )
            for metric in document.metrics
        ),
    )


def _all_differences(document: Comparison) -> Table:
    several, against = len(document.sides) > 2, document.kind == "schemes"
    first, second = _sides(document)
    heads = (
        *_names(document),
        *([Column("in", "left")] if several else []),
        *([] if against else [Column(f"runs\n{first}", "left")]),
        Column("runs" if against else f"runs\n{second}", "left"),
        *(Column(head_of(metric), rank=_rank(document, metric)) for metric in document.metrics),
    )
    # The campaign of each row is in a separate column.
    alone = replace(document, sides=[])
    lines = []
    for row in document.rows:
        findings = [(metric, row.metrics[metric.name]) for metric in document.metrics]
        lines.append(
            [
                *_name_cells(row, alone),
                *([row.other.side] if several else []),
                *([] if against else [words.runs_of(row.base)]),
                words.runs_of(row.other),
                *(
                    Cell(words.show_marked(finding, metric), kind=_KINDS.get(finding.outcome, ""))
                    for metric, finding in findings
                ),
            ]
        )
    return Table.new(heads, lines, label="All differences")


def _legend(document: Comparison) -> Paragraph:
    used = {finding.outcome for row in document.rows for finding in row.metrics.values()}
    legend = [f"{mark} {word}" for word, mark in words.MARKS.items() if word in used]
    legend += ["= identical"] if SAME in used else []
    if any(metric.show_unit == "%" for metric in document.metrics):
        legend.append("pp percentage points")
    return Paragraph("; ".join(legend), "remark")


def _metric_table(document: Comparison, metric: Metric) -> Table:
    """One metric of all rows, with the pictures of their intervals on a common scale."""
    findings = [(row, row.metrics[metric.name]) for row in document.rows]
    reach = max((pictures.reach(finding) for _, finding in findings), default=0.0)
    heads = (
        *_names(document),
        Column("base"),
        Column("other"),
        Column("difference"),
        Column("95 % interval", "left", style="whole"),
        Column("", "left", style="picture-of-interval"),
        Column("shown", "left"),
    )
    lines = (
        (
            *_name_cells(row, document),
            Cell(words.value(finding.base, metric), small=words.runs_of(row.base)),
            Cell(words.value(finding.other, metric), small=words.runs_of(row.other)),
            words.difference(finding, metric),
            words.interval(finding, metric),
            Cell("", kind=finding.outcome, picture=pictures.draw_interval(finding, reach)),
            _verdict(finding),
        )
        for row, finding in findings
    )
    return Table.new(heads, lines, label=words.title_of(metric))


def _rank(document: Comparison, metric: Metric) -> int:
    """The first metric is never omitted."""
    return 0 if metric is document.metrics[0] else _RANKS.get(metric.name, 1)


def _ranks(document: Comparison) -> Block | None:
    """The ranks of the schemes of one campaign that the runs support, and the schemes on the frontier; one
    table for each set of schemes that met the same conditions.
    """
    _, names = rows.conditions(document)
    frontiers = document.frontiers or []
    axes = " and ".join(head_of(Quantity.unknown(name)) for name in frontiers[0].metrics)
    explained = (
        "With each median: the ranks that the runs leave open; with 1-3 no scheme is shown to be better, and"
        " it is not shown to be better than two others."
        f" On the frontier of {axes}: no scheme is better in both, by the medians, and"
        " in how many of 10 000 resamples of the runs."
    )
    return section(
        "Ranks",
        *_rank_tables(document, frontiers, names),
        Paragraph(explained, "remark"),
        Paragraph("--against SCHEME shows the differences from one.", "hint"),
    )


def _rank_tables(
    document: Comparison, frontiers: Sequence[Frontier], names: Sequence[str]
) -> Iterator[Block | None]:
    for frontier in frontiers:
        table = _rank_table(document, frontier)
        title = rows.heading(frontier.conditions, names)
        yield section(title, table) if title else table


def _rank_table(document: Comparison, frontier: Frontier) -> Table:
    ranks = [rank for rank in document.ranks or [] if rank.values == frontier.values]
    metrics = {metric.name: metric for metric in document.metrics}
    described = [metrics[rank.metric] for rank in ranks]
    heads = (
        Column("scheme", "left", names=True),
        Column("runs", "left", style="whole"),
        *(
            Column(head_of(metric), rank=_rank(document, metric), unit=unit_of(metric))
            for metric in described
        ),
        Column("on the\nfrontier", "left", rank=1),
    )
    counts = words.samples(document)
    lines = []
    for entry in frontier.schemes:
        cells = []
        for rank, metric in zip(ranks, described, strict=True):
            mine = words.entry_of(rank, entry.scheme)
            cells.append(Cell(words.value(mine.summary, metric), small=words.rank(mine)))
        name = words.without_values(entry.scheme, frontier.values)
        start: list[str | Cell] = [name, words.runs_of(counts[entry.scheme])]
        lines.append([*start, *cells, words.on_frontier(entry)])
    return Table.new(heads, lines, label="Ranks")


def _envelopes(document: Comparison) -> Block | None:
    texts = words.envelope_sentences(document)
    drawn: list[Block] = []
    for envelope, text in zip(document.envelopes or [], texts, strict=True):
        drawn.append(Paragraph(text))
        if envelope.base and envelope.other:
            drawn.append(Figure("", picture=pictures.draw_envelope(envelope, envelope.base, envelope.other)))
    source = [Paragraph(_SOURCE, "remark")] if drawn else []
    shown = Either(present((Items.new(texts),)), (*drawn, *source)) if drawn else None
    return section("Performance envelopes", shown)
