"""The interactive forms of figures over time, in the format of the pages' scripts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, TypeVar

import numpy as np
from msgspec import field
from numpy.typing import NDArray

from narrows.documents.data import Part
from narrows.report.style import Style

#: More marks than this would hide the curve.
MOST_MARKS = 40

Times = TypeVar("Times")
Values = TypeVar("Values")
Other = TypeVar("Other")


class Series(Part, Generic[Values], frozen=True):
    """A series of a chart: its values at the times of the list `x`."""

    label: str
    #: `step`, `line`, `points` or `area`.
    kind: str
    x: int
    y: Values
    #: Colours on a light and on a dark page; none for the page's own.
    color: str | None = None
    dark: str | None = None
    dash: Sequence[float] = ()
    #: True if the area below the line is filled.
    fill: bool = False

    def with_values(self, y: Other) -> Series[Other]:
        """The same series with its values in another form."""
        return Series(self.label, self.kind, self.x, y, self.color, self.dark, self.dash, self.fill)


class Chart(Part, Generic[Times, Values], frozen=True):
    """A chart: the label of its axis, the times of changes, lists of times, and series."""

    y: str
    marks: Sequence[float]
    xs: list[Times] = field(default_factory=list)
    series: list[Series[Values]] = field(default_factory=list)

    def add(
        self,
        label: str,
        kind: str,
        y: Values,
        style: Style | None = None,
        dash: Sequence[float] = (),
        *,
        fill: bool = False,
    ) -> None:
        """Adds a series over the last list of times."""
        color, dark = (style.color, style.dark) if style is not None else (None, None)
        self.series.append(Series(label, kind, len(self.xs) - 1, y, color, dark, dash, fill))


_Numbers = NDArray[np.float64]
#: A chart with its numbers.
NumberChart = Chart[_Numbers, _Numbers]
