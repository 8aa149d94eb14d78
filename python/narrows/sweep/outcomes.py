"""Outcomes of the cells of a sweep: verdicts by scheme, and the points without a valid cell."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from narrows.documents.listing import SweepOutcomes
from narrows.sweep.store import SweepFolder
from narrows.text import plural

#: The order in which outcomes are listed.
_ORDER = ("ok", "degraded", "invalid", "failed")
INVALID, FAILED = "invalid", "failed"


@dataclass
class Outcomes:
    """The cells of a scheme, or of all schemes together."""

    #: Cells by verdict, including failed ones.
    cells: Counter[str] = field(default_factory=Counter)
    #: Points with any cell, with an invalid cell, with a failed one, and without a valid cell of a scheme.
    points: set[int] = field(default_factory=set)
    invalid: set[int] = field(default_factory=set)
    failed: set[int] = field(default_factory=set)
    without_valid: set[int] = field(default_factory=set)

    @property
    def words(self) -> str:
        """`750 cells: 738 ok, 12 invalid; 250 points: 4 with an invalid cell, 2 without a valid one`."""
        known = [*(word for word in _ORDER if self.cells[word]), *(w for w in self.cells if w not in _ORDER)]
        cells = ", ".join(f"{self.cells[word]} {word}" for word in known) or "none"
        told = [
            f"{len(points)} {what}"
            for points, what in (
                (self.invalid, "with an invalid cell"),
                (self.failed, "with a failed cell"),
                (self.without_valid, "without a valid cell"),
            )
            if points
        ]
        points = plural(len(self.points), "point") + (f": {', '.join(told)}" if told else "")
        return f"{plural(self.cells.total(), 'cell')}: {cells}; {points}"

    @property
    def counts(self) -> SweepOutcomes:
        """The numbers of cells and points."""
        return SweepOutcomes(
            cells=dict(self.cells),
            points=len(self.points),
            points_with_invalid=len(self.invalid),
            points_with_failed=len(self.failed),
            points_without_valid=len(self.without_valid),
        )


def count_outcomes(folder: SweepFolder) -> dict[str, Outcomes]:
    """The outcomes of each scheme of a sweep. Raises `DataError` if a part of its data is damaged."""
    import pyarrow.compute as pc

    table = folder.table(["point", "scheme", "flow", "verdict"])
    table = table.filter(pc.is_null(table["flow"]))
    outcomes = {str(scheme): Outcomes() for scheme in folder.document.schemes}
    valid: dict[str, set[int]] = {}
    columns = (table[name].to_pylist() for name in ("scheme", "point", "verdict"))
    for scheme, point, verdict in zip(*columns, strict=True):
        own = outcomes.setdefault(scheme, Outcomes())
        own.cells[str(verdict)] += 1
        own.points.add(point)
        if verdict == INVALID:
            own.invalid.add(point)
        else:
            valid.setdefault(scheme, set()).add(point)
    for item in folder.document.failed:
        own = outcomes.setdefault(item.scheme, Outcomes())
        own.cells[FAILED] += 1
        own.points.add(item.point)
        own.failed.add(item.point)
    for scheme, own in outcomes.items():
        own.without_valid = own.points - valid.get(scheme, set())
    return outcomes


def of_all(outcomes: dict[str, Outcomes]) -> Outcomes:
    """All schemes together: a point lacks a valid cell if any scheme does."""
    result = Outcomes()
    for outcome in outcomes.values():
        result.cells += outcome.cells
        result.points |= outcome.points
        result.invalid |= outcome.invalid
        result.failed |= outcome.failed
        result.without_valid |= outcome.without_valid
    return result
