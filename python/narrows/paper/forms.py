"""The forms in which tables are written. To add a form, add a function and a line to `FORMS`."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from narrows.csv_text import Rows
from narrows.paper.latex_form import MOST_ROWS, write_latex, write_standalone
from narrows.paper.table import Cell, Table
from narrows.text import markdown_table


@dataclass(frozen=True)
class Form:
    """A form: the ending of its files, its description, and the function that writes it."""

    ending: str
    what: str
    write: Callable[[Table], str]


def write_csv(table: Table) -> str:
    """Plain data: a row for each row, numbers in the unit of the head with nine digits."""
    text = io.StringIO()
    rows = Rows(text)
    rows.write([field for column in table.columns for field in column.fields])
    for row in table.rows:
        rows.write(
            f"{datum:.9g}" if isinstance(datum, float) else datum for cell in row for datum in cell.data
        )
    return text.getvalue()


def write_markdown(table: Table) -> str:
    """A table in Markdown, with its notes below."""
    titles = [column.head + (f" ({column.unit})" if column.unit else "") for column in table.columns]
    titles = [_plain(title) for title in titles]
    numbers = [title for title, column in zip(titles, table.columns, strict=True) if column.align == "right"]
    rows = ([_markdown_cell(cell) for cell in row] for row in table.rows)
    notes = "".join(f"\n{_plain(note)}\n" for note in table.notes)
    return markdown_table(titles, rows, numbers) + notes


def _markdown_cell(cell: Cell) -> str:
    text = f"**{_plain(cell.text)}**" if cell.strong and cell.text else _plain(cell.text)
    return " ".join(part for part in (text, _plain(cell.spread), _plain(cell.mark)) if part)


def _plain(text: str) -> str:
    return re.sub(r"[\\|*_`<>\[\]#~&]", lambda match: f"\\{match[0]}", " ".join(text.split()))


#: By the names for `--format`.
FORMS = {
    "latex": Form(".tex", "LaTeX for \\input, with booktabs", write_latex),
    "standalone": Form("", "a LaTeX document of the table alone", write_standalone),
    "csv": Form(".csv", "plain numbers with the ends of intervals", write_csv),
    "markdown": Form(".md", "Markdown", write_markdown),
}


def form_of(output: Path | None) -> str | None:
    """The form by the ending of a file; None if no form has it."""
    ending = output.suffix.lower() if output is not None else ""
    return next((name for name, form in FORMS.items() if ending and form.ending == ending), None)


def warning(table: Table, form: str) -> str:
    """A sentence about a table that does not fit on a page; empty if it does."""
    if form not in ("latex", "standalone") or len(table.rows) <= MOST_ROWS:
        return ""
    return (
        f"the table has {len(table.rows)} rows, and a page has room for about {MOST_ROWS};"
        " --schemes and --only choose rows"
    )
