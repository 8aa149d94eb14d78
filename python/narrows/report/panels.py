"""Small multiples: panels of one size in rows and columns, with one legend below all of them.

A figure has blocks, one below the other; a block has a panel for each condition and one label for each axis.
The panels of a block share their axes.

    y label |  title      title      title
            | +------+   +------+   +------+      as many columns as leave each panel its least width
            | |      |   |      |   |      |
            | +------+   +------+   +------+
            |             x label
      legend, in columns

All sizes are millimetres on the page, counted from its upper left. The figure is as high as its panels
require. If a height is requested, panels grow or shrink to it, down to the smallest readable size; below that
the figure exceeds the requested height.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from narrows.report.drawing import Options, new_figure
from narrows.report.legends import MM_PER_PT, fold_text, legend, place_legend, size_in_mm, text_mm
from narrows.report.ticks import drop_crowded_labels, label_extents

if TYPE_CHECKING:
    from matplotlib.axes import Axes

EDGE_MM = 1.5
"""Room between what is drawn and the edge of the page."""
GAP_MM = 4.5
LABELLED_GAP_MM = 9.0
"""Room between panels before the labels of ticks are measured, where each panel has its own."""
LEAST_HEIGHT_MM = 11.0
TALLEST_MM = 235.0
"""Height of the text of a page: more columns are taken where panels would need more."""
BAR_MM = 1.8
_BELOW_BLOCK = 2.5
_BELOW_PANEL = 1.2
_BESIDE_LABELS = 3.0
"""Room between a panel and the labels of the next one's ticks."""
_USUAL_LEFT = 14.0


def _unbroken(title: str) -> str:
    """A title with non-breaking spaces between numbers and units."""
    return re.sub(r"([0-9]) ([^\s,]+)", "\\1\N{NO-BREAK SPACE}\\2", title)


@dataclass(frozen=True, slots=True)
class Block:
    """Panels that share their axes: the title of each (empty for none), the labels of the axes, and the
    preferred and minimum height of a panel.
    """

    titles: Sequence[str]
    x_label: str
    y_label: str
    height_mm: float = 30.0
    least_mm: float = LEAST_HEIGHT_MM
    heading: str = ""
    #: The colour scale of numbers, shown as a bar beside the heading.
    shades: Any = None


