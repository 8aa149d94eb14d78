"""Parts that all figures share: paper widths, fonts, axes and the output of files."""

from __future__ import annotations

import io
import math
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from narrows.campaign.json_files import write_atomically
from narrows.csv_text import Rows
from narrows.report.charts import MOST_MARKS
from narrows.report.legends import MM_PER_PT, fold_text, legend, place_legend, size_in_mm
from narrows.report.style import GRID, INK, MUTED, PAIRS, PAPER, SHADE
from narrows.report.ticks import drop_crowded_labels, label_extents

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SINGLE_MM = 88.0
DOUBLE_MM = 180.0
PNG_DPI = 300
_PAPER = Path(__file__).with_name("paper.mplstyle")

Numbers = Mapping[str, Sequence[Any] | NDArray[Any]]
"""The numbers a figure shows: columns of equal length, written as CSV beside it."""


Span = tuple[float | None, float | None]
"""Ends of an axis; `None` where the numbers decide."""


@dataclass(frozen=True, slots=True)
class Options:
    """The reader's choices for a figure: width on paper, height if not the usual one, text size, and the
    limits of the axes in their displayed units.
    """

    width_mm: float = DOUBLE_MM
    height_mm: float | None = None
    font_pt: float = 7.0
    x: Span = (None, None)
    y: Span = (None, None)


def limit(axes: Axes, options: Options) -> None:
    """Sets the requested limits of axes; a reversed axis stays reversed."""
    for (low, high), now, assign in (
        (options.x, axes.get_xlim(), axes.set_xlim),
        (options.y, axes.get_ylim(), axes.set_ylim),
    ):
        if low is not None or high is not None:
            ends = [min(now) if low is None else low, max(now) if high is None else high]
            assign(*(ends if now[0] <= now[1] else reversed(ends)))


def paper_style(options: Options) -> AbstractContextManager[Any]:
    """Matplotlib settings for figures on paper, in colours that pages replace by those of their theme."""
    import matplotlib

    size = options.font_pt
    own: dict[Any, Any] = dict(matplotlib.rc_params_from_file(_PAPER, use_default_template=False))
    own |= {"font.size": size, "axes.titlesize": size + 0.5, "axes.labelsize": size, "savefig.dpi": PNG_DPI}
    own |= dict.fromkeys(("xtick.labelsize", "ytick.labelsize", "legend.fontsize"), size - 0.5)
    own |= dict.fromkeys(
        ("axes.edgecolor", "axes.labelcolor", "text.color", "xtick.color", "ytick.color"), INK
    )
    return matplotlib.rc_context({**own, "grid.color": GRID})


