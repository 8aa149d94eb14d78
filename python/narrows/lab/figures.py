"""The figures of a laboratory's report: published values against ours, and those that `lab.yaml` names."""

from __future__ import annotations

from collections.abc import Iterable

from narrows.documents.laboratory import LabColumn, LabFigure, LabReport
from narrows.lab.agreement_figure import draw_agreement
from narrows.lab.running import LabRun, find_rows
from narrows.lab.tasks import Drawing
from narrows.report import ReportError
from narrows.report.drawing import Options

FOLDER = "figures"
_OPTIONS = Options(width_mm=180.0)
_AGREEMENT = Options(width_mm=150.0)


def draw_all(run: LabRun, report: LabReport) -> list[LabFigure]:
    """Draws all figures that have runs, into `figures` below the run."""
    figures = [figure for column in report.columns if (figure := _draw_compared(run, column)) is not None]
    for number, drawing in enumerate(run.lab.figures, 1):
        figures += _draw(run, drawing, f"{number}-{drawing.figure}", None)
    for task in run.lab.lesson.tasks if run.lab.lesson else ():
        figures += draw_task(run, task.name)
    return figures


def draw_task(run: LabRun, name: str) -> list[LabFigure]:
    """Draws the figures of one task of a lesson."""
    task = run.lab.lesson.task(name) if run.lab.lesson else None
    figures: list[LabFigure] = []
    for number, drawing in enumerate(task.figures if task else (), 1):
        figures += _draw(run, drawing, f"{name}-{number}-{drawing.figure}", name)
    return figures


def _draw_compared(run: LabRun, column: LabColumn) -> LabFigure | None:
    """Draws ours against the published values of a column, if it has at least two of both."""
    if column.all.cells < 2:
        return None
    stem = run.folder / FOLDER / f"compared-{column.name}"
    schemes = {name: run.lab.scheme_of(name, run.where) for name in run.lab.schemes}
    caption = draw_agreement(column, schemes, stem, _AGREEMENT)
    file = f"{FOLDER}/{stem.name}.png"
    return LabFigure(
        title=f"{column.label}: published and ours", caption=caption, file=file, column=column.name
    )


def _draw(run: LabRun, drawing: Drawing, name: str, task: str | None) -> Iterable[LabFigure]:
    """Draws a figure over its conditions; draws nothing if none of them has been run."""
    from narrows.campaign.store import CampaignFolder
    from narrows.report.plotting import Choice, compose, write

    campaign = run.campaign(drawing.experiment)
    if not (campaign / "campaign.json").is_file():
        return
    folder = CampaignFolder.read(campaign)
    scenario = folder.resolved
    rows = find_rows(run.lab, run.lab.experiments[drawing.experiment], run.where, scenario)
    finished = {cell.scheme for cell in folder.cells if cell.is_finished}
    labels = dict.fromkeys(
        label for pair in drawing.conditions or rows for label in rows.get(pair, ()) if label in finished
    )
    if not labels:
        return
    title = drawing.figure.replace("-", " ").replace("_", " ").capitalize()
    try:
        drawn = compose(Choice((campaign,), drawing.figure, tuple(labels)), _OPTIONS)
    except ReportError as error:
        yield LabFigure(title=title, caption=drawing.caption, file=None, task=task, problem=str(error))
        return
    file = f"{FOLDER}/{name.replace('_', '-')}.png"
    write(drawn, run.folder / file, _OPTIONS)
    caption = f"{drawing.caption} {drawn.caption}".strip()
    title = f"{drawing.experiment}: {drawn.title.lower()}"
    yield LabFigure(title=title, caption=caption, file=file, task=task)
