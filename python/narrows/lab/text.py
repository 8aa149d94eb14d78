"""A laboratory's report on the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from narrows.analysis.metrics import four_digits, show_number, unit_of
from narrows.blocks.model import Cell, Column, Table
from narrows.blocks.terminal import fold, print_table, width
from narrows.documents.laboratory import Accuracy, LabCell, LabColumn, LabExperiment, LabReport
from narrows.documents.results import Quantity
from narrows.lab.answer import limit_text, number
from narrows.text import plural

if TYPE_CHECKING:
    from rich.console import Console

    from narrows.lab.tasks import Task


def print_report(console: Console, report: LabReport, cells: bool) -> None:
    """Prints the whole report; the cells of all columns only on request."""
    _print_answer(console, report)
    columns = report.columns
    if report.has_published:
        _head(console, "Ours and theirs")
        print_table(console, _summary(columns))
    if cells or sum(len(column.cells) for column in columns) <= _FEW:
        for column in columns:
            _print_cells(console, column)
    else:
        _print(console, "\n--cells shows every value; report.html has them all.", "dim")
    _print_relations(console, report)
    _print_limits(console, report)
    theirs = [text for column in columns for text in column.findings.theirs]
    ours = [text for column in columns for text in column.findings.ours]
    for title, said in (("Findings of the published table", theirs), ("Findings of our runs", ours)):
        shown = said if cells else said[:_MOST_FINDINGS]
        _print_list(console, title, shown)
        if len(shown) < len(said):
            _print(console, f"- and {len(said) - len(shown)} more, with --cells or in report.html", "dim")
    _print_list(console, "Known facts about the original", report.certain)
    _print_list(console, "Assumptions about it", report.assumed)
    _print_list(console, "Attempts to explain differences", report.tried)
    _print_list(console, "Published values that are no measurements", artefacts(report))


def print_task(console: Console, report: LabReport, task: Task) -> None:
    """Prints one task of a lesson after it has run: its values, its figures, and its questions."""
    _print(console, task.do, "bold")
    rows = task.conditions
    columns = [
        (column, {(cell.scheme, cell.case): cell for cell in column.cells}) for column in report.columns
    ]
    columns = [(column, cells) for column, cells in columns if any(pair in cells for pair in rows)]
    if columns:
        console.print()
        values_of = [
            Column("\n".join(_head_lines(column)), rank=rank) for rank, (column, _) in enumerate(columns)
        ]
        heads = (Column("scheme", "left"), Column("condition", "left"), *values_of)
        rows_of: list[list[str | Cell]] = []
        for pair in rows:
            values = [
                value_of(cells[pair].ours, column.metric) if pair in cells else ""
                for column, cells in columns
            ]
            rows_of.append([*pair, *values])
        print_table(console, Table.new(heads, rows_of))
    for figure in report.figures:
        if figure.task == task.name:
            console.print()
            _print(console, f"Look at {report.folder}/{figure.file}: {figure.caption}")
    if task.questions:
        console.print()
        _print(console, f"Answer in {report.folder}/answers.yaml:")
        for asked in task.questions:
            _print(console, f"  {task.name}.{asked.name}: {asked.ask}")


def _head_lines(column: LabColumn) -> list[str]:
    """The label of a column and its unit, on lines short enough for several columns side by side."""
    unit = unit_of(column.metric)
    return [*fold(str(column.label), _HEAD), *([f"[{unit}]"] if unit else [])]


#: Maximum length of a line of a head.
_HEAD = 14
#: Up to this many cells, and findings of each table, are shown by default.
_FEW, _MOST_FINDINGS = 60, 15


def _print_answer(console: Console, report: LabReport) -> None:
    _print(console, f"{report.title}", "bold")
    _print(console, report.question)
    console.print()
    for text in report.answer:
        _print(console, text)
    for experiment in report.experiments:
        _print(console, f"{experiment.name}: {report.where}, {facts(experiment)}", "dim")


def facts(experiment: LabExperiment) -> str:
    """Duration, runs and verdicts of an experiment, and the rows whose models Narrows trained."""
    verdicts = ", ".join(f"{count} {word}" for word, count in experiment.verdicts.items())
    own = f"; {experiment.own_models}" if experiment.own_models else ""
    return f"{four_digits(experiment.seconds)} s, {plural(experiment.runs, 'run')} each: {verdicts}{own}"


def _summary(columns: list[LabColumn]) -> Table:
    heads = (
        Column("column", "left"),
        Column("values"),
        Column("mean\nerror"),
        Column("in its\nunit", rank=2),
        Column("mean\n|ln|", rank=3),
        Column("tau"),
        Column("pairs in the\nsame order"),
        Column("not\ncompared", rank=1),
    )
    rows_of: list[list[str | Cell]] = []
    for column in columns:
        rows_of.append([*summary_row(column)])
    return Table.new(heads, rows_of)


def summary_row(column: LabColumn) -> list[str]:
    """A column in one line: label, values, errors, order, and the number of values without comparison."""
    whole, ranked = column.all, column.ranked
    return [
        column.label,
        str(whole.cells),
        number(whole.mean_relative_error, "mean_relative_error"),
        _in_unit(whole.mean_absolute_error, column.metric),
        number(whole.mean_log_error, "mean_log_error"),
        number(ranked.tau, "tau"),
        pairs_of(ranked),
        str(whole.artefacts + whole.not_measured),
    ]


def pairs_of(accuracy: Accuracy) -> str:
    """`9 of 10`: the pairs in the same order; a pair that is tied on one side only does not count."""
    return f"{accuracy.same} of {accuracy.pairs}" if accuracy.pairs else "–"


def _in_unit(value: float | None, metric: Quantity) -> str:
    return "–" if value is None else f"{show_number(value, metric)} {unit_of(metric)}".rstrip()


def _print_cells(console: Console, column: LabColumn) -> None:
    unit = unit_of(column.metric)
    _head(console, f"{column.label}{f' [{unit}]' if unit else ''}")
    _print(console, column.definition, "dim")
    several = len({cell.experiment for cell in column.cells}) > 1
    published = any(cell.theirs is not None for cell in column.cells)
    heads = (
        Column("condition", "left"),
        Column("scheme", "left"),
        *([Column("published")] if published else []),
        Column("ours"),
        Column("runs", "left", rank=1),
        *([Column("error")] if published else []),
        Column("", "left", folded=True),
    )
    rows_of: list[list[str | Cell]] = []
    for cell in column.cells:
        case = f"{cell.experiment}: {cell.case}" if several and cell.case != cell.experiment else cell.case
        theirs = [value_of(cell.theirs, column.metric)] if published else []
        error = [error_of(cell, column.metric)] if published else []
        ours = value_of(cell.ours, column.metric)
        rows_of.append([case, cell.scheme, *theirs, ours, runs_of(cell, column.metric), *error])
        rows_of[-1].append(note_of(cell))
    print_table(console, Table.new(heads, rows_of))


def value_of(value: float | None, metric: Quantity) -> str:
    """A value, or a dash."""
    return "–" if value is None else show_number(value, metric)


def runs_of(cell: LabCell, metric: Quantity) -> str:
    """The smallest and the largest run."""
    if len(cell.runs) < 2:
        return ""
    return f"{show_number(min(cell.runs), metric)} to {show_number(max(cell.runs), metric)}"


def error_of(cell: LabCell, metric: Quantity) -> str:
    """The error of our value: a share, or the difference if theirs is zero or negative."""
    if cell.relative is not None:
        return f"{cell.relative * 100:+.{0 if abs(cell.relative) >= 0.1 else 1}f} %"
    if cell.absolute is not None:
        sign = "+" if cell.absolute >= 0 else ""
        return f"{sign}{show_number(cell.absolute, metric)} {unit_of(metric)}".rstrip()
    return ""


def note_of(cell: LabCell) -> str:
    """Remarks about a cell."""
    parts = []
    if cell.artefact:
        parts.append("artefact")
    if cell.why:
        parts.append(str(cell.why))
    if cell.never and cell.ours is not None:
        parts.append(f"never in {plural(cell.never, 'run')}")
    return "; ".join(parts)


def _print_relations(console: Console, report: LabReport) -> None:
    if not report.relations:
        return
    _head(console, "Statements of the original")
    heads = (
        Column("statement", "left"),
        Column("there", "left"),
        Column("here", "left"),
    )
    rows_of: list[list[str | Cell]] = []
    for relation in report.relations:
        there, here = " and ".join(relation.values.theirs), " and ".join(relation.values.ours)
        rows_of.append([relation.says, f"{relation.published} ({there})", f"{relation.here} ({here})"])
    print_table(console, Table.new(heads, rows_of))
    for relation in report.relations:
        if relation.published != relation.here and relation.records:
            records = " ".join(f"{report.folder}/{record}" for record in relation.records[:2])
            _print(console, f"Traces of “{relation.says}”: narrows show {records}", "dim")


def _print_limits(console: Console, report: LabReport) -> None:
    if report.expect:
        _head(console, "Limits")
    for limit in report.expect:
        _print(console, f"{limit.outcome}: {limit_text(limit, report.labels)}")


def artefacts(report: LabReport) -> list[str]:
    """The published values that are not measurements, with the reasons."""
    labels = report.labels
    return [
        f"{labels[artefact.column]}: {artefact.why}"
        for artefact in report.artefacts
        if artefact.column in labels
    ]


def _print_list(console: Console, title: str, texts: list[str]) -> None:
    if texts:
        _head(console, title)
    for text in texts:
        lines = fold(text, width(console.file) - 2)
        for number_of, line in enumerate(lines):
            console.print(f"{'- ' if number_of == 0 else '  '}{line}", soft_wrap=True, markup=False)


def _head(console: Console, text: str) -> None:
    console.print()
    _print(console, text, "bold")


def _print(console: Console, text: str, style: str | None = None) -> None:
    for line in fold(text, width(console.file)) or [""]:
        console.print(line, soft_wrap=True, style=style, markup=False)
