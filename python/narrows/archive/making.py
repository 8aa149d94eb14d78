"""Runs the campaigns of a list, makes their site, and writes archive.json.

```text
DIR/campaigns/NAME/     a campaign, or the campaigns of a laboratory
DIR/site/               the web site of all
DIR/archive.json        the metrics of all runs, for comparison with other archives
```
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from narrows.archive.listing import ArchiveList
from narrows.documents.archive import FORMAT, Archive, ArchivedCampaign, ArchivedRun, Limits
from narrows.documents.data import to_data
from narrows.documents.results import Quantity
from narrows.errors import EXIT_EXPECTATION, EXIT_OK, DataError, UsageError
from narrows.text import shorten, suggest

if TYPE_CHECKING:
    from rich.console import Console

    from narrows.campaign.store import CampaignFolder
    from narrows.documents.results import Results
    from narrows.lab.reading import Lab
    from narrows.scenario import Loaded

NOTE, CAMPAIGNS, SITE = "archive.json", "campaigns", "site"


@dataclass(frozen=True)
class Made:
    """An archive that was made."""

    folder: Path
    archive: Archive
    #: The largest exit code of its campaigns; expectations of scenarios do not count.
    exit_code: int
    #: The limits of its list that do not hold, each in a clause.
    broken: list[str]


@dataclass(frozen=True)
class Work:
    """A campaign of the list, ready to run."""

    name: str
    source: Loaded | Lab
    quick: bool

    def describe(self) -> str:
        """`22 runs`, or `laboratory geni, 9 experiments`."""
        from narrows.lab.reading import Lab
        from narrows.text import plural

        if isinstance(self.source, Lab):
            experiments = plural(len(self.source.experiments), "experiment")
            return f"laboratory {self.source.name}{', quick' if self.quick else ''}, {experiments}"
        scenario = self.source.scenario
        runs = len(scenario.schemes) * scenario.runs
        return f"{plural(runs, 'run')}, {plural(len(scenario.schemes), 'row')}"


def prepare(path: Path, listed: ArchiveList, only: list[str]) -> list[Work]:
    """Reads the scenarios and laboratories of a list, those named `only` or all. Raises `UsageError` for an
    unknown name, `DataError` for what can't be read, before anything runs.
    """
    from narrows.lab import running
    from narrows.lab.store import load as load_laboratory
    from narrows.scenario import load as load_scenario

    for name in only:
        if name not in listed.campaigns:
            known = list(listed.campaigns)
            hint = suggest(name, known, "campaign")
            raise UsageError(f'{path} has no campaign "{shorten(name)}"{hint}')
    result: list[Work] = []
    for name, campaign in listed.campaigns.items():
        if only and name not in only:
            continue
        source: Loaded | Lab
        if campaign.lab is not None:
            source = load_laboratory(campaign.lab)
            if campaign.quick and source.quick is None:
                raise DataError(f"{path}: campaigns.{name}.quick: {campaign.lab} has no quick runs")
            running.check(source, "simulate", campaign.quick, [])
        else:
            assert campaign.scenario is not None
            source = load_scenario(campaign.scenario, list(campaign.changes))
        result.append(Work(name, source, campaign.quick))
    return result


def make(
    listed: ArchiveList,
    works: list[Work],
    folder: Path,
    *,
    argv: list[str],
    console: Console,
    quiet: bool,
    tell: Callable[[int, int, str], None],
) -> Made:
    """Runs what is missing of these campaigns in a folder, new or existing, and makes site and archive.json
    of all that the folder has of the list. Raises `UsageError` if the folder belongs to another list.
    """
    from narrows.campaign import sealing
    from narrows.campaign.json_files import write_atomically
    from narrows.site import build
    from narrows.sweep.engines import usable_processors

    began, earlier = _processor_time(), _earlier(folder, listed)
    worst = EXIT_OK
    for number, work in enumerate(works, 1):
        tell(number, len(works), work.name)
        code = _run(work, folder / CAMPAIGNS / work.name, argv=argv, console=console, quiet=quiet)
        worst = max(worst, EXIT_OK if code == EXIT_EXPECTATION else code)
    if not quiet:
        console.print("drawing the site")
    build([folder / CAMPAIGNS], folder / SITE, prune=True, processes=usable_processors())
    size = sum(file.stat().st_size for file in (folder / SITE).rglob("*") if file.is_file())
    archive = _describe(listed, folder, earlier + _processor_time() - began, size)
    write_atomically(folder / NOTE, sealing.seal(to_data(archive), FORMAT))
    return Made(folder, archive, worst, broken_limits(listed.limits, archive))


def broken_limits(limits: Limits, archive: Archive) -> list[str]:
    """The limits that an archive exceeds, each in a clause with both numbers."""
    minutes, megabytes = archive.processor_s / 60, archive.site_bytes / 1e6
    result = []
    if limits.processor_minutes is not None and minutes > limits.processor_minutes:
        result.append(f"it took {minutes:.1f} of {limits.processor_minutes:g} minutes of processor time")
    if limits.site_megabytes is not None and megabytes > limits.site_megabytes:
        result.append(f"its site has {megabytes:.1f} of {limits.site_megabytes:g} MB")
    return result


def read_archive(place: Path) -> Archive:
    """The archive in a folder or file. Raises `DataError` if it does not exist or is damaged."""
    from narrows.campaign.json_files import read_json, read_typed

    file = place / NOTE if place.is_dir() else place
    if not file.exists():
        raise DataError(f"{file}: the archive does not exist; narrows archive make -o {file.parent} makes it")
    return read_typed(file, read_json(file, FORMAT), Archive)


def _earlier(folder: Path, listed: ArchiveList) -> float:
    """The processor time that an interrupted or earlier call in this folder took."""
    if not (folder / NOTE).exists():
        if folder.is_dir() and any(path.name not in (CAMPAIGNS, SITE) for path in folder.iterdir()):
            raise UsageError(f"{folder} holds something else; name another folder with -o")
        return 0.0
    before = read_archive(folder)
    if before.title != listed.title:
        raise UsageError(f'{folder} holds the archive "{shorten(before.title)}"; name another with -o')
    return float(before.processor_s)


def _processor_time() -> float:
    """Seconds of this process and of its children that have ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def _run(work: Work, folder: Path, *, argv: list[str], console: Console, quiet: bool) -> int:
    from narrows.campaign.run import run_campaign
    from narrows.lab import running
    from narrows.lab.reading import Lab

    folder.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(work.source, Lab):
        begun = running.begin(work.source, folder, "simulate", work.quick)
        return running.run_all(begun, [], argv=argv, console=console, quiet=quiet, tell=lambda *_: None)
    finished = run_campaign(work.source, folder, resume=False, argv=argv, console=console, quiet=quiet)
    return finished.exit_code


