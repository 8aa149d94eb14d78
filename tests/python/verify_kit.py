"""Support for tests of validation: the record of a simulated scenario."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from narrows import _native
from narrows.scenario import cells_of, loads


@contextmanager
def simulated(text: str) -> Iterator[Path]:
    """The record of the only cell of a scenario; it is deleted afterwards."""
    (cell,) = cells_of(loads(text))
    with tempfile.TemporaryDirectory(prefix="narrows-verify-") as folder:
        record = Path(folder) / "record"
        _native.simulate(cell.to_text(), str(record))
        yield record
