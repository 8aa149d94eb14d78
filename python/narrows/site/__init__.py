"""A static site of campaigns: a list of all and a page for each, for any web server or for opening as a file.

`build` writes it. Importing this package is cheap, as for reports.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from narrows.documents.site import SiteMade

__all__ = ["build"]


def build(
    places: Iterable[Path],
    target: Path,
    *,
    prune: bool = False,
    processes: int = 1,
    progress: Callable[[int, int, str], None] | None = None,
) -> SiteMade:
    """Writes or updates the site of all campaigns at and below `places` in the folder `target`; returns what
    was done.

    Campaigns of the site whose folders no longer exist are kept, unless `prune` is set. With several
    `processes`, pages are drawn in parallel; a script that requests them must protect its own code by `if
    __name__ == "__main__"`, as for every process that Python starts. `progress` receives the number of
    finished campaigns, the total, and the name of the last one. Raises `UsageError` if `target` contains
    something else, `DataError` if a folder does not exist or the site is of a newer version.
    """
    from narrows.site.making import make

    return make(places, target, prune, progress, processes)
