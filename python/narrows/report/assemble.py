"""From a campaign folder to report.html, report.pdf and figures/.

Everything is written under temporary names and renamed when complete, so an interrupted report leaves the
previous one intact. Runs of large campaigns are drawn by several processes.
"""

from __future__ import annotations

import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from narrows.errors import NarrowsError, reason
from narrows.report import ReportError, ReportPaths, document, drawing, figures
from narrows.report.data import Campaign, Json, Run, load
from narrows.report.drawing import DOUBLE_MM, SINGLE_MM, Options

RUNS_PER_WORKER = 6
"""Starting a process costs about as much as drawing this many runs."""


def build_report(folder: Path, *, pdf: bool, html: bool) -> ReportPaths:
    """Draw and write a whole report."""
    campaign = load(folder)
    try:
        work = Path(tempfile.mkdtemp(prefix=".report.", suffix=".tmp", dir=folder))
    except OSError as error:
        raise NarrowsError(f"{folder}: can't be written: {reason(error)}") from error
    try:
        drawn, charts = _draw_all(campaign, work / "figures", want_charts=html)
        content = document.compose(campaign, drawn)
        if html:
            from narrows.report.page import render_page

            (work / "report.html").write_text(render_page(content, charts, work, campaign), encoding="utf-8")
        if pdf:
            from narrows.report.paper import render_pdf

            (work / "report.pdf").write_bytes(render_pdf(content, work))
        return _publish(work, folder, pdf=pdf, html=html)
    except OSError as error:
        # The campaign is as good as before: this machine fails, not the input.
        raise NarrowsError(
            f"{folder}: the report can't be written: {reason(error)}; make room and"
            f" write it again with: narrows report {folder}"
        ) from error
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _publish(work: Path, folder: Path, *, pdf: bool, html: bool) -> ReportPaths:
    final = folder / "figures"
    old = work / "old-figures"
    if final.exists():
        final.rename(old)
    (work / "figures").rename(final)
    for name, wanted in (("report.html", html), ("report.pdf", pdf)):
        if wanted:
            (work / name).replace(folder / name)
    return ReportPaths(
        folder / "report.html" if html else None, folder / "report.pdf" if pdf else None, final
    )


def plot_figure(
    folder: Path, name: str, *, cell: str | None, width_mm: float, out: Path | None, formats: tuple[str, ...]
) -> list[Path]:
    """Draw one figure of the registry."""
    kind = figures.registry().get(name)
    if kind is None:
        raise ReportError(f"there is no figure {name!r}; choose one of {', '.join(figures.registry())}.")
    unknown = sorted(set(formats) - {"svg", "png", "pdf"})
    if unknown:
        raise ReportError(f"figures can't be written as {', '.join(unknown)}; choose from svg, png and pdf.")
    campaign = load(folder)
    data: Campaign | Run = campaign
    stem = (out or folder / "figures") / name
    if kind.scope == "run":
        found = [r for r in campaign.runs if r.cell == cell and r.record is not None]
        if not found:
            known = ", ".join(r.cell for r in campaign.runs if r.record is not None) or "none"
            raise ReportError(
                f"figure {name} shows one run, and {cell!r} is none that has a record; choose from: {known}."
            )
        data, stem = found[0], (out or folder / "figures" / found[0].cell) / name
    reason = kind.absent(data)
    if reason:
        raise ReportError(f"figure {name} can't be drawn: {reason}")
    options = Options(width_mm=width_mm)
    drawing.write_numbers(kind.numbers(data), stem.with_suffix(".csv"))
    return [
        *drawing.write_figure(kind.figure(data, options), stem, formats, options),
        stem.with_suffix(".csv"),
    ]


def _draw(kind: figures.FigureKind, data: Campaign | Run, root: Path, prefix: str) -> Json:
    """One figure as files; a figure that can't be drawn says why and stops nothing else."""
    entry: Json = {
        "name": kind.name,
        "title": kind.title,
        "file": None,
        "caption": "",
        "absent": None,
        "tips": {},
        "note": kind.paper_note,
    }
    stem = root / prefix / kind.name
    options = Options()
    try:
        entry["absent"] = kind.absent(data)
        if entry["absent"] is None:
            entry["caption"] = kind.caption(data)
            drawing.write_numbers(kind.numbers(data), stem.with_suffix(".csv"))
            drawing.write_figure(kind.figure(data, options), stem, ("svg", "png"), options)
            entry["file"] = stem.relative_to(root.parent).as_posix()
            entry["tips"] = kind.tips(data)
            if kind.scope == "campaign":  # the same once more for one column of a paper
                narrow = Options(width_mm=SINGLE_MM)
                slim = stem.with_name(f"{stem.name}-{SINGLE_MM:g}mm")
                drawing.write_figure(kind.figure(data, narrow), slim, ("svg", "png"), narrow)
    except (ValueError, ReportError, ArithmeticError, KeyError) as error:
        entry["file"] = None
        entry["absent"] = f"This figure can't be drawn: {_sentence(error)}"
    return entry


