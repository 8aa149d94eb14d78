"""The page of one sweep: its keys, their effects, and its figures."""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
from pathlib import Path

from narrows import __version__, scratch
from narrows.analysis.metrics import head_of
from narrows.blocks.model import Column, Table
from narrows.campaign.json_files import write_atomically
from narrows.documents.site import SweepListing, SweepPage
from narrows.documents.sweep import Sweep
from narrows.errors import DataError, NarrowsError, reason
from narrows.files import read_bytes
from narrows.report.document import moment
from narrows.report.figures.parameter import METRICS
from narrows.site import pages
from narrows.sweep.effects import effects, effects_table, points_of
from narrows.sweep.outcomes import count_outcomes, of_all
from narrows.sweep.store import SweepFolder
from narrows.text import plural

FIGURES = ("surface", "effects")


def mark(path: Path) -> str:
    """A digest of everything that the page is made of."""
    result = hashlib.sha256(f"{__version__} {pages.digest()}".encode())
    folder = SweepFolder.read(path)
    try:
        result.update(read_bytes(path / "sweep.json"))
        for part in folder.parts:
            result.update(f"{part.relative_to(path)} {part.stat().st_size}".encode())
    except OSError as error:
        raise DataError(f"{path}: can't be read: {reason(error)}") from None
    return result.hexdigest()[:12]


def origin(path: Path) -> str:
    """The identity of a sweep, independent of its folder."""
    sweep = SweepFolder.read(path).document
    told = [sweep.created_at, sweep.name, sweep.hash]
    return hashlib.sha256(json.dumps(told).encode()).hexdigest()[:12]


def write(path: Path, home: Path, known: str, assets: dict[str, str], source: str) -> SweepPage:
    """Writes the page and returns the sweep's entry in site.json; `known` is its mark.

    Raises `NarrowsError` if the sweep can't be read or the page can't be written.
    """
    folder = SweepFolder.read(path)
    listed = _list_entry(folder)
    page = pages.sweep(
        listed,
        [["Cells", str(listed.cells)], ["Points", str(listed.points)], *_facts(folder)],
        _keys(folder.document),
        _effects(folder),
        _figures(path),
        folder.document.written,
        assets,
    )
    try:
        home.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise NarrowsError(f"{home}: can't be written: {reason(error)}") from None
    write_atomically(home / "index.html", page)
    return SweepPage(
        origin=origin(path), mark=known, assets=list(assets.values()), listed=listed, source=source
    )


def _list_entry(folder: SweepFolder) -> SweepListing:
    """The entry in the list of all sweeps."""
    sweep = folder.document
    outcomes = of_all(count_outcomes(folder))
    return SweepListing(
        name=sweep.name,
        folder=folder.path.resolve().name,
        title=sweep.title or sweep.name,
        question=sweep.question or "",
        made=sweep.created_at or "",
        keys=[key.label for key in sweep.parameters],
        schemes=sweep.schemes,
        points=len(outcomes.points),
        cells=outcomes.cells.total(),
        outcomes=dict(outcomes.cells),
        words=outcomes.words,
        bad_points=len(outcomes.invalid | outcomes.failed | outcomes.without_valid),
        ended=sweep.outcome,
    )


def _facts(folder: SweepFolder) -> list[list[str]]:
    sweep = folder.document
    told = [
        ["Design", sweep.design],
        ["Schemes", ", ".join(sweep.schemes)],
        ["Made", moment(sweep.created_at)],
        ["Last session", sweep.outcome],
        ["Version", (sweep.sessions and sweep.sessions[-1].version) or ""],
        ["Folder", folder.path.resolve().name],
    ]
    if sweep.failed:
        told.insert(0, ["Failed", plural(len(sweep.failed), "cell")])
    return told


def _keys(sweep: Sweep) -> Table:
    heads = [Column(text, "left") for text in ("key", "address", "values", "column")]
    return Table.new(heads, ([key.label, key.key, key.law, key.name] for key in sweep.parameters))


def _effects(folder: SweepFolder) -> list[pages.TitledTable]:
    """For each metric a table of effects, as in `narrows sweep show`."""
    from narrows.campaign.measurement import list_metrics

    described = {metric.name: metric for metric in list_metrics()}
    labels = {key.name: key.label for key in folder.document.parameters}
    entries = []
    for name in METRICS:
        with contextlib.suppress(DataError):
            measured = list(map(effects, points_of(folder, name)))
            table = effects_table(measured, described[name], labels)
            if table.rows:
                entries.append(pages.TitledTable(head_of(described[name]), table))
    return entries


def _figures(path: Path) -> list[pages.SweepFigure]:
    """The figures over the space, as fragments of the page; a figure that cannot be drawn is replaced by the
    reason.
    """
    from narrows.report import drawing
    from narrows.report.plotting import Choice, compose

    figures = []
    for name in FIGURES:
        options = drawing.Options()
        try:
            drawn = compose(Choice((path,), name), options)
        except NarrowsError as error:
            # Paths of this machine do not belong on the web.
            figures.append(pages.SweepFigure(name, missing=str(error).replace(str(path), path.name)))
            continue
        with scratch.working_folder("narrows-figure") as work:
            (file,) = drawing.write_figure(drawn.figure, work / name, ["svg"], options)
            text = drawing.inline_svg(file, name, drawn.title)
        # A site's pages may have no style elements; this one only rounds the joins of lines.
        picture = re.sub(r"<style.*?</style>", "", text, flags=re.DOTALL)
        figures.append(pages.SweepFigure(drawn.title, drawn.caption, picture))
    return figures
