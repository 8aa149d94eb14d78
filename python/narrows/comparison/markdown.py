"""The comparison in Markdown, short enough for a pull request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from narrows.analysis.metrics import head_of, unit_of
from narrows.comparison import words
from narrows.text import markdown_table

Json = Mapping[str, Any]


def markdown(document: Json) -> str:
    """The whole comparison: what is shown first, the table of everything folded away."""
    parts = [f"### {words.headline(document)}\n"]
    if document["limits"]:
        parts.append("".join(f"- {_plain(text)}\n" for text in words.limit_sentences(document)))
    if claims := _claims(document):
        parts.append(claims)
    parts.append(
        "".join(f"- **{side['name']}**: {_plain(words.side_line(side))}\n" for side in document["sides"])
    )
    if document["unread"]:
        parts.append("".join(f"- not read: {_plain(one['why'])}\n" for one in document["unread"]))
    if document["differences"]:
        lines = [
            f"- {_plain(what)}: {_plain(text)}\n"
            for _, entries in words.set_up(document)
            for what, text in entries
        ]
        parts.append("The set-ups differ in\n\n" + "".join(lines))
    elif len(document["sides"]) > 1:
        parts.append("The set-ups are the same: scenario, seed, versions, kernel and machine.\n")
    table = _ranks(document) if "ranks" in document else _differences(document)
    notes = "" if "ranks" in document else "".join(f"- {_plain(note)}\n" for note in words.notes(document))
    of = "ranks" if "ranks" in document else "differences"
    parts.append(f"<details><summary>All {of}</summary>\n\n{table}\n{notes}\n</details>\n")
    behind = [*words.trace_sentences(document), *words.envelope_sentences(document)]
    if behind:
        parts.append("".join(f"- {_plain(text)}\n" for text in behind))
    parts.append("".join(f"<sub>{_plain(text)}</sub>\n" for text in words.method(document)))
    return "\n".join(part for part in parts if part)


def _plain(text: object) -> str:
    """Text that no renderer takes for mark-up."""
    found = str(text)
    for mark in ("\\", "|", "*", "_", "`", "<", ">", "[", "]", "#"):
        found = found.replace(mark, "\\" + mark)
    return found


def _claims(document: Json) -> str:
    rows = []
    for row, metric, finding in words.claims(document):
        unit = unit_of(metric)
        rows.append(
            [
                _plain(words.row_name(row, document)),
                head_of(metric) + (f", {unit}" if unit else ""),
                words.value(finding["base"], metric),
                words.value(finding["other"], metric),
                words.difference(finding, metric),
                _plain(words.interval(finding, metric)),
                f"**{words.verdict(finding)}**",
            ]
        )
    titles = ["scheme", "metric", "base", "other", "difference", "95 % interval", ""]
    return markdown_table(titles, rows, titles[2:6]) if rows else ""


def _differences(document: Json) -> str:
    heads = [head_of(metric) for metric in document["metrics"]]
    rows = []
    for row in document["rows"]:
        cells = [
            _plain(words.row_name(row, document)),
            words.runs_of(row["base"]),
            words.runs_of(row["other"]),
        ]
        for metric in document["metrics"]:
            finding = row["metrics"][metric["name"]]
            text = _plain(words.difference(finding, metric))
            cells.append(
                f"**{text}** {words.verdict(finding)}" if finding["outcome"] in words.MARKS else text
            )
        rows.append(cells)
    return markdown_table(["scheme", "runs of the base", "runs of the other", *heads], rows, heads)


def _ranks(document: Json) -> str:
    metrics = {metric["name"]: metric for metric in document["metrics"]}
    counts = words.samples(document)
    heads = [
        words.title_of(metrics[name]) for name in dict.fromkeys(one["metric"] for one in document["ranks"])
    ]
    rows = []
    for frontier in document["frontiers"]:
        ranks = [one for one in document["ranks"] if one["values"] == frontier["values"]]
        for entry in frontier["schemes"]:
            cells = [_plain(entry["scheme"]), words.runs_of(counts[entry["scheme"]])]
            for one in ranks:
                mine = words.entry_of(one, entry["scheme"])
                shown = words.value(mine["summary"], metrics[one["metric"]])
                cells.append(f"{shown} (rank {words.rank(mine)})" if mine["from"] else shown)
            rows.append([*cells, words.on_frontier(entry)])
    titles = [head.replace("[", "in ").replace("]", "") for head in heads]
    return markdown_table(["scheme", "runs", *titles, "on the frontier"], rows, titles)
