"""`narrows import`: measurements of other tools as campaigns."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from click.exceptions import Exit

from narrows.cli.app import group, subcommand
from narrows.cli.common import Json
from narrows.cli.parameters import argument, option
from narrows.formats import IMPORTS

if TYPE_CHECKING:
    from narrows.campaign.imported import Imported
    from narrows.formats.imports._choice import Choice

imports = group("import", "narrows import pantheon data", "Turn what other tools measured into campaigns.")


@subcommand(imports, example="narrows import pantheon data -o from-pantheon")
def pantheon(
    data: Annotated[Path, argument(metavar="DIR", help="Data folder of Pantheon, with its logs.")],
    output: Annotated[
        Path | None,
        option("-o", "--output", help="Folder of the campaign. [default: a new one in results/]"),
    ] = None,
    schemes: Annotated[
        str | None, option("--schemes", help="Only these schemes, separated by commas.")
    ] = None,
    raw: Annotated[
        Path | None,
        option("--raw", help="Folder of the tunnel's raw logs, which are used instead of the merged ones."),
    ] = None,
    lenient: Annotated[
        bool, option("--lenient", help="Read a damaged log up to the damage, and mark its run.")
    ] = False,
    report: Annotated[bool, option("--report/--no-report", help="Write the report.")] = True,
    as_json: Json = False,
) -> None:
    """Read Pantheon's logs into records, measure them, and show Pantheon's numbers beside ours.

    Exit codes: 0 every run counts, 3 a log or folder cannot be read, 6 some runs are missing or do not count.
    """
    from narrows.cli.common import Parts, print_json
    from narrows.cli.report import build_report
    from narrows.console import say
    from narrows.documents.data import to_data
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
        for file in build_report(done.folder.path, Parts.ALL):
            say(f"report: {file}")
    if as_json:
        print_json(to_data(done.results))
    else:
        _print(done)
    say(f"campaign: {done.folder.path}")
    if done.exit_code:
        raise Exit(done.exit_code)


_Files = Annotated[
    list[Path], argument(metavar="FILE...", help="Files, or folders in which they are looked for.")
]
_Output = Annotated[
    Path | None, option("-o", "--output", help="Folder of the campaign; else one under results/.")
]
_Scheme = Annotated[
    str | None, option("--scheme", help="Name of the scheme; else what the file or its name tells.")
]
_Report = Annotated[bool, option("--report/--no-report", help="Write the report.")]


def _add(tool: str, what: str) -> None:
    """Registers the command of one format."""
    from narrows.formats import EXAMPLES

    def run(
        files: _Files,
        output: _Output = None,
        scheme: _Scheme = None,
        report: _Report = True,
        as_json: Json = False,
    ) -> None:
        _import(tool, files, output, scheme, report, as_json)

    def run_captures(
        files: _Files,
        output: _Output = None,
        scheme: _Scheme = None,
        ports: Annotated[
            list[int] | None,
            option(
                "--port",
                min=0,
                max=65_535,
                help="Only connections with this port; may be given several times.",
            ),
        ] = None,
        flows: Annotated[
            list[int] | None,
            option(
                "--flow",
                min=1,
                help="Only this connection, by its number in the order of first packets; may be given several"
                " times.",
            ),
        ] = None,
        report: _Report = True,
        as_json: Json = False,
    ) -> None:
        from narrows.formats.imports._choice import Choice

        _import(tool, files, output, scheme, report, as_json, Choice(ports or (), flows or ()))

    command = run_captures if tool == "pcapng" else run
    command.__doc__ = (
        f"Read {what} into a campaign, and measure it.\n\n"
        "Files of one scheme are its runs. docs/guide/other-tools.md describes which values each format has."
        "\n\nExit codes: 0 done, 3 a file cannot be read, 6 some runs do not count."
    )
    subcommand(imports, tool, example=EXAMPLES[tool])(command)


def _import(
    tool: str,
    files: list[Path],
    output: Path | None,
    scheme: str | None,
    report: bool,
    as_json: bool,
    choice: Choice | None = None,
) -> None:
    """Imports files of one format and shows the results."""
    from dataclasses import asdict

    from narrows.analysis.tables import print_cells, print_summary
    from narrows.cli.common import Parts, print_json
    from narrows.cli.report import build_report
    from narrows.console import say, stdout_console
    from narrows.documents.data import to_data
    from narrows.formats import import_files

    argv = ["narrows", *sys.argv[1:]]
    done = import_files(tool, files, output, scheme=scheme, choice=choice, argv=argv, say=say)
    if report:
        for file in build_report(done.folder.path, Parts.ALL):
            say(f"report: {file}")
    if as_json:
        print_json(to_data(done.results) | {"unread": [asdict(part) for part in done.unread]})
    else:
        console = stdout_console()
        print_summary(console, [(done.folder.path, done.results)])
        console.print()
        print_cells(console, done.folder.cells)
    say(f"campaign: {done.folder.path}")
    if done.exit_code:
        raise Exit(done.exit_code)


for _tool, _what in IMPORTS.items():
    _add(_tool, _what)


def _print(done: Imported) -> None:
    """Prints Pantheon's table and ours."""
    from narrows.analysis.tables import print_cells, print_summary
    from narrows.campaign.json_files import read_run
    from narrows.console import Listing, stdout_console
    from narrows.pantheon.summary import summarise

    console = stdout_console()
    console.print("Pantheon's numbers (means of what it prints for each run):")
    numbers = ("flow", "runs", "throughput\n[Mbit/s]", "95th-%ile delay\n[ms]", "loss\n[%]")
    made = Listing("scheme", *numbers, whole=("scheme",), right=numbers)
    folder = done.folder
    for scheme in dict.fromkeys(entry.scheme for entry in folder.cells):
        records = [
            read_run(folder.cell_dir(entry.id))
            for entry in folder.cells
            if entry.scheme == scheme and entry.is_finished
        ]
        for line in summarise(scheme, [record.pantheon for record in records if record.pantheon]):
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
