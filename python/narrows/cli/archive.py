"""`narrows archive`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from click.exceptions import Exit

from narrows.cli.app import group, subcommand
from narrows.cli.common import Json
from narrows.cli.parameters import argument, option

if TYPE_CHECKING:
    from narrows.documents.archive import Archive, ArchiveComparison, Change
    from narrows.documents.results import Quantity

archive = group(
    "archive",
    "narrows archive make -o archive",
    "Campaigns of a list as a site, and changes between versions.",
)

#: Changes that are printed without --all.
_MOST = 40


@subcommand(archive, example="narrows archive make -o archive")
def make(
    campaigns: Annotated[
        Path | None,
        argument(
            metavar="[LIST]",
            help="A list of campaigns as YAML. [default: the list of each release; --print shows it]",
        ),
    ] = None,
    output: Annotated[
        Path,
        option(
            "-o",
            "--output",
            metavar="DIR",
            help="Folder of the archive; run again, it completes missing runs.",
        ),
    ] = Path("archive"),
    only: Annotated[
        str | None, option("--only", metavar="A,B", help="Only these campaigns, separated by commas.")
    ] = None,
    dry_run: Annotated[
        bool, option("--dry-run", help="Read all scenarios, print the number of runs, and run nothing.")
    ] = False,
    show: Annotated[bool, option("--print", help="Print the list of each release, to start from.")] = False,
    as_json: Json = False,
) -> None:
    """Run a list of campaigns, make a web site of them, and write their numbers into archive.json.

    The list names scenarios, with changes, and laboratories, which are simulated; --print shows an example.
    It may limit the processor time and the size of the site. All scenarios are read before the first one
    runs.

    Exit codes: 0 done, 2 usage, 3 bad list or scenario, 5 a limit of the list is exceeded, 6 some runs failed
    or are invalid, 130/143 interrupted with all finished runs kept.
    """
    from narrows.archive import listing, making
    from narrows.cli.common import names_in, print_json
    from narrows.console import say, stderr_console
    from narrows.documents.data import to_data
    from narrows.errors import EXIT_EXPECTATION
    from narrows.files import read_text

    if show:
        print(read_text(listing.SHIPPED), end="")
        return
    path = campaigns or listing.SHIPPED
    listed = listing.read_list(path)
    works = making.prepare(path, listed, names_in(only))
    if dry_run:
        for work in works:
            print(f"{work.name}: {work.describe()}")
        return

    def tell(number: int, count: int, name: str) -> None:
        if not as_json:
            say(f"campaign {number} of {count}, {name}")

    made = making.make(
        listed,
        works,
        output,
        argv=["narrows", *sys.argv[1:]],
        console=stderr_console(),
        quiet=as_json,
        tell=tell,
    )
    if as_json:
        print_json(to_data(made.archive))
    else:
        print(_in_words(made.archive))
        print(f"site: {output / making.SITE / 'index.html'}")
    for clause in made.broken:
        say(f"narrows: a limit of the list is exceeded: {clause}")
    if made.exit_code or made.broken:
        raise Exit(made.exit_code or EXIT_EXPECTATION)


def _in_words(made: Archive) -> str:
    from narrows.text import plural

    runs = sum(len(campaign.runs) for campaign in made.campaigns.values())
    return (
        f"{plural(len(made.campaigns), 'campaign')}, {plural(runs, 'run')},"
        f" {made.processor_s / 60:.1f} minutes of processor time; a site of {made.site_bytes / 1e6:.1f} MB"
    )


@subcommand(archive, example="narrows archive compare archive-0.1.0 archive")
def compare(
    before: Annotated[Path, argument(metavar="BEFORE", help="An archive: its folder or its archive.json.")],
    after: Annotated[Path, argument(metavar="AFTER", help="Another one.")],
    show_all: Annotated[
        bool, option("--all", help=f"Print every change, also beyond the first {_MOST}.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Say what differs between two archives.

    Simulated runs of one scenario with one seed are equal to the last digit unless Narrows has changed, so
    that they are compared exactly, run by run. Campaigns whose scenario has changed, or which were not
    simulated, are named and not compared; narrows compare judges these.

    Exit codes: 0 compared, 2 usage, 3 an archive does not exist or is damaged.
    """
    from narrows.archive import comparing, making
    from narrows.cli.common import print_json
    from narrows.documents.data import to_data

    first, second = making.read_archive(before), making.read_archive(after)
    result = comparing.compare(first, second)
    if as_json:
        print_json(to_data(result))
        return
    _print(result, {metric.name: metric for metric in [*first.metrics, *second.metrics]}, show_all)


def _print(result: ArchiveComparison, metrics: dict[str, Quantity], show_all: bool) -> None:
    from narrows.console import Listing
    from narrows.text import plural

    print(f"before: {result.before}\nafter:  {result.after}")
    count = plural(result.campaigns, "campaign")
    if result.changes:
        print(f"{result.rows_changed} of {plural(result.rows, 'row')} in {count} differ")
    else:
        print(f"all {plural(result.rows, 'row')} in {count} are the same in every run and metric")
    shown = result.changes if show_all else result.changes[:_MOST]
    for campaign in dict.fromkeys(change.campaign for change in shown):
        print(f"\n{campaign}")
        lines = Listing("row", "metric", "before", "after", "change", "runs", right=_RIGHT, whole=_RIGHT)
        for change in shown:
            if change.campaign == campaign:
                lines.add_row(*_cells(change, metrics))
        lines.print()
    if len(shown) < len(result.changes):
        print(f"\n{plural(len(result.changes) - len(shown), 'further change')}; --all prints them")
    for title, names in (
        ("only before", result.only_before),
        ("only after", result.only_after),
        ("another scenario, not compared", result.other_scenario),
        ("not simulated, not compared", result.by_chance),
        ("metrics only before", result.metrics_only_before),
        ("metrics only after", result.metrics_only_after),
    ):
        if names:
            more = f", and {len(names) - _MOST} more" if len(names) > _MOST and not show_all else ""
            print(f"\n{title}: {', '.join(names if show_all else names[:_MOST])}{more}")


_RIGHT = ("before", "after", "change", "runs")


def _cells(change: Change, metrics: dict[str, Quantity]) -> tuple[str, ...]:
    metric = metrics[change.metric]
    unit = f" {metric.show_unit}" if metric.show_unit else ""
    before, after = (
        "none" if value is None else f"{value * metric.show_scale:.4g}{unit}"
        for value in (change.before, change.after)
    )
    share = ""
    if change.before and change.after is not None:
        share = f"{(change.after / change.before - 1) * 100:+.2g} %"
    return change.row, metric.label, before, after, share, f"{change.changed} of {change.runs}"
