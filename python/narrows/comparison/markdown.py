"""The comparison in Markdown, short enough for a pull request."""

from __future__ import annotations

import re

from narrows.analysis.metrics import head_of, unit_of
from narrows.comparison import margins, words
from narrows.comparison import rows as row_names
from narrows.documents.comparison import Comparison
from narrows.text import markdown_table


def markdown(document: Comparison) -> str:
    """The whole comparison: findings first, with the complete table collapsed."""
    parts = [f"### {_plain(words.headline(document))}\n"]
    if document.limits:
        parts.append("".join(f"- {_plain(text)}\n" for text in words.limit_sentences(document)))
    if claims := _claims(document):
        parts.append(claims)
    if document.margin:
        parts.append(_margins(document))
    if shared := row_names.shared_values(document):
        parts.append(f"{_plain(shared)}\n")
    parts.append("".join(f"- **{side.name}**: {_plain(words.side_line(side))}\n" for side in document.sides))
    if document.unread:
        parts.append("".join(f"- not read: {_plain(unread.why)}\n" for unread in document.unread))
    if document.differences:
        lines = [
            f"- {_plain(what)}: {_plain(text)}\n"
            for _, entries in words.set_up(document)
            for what, text in entries
        ]
        parts.append("The set-ups differ in\n\n" + "".join(lines))
    elif len(document.sides) > 1:
        parts.append("The set-ups are the same: scenario, seed, versions, kernel and machine.\n")
    table = _ranks(document) if document.ranks is not None else _differences(document)
    notes = (
        "" if document.ranks is not None else "".join(f"- {_plain(note)}\n" for note in words.notes(document))
    )
    notes += "".join(f"- {_plain(text)}\n" for text in words.provenance(document))
    of = "ranks" if document.ranks is not None else "differences"
    parts.append(f"<details><summary>All {of}</summary>\n\n{table}\n{notes}\n</details>\n")
    behind = [*words.trace_sentences(document), *words.envelope_sentences(document)]
    if behind:
        parts.append("".join(f"- {_plain(text)}\n" for text in behind))
    parts.append(
        "".join(
            f"<sub>{_plain(text)}</sub>\n"
            for text in filter(None, [*words.method(document), margins.method(document)])
        )
    )
    return "\n".join(part for part in parts if part)


#: Characters that a renderer interprets as mark-up, or as a reference to a person (`@name`) or an issue
#: (`#1`).
_MARKS = re.compile(r"[\\|*_`<>\[\]#~&]")
#: Text that renderers turn into links: an address, a host name that begins with www., a mail
#: address, the name of a person or team, and an issue of another repository (`owner/name#1`).
_LINKS = re.compile(
    r"(?i)(?<=[a-z0-9])(?=://)|(?<=www)(?=\.)|@|(?<=mailto)(?=:)|(?<=xmpp)(?=:)|(?<=GH)(?=-\d)"
)
#: Has no width, and is not part of a word or a link.
_NOTHING = "<!-- -->"


def _plain(text: object) -> str:
    """Text that no renderer interprets as mark-up, a link, or a mention of a person."""
    escaped = _MARKS.sub(lambda match: f"\\{match[0]}", " ".join(str(text).split()))
    return _LINKS.sub(lambda match: f"{match[0]}{_NOTHING}", escaped)


def _claims(document: Comparison) -> str:
    _, names = row_names.conditions(document)
    rows = []
    for row, metric, finding in words.claims(document):
        unit = unit_of(metric)
        rows.append(
            [
                _plain(row_names.brief_name(row, document)),
                *map(_plain, row_names.values_of(row, names)),
                _plain(head_of(metric) + (f", {unit}" if unit else "")),
                words.value(finding.base, metric),
                words.value(finding.other, metric),
                words.difference(finding, metric),
                _plain(words.interval(finding, metric)),
                f"**{words.verdict(finding)}**",
            ]
        )
    titles = [*_heads(document), "metric", *(numbers := ["base", "other", "difference", "95 % interval"]), ""]
    return markdown_table(titles, rows, numbers) if rows else ""


def _heads(document: Comparison) -> list[str]:
    """The heads of the columns that identify a row."""
    _, names = row_names.conditions(document)
    return [_plain(row_names.base_heading(document)), *map(_plain, names)]


def _margins(document: Comparison) -> str:
    _, names = row_names.conditions(document)
    rows = [
        [
            _plain(row_names.brief_name(row, document)),
            *map(_plain, row_names.values_of(row, names)),
            _plain(head_of(metric)),
            margins.amount(margin, metric),
            words.difference(margins.as_told(finding), metric),
            _plain(words.interval(margins.as_told(finding), metric)),
            _plain(margin.outcome),
        ]
        for row, metric, finding, margin in margins.in_order(document)
    ]
    titles = [*_heads(document), "metric", *(numbers := ["margin", "difference", "95 % interval"]), "shown"]
    return f"{margins.headline(document)}\n\n{markdown_table(titles, rows, numbers)}" if rows else ""


def _differences(document: Comparison) -> str:
    heads = [_plain(" ".join(head_of(metric).split())) for metric in document.metrics]
    _, names = row_names.conditions(document)
    rows = []
    for row in document.rows:
        cells = [
            _plain(row_names.brief_name(row, document)),
            *map(_plain, row_names.values_of(row, names)),
            words.runs_of(row.base),
            words.runs_of(row.other),
        ]
        for metric in document.metrics:
            finding = row.metrics[metric.name]
            text = _plain(words.difference(finding, metric))
            cells.append(f"**{text}** {words.verdict(finding)}" if finding.outcome in words.MARKS else text)
        rows.append(cells)
    return markdown_table([*_heads(document), "runs of the base", "runs of the other", *heads], rows, heads)


def _ranks(document: Comparison) -> str:
    metrics = {metric.name: metric for metric in document.metrics}
    counts = words.samples(document)
    _, names = row_names.conditions(document)
    heads = [
        words.title_of(metrics[name]) for name in dict.fromkeys(rank.metric for rank in document.ranks or [])
    ]
    rows = []
    for frontier in document.frontiers or []:
        ranks = [rank for rank in document.ranks or [] if rank.values == frontier.values]
        for entry in frontier.schemes:
            sample = counts[entry.scheme]
            values = [str(sample.values.get(name) or "") for name in names]
            cells = [_plain(sample.name), *map(_plain, values), words.runs_of(sample)]
            for rank in ranks:
                mine = words.entry_of(rank, entry.scheme)
                shown = words.value(mine.summary, metrics[rank.metric])
                cells.append(f"{shown} (rank {words.rank(mine)})" if mine.first else shown)
            rows.append([*cells, words.on_frontier(entry)])
    titles = [_plain(head.replace("[", "in ").replace("]", "")) for head in heads]
    return markdown_table(["scheme", *map(_plain, names), "runs", *titles, "on the frontier"], rows, titles)
