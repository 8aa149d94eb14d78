"""Rows of a figure, with names on the left."""

from __future__ import annotations

from collections.abc import Sequence

from narrows.report.drawing import Options
from narrows.report.legends import MM_PER_PT, fold_text, text_mm

ROW_MM = 4.0


def rows_of_names(names: Sequence[str], options: Options, share: float) -> tuple[list[str], float]:
    """Names wrapped to a share of the width, and the height (mm) of a row in which each fits."""
    size = options.font_pt - 0.5
    folded = [fold_text(name, share * options.width_mm, size) for name in names]
    lines = max((len(parts) for parts in folded), default=1)
    # Many rows are as close as their names allow.
    row = max(ROW_MM if len(names) <= 12 else 0.0, lines * size * MM_PER_PT * 1.2 + 0.3)
    return ["\n".join(parts) for parts in folded], row


def width_of(names: Sequence[str], options: Options) -> float:
    """The width (mm) of these names on the left of axes."""
    parts = [part for name in names for part in name.split("\n")]
    return max((text_mm(part, options.font_pt - 0.5) for part in parts), default=0.0) + 4.0
