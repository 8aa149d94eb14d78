"""Text of a known width, and legends in as many columns as fit the page."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from matplotlib.legend import Legend

    from narrows.report.drawing import Options

MM_PER_PT = 25.4 / 72
_HINTED = 1.03
"""Letters are drawn a little wider where they are fitted to pixels."""
MOST_ENTRIES = 60
"""Maximum number of entries of a legend; a page has no room for more."""
_MOST_COLUMNS = 8
#: Parts of a legend's entry and the gap between entries, in units of the text size.
_HANDLE, _HANDLE_TEXT, _COLUMN = 2.4, 0.5, 1.2


@lru_cache(maxsize=4096)
def text_mm(text: str, size_pt: float) -> float:
    """The width (mm) of a line of text in the font of figures."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    width, _, _ = text_to_path.get_text_width_height_descent(
        text or " ", FontProperties(size=size_pt), ismath=False
    )
    return float(width) * MM_PER_PT * _HINTED


#: Places at which text may be wrapped, the best first: after commas, between words, anywhere.
_PIECES = (r"[^,]+,? ?", r"[^-_:/ ,;]*[-_:/ ,;]*", r".")


def fold_text(text: str, room_mm: float, size_pt: float) -> list[str]:
    """The text in lines no wider than the room. A part between commas is broken only if it does not fit on a
    separate line, and so is a word.
    """
    return _fold(text, room_mm, size_pt, _PIECES)


def _fold(text: str, room_mm: float, size_pt: float, patterns: Sequence[str]) -> list[str]:
    lines = [""]
    for piece in re.findall(patterns[0], text):
        if text_mm((lines[-1] + piece).strip(), size_pt) <= room_mm:
            lines[-1] += piece
            continue
        whole = len(patterns) == 1 or text_mm(piece.strip(), size_pt) <= room_mm
        lines += [piece] if whole else _fold(piece, room_mm, size_pt, patterns[1:])
    return [line.strip() for line in lines if line.strip()] or [""]


def size_in_mm(figure: Figure, artist: Any) -> tuple[float, float]:
    """Width and height of a drawn object (mm)."""
    extent = artist.get_window_extent(figure.canvas.get_renderer())  # type: ignore[attr-defined]
    return extent.width / figure.dpi * 25.4, extent.height / figure.dpi * 25.4


def legend(
    figure: Figure, entries: Sequence[tuple[str, Any]], options: Options, room_mm: float
) -> Legend | None:
    """A legend in as many columns as fit the room, to be read row by row; `None` without entries.
    `place_legend` positions it.
    """
    labels, handles = [label for label, _ in entries], [handle for _, handle in entries]
    if not labels:
        return None
    if len(labels) > MOST_ENTRIES:
        more = len(labels) - MOST_ENTRIES + 1
        handles, labels = handles[:MOST_ENTRIES], [*labels[: MOST_ENTRIES - 1], f"… and {more} more"]
    size = options.font_pt - 0.5
    beside = (_HANDLE + _HANDLE_TEXT) * size * MM_PER_PT
    columns = _columns(labels, room_mm, beside, size)
    while True:
        shown = _legend(figure, labels, handles, columns, room_mm - beside - 1.0, size)
        if columns == 1 or size_in_mm(figure, shown)[0] <= room_mm:
            return shown
        # Letters aligned to pixels are wider than their computed width.
        shown.remove()
        columns -= 1


def _legend(
    figure: Figure,
    labels: Sequence[str],
    handles: Sequence[Any],
    columns: int,
    room_mm: float,
    size_pt: float,
) -> Legend:
    if columns == 1:
        labels = ["\n".join(fold_text(label, room_mm, size_pt)) for label in labels]
    # Matplotlib fills the columns one after the other; the first ones are longer.
    order = [number for column in range(columns) for number in range(column, len(labels), columns)]
    return figure.legend(
        [handles[i] for i in order],
        [labels[i] for i in order],
        ncols=columns,
        frameon=False,
        loc="upper left",
        borderaxespad=0.0,
        borderpad=0.0,
        handlelength=_HANDLE,
        handletextpad=_HANDLE_TEXT,
        columnspacing=_COLUMN,
        labelspacing=0.3,
        fontsize=size_pt,
    )


def _columns(labels: Sequence[str], room_mm: float, beside_mm: float, size_pt: float) -> int:
    widths = [text_mm(label, size_pt) + beside_mm for label in labels]
    gap = _COLUMN * size_pt * MM_PER_PT
    for columns in range(min(len(labels), _MOST_COLUMNS), 1, -1):
        if sum(max(widths[c::columns]) for c in range(columns)) + gap * (columns - 1) <= room_mm:
            return columns
    return 1


def place_legend(figure: Figure, shown: Legend, left_mm: float, top_mm: float) -> None:
    """Moves the upper left corner of a legend to a position, measured from the upper left of the page."""
    width, height = figure.get_figwidth() * 25.4, figure.get_figheight() * 25.4
    shown.set_bbox_to_anchor((left_mm / width, 1 - top_mm / height), transform=figure.transFigure)
