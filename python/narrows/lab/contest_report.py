"""The ranking of a contest, to be handed out: as a table, a page and a file of values."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from narrows import __version__
from narrows.analysis.metrics import four_digits
from narrows.blocks import html
from narrows.campaign.json_files import write_atomically
from narrows.csv_text import Rows
from narrows.documents.data import to_data
from narrows.documents.lessons import Contest, Place
from narrows.policy import lock
from narrows.text import plural

if TYPE_CHECKING:
    from rich.console import Console


def write(folder: Path, contest: Contest, shown: Contest) -> list[Path]:
    """Writes everything for the teacher, and the part that students may see; returns the files, the page
    first."""
    texts = {
        "ranking.html": page(shown),
        "ranking.csv": csv_text(shown),
        "ranking.json": _json_text(shown),
        "contest.json": _json_text(contest),
    }
    # Nothing was run if no submission could be.
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        write_atomically(folder / name, text)
    return [folder / name for name in texts]


def _json_text(contest: Contest) -> str:
    return json.dumps(to_data(contest), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def place_text(place: Place) -> str:
    """`2`, or `2 (1 to 3)` if chance might have changed it."""
    low, high = place.place_low, place.place_high
    return f"{place.place}" if low == high == place.place else f"{place.place} ({low} to {high})"


def csv_text(shown: Contest) -> str:
    """A line for each submission."""
    text = io.StringIO()
    rows = Rows(text)
    columns = ("place", "place_low", "place_high", "name", "score", "won", "failed")
    rows.write((*columns, "problems", *(f"{name} power" for name in shown.shown_paths)))
    for place in shown.ranking:
        values = ["" if value is None else f"{value:.6g}" for value in place.powers]
        head = (place.place, place.place_low, place.place_high, place.name, f"{place.score:.6g}")
        rows.write((*head, place.won, place.failed, "; ".join(place.problems), *values))
    return text.getvalue()


def print_ranking(console: Console, shown: Contest) -> None:
    """Prints the ranking as a table, with the problems below it."""
    from narrows.blocks.model import Column, Table
    from narrows.blocks.terminal import print_table

    heads = (
        Column("place", "left"),
        Column("submission", "left"),
        Column("mean\nrank"),
        Column("paths\nwon"),
        Column("paths\nfailed"),
        *(Column(f"{name}\npower", rank=1) for name in shown.shown_paths),
    )
    rows = []
    for place in shown.ranking:
        values = ["-" if value is None else four_digits(value) for value in place.powers]
        counts = (f"{place.score:.2f}", str(place.won), str(place.failed))
        rows.append((place_text(place), place.name, *counts, *values))
    print_table(console, Table.new(heads, rows))
    for line in remarks(shown):
        console.print(line, soft_wrap=True, markup=False)


def remarks(shown: Contest) -> list[str]:
    """Explains the numbers, and lists problems."""
    count = plural(len(shown.paths), "path")
    about = (
        f"mean rank by power (Mbit/s per s of p95 delay) over {count}, {shown.where}d; places in brackets:"
        " where chance might have put it (95 %)"
    )
    return [about, *(f"{place.name}: {text}" for place in shown.ranking for text in place.problems)]


@dataclass(frozen=True)
class _Row:
    about: Place
    place: str
    score: str
    values: list[str]


def page(shown: Contest) -> str:
    """The ranking as one HTML page."""
    from jinja2 import Environment
    from markupsafe import Markup

    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    template = files("narrows.lab").joinpath("templates", "contest.html.j2").read_text(encoding="utf-8")
    style = html.asset("page.css")
    about, *problems = remarks(shown)
    rows = [
        _Row(
            about=place,
            place=place_text(place),
            score=f"{place.score:.2f}",
            values=["–" if value is None else four_digits(value) for value in place.powers],
        )
        for place in shown.ranking
    ]
    return lock(
        environment.from_string(template).render(
            version=__version__,
            css=Markup(style),
            rows=rows,
            paths=shown.shown_paths,
            about=about,
            problems=problems,
        )
    )
