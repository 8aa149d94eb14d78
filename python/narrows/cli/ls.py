"""`narrows ls`, `note`, `tag` and `merge`: folders of campaigns."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from click.exceptions import Exit

from narrows.cli.app import command
from narrows.cli.common import Json
from narrows.cli.parameters import argument, option

if TYPE_CHECKING:
    from rich.console import Console

    from narrows.campaign.gathering import Gathered
    from narrows.documents.listing import ListLine


_TITLES = ["campaign", "made", "plane", "runs", "verdicts"]
_RUNS = 3


@command(example="narrows ls results --tag paper")
def ls(
    folders: Annotated[
        list[Path] | None,
        argument(metavar="[DIR]...", help="Folders below which campaigns are. [default: results]"),
    ] = None,
    tag: Annotated[
        list[str] | None, option("--tag", help="Only campaigns that have this tag. Repeatable.")
    ] = None,
    as_json: Json = False,
) -> None:
    """List campaigns and sweeps with verdicts, tags and notes.

    Verdicts are counted by run, for sweeps by cell, with the points that have an invalid or failed cell. The
    newest comes last. A campaign that is damaged, of a newer version or being written is reported in one
    sentence; the others are listed.

    Exit codes: 0 all could be read, 3 a folder does not exist or some campaign could not be read.
    """
    from narrows.campaign.gathering import gather
    from narrows.cli.common import print_json
    from narrows.console import say, stdout_console
    from narrows.documents.data import to_data
    from narrows.documents.listing import Listing
    from narrows.errors import EXIT_BAD_INPUT

    result = gather(folders or [Path("results")])
    lines = [_line(item) for item in result] + _sweep_lines(folders or [Path("results")])
    lines.sort(key=lambda line: (not line.is_readable, line.created_at or "", line.path))
    wanted = set(tag or ())
    kept = [line for line in lines if wanted <= set(line.tags or ())]
    if as_json:
        print_json(to_data(Listing(campaigns=kept)))
    else:
        _print(stdout_console(), [line for line in kept if line.is_readable], bool(lines), wanted)
        for line in lines:
            if line.problem:
                say(line.problem)
    if not all(line.is_readable for line in lines):
        raise Exit(EXIT_BAD_INPUT)


def _line(gathered: Gathered) -> ListLine:
    """One campaign for the list."""
    from narrows.campaign import notes
    from narrows.campaign.gathering import count_verdicts
    from narrows.documents.listing import ListLine
    from narrows.documents.notes import Notes
    from narrows.errors import NarrowsError

    problem = gathered.note
    if gathered.folder is None:
        return ListLine(path=str(gathered.path), problem=problem)
    header = gathered.folder.header
    try:
        said = notes.read(gathered.path)
    except NarrowsError as error:
        said, problem = Notes(), f"{problem}; {error}" if problem else str(error)
    cells = gathered.folder.cells
    return ListLine(
        path=str(gathered.path),
        name=header.name,
        title=header.scenario.resolved.get("title"),
        plane=header.where,
        created_at=header.created_at,
        running=gathered.busy,
        cells=len(cells),
        finished=sum(cell.is_finished for cell in cells),
        verdicts=count_verdicts(cells) + (f", {len(header.skipped)} skipped" if header.skipped else ""),
        skipped=[row.scheme for row in header.skipped],
        schemes=list(dict.fromkeys(cell.scheme for cell in cells)),
        tags=said.tags,
        notes=said.notes,
        problem=problem,
    )


def _sweep_lines(places: list[Path]) -> list[ListLine]:
    """The sweeps at and below these places, for the list."""
    from narrows.documents.listing import ListLine
    from narrows.errors import NarrowsError
    from narrows.sweep.outcomes import FAILED, count_outcomes, of_all
    from narrows.sweep.store import SweepFolder
    from narrows.sweep.store import folders as sweep_folders

    sweep_lines: list[ListLine] = []
    for path in sweep_folders(places):
        try:
            folder = SweepFolder.read(path)
            outcomes = of_all(count_outcomes(folder))
        except NarrowsError as error:
            sweep_lines.append(ListLine(path=str(path), problem=str(error)))
            continue
        document = folder.document
        bad = len(outcomes.invalid | outcomes.failed | outcomes.without_valid)
        cells = ", ".join(f"{count} {word}" for word, count in outcomes.cells.items())
        sweep_lines.append(
            ListLine(
                path=str(path),
                name=document.name,
                title=document.title,
                plane="sweep",
                created_at=document.created_at,
                running=False,
                cells=outcomes.cells.total(),
                finished=outcomes.cells.total() - outcomes.cells[FAILED],
                verdicts=cells + (f" ({bad} of {len(outcomes.points)} points)" if bad else ""),
                outcomes=outcomes.counts,
                schemes=document.schemes,
                tags=[],
                notes=[],
            )
        )
    return sweep_lines


def _print(console: Console, lines: list[ListLine], some: bool, wanted: set[str]) -> None:
    if not lines:
        none = f"no campaign has the tag{'s' if len(wanted) > 1 else ''} {', '.join(sorted(wanted))}"
        console.print(none if wanted and some else "no campaigns here; narrows run makes one", soft_wrap=True)
        return
    rows = [_TITLES, *(_cells(line) for line in lines)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    # If space is short, the date is omitted (default names of folders begin with it), and then names get
    # separate lines.
    dated = sum(widths) + 2 * (len(widths) - 1) <= console.width
    kept = [at for at in range(len(widths)) if dated or _TITLES[at] != "made"]
    beside = sum(widths[at] for at in kept) + 2 * (len(kept) - 1) <= console.width
    for row, line in zip(rows, [None, *lines], strict=True):
        cells = [row[at].rjust(widths[at]) if at == _RUNS else row[at].ljust(widths[at]) for at in kept]
        parts = ["  ".join(cells)] if beside else [row[0], "    " + "  ".join(cells[1:])]
        if line is not None:
            parts += [f"    tags: {', '.join(line.tags)}"] if line.tags else []
            parts += [f"    {item}" for note in line.notes or () for item in note.text.splitlines()]
        for part in parts:
            console.print(part.rstrip(), soft_wrap=True)
    if not dated:
        console.print("made does not fit here; a wider terminal or --json shows it", soft_wrap=True)


def _cells(line: ListLine) -> list[str]:
    runs = str(line.cells) if line.finished == line.cells else f"{line.finished} of {line.cells}"
    verdicts = "being written" if line.running else line.verdicts or ""
    return [line.path, (line.created_at or "")[:10], line.plane or "", runs, verdicts]


@command(example='narrows note results/20261121T101500Z-first-look-3fa9c1 "before the kernel update"')
def note(
    folder: Annotated[Path, argument(metavar="DIR", help="Folder of a campaign.")],
    text: Annotated[str | None, argument(help="The note to add; without it, notes are printed.")] = None,
    remove: Annotated[
        int | None, option("--remove", metavar="N", help="Remove the note with this number.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Add a note to a campaign, or print its notes.

    narrows ls shows them.
    """
    from narrows.campaign import notes
    from narrows.campaign.store import read_document
    from narrows.cli.common import print_json
    from narrows.console import stdout_console
    from narrows.documents.data import to_data
    from narrows.errors import UsageError

    if text is not None and remove is not None:
        raise UsageError("give a text to add, or --remove N, not both")
    read_document(folder)
    if text is not None:
        said = notes.add_note(folder, text)
    elif remove is not None:
        said = notes.remove_note(folder, remove)
    else:
        said = notes.read(folder)
    if as_json:
        print_json(to_data(said))
        return
    for number, entry in enumerate(said.notes, 1):
        stdout_console().print(f"{number}. {entry.at[:10]}  {entry.text}", soft_wrap=True)
    if not said.notes:
        stdout_console().print("there are no notes")


