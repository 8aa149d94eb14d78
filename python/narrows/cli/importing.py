"""`narrows import`: results of other laboratories as campaigns."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from narrows.cli.app import group, subcommand
from narrows.cli.common import Json

if TYPE_CHECKING:
    from narrows.pantheon.importing import Imported

imports = group(
    "import", "narrows import pantheon data", "Turn results of other laboratories into campaigns."
)


@subcommand(imports, example="narrows import pantheon data -o from-pantheon")
def pantheon(
    data: Annotated[Path, typer.Argument(metavar="DIR", help="Data folder of Pantheon, with its logs.")],
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Folder of the campaign; else one under results/.")
    ] = None,
    schemes: Annotated[
        str | None, typer.Option("--schemes", help="Only these schemes, separated by commas.")
    ] = None,
    raw: Annotated[
        Path | None,
        typer.Option("--raw", help="Folder of the tunnel's raw logs; they are used in place of merged ones."),
    ] = None,
    lenient: Annotated[
        bool, typer.Option("--lenient", help="Read logs with a flaw up to it, and mark their runs.")
    ] = False,
    report: Annotated[bool, typer.Option("--report/--no-report", help="Write the report.")] = True,
    as_json: Json = False,
) -> None:
    """Read Pantheon's logs into records, measure them, and show Pantheon's numbers beside ours.

    Exit codes: 0 every run counts, 3 a log or folder cannot be read, 6 some runs are missing or do not count.
    """
    from narrows.campaign.results_file import to_file
    from narrows.cli.common import print_json
    from narrows.cli.report import build_report
    from narrows.console import say
    from narrows.pantheon.importing import default_folder, import_folder
    from narrows.pantheon.source import read_source

    wanted = [name.strip() for name in schemes.split(",") if name.strip()] if schemes else None
    source = read_source(data, raw, wanted)
    done = import_folder(
        source,
        output or default_folder(source),
        lenient=lenient,
        raw=raw is not None,
        argv=["narrows", *sys.argv[1:]],
        say=say,
    )
    if report:
        for file in build_report(done.folder.path, pdf=True):
            say(f"report: {file}")
    if as_json:
        print_json(to_file(done.results))
    else:
        _print(done)
    say(f"campaign: {done.folder.path}")
    if done.exit_code:
        raise typer.Exit(done.exit_code)


def _print(done: Imported) -> None:
    """Pantheon's table and ours."""
    import json

    from narrows.analysis.tables import print_cells, print_summary
    from narrows.console import stdout_console, table
    from narrows.pantheon.summary import summarise

    console = stdout_console()
    console.print("Pantheon's numbers (means of what it prints for each run):")
    made = table("scheme", whole=("scheme",))
    for title in ("flow", "runs", "throughput\n[Mbit/s]", "95th-%ile delay\n[ms]", "loss\n[%]"):
        made.add_column(title, justify="right", vertical="bottom")
    folder = done.folder
    for scheme in dict.fromkeys(entry["scheme"] for entry in folder.cells):
        files = [
            folder.cell_dir(entry["id"]) / "run.json"
            for entry in folder.cells
            if entry["scheme"] == scheme and entry["state"] == "finished"
        ]
        records = [json.loads(file.read_text(encoding="utf-8")) for file in files]
        for line in summarise(scheme, records):
            made.add_row(
                line.scheme,
                line.flow,
                str(line.runs),
                line.throughput_mbps,
                line.delay_p95_ms,
                line.loss_percent,
            )
    console.print(made)
    console.print()
    console.print("Ours (definitions in the report):")
    print_summary(console, [(folder.path, done.results)])
    console.print()
    print_cells(console, folder.cells)