def new_figure(options: Options, height_mm: float) -> Figure:
    """An empty figure of the requested paper width, without a window system."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(options.width_mm / 25.4, (options.height_mm or height_mm) / 25.4))
    FigureCanvasAgg(figure)
    return figure


def canvas(options: Options, height_mm: float) -> tuple[Figure, Axes, float]:
    """A figure whose coordinates are millimetres on paper, and its height."""
    figure = new_figure(options, height_mm)
    height = figure.get_figheight() * 25.4
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_xlim(0, options.width_mm)
    axes.set_ylim(0, height)
    axes.axis("off")
    return figure, axes, height


def box(
    axes: Axes, corner: tuple[float, float], size: tuple[float, float], rounding: float = 1.4, **how: Any
) -> None:
    """A rounded box from its lower left corner on."""
    from matplotlib.patches import FancyBboxPatch

    style = f"round,pad=0,rounding_size={rounding}"
    look: dict[str, Any] = {"facecolor": PAPER, "edgecolor": INK, "linewidth": 0.8} | how
    axes.add_patch(FancyBboxPatch(corner, *size, boxstyle=style, **look))


LEFT_MM, RIGHT_MM, BOTTOM_MM, TOP_MM = 13.0, 3.0, 8.5, 6.0
EDGE_MM = 1.1
LEAST_MM = 18.0
"""Axes are never less high than this."""


def time_axes(figure: Figure, options: Options, duration_s: float, y_label: str) -> Axes:
    """Axes over the time of a run, which `settle` positions."""
    del options
    axes = figure.add_axes((0.1, 0.1, 0.8, 0.8))
    axes.set_xlim(0, duration_s if duration_s > 0 else 1)
    axes.set_xlabel("time since the start of the run (s)", labelpad=1.5)
    axes.set_ylabel(y_label)
    return axes


def mark_times(axes: Axes, times_s: Sequence[float]) -> None:
    """Thin lines at the times at which the timeline changes something."""
    for time in list(times_s)[:MOST_MARKS]:
        axes.axvline(time, color=MUTED, linewidth=0.5, linestyle=(0, (1, 1.5)), zorder=1.5)


def settle(axes: Axes, entries: Sequence[tuple[str, Any]], options: Options, height_mm: float) -> None:
    """Places the only axes of a figure below their legend, which hides nothing there. Margins have their
    usual size if that suffices, so that figures below each other line up; the figure grows to fit the legend.
    """
    figure = axes.get_figure(root=True)
    assert figure is not None
    shown = legend(figure, entries, options, options.width_mm - 2 * EDGE_MM - 1.0)
    wide, legend_mm = size_in_mm(figure, shown) if shown is not None else (0.0, 0.0)
    top = max(TOP_MM, legend_mm + 2 * EDGE_MM)
    high = height_mm - BOTTOM_MM - TOP_MM
    if options.height_mm is not None:
        high = max(min(high, LEAST_MM), options.height_mm - BOTTOM_MM - top)
    total = top + high + BOTTOM_MM
    figure.set_size_inches(options.width_mm / 25.4, total / 25.4)
    line = options.font_pt * MM_PER_PT * 1.2
    words = fold_text(axes.get_ylabel(), high + 3, options.font_pt)
    axes.set_ylabel("\n".join(words))
    left = LEFT_MM
    for _ in range(2):
        across = options.width_mm - left - RIGHT_MM
        axes.set_position(
            (left / options.width_mm, BOTTOM_MM / total, across / options.width_mm, high / total)
        )
        drop_crowded_labels(axes.xaxis, None)
        drop_crowded_labels(axes.yaxis, None)
        frame = axes.get_window_extent()
        ticks = max((frame.x0 - item.x0 for _, _, item in label_extents(axes.yaxis)), default=0.0)
        needed = EDGE_MM + len(words) * line + ticks / figure.dpi * 25.4 + 0.6
        if needed <= left:
            # Measuring labels takes a third of the time of a figure, and would find the same.
            break
        left = needed
    axes.yaxis.set_label_coords(-(left - EDGE_MM - len(words) * line) / across, 0.5)
    if shown is not None:
        beside = max(EDGE_MM, min(left, options.width_mm - EDGE_MM - wide))
        place_legend(figure, shown, beside, EDGE_MM)


@dataclass
class TimePlot:
    """A figure over the time of a run while it is drawn; its legend and the limits of its axes come last."""

    figure: Figure
    axes: Axes
    entries: list[tuple[str, Any]] = field(default_factory=list)
    #: The range of values that the axis must show, and zero; None if the axis has its own limits.
    ends: tuple[float, float] | None = (0.0, 0.0)

    @property
    def labels(self) -> list[str]:
        """The names in the legend."""
        return [label for label, _ in self.entries]

    def show(self, handle: Any, label: str, *values: Any) -> None:
        """Adds a drawn element to the legend; the axis covers its values."""
        self.entries.append((label, handle))
        self.reach(*values)

    def reach(self, *values: Any) -> None:
        """Extends the axis to these values."""
        for some in values:
            low, high = self.ends or (0.0, 0.0)
            finite = np.asarray(some, dtype=float)
            finite = finite[np.isfinite(finite)]
            self.ends = (float(min(low, finite.min(initial=low))), float(max(high, finite.max(initial=high))))


@contextmanager
def over_time(
    options: Options, height_mm: float, duration_s: float, marks_s: Sequence[float], y_label: str
) -> Iterator[TimePlot]:
    """A figure over the time of a run, to be drawn inside the context."""
    with paper_style(options):
        figure = new_figure(options, height_mm)
        plot = TimePlot(figure, time_axes(figure, options, duration_s, y_label))
        yield plot
        if plot.ends is not None:
            low, high = plot.ends
            pad = 0.12 * (high - low)
            plot.axes.set_ylim(low - pad if low < 0 else 0, high + pad if high > low else 1)
        reach_in_time(plot.axes, duration_s)
        mark_times(plot.axes, marks_s)
        settle(plot.axes, plot.entries, options, height_mm)


def reach_in_time(axes: Axes, duration_s: float) -> None:
    """Makes the time axis cover the run, and packets still in flight at its end."""
    low, high = float(axes.dataLim.x0), float(axes.dataLim.x1)
    end = duration_s if duration_s > 0 else 1.0
    if np.isfinite([low, high]).all():
        slack = 1e-6 * end
        axes.set_xlim(low if low < -slack else 0.0, high if high > end + slack else end)


def note(figure: Figure, text: str) -> None:
    """A remark in the middle of a figure that has nothing else to show."""
    figure.text(0.5, 0.5, text, ha="center", va="center", color=MUTED)


_ABOUT: dict[str, tuple[str, str]] = {
    "pdf": ("Title", "Keywords"),
    "svg": ("Title", "Description"),
    "png": ("Title", "Description"),
}
"""Where each format keeps a title and what is drawn."""


def write_figure(
    figure: Figure, stem: Path, formats: Sequence[str], options: Options, about: tuple[str, str] | None = None
) -> list[Path]:
    """Writes the figure in each format; the same figure yields the same bytes. `about` is a title and a
    description, for the metadata of the file.
    """
    stem.parent.mkdir(parents=True, exist_ok=True)
    written = []
    with paper_style(options), warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore", message=r"Glyph .* missing"
        )  # A name in a rare script is not an error.
        for name in formats:
            path = stem.with_name(f"{stem.name}.{name}")
            blank: dict[str, Any] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(name, {})
            if about is not None:
                blank = blank | dict(zip(_ABOUT[name], about, strict=True))
            # Written to memory first: on a full disk the PDF writer fails inside its compression library.
            content = io.BytesIO()
            dpi = PNG_DPI if name == "png" else 250
            figure.savefig(content, format=name, metadata=blank or None, dpi=dpi)
            write_atomically(path, content.getvalue())
            written.append(path)
    return written


def write_numbers(numbers: Numbers, path: Path) -> None:
    """Writes the numbers of a figure as CSV (with empty cells for missing values)."""
    text = io.StringIO()
    rows = Rows(text)
    rows.write(numbers.keys())
    columns = [[_plain(v) for v in column] for column in numbers.values()]
    rows.write_all(zip(*columns, strict=True))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text.getvalue(), encoding="utf-8")


def _plain(value: Any) -> Any:
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    number = float(value)
    return "" if math.isnan(number) else f"{number:.9g}"


def inline_svg(path: Path, prefix: str, title: str, tips: Mapping[str, str] | None = None) -> str:
    """An SVG file as a part of a page: with unique names, the colours of the page's theme, and tool tips on
    marks.
    """
    from markupsafe import escape

    text = path.read_text(encoding="utf-8")
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r'\bid="', f'id="{prefix}-', text)
    text = re.sub(r"url\(#", f"url(#{prefix}-", text)
    text = re.sub(r'href="#', f'href="#{prefix}-', text)
    for colour, name in ((INK, "ink"), (MUTED, "muted"), (GRID, "grid"), (PAPER, "paper"), (SHADE, "shade")):
        text = text.replace(colour, f"var(--fig-{name})")
    for colour in PAIRS:
        text = text.replace(colour, f"var(--c{colour[1:]})")
    for mark, tip in (tips or {}).items():
        opening = f'<g id="{prefix}-{mark}"'
        text = text.replace(
            f"{opening}>", f'{opening} class="mark" tabindex="0"><title>{escape(tip)}</title>', 1
        )
    text = re.sub(r'<svg ([^>]*?)width="[^"]*" height="[^"]*"', r"<svg \1", text, count=1)
    text = re.sub(r'<svg ([^>]*?)height="[^"]*" ([^>]*?)width="[^"]*"', r"<svg \1\2", text, count=1)
    return text.replace("<svg ", f'<svg role="img" aria-label="{escape(title)}" ', 1)
