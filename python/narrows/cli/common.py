"""Parts that several commands share: options, and printing of documents."""

from __future__ import annotations

import json
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from narrows.cli.parameters import option

if TYPE_CHECKING:
    from rich.console import Console

    from narrows.blocks.model import Table
    from narrows.campaign.store import CampaignFolder
    from narrows.documents.results import Results
    from narrows.hosts.remote_host import RemoteOptions


class Parts(StrEnum):
    """The files of a report."""

    HTML = "html"
    PDF = "pdf"
    ALL = "all"
    NONE = "none"


class TableForm(StrEnum):
    """The forms of tables for papers."""

    LATEX = "latex"
    STANDALONE = "standalone"
    CSV = "csv"
    MARKDOWN = "markdown"


#: Requests a table for a paper.
PaperForm = Annotated[
    TableForm | None,
    option(
        "--format",
        help="Write one table for a paper: LaTeX for \\input (with booktabs), a LaTeX document of it alone,"
        " CSV with the ends of intervals, or Markdown.  [default: by the ending of -o: .tex, .csv, .md]",
    ),
]
#: Requests a document in place of tables.
Json = Annotated[bool, option("--json", help="Print one JSON document.")]
#: Files with user-defined metrics.
Metrics = Annotated[
    list[Path] | None,
    option(
        "--metrics",
        metavar="FILE",
        help="Metrics of your own: a file of Python with @narrows.metric functions. Repeatable; all in"
        " ~/.config/narrows/metrics are there anyway.",
    ),
]
#: The choice of schemes, and of values of the matrix.
Schemes = Annotated[
    str | None,
    option(
        "--schemes",
        metavar="A,B",
        help="Only these schemes, separated by commas; of a matrix, all their rows.",
    ),
]
Only = Annotated[
    list[str] | None,
    option(
        "--only",
        metavar="KEY=VALUE",
        help='Only the rows of a matrix with this value, as the scenario writes it: --only droptail="1 bdp".'
        " Repeatable: values of one key are alternatives.",
    ),
]
#: Options for reaching other hosts.
SSH = option("--ssh", metavar="COMMAND", help="The ssh program and its options, such as 'ssh -F FILE'.")
REMOTE_FOLDER = option(
    "--remote-folder",
    metavar="FOLDER",
    help="Where the agent is kept there. [default: .cache/narrows/agents in the home folder]",
)


def write_table(table: Table, form: str, output: Path | None) -> None:
    """Writes a table for a paper to a file, as a whole or not at all, or prints it."""
    from narrows.console import say
    from narrows.paper.forms import FORMS, warning

    text = FORMS[form].write(table)
    if long := warning(table, form):
        say(f"narrows: {long}")
    if output is None:
        print(text, end="")
        return
    from narrows.campaign.json_files import write_atomically

    write_atomically(output, text)
    print(f"table: {output}")


def remote_options(ssh: str, folder: str | None, agent: Path | None) -> RemoteOptions:
    """The options for reaching another host."""
    import shlex

    from narrows.hosts.deploy import read_remote_folder
    from narrows.hosts.remote_host import RemoteOptions

    return RemoteOptions(tuple(shlex.split(ssh)), read_remote_folder(folder), agent)


def names_in(text: str | None) -> list[str]:
    """Names between commas; a comma inside parentheses belongs to the name."""
    import re

    parts = re.split(r",\s*(?![^()]*\))", text or "")
    return [part.strip() for part in parts if part.strip()]


def choose_labels(
    folders: Sequence[CampaignFolder], schemes: str | None, only: list[str] | None
) -> list[str] | None:
    """The labels of the rows that are selected by name and by values of the matrix, from the `campaign.json`
    of several campaigns; `None` if nothing was selected. Raises `UsageError` for names and values that no
    campaign has.
    """
    from narrows.campaign.conditions import Row, choose, read_only, rows_of

    if schemes is None and not only:
        return None
    rows: dict[str, Row] = {}
    for folder in folders:
        labels = [cell.scheme for cell in folder.cells] + [row.scheme for row in folder.header.skipped]
        rows |= rows_of(folder.resolved, dict.fromkeys(labels))
    return [row.label for row in choose(list(rows.values()), names_in(schemes), read_only(only or []))]


def read_metrics(files: list[Path] | None) -> None:
    """Loads user-defined metrics: those of the option, and those of the configuration folder."""
    from narrows.campaign.own_metrics import read_files
    from narrows.console import say

    read_files(files or [], say)


def positive(text: str, kind: str, option: str) -> int:
    """The quantity of an option, in base units and above zero."""
    from narrows.errors import UsageError
    from narrows.scenario.quantity import QuantityError, convert, parse

    try:
        value = int(convert(parse(text, kind), kind, None))
    except QuantityError as error:
        raise UsageError(f"{option}: {error}") from None
    if value < 1:
        raise UsageError(f"{option}: {text} must be more than 0")
    return value


def budget_of(text: str, least: int, most: int) -> tuple[int | None, float | None]:
    """Reads --budget: a number of evaluations within limits, or a time, in seconds."""
    from narrows.errors import UsageError

    plain = text.strip()
    if not plain.isdecimal():
        return None, positive(plain, "span", "--budget") / 1e9
    if not least <= int(plain) <= most:
        raise UsageError(
            f"--budget {plain}: write a number from {least} to {most}, or a time such as '5 min'"
        )
    return int(plain), None


def print_expectations(console: Console, results: Results) -> None:
    """Prints the expectations of the scenario, with their outcomes."""
    if results.expect:
        from narrows.campaign.expectations import lines

        console.print()
        console.print("expected:")
        for line in lines(results.expect, results.metrics):
            console.print(f"  {line}", soft_wrap=True)


def print_done(text: str, as_json: bool, form: str, **document: Any) -> None:
    """Prints the result of a command as a sentence or as a document of this kind on standard output."""
    if as_json:
        print_json({"format": f"narrows/{form}/1", **document})
    else:
        print(text)


def print_json(document: Any) -> None:
    """Prints one document on standard output."""
    from narrows.streams import is_unicode

    print(json.dumps(document, indent=1, ensure_ascii=not is_unicode()))
