"""Axes with a row per scheme, its name at the left."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from narrows.report.drawing import Options, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ROW_MM = 4.6


def axes_of_rows(options: Options, names: Sequence[str], above_mm: float = 4.0) -> tuple[Figure, Axes]:
    """A figure as high as its rows ask, the first at the top; names that need more than two fifths of the
    width are broken into lines."""
    from narrows.report.figures._scatter import broken

    per_letter = 0.2 * options.font_pt
    room = 0.4 * options.width_mm
    texts = [
        name if len(name) * per_letter <= room else broken(name, 4.5 * room / per_letter) for name in names
    ]
    lines = [text.count("\n") + 1 for text in texts]
    row = max(ROW_MM, max(lines) * options.font_pt * 0.45)
    left = max(len(part) for text in texts for part in text.split("\n")) * per_letter + 3
    picture = new_figure(options, len(names) * row + 9.0 + above_mm)
    height = picture.get_figheight() * 25.4
    axes = picture.add_axes(
        (
            left / options.width_mm,
            9.0 / height,
            (options.width_mm - left - 4) / options.width_mm,
            (height - 9.0 - above_mm) / height,
        )
    )
    axes.set_yticks(range(len(names)), texts)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.grid(visible=False, axis="y")
    return picture, axes
