"""Behaviour cards as one self-contained HTML page, with a figure for each line."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from narrows import __version__
from narrows.documents.identify import Card, Differences, Identification, Line
from narrows.identify import figures, loss_figures, naming_text, text
from narrows.identify.features import COMBINED, RANDOM_LOSS
from narrows.identify.logs import read_any
from narrows.identify.overlays import draw_overlays
from narrows.identify.responses import loss_point
from narrows.identify.running import record_of
from narrows.identify.trace import Trace
from narrows.policy import lock
from narrows.report import drawing, page
from narrows.scenario.slugs import slug_of

if TYPE_CHECKING:
    from markupsafe import Markup
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class _Entry:
    """A measured line with its figure."""

    id: str
    title: str
    value: str
    interval: str
    seconds: str
    runs: str
    picture: Markup
    caption: str


@dataclass(frozen=True)
class _Probe:
    """The lines of a probe, and the reasons for those that were not measured."""

    name: str
    id: str
    entries: list[_Entry]
    missing: list[tuple[str, str]]


@dataclass(frozen=True)
class _Naming:
    """The name of a sender, the lines that decided or contradict it, and its series beside the reference."""

    sentence: str
    basis: str
    nearest: str
    rows: list[list[str]]
    pictures: list[tuple[Markup, str]]


@dataclass(frozen=True)
class _Card:
    """A card with its name and its probes."""

    about: Card
    id: str
    naming: _Naming | None
    probes: list[_Probe]


@dataclass(frozen=True)
class _Comparison:
    """Differences between two cards."""

    headline: str
    method: str
    about: Differences
    rows: list[tuple[str, str, str, str]]


def render(made: Identification) -> str:
    """The page as text; the same cards and records yield the same bytes."""
    from markupsafe import Markup

    def own(name: str) -> str | None:
        return _template(name) if name in ("identify.html.j2", "identify.css") else None

    with tempfile.TemporaryDirectory() as scratch:
        cards = [_card(card, number, Path(scratch)) for number, card in enumerate(made.cards, 1)]
    template = page.environment(own).get_template("identify.html.j2")
    return lock(
        template.render(
            version=__version__,
            cards=cards,
            comparisons=[_comparison(item) for item in made.differences],
            style=Markup(page.style_sheet() + _template("identify.css")),
            theme=Markup(page.asset("templates", "theme.js")),
        )
    )


@lru_cache(maxsize=2)
def _template(name: str) -> str:
    return files("narrows.identify").joinpath("templates", name).read_text(encoding="utf-8")


def _comparison(item: Differences) -> _Comparison:
    rows = [
        (text.title_of(line.base), line.probe, text.both_of(line.base), text.both_of(line.other))
        for line in item.lines
    ]
    return _Comparison(text.headline(item), text.method(item), item, rows)


def _card(card: Card, number: int, scratch: Path) -> _Card:
    probes = []
    for probe in dict.fromkeys(line.probe for line in card.lines):
        lines = [line for line in card.lines if line.probe == probe]
        place = f"c{number}-{slug_of(probe)}"
        entries = [
            _entry(line, f"{place}-{slug_of(line.name)}", figure, caption, scratch)
            for line, figure, caption in draw_all(card, [line for line in lines if line.why is None])
        ]
        probes.append(_Probe(probe, place, entries, text.reasons_of(lines)))
    return _Card(card, f"c{number}", _naming(card, f"c{number}-name", scratch), probes)


def _naming(card: Card, place: str, scratch: Path) -> _Naming | None:
    from markupsafe import Markup

    if card.naming is None:
        return None
    pictures = []
    for kind, figure, caption in draw_overlays(card):
        (file,) = drawing.write_figure(figure, scratch / f"{place}-{kind}", ["svg"], figures.OPTIONS)
        pictures.append((Markup(drawing.inline_svg(file, f"{place}-{kind}", caption)), caption))
    evidence = [*card.naming.decisive, *card.naming.contrary]
    rows = [[*naming_text.row(item), "for" if float(item.weight) > 0 else "against"] for item in evidence]
    return _Naming(
        naming_text.sentence(card.naming), naming_text.basis(card.naming), card.naming.nearest, rows, pictures
    )


def draw_all(card: Card, lines: Sequence[Line]) -> Iterator[tuple[Line, Figure, str]]:
    """The figures of the lines of a probe; each trace is read once."""
    traces: dict[str, Trace] = {}
    combined = {feature.name for feature, _ in COMBINED}

    def trace_of(cell: str) -> Trace:
        if cell not in traces:
            traces.clear()
            traces[cell] = read_any(record_of(card, line.probe, cell))
        return traces[cell]

    for line in lines:
        if line.name in loss_figures.PICTURES:
            # The points of this run at each ratio are in the lines of the ratios.
            cells = [
                other.cell for other in lines if other.probe == RANDOM_LOSS and other.name not in combined
            ]
            points = [loss_point(trace_of(cell)) for cell in cells if cell]
            draw_points, caption = loss_figures.PICTURES[line.name]
            yield line, draw_points(line, points, figures.OPTIONS), caption
        elif line.cell is not None:
            yield (
                line,
                figures.draw(line, trace_of(line.cell), figures.OPTIONS),
                figures.picture_of(line).caption,
            )


def _entry(line: Line, name: str, figure: Figure, caption: str, scratch: Path) -> _Entry:
    from markupsafe import Markup

    title = text.title_of(line)
    (file,) = drawing.write_figure(figure, scratch / name, ["svg"], figures.OPTIONS)
    picture = drawing.inline_svg(file, name, f"{title}: {text.value_of(line)}. {caption}")
    return _Entry(
        id=name,
        title=title,
        value=text.value_of(line),
        interval=text.interval_of(line),
        seconds=text.seconds_of(line),
        runs=text.samples_of(line),
        picture=Markup(picture),
        caption=f"{caption} Run {line.cell}.",
    )