@command(example="narrows tag results/20261121T101500Z-first-look-3fa9c1 paper good")
def tag(
    folder: Annotated[Path, argument(metavar="DIR", help="Folder of a campaign.")],
    tags: Annotated[list[str] | None, argument(metavar="[TAG]...", help="Tags to add.")] = None,
    remove: Annotated[bool, option("--remove", help="Remove these tags instead.")] = False,
    as_json: Json = False,
) -> None:
    """Add tags to a campaign, or print them.

    narrows ls --tag finds campaigns by their tags.
    """
    from narrows.campaign import notes
    from narrows.campaign.store import read_document
    from narrows.cli.common import print_json
    from narrows.console import stdout_console
    from narrows.documents.data import to_data
    from narrows.errors import UsageError

    read_document(folder)
    if remove and not tags:
        raise UsageError("name the tags to remove")
    change = notes.remove_tags if remove else notes.add_tags
    said = change(folder, tags) if tags else notes.read(folder)
    if as_json:
        print_json(to_data(said))
    else:
        stdout_console().print(", ".join(said.tags) or "there are no tags", soft_wrap=True)


@command(example="narrows merge monday tuesday -o both")
def merge(
    folders: Annotated[list[Path], argument(metavar="DIR...", help="Folders of campaigns, two or more.")],
    output: Annotated[Path, option("-o", "--output", help="Folder of the new campaign.")],
    as_json: Json = False,
) -> None:
    """Merge the runs of several campaigns into one.

    They must belong to one experiment: more runs, more schemes or other seeds. The source campaigns remain
    unchanged. Network, flows, duration and plane must be the same.

    Folders of one sweep, such as those of a job array, are merged as well: every cell is kept once, and the
    new folder may already exist and contain some of them.

    Exit codes: 0 done, 2 the new folder exists already, 3 the campaigns can't be merged, 6 some cells of a
    sweep failed.
    """
    if any((folder / "sweep.json").exists() for folder in folders):
        from narrows.cli.sweep import merge_sweeps

        merge_sweeps(folders, output, as_json)
        return
    from narrows.analysis.attempts import to_document
    from narrows.analysis.tables import print_summary
    from narrows.campaign import merging
    from narrows.campaign.results import read
    from narrows.cli.common import print_json
    from narrows.console import say, stdout_console
    from narrows.progress import progress

    with progress("copying", quiet=as_json) as bar:
        done = merging.merge(
            folders, output, ["narrows", *sys.argv[1:]], lambda copied, runs: bar.count(copied, runs, "runs")
        )
    results = read(output)
    if as_json:
        print_json(to_document(results, done.folder.cells))
    else:
        print_summary(stdout_console(), [(output, results)])
        say(f"{output}: {len(done.folder.cells)} runs of {len(folders)} campaigns")
    for remark in done.remarks:
        say(remark)
