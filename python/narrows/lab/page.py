"""A laboratory's report as one self-contained HTML page without scripts."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from narrows import __version__
from narrows.analysis.metrics import unit_of
from narrows.blocks import html
from narrows.documents.laboratory import (
    ARTEFACT,
    Accuracy,
    AccuracyLimit,
    LabCell,
    LabColumn,
    LabExperiment,
    LabFigure,
    LabReport,
    ReversedPair,
)
from narrows.documents.results import Quantity
from narrows.lab import answer, text
from narrows.policy import lock


@dataclass(frozen=True)
class _Figure:
    about: LabFigure
    #: The PNG in Base64; None if it was not drawn.
    content: str | None


@dataclass(frozen=True)
class _Cell:
    ours: str
    runs: str
    theirs: str
    error: str
    #: `close`, `near` or `far` by its error, or `artefact`.
    size: str
    note: str


@dataclass(frozen=True)
class _Row:
    case: str
    cells: list[_Cell]


@dataclass(frozen=True)
class _Table:
    """The conditions that test the same schemes."""

    schemes: tuple[str, ...]
    rows: list[_Row]


@dataclass(frozen=True)
class _Case:
    case: str
    error: str
    tau: str
    pairs: str


@dataclass(frozen=True)
class _Column:
    about: LabColumn
    unit: str
    row: list[str]
    tables: list[_Table]
    published: bool
    cases: list[_Case]
    reversed: list[str]
    figures: list[_Figure]


@dataclass(frozen=True)
class _Limit:
    about: AccuracyLimit
    text: str


@dataclass(frozen=True)
class _Experiment:
    about: LabExperiment
    facts: str


def page(report: LabReport, folder: Path) -> str:
    """The page as text, with the figures of the run's `folder`; the same report yields the same bytes."""
    from jinja2 import Environment
    from markupsafe import Markup

    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    templates = files("narrows.lab").joinpath("templates")
    template = environment.from_string(templates.joinpath("lab.html.j2").read_text(encoding="utf-8"))
    style = html.asset("page.css")
    own = templates.joinpath("lab.css").read_text(encoding="utf-8")
    figures = [_figure(figure, folder) for figure in report.figures]
    return lock(
        template.render(
            version=__version__,
            doc=report,
            css=Markup(style + own),
            compared=report.has_published,
            columns=[_column(column, figures) for column in report.columns],
            figures=[figure for figure in figures if figure.about.column is None],
            limits=[_Limit(limit, answer.limit_text(limit, report.labels)) for limit in report.expect],
            artefacts=text.artefacts(report),
            experiments=[
                _Experiment(experiment, text.facts(experiment)) for experiment in report.experiments
            ],
        )
    )


def _figure(figure: LabFigure, folder: Path) -> _Figure:
    if figure.file is None:
        return _Figure(figure, None)
    return _Figure(figure, base64.b64encode((folder / figure.file).read_bytes()).decode("ascii"))


def _column(column: LabColumn, figures: list[_Figure]) -> _Column:
    return _Column(
        about=column,
        unit=unit_of(column.metric),
        row=text.summary_row(column),
        tables=_tables(column),
        published=any(cell.theirs is not None for cell in column.cells),
        cases=[_case(case, accuracy) for case, accuracy in column.by_case.items() if accuracy.cells],
        reversed=[_describe_reversal(pair) for pair in column.reversed],
        figures=[figure for figure in figures if figure.about.column == column.name],
    )


def _case(case: str, accuracy: Accuracy) -> _Case:
    return _Case(
        case=case,
        error=answer.number(accuracy.mean_relative_error, "mean_relative_error"),
        tau=answer.number(accuracy.tau, "tau"),
        pairs=text.pairs_of(accuracy),
    )


def _describe_reversal(pair: ReversedPair) -> str:
    doubt = " (our runs overlap)" if pair.within_runs else ""
    return (
        f"{pair.case}: published {pair.published_more} above {pair.published_less}, here the reverse{doubt}"
    )


def _tables(column: LabColumn) -> list[_Table]:
    """One table for each set of schemes, with a row per condition and a column per scheme."""
    tables: dict[tuple[str, ...], list[_Row]] = {}
    by_case: dict[tuple[str, str], dict[str, LabCell]] = {}
    for cell in column.cells:
        by_case.setdefault((cell.experiment, cell.case), {})[cell.scheme] = cell
    several = len({experiment for experiment, _ in by_case}) > 1
    for (experiment, case), row in by_case.items():
        name = f"{experiment}: {case}" if several and experiment != case else case
        cells = [_cell(cell, column.metric) for cell in row.values()]
        tables.setdefault(tuple(row), []).append(_Row(name, cells))
    return [_Table(schemes, rows) for schemes, rows in tables.items()]


def _cell(cell: LabCell, metric: Quantity) -> _Cell:
    if cell.state == ARTEFACT:
        size = "artefact"
    elif cell.relative is None:
        size = ""
    else:
        error = abs(cell.relative)
        size = "close" if error <= answer.CLOSE else "near" if error <= answer.NEAR else "far"
    return _Cell(
        ours=text.value_of(cell.ours, metric),
        runs=text.runs_of(cell, metric),
        theirs=text.value_of(cell.theirs, metric) if cell.theirs is not None else "",
        error=text.error_of(cell, metric),
        size=size,
        note=text.note_of(cell),
    )
