r"""Tables in LaTeX, with the rules of booktabs (S. Fear, Publication quality tables in LaTeX).

The table is a box that `\input` puts anywhere, such as into a float; its notes are as wide as the table.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from narrows.blocks.model import Cell, Column, Table
from narrows.latex import escape

#: A table with more rows does not fit on a page.
MOST_ROWS = 50
_RANGE = re.compile(r"(?<=\d)-(?=\d)")
_NUMBER = re.compile(r"(?<![\w.])-(?=\d)")


def write_latex(table: Table) -> str:
    r"""The table, for `\input` into a document that loads booktabs."""
    pairs = [any(row[place].small for row in table.rows) for place in range(len(table.columns))]
    shape = "".join(_shape(column, pair) for column, pair in zip(table.columns, pairs, strict=True))
    count = len(table.columns) + sum(pairs)
    lines = [
        "% A table of Narrows; in the preamble: \\usepackage{booktabs}",
        *(f"% {_comment(source)}" for source in table.sources),
        "\\ifdefined\\narrowstable\\else\\newsavebox\\narrowstable\\fi",
        "\\sbox\\narrowstable{%",
        f"\\begin{{tabular}}{{@{{}}{shape}@{{}}}}",
        "\\toprule",
        *_heads(table.columns, pairs),
        "\\midrule",
        *(_row(row, table.columns, pairs) for row in table.rows),
        "\\bottomrule",
        "\\end{tabular}}%",
        "\\begin{tabular}{@{}l@{}}",
        "\\usebox\\narrowstable",
    ]
    if count and table.notes:
        lines[-1] += "\\\\[1ex]"
        notes = " ".join(escape(note.text) for note in table.notes)
        lines.append(f"\\parbox[t]{{\\wd\\narrowstable}}{{\\footnotesize\\raggedright {notes}}}")
    return "\n".join([*lines, "\\end{tabular}", ""])


def write_standalone(table: Table) -> str:
    """The table as a document of its size (class standalone)."""
    return (
        "\\documentclass[border=2mm]{standalone}\n\\usepackage{booktabs}\n\\begin{document}\n"
        f"{write_latex(table)}\\end{{document}}\n"
    )


def _comment(text: str) -> str:
    """Text of a comment, in ASCII, so that no set-up can stumble over it."""
    return " ".join(text.split()).encode("ascii", "backslashreplace").decode()


def _shape(column: Column, pair: bool) -> str:
    letter = "l" if column.align == "left" else "r"
    return "r@{~}l" if pair else letter


def _heads(columns: Sequence[Column], pairs: Sequence[bool]) -> list[str]:
    lines = []
    for texts in ([column.title for column in columns], [_unit(column) for column in columns]):
        cells = [
            f"\\multicolumn{{2}}{{c}}{{{escape(text)}}}" if pair else escape(text)
            for text, pair in zip(texts, pairs, strict=True)
        ]
        if any(texts):
            lines.append(f"{' & '.join(cells)} \\\\")
    return lines


def _unit(column: Column) -> str:
    return f"({column.unit})" if column.unit else ""


def _row(row: Sequence[Cell], columns: Sequence[Column], pairs: Sequence[bool]) -> str:
    cells = []
    for cell, column, pair in zip(row, columns, pairs, strict=True):
        number = column.align == "right" or pair
        text = _number(cell.text) if number else escape(cell.text)
        text = f"\\textbf{{{text}}}" if cell.kind == "total" and text else text
        text += f"~{escape(', '.join(cell.marks))}" if cell.marks else ""
        cells.append(text)
        if pair:
            cells.append(_number(cell.small or ""))
    # A bracket at the beginning of a row would be an argument of the line break before it.
    return f"{{}}{' & '.join(cells)} \\\\"


def _number(text: str) -> str:
    """A number, or several: a minus is a sign, not a hyphen, and `1-3` is a range."""
    text = _RANGE.sub("–", text)
    return "$-$".join(escape(part) for part in _NUMBER.split(text))
