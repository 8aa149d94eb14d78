"""The forms in which tables are written. To add a form, add a function and a line to `FORMS`."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from narrows.blocks import markdown
from narrows.blocks.latex import MOST_ROWS, write_latex, write_standalone
from narrows.blocks.model import Table
from narrows.csv_text import Rows


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
    rows.write([field for column in table.columns for field in column.fields or (column.title,)])
    for row in table.rows:
        data = [datum for cell in row for datum in cell.data or (cell.text,)]
        rows.write(f"{datum:.9g}" if isinstance(datum, float) else datum for datum in data)
    return text.getvalue()


def write_markdown(table: Table) -> str:
    """A table in Markdown, with its notes below."""
    return markdown.render_blocks([table])


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
