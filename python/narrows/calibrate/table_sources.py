"""Tables of measurements, from files and from campaigns."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from narrows.calibrate.campaigns import read_campaign
from narrows.calibrate.table import Table, read_csv
from narrows.errors import DataError


def read(
    path: Path, columns: Mapping[str, str] | None = None, where: Mapping[str, str] | None = None
) -> Table:
    """The table of a CSV file or of the folder of a campaign; `columns` names headings of a file that are not
    recognised, and `where` selects its lines by values. Raises `DataError` in one sentence with the place."""
    if not path.is_dir():
        return read_csv(path, columns, where)
    if where:
        raise DataError(f"{path}: is the folder of a campaign; where (--where) chooses lines of a CSV file")
    return read_campaign(path)
