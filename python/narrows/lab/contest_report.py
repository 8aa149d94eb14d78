"""The ranking of a contest: as a table, a page and a file of values, to be handed out."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from narrows import __version__
from narrows.analysis.metrics import four_digits
from narrows.campaign.store import write_atomically
from narrows.csv_text import Rows
from narrows.policy import locked
from narrows.text import plural

if TYPE_CHECKING:
    from rich.console import Console

Json = Mapping[str, Any]


def write(folder: Path, document: Json, shown: Json) -> list[Path]:
    """Writes everything for the teacher, and the part that students may see; returns the files, the page
    first."""
    texts = {
        "ranking.html": page(shown),
        "ranking.csv": csv_text(shown),
        "ranking.json": _dumped(shown),
        "contest.json": _dumped(document),
    }
    # Nothing has been run where no submission could be.
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        write_atomically(folder / name, text)
    return [folder / name for name in texts]


def _dumped(document: Json) -> str:
    return json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def place(one: Json) -> str:
    """`2`, or `2 (1 to 3)` where chance might have made it another."""
    low, high = one["place_low"], one["place_high"]
    return f"{one['place']}" if low == high == one["place"] else f"{one['place']} ({low} to {high})"


def csv_text(shown: Json) -> str:
    """A line for each submission."""
    text = io.StringIO()
    rows = Rows(text)
    per_path = "values" in shown["ranking"][0]
    names = shown["paths"] if per_path else []
    columns = ("place", "place_low", "place_high", "name", "score", "won", "failed")
    rows.write((*columns, "problems", *(f"{name} power" for name in names)))
    for one in shown["ranking"]:
        values = ["" if value is None else f"{value:.6g}" for value in one.get("values", ())]
        head = (f"{one[key]:.6g}" if key == "score" else one[key] for key in columns)
        rows.write((*head, "; ".join(one["problems"]), *values))
    return text.getvalue()


def print_ranking(console: Console, shown: Json) -> None:
    """The ranking as a table, and below it what went wrong."""
    from narrows.analysis.terminal import Column, FittedTable

    per_path = "values" in shown["ranking"][0]
    paths = shown["paths"] if per_path else []
    table = FittedTable(
        Column("place", "left"),
        Column("submission", "left"),
        Column("mean\nrank"),
        Column("paths\nwon"),
        Column("paths\nfailed"),
        *(Column(f"{name}\npower", rank=1) for name in paths),
    )
    for one in shown["ranking"]:
        values = ["-" if value is None else four_digits(value) for value in one.get("values", ())]
        table.add(
            place(one), one["name"], f"{one['score']:.2f}", str(one["won"]), str(one["failed"]), *values
        )
    table.print(console)
    for line in remarks(shown):
        console.print(line, soft_wrap=True, markup=False)


def remarks(shown: Json) -> list[str]:
    """Explains the numbers, and lists problems."""
    count = plural(len(shown["paths"]), "path")
    said = [
        f"mean rank by power (Mbit/s per s of p95 delay) over {count}, {shown['where']}d; places in brackets:"
        " where chance might have put it (95 %)"
    ]
    return said + [f"{one['name']}: {problem}" for one in shown["ranking"] for problem in one["problems"]]


def page(shown: Json) -> str:
    """The ranking as one HTML page."""
    from jinja2 import Environment
    from markupsafe import Markup

    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    template = files("narrows.lab").joinpath("templates", "contest.html.j2").read_text(encoding="utf-8")
    style = files("narrows.report").joinpath("templates", "report.css").read_text(encoding="utf-8")
    said = remarks(shown)
    rows = [
        {
            **one,
            "place": place(one),
            "score": f"{one['score']:.2f}",
            "values": ["–" if value is None else four_digits(value) for value in one.get("values", ())],
        }
        for one in shown["ranking"]
    ]
    return locked(
        environment.from_string(template).render(
            version=__version__,
            css=Markup(style),
            rows=rows,
            paths=shown["paths"] if "values" in shown["ranking"][0] else [],
            about=said[0],
            problems=said[1:],
        )
    )
