"""A static site of campaigns: a list of all, a page of each, for any web server and for opening as a file.

`build` writes it. Importing this package is cheap, as for reports.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

__all__ = ["build"]


def build(
    places: Iterable[Path],
    target: Path,
    *,
    prune: bool = False,
    processes: int = 1,
    progress: Callable[[int, int, str], None] | None = None,
) -> dict[str, Any]:
    """Writes the site of all campaigns at and below `places` into the folder `target`, or brings it up to
    date; returns what was done (`narrows/site-made/1`).

    Campaigns of the site whose folders are gone stay, unless `prune`. With several `processes` many pages are
    drawn beside each other; a script that asks for them keeps its own work behind `if __name__ ==
    "__main__"`, as for every process that Python starts. `progress` gets the number of campaigns that are
    done, how many there are, and the name of the last. Raises `UsageError` if `target`
    holds something else, `DataError` if a folder is not there or the site is of a newer version.
    """
    from narrows.site.making import make

    return make(places, target, prune, progress, processes)
