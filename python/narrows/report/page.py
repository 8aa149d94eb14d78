"""report.html: one file with everything in it, laid out by a template, loading nothing from anywhere."""

from __future__ import annotations

import json
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from narrows.report import drawing, style, tables
from narrows.report.data import Campaign, Run
from narrows.report.document import Document
from narrows.report.figures.summary import styles_of

if TYPE_CHECKING:
    from narrows.report.assemble import Drawn

OPEN_RUNS = 12
"""Up to this many runs are shown unfolded."""


def _asset(*parts: str) -> str:
    return files("narrows.report").joinpath(*parts).read_text(encoding="utf-8")


def script_json(text: str) -> str:
    """JSON that can stand inside a script element: nothing in it can end the element."""
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _colours(dark: bool) -> str:
    return "".join(f"--c{light[1:]}:{deep if dark else light};" for light, deep in style.PAIRS.items())


def render_statistics(campaign: Campaign, run: Run) -> str:
    """The table of a run's numbers as a piece of the page."""
    if not run.rows:
        return ""
    title = f"Statistics of {run.scheme}, run {run.number}"
    return str(_parts().table(tables.run_statistics(campaign, run), title, "statistics"))


@lru_cache(maxsize=1)
def _parts() -> Any:
    """The macros that the page and its pieces share."""
    return _environment().get_template("parts.html.j2").module


def _environment() -> Any:
    from jinja2 import Environment, FunctionLoader

    return Environment(
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        loader=FunctionLoader(lambda name: _asset("templates", name)),
    )


def render_page(content: Document, drawn: Drawn, work: Path, campaign: Campaign) -> str:
    """The page as text; figures are taken from the folder in which they were just drawn."""
    from markupsafe import Markup

    def picture(figure: dict[str, Any], prefix: str) -> Markup:
        path = work / f"{figure['file']}.svg"
        return Markup(drawing.inline_svg(path, prefix, figure["title"], figure["tips"]))

    styles = styles_of(campaign)
    marks = {s: {"color": f"var(--c{st.color[1:]})"} for s, st in styles.items()}
    template = _environment().get_template("report.html.j2")
    page: str = template.render(
        doc=content,
        picture=picture,
        marks=marks,
        charts={key for own in drawn.charts.values() for key in own},
        packs=drawn.packs,
        css=Markup(_asset("templates", "report.css")),
        light_colours=Markup(_colours(False)),
        dark_colours=Markup(_colours(True)),
        uplot_css=Markup(_asset("assets", "uplot", "uPlot.min.css")),
        uplot_js=Markup(_asset("assets", "uplot", "uPlot.iife.min.js")),
        script=Markup(_asset("templates", "report.js")),
        tables=Markup(_asset("templates", "tables.js")),
        help=Markup(script_json(json.dumps("arrow keys move the cursor, plus and minus zoom, 0 shows all"))),
        open_runs=len(content["runs"]) <= OPEN_RUNS,
    )
    return page
