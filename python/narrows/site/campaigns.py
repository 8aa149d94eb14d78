"""The page of one campaign and the files beside it."""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from narrows.analysis.metrics import ENDS, SUMMARY, has_packets, of_names
from narrows.campaign import notes, results
from narrows.campaign.json_files import write_atomically
from narrows.campaign.store import CampaignFolder
from narrows.comparison.sides import Side
from narrows.documents.data import from_data, to_data
from narrows.documents.notes import Notes
from narrows.documents.site import CampaignListing, CampaignPage, PageContents, RunNumbers
from narrows.errors import NarrowsError, reason
from narrows.files import read_text
from narrows.report import ReportError, answers, document, figures
from narrows.report.charts import NumberChart
from narrows.report.data import Campaign, Run, load
from narrows.report.packed import pack
from narrows.site import pages, ranks

#: Downloads in addition to the numbers, with their link texts.
DOWNLOADS = {
    "results.csv": "results as CSV",
    "results.json": "results as JSON",
    "results.parquet": "results as Parquet",
    "report.html": "report",
    "report.pdf": "report as PDF",
}
SCENARIO = "scenario.yaml"
#: Charts have this many times the points of a report's, because one run is loaded at a time; fewer if there
#: are very many runs, so that a site does not become larger than its records.
MOST_DETAIL, DETAILED_RUNS = 8.0, 48


@dataclass(frozen=True, slots=True)
class Page:
    """A page to draw: the folder and the displayed name of its campaign, its own folder, the digest of its
    contents, the files that all pages share, and the path of the campaign in site.json.
    """

    campaign: Path
    name: str
    home: Path
    mark: str
    assets: Mapping[str, str]
    source: str


def origin(folder: CampaignFolder) -> str:
    """The identity of a campaign, independent of its folder."""
    told = [folder.header.created_at, folder.header.name, folder.header.hash]
    return hashlib.sha256(json.dumps(told).encode()).hexdigest()[:12]


def write(folder: CampaignFolder, page: Page) -> CampaignPage:
    """Writes the page and its files, and returns the campaign's entry in site.json.

    Raises `NarrowsError` if the campaign can't be read or the page can't be written.
    """
    measured = results.read(folder.path, folder)
    campaign = load(folder.path, measured)
    said = notes.read(folder.path)
    home, mark = page.home, page.mark
    try:
        home.mkdir(exist_ok=True)
        if not (home / mark).is_dir():
            work = Path(tempfile.mkdtemp(prefix=".new.", suffix=".tmp", dir=home))
            try:
                _write_files(campaign, work)
                work.chmod(0o755)
                work.rename(home / mark)
            finally:
                shutil.rmtree(work, ignore_errors=True)
        contents = from_data(json.loads(read_text(home / mark / "contents.json")), PageContents)
    except OSError as error:
        raise NarrowsError(f"{home}: can't be written: {reason(error)}") from None
    metrics = of_names(measured.metrics, SUMMARY if has_packets(measured) else ENDS)
    compared = answers.compare_rows(folder.path, Side("A", folder, measured))
    whole = document.compose(campaign, {}, (), compared=compared)
    entry = CampaignPage(
        origin=origin(folder),
        mark=mark,
        assets=list(page.assets.values()),
        listed=_list_entry(folder, campaign, said, page.name),
        ranking=ranks.of_campaign(compared),
        source=page.source,
    )
    text = pages.campaign(whole, campaign, entry, contents, metrics, page.assets)
    write_atomically(home / "index.html", text)
    return entry


def _list_entry(folder: CampaignFolder, campaign: Campaign, said: Notes, name: str) -> CampaignListing:
    """The entry in the list of all campaigns."""
    outcomes: dict[str, int] = {}
    for run in campaign.runs:
        outcomes[run.outcome] = outcomes.get(run.outcome, 0) + 1
    if campaign.skipped:
        outcomes["skipped"] = len(campaign.skipped)
    return CampaignListing(
        name=campaign.name,
        folder=name,
        title=campaign.resolved.title or "",
        question=campaign.resolved.question,
        made=folder.header.created_at or "",
        plane=folder.header.where,
        runs=len(campaign.runs),
        outcomes=outcomes,
        schemes=list(dict.fromkeys(campaign.rows[label].scheme for label in campaign.schemes)),
        tags=said.tags,
        notes=said.notes,
    )


def _write_files(campaign: Campaign, work: Path) -> None:
    """Downloads and numbers of runs, and `contents.json`, which lists them for the page."""
    numbers: dict[str, RunNumbers] = {}
    files: list[tuple[str, str]] = []
    (work / "runs").mkdir()
    runs = [run for run in campaign.runs if run.record is not None]
    for number, run in enumerate(runs, 1):
        run.detail = min(MOST_DETAIL, max(1.0, DETAILED_RUNS / len(runs)))
        charts = charts_of(run)
        run.forget()
        if charts:
            file = f"runs/{number:04}.js"
            write_run(work / file, run.cell, charts)
            numbers[run.cell] = RunNumbers(file=file, charts=list(charts))
    shown = {name for item in numbers.values() for name in item.charts}
    quantities = {name: kind.title for name, kind in figures.registry().items() if name in shown}
    if written := campaign.header.scenario.written:
        (work / SCENARIO).write_text(written, encoding="utf-8")
        files.append((SCENARIO, "scenario as written"))
    for name, words in DOWNLOADS.items():
        if (campaign.folder / name).is_file():
            shutil.copyfile(campaign.folder / name, work / name)
            files.append((name, words))
    contents = PageContents(runs=numbers, quantities=quantities, files=files)
    (work / "contents.json").write_text(json.dumps(to_data(contents)), encoding="utf-8")


def charts_of(run: Run) -> dict[str, NumberChart]:
    """The interactive forms of all figures of a run, including those that reports omit."""
    charts = {}
    for name, kind in figures.registry().items():
        if kind.scope != "run":
            continue
        # Charts that cannot be drawn are omitted, as in reports.
        with contextlib.suppress(ValueError, ReportError, ArithmeticError, KeyError):
            if kind.absent(run) is None and (chart := kind.chart(run)) is not None:
                charts[name] = chart
    return charts


def write_run(file: Path, cell: str, charts: dict[str, NumberChart]) -> None:
    """The numbers of a run, as a script: a page that was opened as a file may load nothing else."""
    text = f"narrowsRuns.take({json.dumps(cell)}, {json.dumps(pack(charts, ''))});\n"
    file.write_text(text, encoding="utf-8")