class Panels:
    """A figure of blocks of panels while it is drawn: `axes[block][panel]`; `finish` comes last.

    `least_mm` is the preferred minimum width of a panel; panels get narrower, down to `narrowest_mm`, before
    the figure exceeds the height of a page, and never wider than `widest_mm`. `shared` says whether the
    panels of a block have the same x and y axes; only then do inner panels omit their tick labels.
    """

    def __init__(
        self,
        options: Options,
        blocks: Sequence[Block],
        *,
        least_mm: float = 24.0,
        narrowest_mm: float | None = None,
        widest_mm: float = 1000.0,
        shared: tuple[bool, bool] = (True, True),
        left_mm: float = _USUAL_LEFT,
    ) -> None:
        self.options, self.blocks, self.shared = options, list(blocks), shared
        self.figure = new_figure(options, 60.0)
        self.axes: list[list[Axes]] = []
        self._left, self._widest = left_mm, widest_mm
        self._gap = GAP_MM if shared[1] else LABELLED_GAP_MM
        for block in self.blocks:
            row: list[Axes] = []
            for _ in block.titles:
                first = row[0] if row else None
                how: dict[str, Any] = {
                    "sharex": first if shared[0] else None,
                    "sharey": first if shared[1] else None,
                }
                row.append(self.figure.add_axes((0.1, 0.1, 0.8, 0.8), **how))
            self.axes.append(row)
        self.columns = self._choose_columns(least_mm, narrowest_mm or least_mm)
        self._bars = [self._bar(block.shades) for block in self.blocks]
        #: Room below the panels of each block for tick labels; beside them for the y label.
        self._under = [5.0] * len(self.blocks)
        self._beside = [self._rows(block) * block.height_mm for block in self.blocks]

    def _bar(self, shades: Any) -> Axes | None:
        if shades is None:
            return None
        axes = self.figure.add_axes((0.1, 0.1, 0.8, 0.02))
        bar = self.figure.colorbar(shades, cax=axes, orientation="horizontal")
        bar.outline.set_visible(False)
        axes.tick_params(length=1.5, pad=1.0)
        axes.grid(visible=False)
        return axes

    @property
    def all(self) -> Iterator[Axes]:
        """All panels."""
        return (axes for row in self.axes for axes in row)

    @property
    def panel_mm(self) -> float:
        """The width of a panel."""
        return self._width(self.columns)

    def _rows(self, block: Block) -> int:
        return -(-len(block.titles) // self.columns)

    def _width(self, columns: int) -> float:
        return min(
            self._widest,
            (self.options.width_mm - self._left - 2 * EDGE_MM - (columns - 1) * self._gap) / columns,
        )

    def _choose_columns(self, least: float, narrowest: float) -> int:
        most = max(len(block.titles) for block in self.blocks)

        def height(columns: int) -> float:
            return sum(-(-len(b.titles) // columns) * (b.height_mm + 6) + 9 for b in self.blocks)

        tallest = min(TALLEST_MM, self.options.height_mm or TALLEST_MM)
        columns = max([1, *(n for n in range(1, most + 1) if self._width(n) >= least)])
        while columns < most and height(columns) > tallest and self._width(columns + 1) >= narrowest:
            columns += 1
        # No more columns than the same number of rows requires.
        return -(-most // -(-most // columns))

    # -- finishing -------------------------------------------------------------------------------

    def finish(self, entries: Mapping[str, Any]) -> None:
        """Positions panels, labels, titles and the legend, and drops tick labels that would collide."""
        self._hide_inner_labels()
        below = legend(self.figure, list(entries.items()), self.options, self.options.width_mm - 2 * EDGE_MM)
        legend_mm = size_in_mm(self.figure, below)[1] + 1.0 if below is not None else 0.0
        for _ in range(3):
            self._place(legend_mm)
            for row in self.axes:
                for place, axes in enumerate(row):
                    drop_crowded_labels(axes.xaxis, self._room(row, place))
                    drop_crowded_labels(axes.yaxis, None)
            self._measure()
        total = self._place(legend_mm)
        if below is not None:
            place_legend(self.figure, below, EDGE_MM, total - EDGE_MM - legend_mm + 1.0)

    def _hide_inner_labels(self) -> None:
        for row in self.axes:
            for place, axes in enumerate(row):
                if self.shared[0] and place + self.columns < len(row):
                    axes.tick_params(axis="x", which="both", labelbottom=False)
                if self.shared[1] and place % self.columns:
                    axes.tick_params(axis="y", which="both", labelleft=False)

    @property
    def _line(self) -> float:
        return self.options.font_pt * MM_PER_PT * 1.25

    def _room(self, row: Sequence[Axes], place: int) -> tuple[float, float]:
        """The part of the page available for the tick labels of a panel."""
        column = place % self.columns
        left = self._left + column * (self.panel_mm + self._gap)
        is_last = column == self.columns - 1 or place == len(row) - 1
        return (
            EDGE_MM / 2 if column == 0 else left - self._gap / 2 + 0.3,
            self.options.width_mm - EDGE_MM / 2 if is_last else left + self.panel_mm + self._gap / 2 - 0.3,
        )

    def _measure(self) -> None:
        """Measures the room that tick labels need."""
        mm = 25.4 / self.figure.dpi
        left = inner = 1.0
        for number, row in enumerate(self.axes):
            under = 1.0
            for place, axes in enumerate(row):
                frame = axes.get_window_extent()
                wide = max([0.0, *((frame.x0 - box.x0) * mm for _, _, box in label_extents(axes.yaxis))])
                if place % self.columns:
                    inner = max(inner, wide)
                else:
                    left = max(left, wide)
                under = max([under, *((frame.y0 - item.y0) * mm for _, _, item in label_extents(axes.xaxis))])
            self._under[number] = under + 0.6
        if not self.shared[1]:
            self._gap = inner + _BESIDE_LABELS
        lines = max(len(self._upright(number)) for number in range(len(self.blocks)))
        self._left = EDGE_MM + lines * self._line + left + 0.8

    def _upright(self, number: int) -> list[str]:
        """The y label of a block, in lines."""
        label = self.blocks[number].y_label
        return fold_text(label, max(8.0, self._beside[number]), self.options.font_pt) if label else []

    def _fold_title(self, title: str, column: int) -> list[str]:
        """The lines of a panel's title, up to the next panel or its labels, or to the edge of the page."""
        left = self._left + column * (self.panel_mm + self._gap)
        free = self._gap if self.shared[1] else _BESIDE_LABELS
        room = min(self.panel_mm + free - 1.0, self.options.width_mm - EDGE_MM - left)
        return [part.rstrip(",") for part in fold_text(_unbroken(title), room, self.options.font_pt)]

    def _place(self, legend_mm: float) -> float:
        """Positions everything, and sets and returns the height of the figure."""
        for old in list(self.figure.texts):
            old.remove()
        page = self.options.width_mm - 2 * EDGE_MM
        size, line, columns = self.options.font_pt, self._line, self.columns
        titles = [
            [
                self._fold_title(title, place % columns) if title else []
                for place, title in enumerate(b.titles)
            ]
            for b in self.blocks
        ]
        heads = [
            fold_text(b.heading, page * (0.5 if b.shades is not None else 1.0), size) if b.heading else []
            for b in self.blocks
        ]
        high_head = [
            max(len(lines) * line, BAR_MM + line + 1.2 if bar is not None else 0.0)
            for lines, bar in zip(heads, self._bars, strict=True)
        ]
        feet = [fold_text(b.x_label, page, size) if b.x_label else [] for b in self.blocks]
        over = [
            [
                max(map(len, own[start : start + columns])) * line + 0.8
                for start in range(0, len(own), columns)
            ]
            for own in titles
        ]
        between = [0.0 if self.shared[0] else under for under in self._under]
        fixed = 2 * EDGE_MM + legend_mm - _BELOW_BLOCK
        for number, rows in enumerate(over):
            fixed += sum(rows) + len(rows) * _BELOW_PANEL + (len(rows) - 1) * between[number]
            fixed += self._under[number] + high_head[number] + len(feet[number]) * line + _BELOW_BLOCK
        flexible = sum(len(rows) * b.height_mm for rows, b in zip(over, self.blocks, strict=True))
        scale = 1.0
        least = max(min(1.0, block.least_mm / block.height_mm) for block in self.blocks)
        if self.options.height_mm is not None:
            scale = max(least, (self.options.height_mm - fixed) / flexible)
        elif fixed + flexible > TALLEST_MM:
            scale = max(least, (TALLEST_MM - fixed) / flexible)
        total = fixed + scale * flexible
        self.figure.set_size_inches(self.options.width_mm / 25.4, total / 25.4)
        y = EDGE_MM
        for number, (block, row) in enumerate(zip(self.blocks, self.axes, strict=True)):
            for place, text in enumerate(heads[number]):
                self._text(EDGE_MM, y + place * line, text, ha="left", va="top")
            if (bar := self._bars[number]) is not None:
                start = EDGE_MM + 0.55 * page
                self._set(bar, start, y + 0.4, BAR_MM, 0.43 * page)
                drop_crowded_labels(bar.xaxis, None)
            y += high_head[number]
            top, high = y, block.height_mm * scale
            for start, above in zip(range(0, len(row), columns), over[number], strict=True):
                y += above
                for column, axes in enumerate(row[start : start + columns]):
                    self._set(axes, self._left + column * (self.panel_mm + self._gap), y, high)
                    if words := titles[number][start + column]:
                        axes.set_title("\n".join(words), loc="left", pad=2.0, fontsize=size)
                y += high + _BELOW_PANEL + (between[number] if start + columns < len(row) else 0.0)
            self._beside[number] = y - top
            for place, text in enumerate(self._upright(number)):
                self._text(EDGE_MM + place * line, (top + y) / 2, text, rotation=90, ha="left", va="center")
            y += self._under[number]
            used = min(columns, len(row))
            centre = self._left + (used * self.panel_mm + (used - 1) * self._gap) / 2
            for text in feet[number]:
                half = text_mm(text, size) / 2
                x = min(max(centre, half + EDGE_MM), self.options.width_mm - EDGE_MM - half)
                self._text(x, y, text, ha="center", va="top")
                y += line
            y += _BELOW_BLOCK
        return total

    def _set(self, axes: Axes, left: float, top: float, high: float, wide: float | None = None) -> None:
        width, total = self.options.width_mm, self.figure.get_figheight() * 25.4
        wide = self.panel_mm if wide is None else wide
        axes.set_position((left / width, 1 - (top + high) / total, wide / width, high / total))

    def _text(self, left: float, top: float, text: str, **how: Any) -> None:
        total = self.figure.get_figheight() * 25.4
        self.figure.text(
            left / self.options.width_mm, 1 - top / total, text, fontsize=self.options.font_pt, **how
        )
