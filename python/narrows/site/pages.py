"""The pages of a site, laid out by templates, and the files that they share."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from narrows import __version__
from narrows.analysis.metrics import head_of, show_number, unit_of
from narrows.campaign.json_files import write_atomically
from narrows.documents.results import Metric
from narrows.policy import lock
from narrows.report import choice
from narrows.report.cells import Cell, Table, name_cells, name_heads, row_names
from narrows.report.content import Report
from narrows.report.data import Campaign
from narrows.report.document import ORDER, moment
from narrows.report.figures import summary
from narrows.report.figures._scatter import logarithmic, upright
from narrows.report.page import asset, environment, marks_of, script_json, style_sheet
from narrows.report.style import of_flow
from narrows.site import ranks
from narrows.text import distinct_names

Json = dict[str, Any]

#: Scripts of the two kinds of pages, concatenated.
_SCRIPTS = {
    "index": (("templates", "tables.js"), "list.js"),
    "campaign": (
        ("assets", "uplot", "uPlot.iife.min.js"),
        ("templates", "tables.js"),
        ("templates", "charts.js"),
        "scatter.js",
        "overlay.js",
        "campaign.js",
    ),
    "theme": (("templates", "theme.js"),),
}
_TEMPLATES = ("base.html.j2", "index.html.j2", "campaign.html.j2", "sweep.html.j2")
_PALETTE = 8
"""Colours for runs of one scheme beside each other."""
_FIRST_RUNS = 2
"""Runs in the chart of a page that was just opened, each of another scheme."""


def _own(name: str) -> str | None:
    path = files("narrows.site").joinpath("templates", name)
    return path.read_text(encoding="utf-8") if path.is_file() else None


@lru_cache(maxsize=1)
def _assets() -> dict[str, tuple[str, str]]:
    """The shared files by role: the name, which follows from the content, and the content."""
    result = {"style": ("css", style_sheet() + str(_own("site.css")))}
    for name, parts in _SCRIPTS.items():
        texts = [asset(*part) if isinstance(part, tuple) else str(_own(part)) for part in parts]
        result[name] = ("js", "\n".join(texts))
    return {
        name: (f"assets/{name}-{hashlib.sha256(text.encode()).hexdigest()[:10]}.{kind}", text)
        for name, (kind, text) in result.items()
    }


@lru_cache(maxsize=1)
def digest() -> str:
    """The digest of templates and shared files: pages with another one are made again."""
    templates = [str(_own(name)) for name in _TEMPLATES]
    told = [asset("templates", "parts.html.j2"), *templates, *(file for file, _ in _assets().values())]
    return hashlib.sha256("\0".join(told).encode()).hexdigest()


def write_assets(target: Path) -> dict[str, str]:
    """Writes the files that pages share; returns them by role."""
    (target / "assets").mkdir(exist_ok=True)
    for file, text in _assets().values():
        if not (target / file).is_file():
            write_atomically(target / file, text)
    return {name: file for name, (file, _) in _assets().items()}


def _render(template: str, **content: Any) -> str:
    made: str = environment(_own).get_template(template).render(made_by=f"Narrows {__version__}", **content)
    return lock(made)


def index(
    listed: Mapping[str, Json], swept: Mapping[str, Json], problems: Sequence[Json], assets: dict[str, str]
) -> str:
    """The list of all campaigns, the latest first, that of sweeps, and the ranking."""
    entries = _distinguish(listed)
    entries.sort(key=lambda entry: (entry["made"], entry["id"]), reverse=True)
    lines = []
    for one in entries:
        outcomes = _in_order(one["outcomes"])
        facets = {
            "plane": [one["plane"]],
            "scheme": one["schemes"],
            "tag": one["tags"],
            "verdict": [name for name, _ in outcomes],
        }
        wrong = one["runs"] - one["outcomes"].get("ok", 0)
        order = "".join(letter for letter in one["made"] if letter.isdigit())
        lines.append(one | {"date": moment(one["made"])[:16], "order": order[:14] or "0", "wrong": wrong})
        lines[-1] |= {"verdicts": outcomes, "facets": json.dumps(facets)}
    return _render(
        "index.html.j2",
        root="",
        assets=assets,
        marks={},
        lines=lines,
        sweeps=_sweeps(swept),
        runs=sum(entry["runs"] for entry in entries),
        # Paths of this machine do not belong on the web.
        problems=[
            one | {"problem": one["problem"].replace(one["folder"], folder)}
            for one, folder in zip(
                problems, distinct_names([Path(problem["folder"]) for problem in problems]), strict=True
            )
        ],
        pages=listed,
        rankings=ranks.tables(listed),
    )


def _sweeps(swept: Mapping[str, Json]) -> list[Json]:
    lines = _distinguish(swept)
    lines.sort(key=lambda entry: (entry["made"], entry["id"]), reverse=True)
    return [
        line | {"date": moment(line["made"])[:16], "verdicts": _in_order(line["outcomes"])} for line in lines
    ]


def _distinguish(listed: Mapping[str, Json]) -> list[Json]:
    """The entries of a list, with words that make each name unique: the title, or else the folder with as
    many parents as necessary. The rest of a path does not belong on the web.
    """
    folders = distinct_names(
        [Path(entry.get("source") or entry["listed"]["folder"]) for entry in listed.values()]
    )
    titles = Counter((entry["listed"]["name"], entry["listed"]["title"]) for entry in listed.values())
    distinguish = []
    for (name, entry), folder in zip(listed.items(), folders, strict=True):
        one = entry["listed"]
        alone = titles[one["name"], one["title"]] == 1
        about = one["title"] or folder
        if one["title"] and not alone:
            about = f"{one['title']} ({folder})"
        distinguish.append({"id": name, **one, "folder": folder, "about": about})
    return distinguish


def _in_order(outcomes: Mapping[str, int]) -> list[tuple[str, int]]:
    return sorted(outcomes.items(), key=lambda pair: _place(pair[0]))


def sweep(
    about: Json,
    facts: list[list[str]],
    keys: Table,
    effects: list[Json],
    figures: list[Json],
    written: str,
    assets: dict[str, str],
) -> str:
    """The page of one sweep."""
    from markupsafe import Markup

    return _render(
        "sweep.html.j2",
        root="../../",
        assets=assets,
        marks={},
        about=about,
        facts_of=facts,
        keys=keys,
        effects=effects,
        figures=[
            figure | ({"picture": Markup(figure["picture"])} if "picture" in figure else {})
            for figure in figures
        ],
        written=written,
    )


def _place(outcome: str) -> int:
    return ORDER.index(outcome) if outcome in ORDER else len(ORDER)


def campaign(
    doc: Report,
    data: Campaign,
    entry: Json,
    contents: Json,
    metrics: Sequence[Metric],
    assets: Mapping[str, str],
) -> str:
    """The page of one campaign."""
    from markupsafe import Markup

    runs, numbers = _runs(data, contents, metrics), _numbers(data, entry["mark"], contents)
    return _render(
        "campaign.html.j2",
        root="../../",
        assets=assets,
        doc=doc,
        about=entry["listed"],
        files=[(f"{entry['mark']}/{name}", words) for name, words in contents["files"]],
        marks=marks_of(data),
        runs=runs,
        scatter=summary.absent(data),
        quantities=contents["quantities"],
        numbers=Markup(script_json(json.dumps(numbers, allow_nan=False))),
    )


def _runs(data: Campaign, contents: Json, metrics: Sequence[Metric]) -> Json:
    """The table of all runs; each row knows its cell."""
    names = row_names(data)
    head = [*name_heads(names), Cell("run"), Cell("verdict")]
    head += [Cell(head_of(metric), small=unit_of(metric), align="right") for metric in metrics]
    rows = []
    for scheme in data.schemes:
        for run in data.of_scheme(scheme):
            row = [*name_cells(names, scheme), Cell(str(run.number), align="right")]
            row.append(Cell(run.outcome, kind=f"outcome-{run.outcome}"))
            row += [
                Cell(show_number(run.value("all", metric.name), metric), align="right") for metric in metrics
            ]
            rows.append({"cell": run.cell, "charted": run.cell in contents["runs"], "cells": row})
            rows[-1]["label"] = f"{names.brief(scheme)}, run {run.number}"
    return {"head": head, "rows": rows}


def _numbers(data: Campaign, mark: str, contents: Json) -> Json:
    """The data that the scripts of the page have before a run is loaded."""
    schemes, styles = data.schemes, summary.styles_of(data)
    dots = {dot.run.cell: dot for dot in summary.dots(data)}
    middle = [choice.representative(data.of_scheme(scheme)) for scheme in schemes]
    first = [run.cell for run in middle if run is not None and run.cell in contents["runs"]][:_FIRST_RUNS]
    runs = []
    for run in (run for scheme in schemes for run in data.of_scheme(scheme)):
        dot, kept = dots.get(run.cell), contents["runs"].get(run.cell)
        told: Json = {"cell": run.cell, "scheme": schemes.index(run.scheme), "run": run.number}
        if kept:
            told |= {"file": f"{mark}/{kept['file']}", "charts": kept["charts"]}
        if dot:
            told |= {"x": dot.delay_ms, "y": dot.throughput_mbps, "verdict": run.verdict}
        runs.append(told)
    looks: list[Json] = []
    names = row_names(data)
    drawn = {dot.run.scheme for dot in dots.values()}
    for scheme in schemes:
        look = styles[scheme]
        one: Json = {
            "name": names.brief(scheme),
            "color": look.color,
            "dark": look.dark,
            "marker": look.marker,
        }
        delay, rate = (data.median(scheme, "all", name) for name in ("delay_p95_ns", "throughput_bps"))
        if scheme in drawn and delay is not None and rate is not None:
            one |= {"x": delay / 1e6, "y": rate / 1e6}
        looks.append(one)
    palette = [(look.color, look.dark) for look in (of_flow(number, "") for number in range(_PALETTE))]
    delays = [dot.delay_ms for dot in dots.values()]
    ends = upright([dot.throughput_mbps for dot in dots.values()]) if dots else (0.0, 1.0)
    axes = {"log": logarithmic(delays) is not None, "upright": ends}
    return {"schemes": looks, "runs": runs, "first": first, "palette": palette, "axes": axes}
