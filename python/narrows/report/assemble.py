"""From a campaign folder to report.html, report.pdf and figures/.

Everything is written under temporary names and renamed when complete, so an interrupted report leaves the
previous one intact. The runs of large campaigns are read and drawn by several processes. A picture is drawn
only if a file shows it: the page receives charts of runs as numbers, and the PDF has the middle runs.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from narrows import scratch
from narrows.errors import NarrowsError, reason
from narrows.report import choice, document, drawing, figures, plotting
from narrows.report.charts import NumberChart
from narrows.report.content import ReportFigure
from narrows.report.data import Campaign, Run, load
from narrows.report.drawing import DOUBLE_MM, SINGLE_MM, Options
from narrows.report.errors import ReportError
from narrows.report.parts import ReportPaths, Wanted

RUNS_PER_WORKER = 24
"""Starting a process costs about as much as reading this many runs."""
FULL_RUNS = 24
"""Up to so many runs, charts have all the points that a screen can show."""
ON_PAPER = ("throughput", "delay")
"""Figures of a run that the PDF shows side by side, unless it shows all runs."""


@dataclass
class Drawn:
    """Pictures and their texts by `name` or `cell/name`, and the charts of runs by cell, packed."""

    figures: dict[str, ReportFigure] = field(default_factory=dict)
    packs: dict[str, str] = field(default_factory=dict)
    charts: dict[str, list[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Share:
    """The share of a drawing process."""

    campaign: str
    cells: Sequence[str]
    #: The cells that the PDF shows.
    paper: Sequence[str]
    root: str
    wanted: Wanted
    #: The file for the results of drawing.
    answer: str


def build_report(folder: Path, wanted: Wanted) -> ReportPaths:
    """Draw and write a whole report."""
    campaign = load(folder, checked=True)
    try:
        with scratch.working_folder("report", folder) as work:
            return _build(campaign, work, folder, wanted)
    except OSError as error:
        # The campaign is intact: this machine fails, not the input.
        raise NarrowsError(
            f"{folder}: the report can't be written: {reason(error)}; make room and"
            f" write it again with: narrows report {folder}"
        ) from error


def _build(campaign: Campaign, work: Path, folder: Path, wanted: Wanted) -> ReportPaths:
    paper = [run.cell for run in campaign.runs] if wanted.all_runs else choice.choose_cells(campaign)
    drawn = _draw_all(campaign, work / "figures", wanted, paper)
    content = document.compose(campaign, drawn.figures, paper, side_by_side=not wanted.all_runs)
    if wanted.html:
        from narrows.report.page import render_page

        (work / "report.html").write_text(render_page(content, drawn, work, campaign), encoding="utf-8")
    if wanted.pdf:
        from narrows.report.paper import render_pdf

        (work / "report.pdf").write_bytes(render_pdf(content, work))
    return _publish(work, folder, wanted)


def _publish(work: Path, folder: Path, wanted: Wanted) -> ReportPaths:
    final = folder / "figures"
    old = work / "old-figures"
    if final.exists():
        final.rename(old)
    (work / "figures").rename(final)
    for name, asked in (("report.html", wanted.html), ("report.pdf", wanted.pdf)):
        if asked:
            (work / name).replace(folder / name)
    return ReportPaths(
        folder / "report.html" if wanted.html else None, folder / "report.pdf" if wanted.pdf else None, final
    )


def _draw(
    kind: figures.FigureKind,
    data: Campaign | Run,
    stem: Path,
    root: Path,
    options: Options | None,
    files: bool,
) -> ReportFigure:
    """Draws a figure, as a picture if it has `options`, and in all formats with `files`; for one that can't
    be drawn the reason is stored, and the others continue.
    """
    entry = ReportFigure(name=kind.name, title=kind.title, note=kind.paper_note)
    try:
        if (absent := kind.absent(data)) is not None:
            return replace(entry, absent=absent)
        account = plotting.account_of(kind, data)
        # Captions of runs are shared; each run shows its verdict and reasons.
        whole = plotting.full_caption(kind.caption(data), account)
        entry = replace(entry, caption=kind.caption(data) if kind.scope == "run" else whole)
        about = (kind.title, whole)
        if options is not None:
            formats = ("svg", "png") if files else ("svg",)
            if files or kind.scope == "campaign":
                drawing.write_numbers(kind.numbers(data), stem.with_suffix(".csv"))
            drawing.write_figure(kind.figure(data, options), stem, formats, options, about)
            tips = kind.tips(data)
        if files and kind.scope == "campaign":  # Once more for one column of a paper.
            narrow = Options(width_mm=SINGLE_MM)
            slim = stem.with_name(f"{stem.name}-{SINGLE_MM:g}mm")
            drawing.write_figure(kind.figure(data, narrow), slim, ("svg", "png"), narrow, about)
    except (ValueError, ReportError, ArithmeticError, KeyError) as error:
        return replace(entry, absent=f"This figure can't be drawn: {_sentence(error)}")
    if options is None:
        return entry
    return replace(entry, file=stem.relative_to(root.parent).as_posix(), tips=tips)


def _sentence(error: BaseException) -> str:
    text = f"the record has no {error}" if isinstance(error, KeyError) else str(error) or type(error).__name__
    return text if text.endswith(".") else text + "."


def draw_run(campaign: Campaign, run: Run, root: Path, wanted: Wanted, paper: bool) -> Drawn:
    """The part of a report about one run: pictures for the PDF, numbers of charts for the page."""
    drawn = Drawn()
    if run.record is None:
        return drawn
    charts: dict[str, NumberChart] = {}
    for kind in figures.of_scope("run"):
        if not kind.concerns(run):
            continue
        key = f"{run.cell}/{kind.name}"
        full = wanted.files or (wanted.pdf and paper and wanted.all_runs)
        slim = wanted.pdf and paper and kind.name in ON_PAPER
        options = Options() if full else Options(width_mm=SINGLE_MM) if slim else None
        entry = _draw(kind, run, root / run.cell / kind.name, root, options, wanted.files)
        drawn.figures[key] = entry
        if wanted.html and entry.absent is None:
            with contextlib.suppress(ValueError, ReportError, ArithmeticError, KeyError):
                if (chart := kind.chart(run)) is not None:
                    charts[key] = chart
    if wanted.html:
        from narrows.report.packed import pack
        from narrows.report.page import render_statistics

        drawn.packs[run.cell] = pack(charts, render_statistics(campaign, run))
        drawn.charts[run.cell] = list(charts)
    run.forget()
    return drawn


def _draw_all(campaign: Campaign, root: Path, wanted: Wanted, paper: Sequence[str]) -> Drawn:
    root.mkdir(parents=True)
    runs = [run for run in campaign.runs if run.record is not None]
    thin_out(runs, paper)
    workers = max(1, min(_cores(), len(runs) // RUNS_PER_WORKER))
    parts = []
    with _in_processes(campaign, [run.cell for run in runs], root, wanted, paper, workers) as answers:
        drawn = Drawn()
        for kind in figures.of_scope("campaign"):
            drawn.figures[kind.name] = _draw(kind, campaign, root / kind.name, root, Options(), wanted.files)
        # This process also takes a share.
        parts += [draw_run(campaign, run, root, wanted, run.cell in paper) for run in runs[::workers]]
        parts += answers()
    for part in parts:
        drawn.figures.update(part.figures)
        drawn.packs.update(part.packs)
        drawn.charts.update(part.charts)
    return drawn


def thin_out(runs: Sequence[Run], paper: Sequence[str]) -> None:
    """Thins out charts of campaigns with many runs, so that their page stays small; middle runs keep all
    points.
    """
    share = min(1.0, max(0.1, FULL_RUNS / max(1, len(runs))))
    for run in runs:
        run.detail = max(share, min(1.0, 2 * FULL_RUNS / len(paper))) if run.cell in paper else share


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextlib.contextmanager
def _in_processes(
    campaign: Campaign, cells: Sequence[str], root: Path, wanted: Wanted, paper: Sequence[str], workers: int
) -> Iterator[Any]:
    """Starts fresh interpreters that draw all shares of the cells but the first: unlike a fork or a spawned
    copy of the caller's program, they need nothing from the calling process, whatever threads or scripts it
    runs. Returns a function that waits for their results.
    """
    jobs = []
    for worker in range(1, workers):
        answer = root.parent / f"drawn-{worker}.json"
        share = Share(
            str(campaign.folder.resolve()),
            cells[worker::workers],
            paper,
            str(root.resolve()),
            wanted,
            str(answer.resolve()),
        )
        command = [sys.executable, "-c", _WORKER, json.dumps(sys.path), msgspec.json.encode(share).decode()]
        jobs.append(
            (subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True), answer)
        )

    def answers() -> list[Drawn]:
        parts = []
        for process, answer in jobs:
            _, errors = process.communicate()
            if process.returncode != 0:
                last = (errors.strip().splitlines() or ["no message"])[-1]
                raise ReportError(f"a drawing process failed: {last}")
            parts += msgspec.json.decode(answer.read_bytes(), type=list[Drawn])
        return parts

    try:
        yield answers
    finally:
        for process, _ in jobs:
            if process.poll() is None:
                process.kill()
                process.wait()


_WORKER = """
import json, sys
sys.path[:] = json.loads(sys.argv[1])
from narrows.report.assemble import work_off
work_off(sys.argv[2])
"""


def work_off(task: str) -> None:
    """One drawing process: draws its share (JSON) of the runs and writes the result into a file."""
    share = msgspec.json.decode(task, type=Share)
    campaign = load(Path(share.campaign), checked=True)
    runs = [run for run in campaign.runs if run.record is not None]
    thin_out(runs, share.paper)
    paper, mine = set(share.paper), set(share.cells)
    parts = [
        draw_run(campaign, run, Path(share.root), share.wanted, run.cell in paper)
        for run in runs
        if run.cell in mine
    ]
    Path(share.answer).write_bytes(msgspec.json.encode(parts))


__all__ = ["DOUBLE_MM", "build_report", "draw_run", "work_off"]
