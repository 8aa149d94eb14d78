"""Curves in a terminal: each character has two by four dots (Unicode, Braille Patterns, from U+2800 on)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich.text import Text

_BLANK = 0x2800
#: The bit of each dot of a character, by column and row.
_BITS = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))
_COLUMNS, _ROWS = 2, 4
#: Least width of the numbers beside a chart.
_MARGIN = 5
#: Curves below this are at 0.
_LEAST_TOP = 1e-6


class Canvas:
    """Dots in characters; a character has the colour of the curve that was drawn last in it."""

    def __init__(self, width: int, height: int) -> None:
        self.width, self.height = width, height
        self._dots = [[0] * width for _ in range(height)]
        self._styles = [[""] * width for _ in range(height)]

    def draw(self, points: Iterable[tuple[float, float] | None], style: str) -> None:
        """Draws lines between points, from 0 to 1 in either direction, y upwards; a gap where one is None."""
        last: tuple[int, int] | None = None
        for point in points:
            place = self._place(point) if point is not None else None
            if place is not None:
                for x, y in _line(last or place, place):
                    self._dot(x, y, style)
            last = place

    def _place(self, point: tuple[float, float]) -> tuple[int, int]:
        columns, rows = self.width * _COLUMNS, self.height * _ROWS
        x, y = (min(1.0, max(0.0, value)) for value in point)
        return round(x * (columns - 1)), round((1 - y) * (rows - 1))

    def _dot(self, x: int, y: int, style: str) -> None:
        row, column = y // _ROWS, x // _COLUMNS
        self._dots[row][column] |= _BITS[x % _COLUMNS][y % _ROWS]
        self._styles[row][column] = style

    def lines(self) -> list[Text]:
        """The characters, line by line."""
        return [
            Text.assemble(*((chr(_BLANK + dots), style) for dots, style in zip(row, styles, strict=True)))
            for row, styles in zip(self._dots, self._styles, strict=True)
        ]


def _line(begin: tuple[int, int], end: tuple[int, int]) -> Iterator[tuple[int, int]]:
    """The dots from one to another."""
    (x, y), (to_x, to_y) = begin, end
    steps = max(abs(to_x - x), abs(to_y - y), 1)
    for step in range(steps + 1):
        yield x + round((to_x - x) * step / steps), y + round((to_y - y) * step / steps)


def chart(
    title: str,
    curves: list[tuple[list[tuple[float, float | None]], str]],
    span: tuple[float, float],
    width: int,
    height: int,
) -> list[Text]:
    """A chart with a title, an axis of values from 0 and one of time in s: `height` lines of `width`."""
    values = [value for points, _ in curves for _, value in points if value is not None]
    top = nice_top(max(values, default=0.0))
    labels = (f"{top:g}", "0")
    margin = max(_MARGIN, len(labels[0]) + 1)
    canvas = Canvas(max(1, width - margin - 1), max(1, height - 2))
    begin, end = span
    scale = max(end - begin, 1e-9)
    for points, style in curves:
        inside = (
            None if value is None else ((time - begin) / scale, value / top)
            for time, value in points
            if time >= begin
        )
        canvas.draw(inside, style)
    lines = [Text(f"{'':{margin + 1}}{title}", "bold")]
    for number, line in enumerate(canvas.lines()):
        label = labels[0] if number == 0 else labels[1] if number == canvas.height - 1 else ""
        lines.append(Text.assemble((f"{label:>{margin - 1}} ", "dim"), ("│", "dim"), line))
    times = f"{begin:.0f} s", f"{end:.1f} s"
    room = width - margin - 1 - len(times[0]) - len(times[1])
    lines.append(Text(f"{'':{margin + 1}}{times[0]}{'':{max(1, room)}}{times[1]}", "dim"))
    for line in lines:
        line.truncate(width)
    return lines


def nice_top(most: float) -> float:
    """The end of an axis from 0 to at least `most`: a short multiple of a power of ten."""
    if most < _LEAST_TOP:
        return 1.0
    power = 10.0 ** (len(f"{int(most)}") - 1) if most >= 1 else 0.1
    while power > most:
        power /= 10
    return next((step * power for step in (1, 1.5, 2, 3, 4, 5, 6, 8) if step * power >= most), 10 * power)