def _describe(listed: ArchiveList, folder: Path, processor_s: float, site_bytes: int) -> Archive:
    metrics: dict[str, Quantity] = {}
    campaigns: dict[str, ArchivedCampaign] = {}
    narrows = git = None
    for name, campaign, results in _campaigns(listed, folder):
        header = campaign.header
        if header.versions is not None:
            narrows = header.versions.narrows
            agent = header.versions.agent
            git = (agent.git or None) if agent is not None else None
        for metric in results.metrics:
            metrics.setdefault(metric.name, _quantity(metric))
        campaigns[name] = ArchivedCampaign(
            title=campaign.resolved.title or header.name,
            plane=header.where,
            hash=header.hash,
            runs=[
                ArchivedRun(
                    row=row.scheme, run=row.run, seed=row.seed, verdict=row.verdict, metrics=row.metrics
                )
                for row in results.rows
                if row.number is None
            ],
        )
    return Archive(
        title=listed.title,
        narrows=narrows,
        git=git,
        processor_s=round(processor_s, 1),
        site_bytes=site_bytes,
        metrics=list(metrics.values()),
        campaigns=campaigns,
    )


def _quantity(metric: Quantity) -> Quantity:
    return Quantity(
        name=metric.name,
        label=metric.label,
        unit=metric.unit,
        show_unit=metric.show_unit,
        show_scale=metric.show_scale,
    )


def _campaigns(listed: ArchiveList, folder: Path) -> Iterator[tuple[str, CampaignFolder, Results]]:
    """The campaigns that the folder holds, in the order of the list, with names such as `geni/1-baseline`."""
    from narrows.campaign import results
    from narrows.campaign.store import CampaignFolder

    for name in listed.campaigns:
        for file in sorted((folder / CAMPAIGNS / name).rglob("campaign.json")):
            campaign = CampaignFolder.read(file.parent)
            where = file.parent.relative_to(folder / CAMPAIGNS).as_posix()
            yield where, campaign, results.read(file.parent, campaign)
