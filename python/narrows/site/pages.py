"""The pages of a site, laid out by templates, and the files that they share."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from narrows import __version__
from narrows.analysis.metrics import head_of, show_number, unit_of
from narrows.blocks.model import Cell, Column, Table
from narrows.campaign.json_files import write_atomically
from narrows.documents.results import Metric
from narrows.documents.site import (
    CampaignListing,
    CampaignPage,
    PageContents,
    SiteProblem,
    SweepListing,
    SweepPage,
)
from narrows.policy import lock
from narrows.report import choice
from narrows.report.cells import name_cells, name_heads, row_names
from narrows.report.content import Report
from narrows.report.data import Campaign
from narrows.report.document import ORDER, moment
from narrows.report.figures import summary
from narrows.report.figures._scatter import logarithmic, upright
from narrows.report.page import asset, environment, marks_of, script_json, style_sheet
from narrows.report.style import of_flow
from narrows.site import ranks
from narrows.text import distinct_names

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
    told = [__version__, *templates, *(file for file, _ in _assets().values())]
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


@dataclass(frozen=True, slots=True)
class TitledTable:
    """A table and its title."""

    title: str
    table: Table


@dataclass(frozen=True, slots=True)
class SweepFigure:
    """A figure of a sweep, or the reason why it could not be drawn."""

    title: str
    caption: str = ""
    picture: str = ""
    missing: str = ""


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a list: the name of its page, words that make its name unique, its folder, and its verdicts
    in order."""

    id: str
    listed: CampaignListing | SweepListing
    about: str
    folder: str

    @property
    def date(self) -> str:
        """The date and the time, to minutes."""
        return moment(self.listed.made)[:16]

    @property
    def order(self) -> str:
        """The digits of the time, for sorting."""
        return "".join(letter for letter in self.listed.made if letter.isdigit())[:14] or "0"

    @property
    def verdicts(self) -> list[tuple[str, int]]:
        """The number of runs or cells with each outcome."""
        return sorted(self.listed.outcomes.items(), key=lambda pair: _place(pair[0]))

    @property
    def facets(self) -> str:
        """The values of a campaign for the filters of the list, as JSON."""
        assert isinstance(self.listed, CampaignListing)
        facets = {
            "plane": [self.listed.plane],
            "scheme": self.listed.schemes,
            "tag": self.listed.tags,
            "verdict": [name for name, _ in self.verdicts],
        }
        return json.dumps(facets)


def index(
    campaigns: Mapping[str, CampaignPage],
    sweeps: Mapping[str, SweepPage],
    problems: Sequence[SiteProblem],
    assets: dict[str, str],
) -> str:
    """The list of all campaigns, the latest first, that of sweeps, and the ranking."""
    folders = distinct_names([Path(problem.folder) for problem in problems])
    return _render(
        "index.html.j2",
        root="",
        assets=assets,
        marks={},
        lines=_lines(campaigns),
        sweeps=_lines(sweeps),
        runs=sum(page.listed.runs for page in campaigns.values()),
        # Paths of this machine do not belong on the web.
        problems=[
            replace(problem, problem=problem.problem.replace(problem.folder, folder))
            for problem, folder in zip(problems, folders, strict=True)
        ],
        pages=campaigns,
        rankings=ranks.tables(campaigns),
    )


def _lines(listed: Mapping[str, CampaignPage | SweepPage]) -> list[Line]:
    """The lines of a list, the latest first, with words that make each name unique: the title, or else the
    folder with as many parents as necessary. The rest of a path does not belong on the web.
    """
    folders = distinct_names([Path(page.source or page.listed.folder) for page in listed.values()])
    titles = Counter((page.listed.name, page.listed.title) for page in listed.values())
    lines = []
    for (name, page), folder in zip(listed.items(), folders, strict=True):
        entry = page.listed
        alone = titles[entry.name, entry.title] == 1
        about = (entry.title if alone else f"{entry.title} ({folder})") if entry.title else folder
        lines.append(Line(name, entry, about, folder))
    return sorted(lines, key=lambda line: (line.listed.made, line.id), reverse=True)


def sweep(
    about: SweepListing,
    facts: list[list[str]],
    keys: Table,
    effects: list[TitledTable],
    figures: list[SweepFigure],
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
        figures=[dataclasses.replace(figure, picture=Markup(figure.picture)) for figure in figures],
        written=written,
    )


def _place(outcome: str) -> int:
    return ORDER.index(outcome) if outcome in ORDER else len(ORDER)


def campaign(
    doc: Report,
    data: Campaign,
    entry: CampaignPage,
    contents: PageContents,
    metrics: Sequence[Metric],
    assets: Mapping[str, str],
) -> str:
    """The page of one campaign."""
    from markupsafe import Markup

    runs, numbers = _runs(data, contents, metrics), _numbers(data, entry.mark, contents)
    return _render(
        "campaign.html.j2",
        root="../../",
        assets=assets,
        doc=doc,
        about=entry.listed,
        files=[(f"{entry.mark}/{name}", words) for name, words in contents.files],
        marks=marks_of(data),
        runs=runs,
        scatter=summary.absent(data),
        quantities=contents.quantities,
        numbers=Markup(script_json(json.dumps(numbers, allow_nan=False))),
    )


def _runs(data: Campaign, contents: PageContents, metrics: Sequence[Metric]) -> dict[str, object]:
    """The table of all runs; each row knows its cell."""
    names = row_names(data)
    head = [*name_heads(names), Column("run"), Column("verdict", "left")]
    head += [Column(head_of(metric), unit=unit_of(metric)) for metric in metrics]
    rows = []
    for scheme in data.schemes:
        for run in data.of_scheme(scheme):
            row = [*name_cells(names, scheme), Cell(str(run.number))]
            row.append(Cell(run.outcome, kind=f"outcome-{run.outcome}"))
            row += [Cell(show_number(run.value("all", metric.name), metric)) for metric in metrics]
            label = f"{names.brief(scheme)}, run {run.number}"
            charted = run.cell in contents.runs
            rows.append({"cell": run.cell, "charted": charted, "cells": row, "label": label})
    return {"head": head, "rows": rows}


def _numbers(data: Campaign, mark: str, contents: PageContents) -> dict[str, object]:
    """The data that the scripts of the page have before a run is loaded."""
    schemes, styles = data.schemes, summary.styles_of(data)
    dots = {dot.run.cell: dot for dot in summary.dots(data)}
    middle = [choice.representative(data.of_scheme(scheme)) for scheme in schemes]
    first = [run.cell for run in middle if run is not None and run.cell in contents.runs][:_FIRST_RUNS]
    runs = []
    for run in (run for scheme in schemes for run in data.of_scheme(scheme)):
        dot, kept = dots.get(run.cell), contents.runs.get(run.cell)
        told: dict[str, object] = {"cell": run.cell, "scheme": schemes.index(run.scheme), "run": run.number}
        if kept:
            told |= {"file": f"{mark}/{kept.file}", "charts": kept.charts}
        if dot:
            told |= {"x": dot.delay_ms, "y": dot.throughput_mbps, "verdict": run.verdict}
        runs.append(told)
    looks: list[dict[str, object]] = []
    names = row_names(data)
    drawn = {dot.run.scheme for dot in dots.values()}
    for scheme in schemes:
        look = styles[scheme]
        one: dict[str, object] = {
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
