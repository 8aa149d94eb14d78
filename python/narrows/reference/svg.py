"""Small pictures of points and steps over time, as SVG written by hand.

The same numbers give the same bytes on any machine: coordinates are rounded to whole pixels (lines to tenths)
and text stays text. Colours are of middle brightness, so that they can be read on light and dark pages.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

WIDTH, HEIGHT = 360, 140
LEFT, RIGHT, TOP, BOTTOM = 40, 10, 20, 28
_ACROSS, _UPRIGHT = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM

#: Class of a series, and its colour.
COLOURS = {
    "one": "#2f80c8",
    "two": "#d07f1d",
    "gone": "#d6453d",
    "touched": "#22976b",
}
_STYLE = (
    "text{font:10px sans-serif;fill:#78818c}"
    ".axis{stroke:#78818c;fill:none}.grid{stroke:#78818c;stroke-opacity:.25;fill:none}"
    + "".join(f".{name}{{stroke:{colour};fill:none}}" for name, colour in COLOURS.items())
    + ".dot{stroke-width:2;stroke-linecap:round}.tick{stroke-width:1}.line{stroke-width:1.3}"
)


@dataclass
class Picture:
    """Axes from 0 with series; add series, then take the `text`."""

    span: float
    top: float
    x_label: str
    y_label: str
    title: str
    parts: list[str] = field(default_factory=list)

    def _x(self, value: float) -> float:
        return LEFT + _ACROSS * value / self.span

    def _y(self, value: float) -> float:
        return TOP + _UPRIGHT * (1 - value / self.top)

    def dots(self, points: Iterable[tuple[float, float]], name: str) -> None:
        """Points; those in one column of pixels that touch become one stroke."""
        columns: dict[int, set[int]] = {}
        for x, y in points:
            if 0 <= x <= self.span:
                columns.setdefault(round(self._x(x)), set()).add(round(self._y(min(y, self.top))))
        path = []
        for x in sorted(columns):
            for low, high in _runs(sorted(columns[x])):
                path.append(f"M{x} {low}" + (f"v{high - low}" if high > low else "h0"))
        self._add(path, f"{name} dot")

    def ticks(self, times: Iterable[float], row: int, name: str) -> None:
        """Short strokes above the axes, in one of two rows (0 is the upper)."""
        columns = sorted({round(self._x(time)) for time in times if 0 <= time <= self.span})
        self._add([f"M{x} {3 + 8 * row}v6" for x in columns], f"{name} tick")

    def steps(self, edges: Sequence[float], values: Sequence[float], name: str) -> None:
        """A line of steps: `values[i]` from `edges[i]` to `edges[i + 1]`."""
        path: list[str] = []
        before = None
        for start, end, value in zip(edges, edges[1:], values, strict=False):
            y = f"{self._y(min(value, self.top)):.1f}"
            if before is None:
                path.append(f"M{self._x(start):.1f} {y}")
            elif y != before:
                path.append(f"H{self._x(start):.1f}V{y}")
            before = y
            last = end
        if path:
            path.append(f"H{self._x(last):.1f}")
        self._add(path, f"{name} line")

    def _add(self, path: list[str], classes: str) -> None:
        if path:
            self.parts.append(f'<path class="{classes}" d="{"".join(path)}"/>')

    @property
    def text(self) -> str:
        """The file."""
        bottom = HEIGHT - BOTTOM
        axes = [f'<path class="axis" d="M{LEFT} {TOP}V{bottom}H{WIDTH - RIGHT}"/>']
        grid = []
        for value in ticks_of(self.top):
            y = f"{self._y(value):.1f}"
            grid.append(f"M{LEFT} {y}H{WIDTH - RIGHT}")
            axes.append(f'<text x="{LEFT - 4}" y="{y}" dy="3.5" text-anchor="end">{value:g}</text>')
        for value in ticks_of(self.span):
            x = f"{self._x(value):.1f}"
            grid.append(f"M{x} {TOP}V{bottom}")
            anchor = "end" if value == self.span else "middle"
            axes.append(f'<text x="{x}" y="{bottom + 12}" text-anchor="{anchor}">{value:g}</text>')
        middle = LEFT + _ACROSS / 2
        axes.append(f'<text x="{middle:g}" y="{HEIGHT - 4}" text-anchor="middle">{self.x_label}</text>')
        height = f"{TOP + _UPRIGHT / 2:g}"
        place = f'x="9" y="{height}" text-anchor="middle" transform="rotate(-90 9 {height})"'
        axes.append(f"<text {place}>{self.y_label}</text>")
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}"'
            f' viewBox="0 0 {WIDTH} {HEIGHT}" role="img"><title>{self.title}</title><style>{_STYLE}</style>'
        )
        lines = [head, f'<path class="grid" d="{"".join(grid)}"/>', *self.parts, *axes, "</svg>"]
        return "\n".join(lines) + "\n"


def _runs(values: list[int]) -> list[tuple[int, int]]:
    """Neighbours (at most two apart) as runs."""
    runs: list[tuple[int, int]] = []
    for value in values:
        if runs and value - runs[-1][1] <= 2:
            runs[-1] = (runs[-1][0], value)
        else:
            runs.append((value, value))
    return runs


def _step(top: float) -> float:
    """The distance of two ticks: 1, 2 or 5 times a power of ten, three to six of them."""
    power = 10.0 ** math.floor(math.log10(top / 3))
    return max(step for step in (power, 2 * power, 5 * power) if top / step >= 2.5 or step == power)


def ticks_of(top: float) -> list[float]:
    """Round numbers from 0 to the top."""
    step = _step(top)
    return [round(index * step, 12) for index in range(int(top / step + 1e-9) + 1)]


def round_up(value: float) -> float:
    """An axis that holds a value: the next tick, or half a tick."""
    if value <= 0:
        return 1.0
    half = _step(value) / 2
    return math.ceil(value / half - 1e-9) * half
