"""`narrows site`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from click.exceptions import Exit

from narrows.cli.app import command
from narrows.cli.common import Json, Metrics, read_metrics
from narrows.cli.parameters import argument, option

if TYPE_CHECKING:
    from narrows.documents.site import SiteMade


@command(example="narrows site results -o site")
def site(
    folders: Annotated[
        list[Path] | None,
        argument(metavar="[DIR]...", help="Folders below which campaigns are. [default: results]"),
    ] = None,
    output: Annotated[Path, option("-o", "--output", help="Folder of the site.")] = Path("site"),
    prune: Annotated[
        bool,
        option("--prune", help="Remove pages of campaigns that are no longer below the folders."),
    ] = False,
    metrics: Metrics = None,
    as_json: Json = False,
) -> None:
    """Make a web site of campaigns.

    It has a list with filters, a ranking, and a page of each campaign with charts. It needs no server: open
    index.html, or copy the folder to any. When it is made again, new campaigns are added; pages keep their
    addresses, and only pages of changed campaigns are drawn again. A campaign that is damaged, of a newer
    version or being written is reported in one sentence and listed separately. Sweeps, and the evaluations of
    hunts, have pages with their figures; a growing sweep is drawn in its present state.

    Exit codes: 0 all campaigns are shown, 2 the folder of the site contains something else, 3 a folder does
    not exist or some campaign could not be read.
    """
    from narrows.cli.common import print_json
    from narrows.console import say
    from narrows.documents.data import to_data
    from narrows.errors import EXIT_BAD_INPUT
    from narrows.progress import progress
    from narrows.site import build
    from narrows.sweep.engines import usable_processors

    read_metrics(metrics)
    with progress("drawing", quiet=as_json) as bar:
        made = build(
            folders or [Path("results")],
            output,
            prune=prune,
            # User-defined metrics are known only to this process.
            processes=1 if metrics else usable_processors(),
            progress=bar.count,
        )
    if as_json:
        print_json(to_data(made))
    else:
        for problem in made.problems:
            say(problem.problem)
        print(_in_words(made))
        print(f"site: {made.index}")
    if not all(problem.busy for problem in made.problems):
        raise Exit(EXIT_BAD_INPUT)


def _in_words(made: SiteMade) -> str:
    """`5 campaigns: 2 drawn, 3 unchanged`."""
    from narrows.text import plural

    drawn = sum(campaign.drawn for campaign in made.campaigns)
    counts = {
        "drawn": drawn,
        "unchanged": len(made.campaigns) - drawn,
        "no longer there and kept": len(made.kept),
        "removed": len(made.removed),
    }
    told = [f"{count} {what}" for what, count in counts.items() if count]
    total = len(made.campaigns) + len(made.kept)
    if made.sweeps:
        told.append(f"{plural(len(made.sweeps), 'sweep')} ({sum(page.drawn for page in made.sweeps)} drawn)")
    return f"{plural(total, 'campaign')}: {', '.join(told)}" if told else plural(total, "campaign")
