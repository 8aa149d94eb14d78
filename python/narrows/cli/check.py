"""`narrows check`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from click.exceptions import Exit

from narrows.cli.app import command
from narrows.cli.common import Json
from narrows.cli.parameters import argument

if TYPE_CHECKING:
    from narrows.campaign.store import CampaignFolder
    from narrows.documents.campaign import CellEntry
    from narrows.documents.run import CheckedCampaign, CheckedCell


@command(example="narrows check results/20261121T101500Z-first-look-3fa9c1")
def check(
    folders: Annotated[
        list[Path], argument(metavar="DIR...", help="Folders of campaigns or of single cells.")
    ],
    as_json: Json = False,
) -> None:
    """Prove from records alone that runs are sound.

    Packets were conserved, no link exceeded its rate, queues and delays match the path. For a campaign also:
    all its files are unchanged, they belong to one scenario, and its results have the numbers of the records,
    which are measured again. Runs whose verdict is not ok are listed with the reasons; their records may
    nevertheless be sound.

    Exit codes: 0 everything holds, 1 a check fails, 3 a record can't be read.
    """
    from narrows.campaign.checking import check_campaign
    from narrows.cli.common import print_json
    from narrows.documents.data import to_data
    from narrows.documents.run import CHECK_FORMAT, CheckedCampaign, CheckReport
    from narrows.errors import EXIT_FAILURE
    from narrows.threads import in_threads

    opened = [_open(folder) for folder in folders]
    cells = [
        pair for folder, campaign in zip(folders, opened, strict=True) for pair in _cells(folder, campaign)
    ]
    outcome = in_threads(_verify, cells)
    whole = [
        CheckedCampaign(campaign=str(folder), checks=check_campaign(campaign), notes=_notes(campaign))
        for folder, campaign in zip(folders, opened, strict=True)
        if campaign is not None
    ]
    ok = all(cell.ok for cell in outcome) and all(check.ok for each in whole for check in each.checks)
    if as_json:
        print_json(to_data(CheckReport(format=CHECK_FORMAT, ok=ok, cells=outcome, campaigns=whole)))
    else:
        _print(outcome, whole)
    if not ok:
        raise Exit(EXIT_FAILURE)


def _open(folder: Path) -> CampaignFolder | None:
    """The campaign in a folder; None if it is the folder of a single cell."""
    from narrows.campaign.store import CampaignFolder

    return None if (folder / "run.json").exists() else CampaignFolder.read(folder)


def _cells(folder: Path, campaign: CampaignFolder | None) -> list[tuple[Path, CellEntry | None]]:
    """Folders of records, with their entries in the campaign."""
    from narrows.campaign.gathering import entry_of
    from narrows.errors import DataError

    if campaign is None:
        return [(folder, entry_of(folder))]
    finished = [cell for cell in campaign.cells if cell.is_finished]
    if not finished:
        raise DataError(f"{folder}: the campaign has no finished cell to check")
    return [(campaign.cell_dir(cell.id), cell) for cell in finished]


def _notes(campaign: CampaignFolder) -> list[str]:
    """The models that lists came to, the rows whose models Narrows trained, and the extensions."""
    from msgspec import UNSET

    choices = campaign.header.choices
    own = campaign.resolved.own_models_in_words
    versions = campaign.header.versions
    extensions = versions.extensions_in_words if versions else ""
    return [*([] if choices is UNSET else choices), *(text for text in (own, extensions) if text)]


def _verify(pair: tuple[Path, CellEntry | None]) -> CheckedCell:
    from msgspec.structs import replace

    from narrows import _native
    from narrows.campaign import integrity
    from narrows.campaign.json_files import read_run
    from narrows.documents.data import from_data
    from narrows.documents.run import Check, CheckedCell
    from narrows.errors import DataError

    cell, entry = pair
    problem = integrity.describe_change(cell, entry)
    try:
        found = from_data(json.loads(_native.verify(str(cell))), CheckedCell)
    except (ValueError, OSError) as error:
        raise DataError(problem or f"{cell}: can't be checked: {error}") from None
    checks = found.checks
    if entry and entry.digest:
        detail = problem or "all files are those that the run left"
        checks = [Check(name="digest", ok=problem is None, detail=detail), *checks]
    run = read_run(cell)
    ok = all(check.ok for check in checks)
    return replace(found, cell=str(cell), ok=ok, checks=checks, verdict=run.verdict, reasons=run.reasons)


def _print(outcome: list[CheckedCell], whole: list[CheckedCampaign]) -> None:
    from narrows.analysis.checks import count_in_words
    from narrows.analysis.tables import print_cells
    from narrows.blocks.model import Cell, Column, Table
    from narrows.blocks.terminal import print_table, print_text
    from narrows.console import stdout_console
    from narrows.documents.campaign import FINISHED, CellEntry
    from narrows.documents.run import FAILS, SKIPPED

    console = stdout_console()
    checks = [(campaign.campaign, check) for campaign in whole for check in campaign.checks]
    checks += [(cell.cell, check) for cell in outcome for check in cell.checks]
    failed = [(Path(path).name, check) for path, check in checks if check.outcome == FAILS]
    if failed:
        heads = (Column("of", "left"), Column("check", "left"), Column("why", "left", folded=True))
        rows = ((cell, Cell(check.title, kind="bad"), check.detail) for cell, check in failed)
        print_table(console, Table.new(heads, rows))
        console.print()
    # A reason that applies to every record is stated once.
    why: dict[tuple[str, str], int] = {}
    for _, check in checks:
        if check.outcome == SKIPPED:
            why[check.title, check.detail] = why.get((check.title, check.detail), 0) + 1
    lines = [
        f"skipped {name}{f' (on {times} records)' if times > 1 else ''}: {detail}"
        for (name, detail), times in why.items()
    ]
    lines += dict.fromkeys(note for campaign in whole for note in campaign.notes)
    records = "1 record" if len(outcome) == 1 else f"{len(outcome)} records"
    if whole:
        whose = "its" if len(outcome) == 1 else "their"
        records += f" and {f'{whose} campaign' if len(whole) == 1 else f'{len(whole)} campaigns'}"
    lines.append(f"checks on {records}: {count_in_words(check for _, check in checks)}")
    for line in lines:
        print_text(console, line)
    if failed:
        console.print("The verdicts that the records hold:", soft_wrap=True)
    print_cells(
        console,
        [
            CellEntry(
                id=Path(checked.cell).resolve().name,
                scheme="",
                run=0,
                state=FINISHED,
                verdict=checked.verdict,
                reasons=checked.reasons,
            )
            for checked in outcome
        ],
        few=0,
    )
