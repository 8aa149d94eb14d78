"""report.html: one self-contained file, laid out by a template, which loads nothing from elsewhere."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup
from msgspec.structs import replace

from narrows import policy
from narrows.blocks import html
from narrows.blocks.model import Cell, Column, Facts, Table
from narrows.report import drawing, style, tables
from narrows.report.content import Report, ReportFigure
from narrows.report.data import Campaign, Run
from narrows.report.figures.summary import styles_of

if TYPE_CHECKING:
    from narrows.report.assemble import Drawn

OPEN_RUNS = 12
"""Up to this many runs are shown unfolded, and of more of them the first."""


def asset(*parts: str) -> str:
    """A file of this package for use in pages."""
    return files("narrows.report").joinpath(*parts).read_text(encoding="utf-8")


def script_json(text: str) -> str:
    """JSON that is safe inside a script element: nothing in it can end the element."""
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def style_sheet() -> str:
    """The style sheet of reports and sites, light and dark."""
    light, dark = (
        "".join(f"--c{light[1:]}:{deep if night else light};" for light, deep in style.PAIRS.items())
        for night in (False, True)
    )
    chosen = (
        f"@media (prefers-color-scheme: dark) {{ :root:not([data-theme='light']) {{ {dark} }} }}"
        f" :root[data-theme='dark'] {{ {dark} }}"
    )
    uplot = asset("assets", "uplot", "uPlot.min.css")
    return f":root {{ {light} }}\n@media screen {{ {chosen} }}\n{uplot}\n{html.asset('page.css')}"


def marks_of(campaign: Campaign) -> dict[str, str]:
    """The colour of each scheme, for the tables of a page."""
    return {scheme: f"var(--c{style.color[1:]})" for scheme, style in styles_of(campaign).items()}


def render_statistics(campaign: Campaign, run: Run) -> str:
    """The table of a run's numbers as a fragment of the page."""
    if not run.rows:
        return ""
    title = f"Statistics of {run.scheme}, run {run.number}"
    table = replace(tables.run_statistics(campaign, run), label=title, style="statistics")
    return str(html.render_table(table))


@lru_cache(maxsize=4)
def environment(own: Callable[[str], str | None] | None = None) -> Any:
    """The templates of this package, preceded by those in `own`, by name. They are cached, because compiling
    a template takes longer than filling it in.
    """
    from jinja2 import Environment, FunctionLoader, pass_context
    from jinja2.runtime import Context

    @pass_context
    def show_table(context: Context, table: Table, label: str, style: str = "") -> Markup:
        return html.render_table(
            replace(table, label=label, style=style), context.resolve_or_missing("marks")
        )

    @pass_context
    def show_cell(context: Context, cell: Cell, column: Column) -> Markup:
        return html.render_cell(cell, column, context.resolve_or_missing("marks"))

    def show_facts(rows: Sequence[Sequence[object]]) -> Markup:
        return html.render([Facts.new([str(name), str(value)] for name, value in rows)])

    made = Environment(
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        loader=FunctionLoader(lambda name: (own and own(name)) or asset("templates", name)),
    )
    made.globals |= {"table": show_table, "cell": show_cell, "head": html.render_head, "facts": show_facts}
    return made


def render_page(content: Report, drawn: Drawn, work: Path, campaign: Campaign) -> str:
    """The page as text; figures are taken from the folder in which they were just drawn."""

    def picture(figure: ReportFigure, prefix: str) -> Markup:
        path = work / f"{figure.file}.svg"
        return Markup(drawing.inline_svg(path, prefix, figure.title, figure.tips))

    template = environment().get_template("report.html.j2")
    page: str = template.render(
        doc=content,
        picture=picture,
        marks=marks_of(campaign),
        charts={key for own in drawn.charts.values() for key in own},
        packs=drawn.packs,
        style=Markup(style_sheet()),
        uplot_js=Markup(asset("assets", "uplot", "uPlot.iife.min.js")),
        theme=Markup(asset("templates", "theme.js")),
        scripts=[Markup(asset("templates", name)) for name in ("tables.js", "charts.js")],
        script=Markup(asset("templates", "report.js")),
        help=Markup(script_json(json.dumps("arrow keys move the cursor, plus and minus zoom, 0 shows all"))),
        open_runs=len(content.runs) <= OPEN_RUNS,
    )
    return policy.lock(page)