def _sentence(error: BaseException) -> str:
    text = f"the record has no {error}" if isinstance(error, KeyError) else str(error) or type(error).__name__
    return text if text.endswith(".") else text + "."


def draw_run(run: Run, root: Path, want_charts: bool) -> tuple[dict[str, Json], dict[str, str]]:
    """All figures of one run, and their interactive forms as JSON."""
    drawn: dict[str, Json] = {}
    charts: dict[str, str] = {}
    if run.record is None:
        return drawn, charts
    for kind in figures.of_scope("run"):
        key = f"{run.cell}/{kind.name}"
        drawn[key] = _draw(kind, run, root, run.cell)
        if want_charts and drawn[key]["file"]:
            chart = kind.chart(run)
            if chart is not None:
                charts[key] = _compact(chart)
    run.forget()
    return drawn, charts


def _compact(chart: Json) -> str:
    """A chart as JSON with no more digits than a screen can show."""
    from narrows.report.data import floats

    def rounded(values: Any, digits: int) -> list[float | None]:
        return [None if math.isnan(v) else float(f"{v:.{digits}g}") for v in floats(values).tolist()]

    xs = [[round(v, 6) for v in floats(x).tolist()] for x in chart["xs"]]
    series = [{**s, "y": rounded(s["y"], 5)} for s in chart["series"]]
    return json.dumps({**chart, "xs": xs, "series": series}, separators=(",", ":"), allow_nan=False)


def _draw_all(campaign: Campaign, root: Path, *, want_charts: bool) -> tuple[dict[str, Json], dict[str, str]]:
    root.mkdir(parents=True)
    drawn = {kind.name: _draw(kind, campaign, root, "") for kind in figures.of_scope("campaign")}
    charts: dict[str, str] = {}
    runs = [r for r in campaign.runs if r.record is not None]
    workers = min(_cores(), len(runs) // RUNS_PER_WORKER)
    if workers < 2:
        parts = [draw_run(run, root, want_charts) for run in runs]
    else:
        parts = _draw_in_processes(campaign.folder, [r.cell for r in runs], root, want_charts, workers)
    for some_drawn, some_charts in parts:
        drawn.update(some_drawn)
        charts.update(some_charts)
    return drawn, charts


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _draw_in_processes(
    folder: Path, cells: Sequence[str], root: Path, want_charts: bool, workers: int
) -> list[tuple[dict[str, Json], dict[str, str]]]:
    """Share the runs among fresh interpreters: unlike a fork or a spawned copy of the caller's program, they
    need nothing from the calling process, whatever threads or scripts it runs."""
    jobs = []
    for worker in range(workers):
        share = cells[worker::workers]
        answer = root.parent / f"drawn-{worker}.json"
        task = {
            "campaign": str(folder.resolve()),
            "cells": share,
            "root": str(root.resolve()),
            "charts": want_charts,
            "answer": str(answer.resolve()),
            "path": sys.path,
        }
        command = [sys.executable, "-c", _WORKER, json.dumps(task)]
        jobs.append(
            (subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True), answer)
        )
    parts = []
    try:
        for process, answer in jobs:
            _, errors = process.communicate()
            if process.returncode != 0:
                last = (errors.strip().splitlines() or ["no message"])[-1]
                raise ReportError(f"a drawing process failed: {last}")
            parts += [(p[0], p[1]) for p in json.loads(answer.read_text(encoding="utf-8"))]
    finally:
        for process, _ in jobs:
            if process.poll() is None:
                process.kill()
                process.wait()
    return parts


_WORKER = """
import json, sys
task = json.loads(sys.argv[1])
sys.path[:] = task["path"]
from narrows.report.assemble import work_off
work_off(task)
"""


def work_off(task: Json) -> None:
    """One drawing process: draws its share of the runs and leaves the answer in a file."""
    campaign = load(Path(task["campaign"]))
    wanted = set(task["cells"])
    parts = [draw_run(r, Path(task["root"]), task["charts"]) for r in campaign.runs if r.cell in wanted]
    Path(task["answer"]).write_text(json.dumps(parts), encoding="utf-8")


__all__ = ["DOUBLE_MM", "build_report", "draw_run", "plot_figure", "work_off"]
