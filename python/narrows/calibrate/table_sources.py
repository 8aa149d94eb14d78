"""Tables of measurements, from files and from campaigns."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from narrows.calibrate.campaigns import read_campaign
from narrows.calibrate.table import Table, read_csv


def read(path: Path, columns: Mapping[str, str] | None = None) -> Table:
    """The table of a CSV file or of the folder of a campaign; `columns` names headings of a file that are not
    recognised. Raises `DataError` in one sentence with the place."""
    return read_campaign(path) if path.is_dir() else read_csv(path, columns)
