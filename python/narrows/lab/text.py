"""A laboratory's report on the terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from narrows.analysis.metrics import four_digits, show_number, unit_of
from narrows.analysis.terminal import Column, FittedTable, fold, width
from narrows.documents.results import Quantity
from narrows.lab.answer import limit, number
from narrows.text import plural

if TYPE_CHECKING:
    from rich.console import Console

    from narrows.lab.tasks import Task

Json = Mapping[str, Any]


def print_report(console: Console, document: Json, cells: bool) -> None:
    """The whole report; the cells of all columns only if they are wanted."""
    _print_answer(console, document)
    columns = document["columns"]
    if any(column["all"]["cells"] for column in columns):
        _head(console, "Ours and theirs")
        _summary(columns).print(console)
    if cells or sum(len(column["cells"]) for column in columns) <= _FEW:
        for column in columns:
            _print_cells(console, column)
    else:
        _print(console, "\n--cells shows every value; report.html has them all.", "dim")
    _print_relations(console, document)
    _print_limits(console, document)
    for title, side in (("What the published table shows", "theirs"), ("What ours shows", "ours")):
        said = _findings(columns, side)
        shown = said if cells else said[:_MOST_FINDINGS]
        _print_list(console, title, shown)
        if len(shown) < len(said):
            _print(console, f"- and {len(said) - len(shown)} more, with --cells or in report.html", "dim")
    for title, key in _LISTS:
        _print_list(console, title, document[key])
    _print_list(console, "Published values that are no measurements", artefacts(document))


def print_task(console: Console, document: Json, task: Task) -> None:
    """One task of a lesson after it has run: its values, its figures, and its questions."""
    _print(console, task.do, "bold")
    rows = task.conditions
    columns = [
        (column, {(cell["scheme"], cell["case"]): cell for cell in column["cells"]})
        for column in document["columns"]
    ]
    columns = [(column, cells) for column, cells in columns if any(pair in cells for pair in rows)]
    if columns:
        console.print()
        heads = [
            Column("\n".join(_head_lines(column)), rank=rank) for rank, (column, _) in enumerate(columns)
        ]
        table = FittedTable(Column("scheme", "left"), Column("condition", "left"), *heads)
        for pair in rows:
            values = [
                value_of(cells[pair]["ours"], column["metric"]) if pair in cells else ""
                for column, cells in columns
            ]
            table.add(*pair, *values)
        table.print(console)
    for figure in document["figures"]:
        if figure["task"] == task.name:
            console.print()
            _print(console, f"Look at {document['folder']}/{figure['file']}: {figure['caption']}")
    if task.questions:
        console.print()
        _print(console, f"Answer in {document['folder']}/answers.yaml:")
        for asked in task.questions:
            _print(console, f"  {task.name}.{asked.name}: {asked.ask}")


def _head_lines(column: Json) -> list[str]:
    """The label of a column and its unit, on lines short enough for several columns beside each other."""
    unit = unit_of(column["metric"])
    return [*fold(str(column["label"]), _HEAD), *([f"[{unit}]"] if unit else [])]


#: Most letters in a line of a head.
_HEAD = 14
#: So many cells are shown unasked, and so many findings of each table.
_FEW, _MOST_FINDINGS = 60, 15
_LISTS = (
    ("What is certain about the original", "certain"),
    ("What is assumed about it", "assumed"),
    ("What was tried where ours differs", "tried"),
)


def _print_answer(console: Console, document: Json) -> None:
    _print(console, f"{document['title']}", "bold")
    _print(console, document["question"])
    console.print()
    for text in document["answer"]:
        _print(console, text)
    for one in document["experiments"]:
        verdicts = ", ".join(f"{count} {word}" for word, count in one["verdicts"].items())
        length = f"{four_digits(one['seconds'])} s, {plural(one['runs'], 'run')} each"
        _print(console, f"{one['name']}: {document['where']}, {length}: {verdicts}", "dim")


def _summary(columns: list[Json]) -> FittedTable:
    table = FittedTable(
        Column("column", "left"),
        Column("values"),
        Column("mean\nerror"),
        Column("in its\nunit", rank=2),
        Column("mean\n|ln|", rank=3),
        Column("tau"),
        Column("pairs in the\nsame order"),
        Column("not\ncompared", rank=1),
    )
    for column in columns:
        table.add(*summary_row(column))
    return table


def summary_row(column: Json) -> list[str]:
    """A column in one line: label, values, errors, order, and how many values are not compared."""
    of, ranked = column["all"], column["ranked"]
    return [
        column["label"],
        str(of["cells"]),
        number(of["mean_relative_error"], "mean_relative_error"),
        _in_unit(of["mean_absolute_error"], column["metric"]),
        number(of["mean_log_error"], "mean_log_error"),
        number(ranked["tau"], "tau"),
        pairs_of(ranked),
        str(of["artefacts"] + of["not_measured"]),
    ]


def pairs_of(statistics: Json) -> str:
    """`9 of 10`: the pairs in the same order; a pair that is tied on one side alone is not."""
    pairs = statistics["pairs"]
    return f"{statistics['same']} of {pairs}" if pairs else "–"


def _in_unit(value: float | None, metric: Quantity) -> str:
    return "–" if value is None else f"{show_number(value, metric)} {unit_of(metric)}".rstrip()


def _print_cells(console: Console, column: Json) -> None:
    unit = unit_of(column["metric"])
    _head(console, f"{column['label']}{f' [{unit}]' if unit else ''}")
    _print(console, column["definition"], "dim")
    several = len({cell["experiment"] for cell in column["cells"]}) > 1
    published = any(cell["theirs"] is not None for cell in column["cells"])
    table = FittedTable(
        Column("condition", "left"),
        Column("scheme", "left"),
        *([Column("published")] if published else []),
        Column("ours"),
        Column("runs", "left", rank=1),
        *([Column("error")] if published else []),
        Column("", "left", folded=True),
    )
    for cell in column["cells"]:
        case = (
            f"{cell['experiment']}: {cell['case']}"
            if several and cell["case"] != cell["experiment"]
            else cell["case"]
        )
        theirs = [value_of(cell["theirs"], column["metric"])] if published else []
        error = [error_of(cell, column["metric"])] if published else []
        ours = value_of(cell["ours"], column["metric"])
        table.add(case, cell["scheme"], *theirs, ours, runs_of(cell, column["metric"]), *error, note_of(cell))
    table.print(console)


def value_of(value: float | None, metric: Quantity) -> str:
    """A value, or a dash."""
    return "–" if value is None else show_number(value, metric)


def runs_of(cell: Json, metric: Quantity) -> str:
    """The least and the largest of the runs."""
    if len(cell["runs"]) < 2:
        return ""
    return f"{show_number(min(cell['runs']), metric)} to {show_number(max(cell['runs']), metric)}"


def error_of(cell: Json, metric: Quantity) -> str:
    """The error of our value: a share, or the difference where theirs is zero or negative."""
    if cell["relative"] is not None:
        return f"{cell['relative'] * 100:+.{0 if abs(cell['relative']) >= 0.1 else 1}f} %"
    if cell["absolute"] is not None:
        sign = "+" if cell["absolute"] >= 0 else ""
        return f"{sign}{show_number(cell['absolute'], metric)} {unit_of(metric)}".rstrip()
    return ""


def note_of(cell: Json) -> str:
    """Remarks about a cell."""
    parts = []
    if cell["artefact"]:
        parts.append("artefact")
    if cell["why"]:
        parts.append(str(cell["why"]))
    if cell["never"] and cell["ours"] is not None:
        parts.append(f"never in {plural(cell['never'], 'run')}")
    return "; ".join(parts)


def _print_relations(console: Console, document: Json) -> None:
    if not document["relations"]:
        return
    _head(console, "Statements of the original")
    table = FittedTable(Column("statement", "left"), Column("there", "left"), Column("here", "left"))
    for one in document["relations"]:
        table.add(one["says"], _side(one, "published", "theirs"), _side(one, "here", "ours"))
    table.print(console)
    for one in document["relations"]:
        if one["published"] != one["here"] and one["records"]:
            records = " ".join(f"{document['folder']}/{record}" for record in one["records"][:2])
            _print(console, f"Traces of “{one['says']}”: narrows show {records}", "dim")


def _side(one: Json, outcome: str, values: str) -> str:
    return f"{one[outcome]} ({' and '.join(one['values'][values])})"


def _print_limits(console: Console, document: Json) -> None:
    labels = {column["name"]: column["label"] for column in document["columns"]}
    if document["expect"]:
        _head(console, "Limits")
    for one in document["expect"]:
        _print(console, f"{one['outcome']}: {limit(one, labels)}")


def _findings(columns: list[Json], side: str) -> list[str]:
    return [text for column in columns for text in column["findings"][side]]


def artefacts(document: Json) -> list[str]:
    """The published values that are no measurements, with the reasons."""
    labels = {column["name"]: column["label"] for column in document["columns"]}
    return [
        f"{labels[one['column']]}: {one['why']}" for one in document["artefacts"] if one["column"] in labels
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
