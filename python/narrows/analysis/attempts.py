"""Failed attempts that were repeated, in words: a run that finally succeeded does not hide them.

`campaign.json` has them in the `failures` of each cell; the failure after which a cell was given up is its
`error`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from narrows.documents.campaign import PENDING, CellEntry
from narrows.documents.data import to_data
from narrows.documents.results import Results
from narrows.text import distinct_names

if TYPE_CHECKING:
    from rich.console import Console

#: This many reasons of a scheme's failures, and this many of its runs, are named; the others are counted.
_NAMED = 3
_RUNS = 8


def to_document(results: Results, cells: Iterable[CellEntry]) -> dict[str, object]:
    """The results as `results.json` has them, with these attempts, which come from campaign.json and not from
    the records.
    """
    attempts = [
        {
            "scheme": cell.scheme,
            "run": cell.run,
            "state": cell.state,
            "cell": cell.id,
            "failures": to_data(cell.failures),
        }
        for cell in cells
        if cell.failures
    ]
    plain: dict[str, object] = to_data(results)
    return plain | ({"failed_attempts": attempts} if attempts else {})


def count(cells: Iterable[CellEntry]) -> int:
    """The number of repeated attempts."""
    return sum(len(cell.failures) for cell in cells)


def sentences(cells: Iterable[CellEntry], schemes: Sequence[str]) -> list[str]:
    """One sentence for each scheme with repeated attempts, in the order of `schemes`: their number, the runs
    concerned, and the reasons.
    """
    place = {scheme: number for number, scheme in enumerate(schemes)}
    grouped: dict[tuple[str, bool], list[CellEntry]] = {}
    for cell in sorted(cells, key=lambda cell: (place.get(cell.scheme, len(place)), cell.run)):
        if cell.failures:
            grouped.setdefault((cell.scheme, cell.state == PENDING), []).append(cell)
    return [_sentence(scheme, waits, tried) for (scheme, waits), tried in grouped.items()]


def print_attempts(console: Console, campaigns: Sequence[tuple[Path, Results, Iterable[CellEntry]]]) -> None:
    """Prints these sentences for campaigns, each given by its folder, its results and its cells."""
    names = distinct_names([path.resolve() for path, _, _ in campaigns])
    for name, (_, results, cells) in zip(names, campaigns, strict=True):
        before = f"{name}: " if len(campaigns) > 1 else ""
        schemes = list(dict.fromkeys(line.scheme for line in results.summary))
        for sentence in sentences(cells, schemes):
            console.print(f"{before}{sentence}", soft_wrap=True)


def _sentence(scheme: str, waits: bool, cells: list[CellEntry]) -> str:
    whys = Counter(
        (failure.message or "no reason was recorded").rstrip(". ")
        for cell in cells
        for failure in cell.failures
    )
    number = whys.total()
    if waits:
        became = "failed, and the run is still to be made"
    else:
        became = "failed and was made again" if number == 1 else "failed and were made again"
    attempts = "1 attempt" if number == 1 else f"{number} attempts"
    return f"{attempts} of {scheme} {became} ({_runs(cells)}): {_reasons(whys)}."


def _runs(cells: list[CellEntry]) -> str:
    numbers = list(dict.fromkeys(str(cell.run) for cell in cells))
    if len(numbers) == 1:
        return f"run {numbers[0]}"
    more = len(numbers) - _RUNS
    return f"runs {', '.join(numbers[:_RUNS])}" + (f" and {more} more" if more > 0 else "")


def _reasons(whys: Counter[str]) -> str:
    named = whys.most_common(_NAMED)
    parts = [why + (f" ({times} times)" if times > 1 else "") for why, times in named]
    others = whys.total() - sum(times for _, times in named)
    return "; ".join(parts) + (f"; and {others} more for other reasons" if others else "")
