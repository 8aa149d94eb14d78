"""`narrows cite`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from narrows.cli.app import command
from narrows.cli.common import Json
from narrows.cli.parameters import argument, option

if TYPE_CHECKING:
    from narrows.campaign.store import CampaignFolder
    from narrows.documents.publications import CitedEntry


@command(example="narrows cite results/20261121T101500Z-first-look-3fa9c1 -o narrows.bib")
def cite(
    things: Annotated[
        list[str] | None,
        argument(
            metavar="[DIR|NAME]...",
            help="Folders of campaigns, of laboratories, or names: of a scheme (cubic, linux:bbr), queue"
            " (codel), shipped trace or laboratory (ncsu). Without any: Narrows alone.",
        ),
    ] = None,
    output: Annotated[
        Path | None, option("-o", "--output", metavar="FILE", help="Write to this file instead.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Print BibTeX of Narrows, and of the things that campaigns used.

    Entries are those of Narrows, with its version, and of the publications behind the schemes, queues, links,
    traffic, traces and laboratories of each campaign. Comments in front say which thing cites which entry,
    and which things have nothing to cite. Fields that are not certain are left out: complete them yourself.

    Examples:

      narrows cite                     how to cite Narrows

      narrows cite results/x           all that the campaign used

      narrows cite cubic linux:bbr     two schemes

      narrows cite lab/ncsu -o a.bib   a laboratory, into a file

    Exit codes: 0 done, 2 usage, 3 an unknown name or a damaged campaign.
    """
    from narrows.cite.usage import cite as cite_all
    from narrows.documents.data import to_data

    folders: list[CampaignFolder] = []
    entries: list[CitedEntry] = []
    for thing in things or []:
        opened, some = _read(thing)
        folders += opened
        entries += some
    citation = cite_all(entries, folders)
    if output is not None:
        from narrows.campaign.json_files import write_atomically
        from narrows.errors import UsageError

        if output.is_dir():
            raise UsageError(f"-o {output} is a folder; name a file")
        write_atomically(output, citation.bibtex)
        if not as_json:
            print(f"citations: {output}")
            return
    if as_json:
        from narrows.cli.common import print_json

        print_json(to_data(citation))
        return
    print(citation.bibtex, end="")


def _read(thing: str) -> tuple[list[CampaignFolder], list[CitedEntry]]:
    """The campaigns of a folder and the things that they used, or the things of that name."""
    from narrows.campaign.folders import no_folder
    from narrows.cite.usage import list_campaign, list_named, list_names, open_campaign
    from narrows.errors import DataError
    from narrows.text import did_you_mean, shorten

    path = Path(thing)
    if path.is_dir():
        places = [path]
        if (path / "lab.json").is_file():
            places = [place.parent for place in sorted(path.glob("*/campaign.json"))] or places
        folders = [open_campaign(place) for place in places]
        return folders, [entry for folder in folders for entry in list_campaign(folder)]
    if path.exists() or "/" in thing:
        raise no_folder(path)
    named = list_named(thing)
    if not named:
        hint = did_you_mean(thing, list_names())
        more = "; name the folder of a campaign, or a scheme, queue, trace or laboratory"
        raise DataError(f'there is neither a folder nor a thing "{shorten(thing)}"{hint or more}')
    return [], named
