"""A laboratory's report as one HTML page: everything in it, nothing loaded from anywhere, no script."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from narrows import __version__
from narrows.analysis.metrics import four_digits, unit_of
from narrows.documents.results import Quantity
from narrows.lab import answer, text
from narrows.lab.comparing import ARTEFACT
from narrows.policy import locked
from narrows.text import plural

Json = Mapping[str, Any]


def page(document: Json, folder: Path) -> str:
    """The page as text, with the figures of the run's `folder`; the same document makes the same bytes."""
    from jinja2 import Environment
    from markupsafe import Markup

    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    templates = files("narrows.lab").joinpath("templates")
    template = environment.from_string(templates.joinpath("lab.html.j2").read_text(encoding="utf-8"))
    style = files("narrows.report").joinpath("templates", "report.css").read_text(encoding="utf-8")
    own = templates.joinpath("lab.css").read_text(encoding="utf-8")
    columns = document["columns"]
    labels = {column["name"]: column["label"] for column in columns}
    figures = [_figure(figure, folder) for figure in document["figures"]]
    return locked(
        template.render(
            version=__version__,
            doc=document,
            css=Markup(style + own),
            compared=any(column["all"]["cells"] for column in columns),
            columns=[
                {
                    **_column(column),
                    "figures": [figure for figure in figures if figure["column"] == column["name"]],
                }
                for column in columns
            ],
            figures=[figure for figure in figures if figure["column"] is None],
            limits=[{**one, "text": answer.limit(one, labels)} for one in document["expect"]],
            artefacts=text.artefacts(document),
            experiments=[{**one, "facts": _facts(one)} for one in document["experiments"]],
        )
    )


def _figure(figure: Json, folder: Path) -> dict[str, Any]:
    content = None
    if figure["file"] is not None:
        content = base64.b64encode((folder / figure["file"]).read_bytes()).decode("ascii")
    return {**figure, "content": content}


def _facts(one: Json) -> str:
    verdicts = ", ".join(f"{count} {word}" for word, count in one["verdicts"].items())
    return f"{four_digits(one['seconds'])} s, {plural(one['runs'], 'run')} each: {verdicts}"


def _column(column: Json) -> dict[str, Any]:
    unit = unit_of(column["metric"])
    of, ranked = column["all"], column["ranked"]
    return {
        "label": column["label"],
        "id": f"column-{column['name']}",
        "unit": unit,
        "definition": column["definition"],
        "statistic": column["statistic"],
        "row": text.summary_row(column),
        "tables": _tables(column),
        "published": any(cell["theirs"] is not None for cell in column["cells"]),
        "cases": [
            {
                "case": case,
                "error": answer.number(one["mean_relative_error"], "mean_relative_error"),
                "tau": answer.number(one["tau"], "tau"),
                "pairs": text.pairs_of(one),
            }
            for case, one in column["by_case"].items()
            if one["cells"]
        ],
        "reversed": [_reversed(one) for one in column["reversed"]],
        "findings": column["findings"],
        "not_compared": of["artefacts"] + of["not_measured"],
        "tau": answer.number(ranked["tau"], "tau"),
    }


def _reversed(one: Json) -> str:
    where = one["case"]
    doubt = " (the runs of ours overlap)" if one["within_runs"] else ""
    return (
        f"{where}: published {one['published_more']} above {one['published_less']}, here the reverse{doubt}"
    )


def _tables(column: Json) -> list[dict[str, Any]]:
    """One table for each set of schemes: conditions below each other, schemes side by side."""
    found: dict[tuple[str, ...], dict[str, dict[str, Json]]] = {}
    by_case: dict[tuple[str, str], dict[str, Json]] = {}
    for cell in column["cells"]:
        by_case.setdefault((cell["experiment"], cell["case"]), {})[cell["scheme"]] = cell
    several = len({experiment for experiment, _ in by_case}) > 1
    for (experiment, case), row in by_case.items():
        name = f"{experiment}: {case}" if several and experiment != case else case
        found.setdefault(tuple(row), {})[name] = row
    return [
        {
            "schemes": schemes,
            "rows": [
                {"case": case, "cells": [_cell(row[scheme], column["metric"]) for scheme in schemes]}
                for case, row in rows.items()
            ],
        }
        for schemes, rows in found.items()
    ]


def _cell(cell: Json, metric: Quantity) -> dict[str, Any]:
    relative = cell["relative"]
    size = (
        ""
        if relative is None
        else "close"
        if abs(relative) <= answer.CLOSE
        else ("near" if abs(relative) <= answer.NEAR else "far")
    )
    notes: Sequence[str] = [note for note in (text.note_of(cell),) if note]
    return {
        "ours": text.value_of(cell["ours"], metric),
        "runs": text.runs_of(cell, metric),
        "theirs": text.value_of(cell["theirs"], metric) if cell["theirs"] is not None else "",
        "error": text.error_of(cell, metric),
        "size": "artefact" if cell["state"] == ARTEFACT else size,
        "note": "; ".join(notes),
    }
