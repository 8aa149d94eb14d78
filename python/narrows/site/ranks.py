"""The ranking of the schemes of a campaign that its runs support."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from narrows.analysis.metrics import show_number, unit_of
from narrows.comparison import words
from narrows.comparison.leaders import is_judged
from narrows.documents.comparison import Comparison
from narrows.report.cells import Cell, Notes, Table
from narrows.statistics.runs import FEWEST_FOR_INTERVAL

Json = dict[str, Any]

_NO_RANK = (
    f"no rank: not part of the campaign, no value, or fewer than the {FEWEST_FOR_INTERVAL} runs that"
    " are needed"
)


def of_campaign(compared: Comparison | str) -> list[Json]:
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
            {
                "scheme": words.without_values(entry.scheme, ranks.values),
                "rank": words.rank(entry),
                "value": show_number(entry.summary.median, metric),
                "runs": counts[entry.scheme].valid,
            }
            for entry in ranks.schemes
            if entry.summary is not None and is_judged(outcomes[entry.scheme])
        ]
        about = {"name": metric.name, "label": metric.label, "unit": unit_of(metric), "better": metric.better}
        entries.append({"metric": about, "values": ranks.values, "schemes": schemes})
    return entries


def tables(listed: Mapping[str, Json]) -> list[Json]:
    """For each metric a table of experiments by schemes, from the latest campaign of each experiment: a
    scenario on a plane. `listed` are campaigns in the form of site.json, by page name.
    """
    latest: dict[tuple[str, str], str] = {}
    for name, entry in sorted(listed.items(), key=lambda pair: (str(pair[1]["listed"]["made"]), pair[0])):
        latest[str(entry["listed"]["name"]), str(entry["listed"]["plane"])] = name
    metrics: dict[str, Json] = {}
    for name in latest.values():
        for one in listed[name]["ranking"]:
            metrics.setdefault(one["metric"]["name"], one["metric"])
    made = []
    for metric in metrics.values():
        rows = [
            (key, name, item)
            for key, name in sorted(latest.items())
            for item in listed[name]["ranking"]
            if item["metric"]["name"] == metric["name"] and item["schemes"]
        ]
        if rows:
            made.append({"metric": metric, "table": _table(metric, rows)})
    return made


def _table(metric: Json, rows: list[tuple[tuple[str, str], str, Json]]) -> Table:
    schemes = list(dict.fromkeys(entry["scheme"] for _, _, document in rows for entry in document["schemes"]))
    notes = Notes()
    lines = []
    for (experiment, plane), name, document in rows:
        own = {entry["scheme"]: entry for entry in document["schemes"]}
        counts = sorted({entry["runs"] for entry in own.values()})
        line = [
            Cell(experiment, kind="scheme", small=document["values"], to=f"campaigns/{name}/index.html"),
            Cell(plane),
            Cell("–".join(str(n) for n in dict.fromkeys((counts[0], counts[-1]))), align="right"),
        ]
        for scheme in schemes:
            if (entry := own.get(scheme)) is None:
                line.append(Cell("–", align="right", kind="absent", marks=[notes.mark(_NO_RANK)]))
                continue
            value = f"{entry['value']} {metric['unit']}".strip()
            line.append(Cell(str(entry["rank"]), small=value, align="right"))
        lines.append(line)
    head = [Cell("experiment"), Cell("plane"), Cell("runs", align="right")]
    head += [Cell(scheme, align="right") for scheme in schemes]
    return Table(head, lines, notes.list_notes())
