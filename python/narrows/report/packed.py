"""Compact numbers of charts inside a page: columns of 32-bit floats, shuffled, deflated, in base64.

The page unpacks a run when it is viewed (`charts.js` is the counterpart), so that a report of hundreds of
runs opens as fast as one of two.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping

import msgspec
import numpy as np
from numpy.typing import NDArray

from narrows.documents.data import Part
from narrows.report.charts import MOST_MARKS, Chart, NumberChart

#: Bits of a mantissa that are kept: 16 of 23, a relative error of 1/130,000, which no screen can show.
_MANTISSA_BITS = 16
#: Times on a grid are stored as start, step and count if none deviates by more than this share of the step.
_GRID = 1e-3


class Grid(Part, frozen=True):
    """Equidistant times."""

    start: float
    step: float
    count: int


class PackedRun(Part, frozen=True):
    """The header of a pack: the table and the charts of a run, in which columns are represented by their
    lengths.
    """

    table: str
    charts: dict[str, Chart[Grid | int, int]]


def pack(charts: Mapping[str, NumberChart], table: str) -> str:
    """The charts of a run by their keys, and its table as a fragment of the page, as text that is safe inside
    a script element.
    """
    columns: list[NDArray[np.float32]] = []

    def add(column: NDArray[np.float32]) -> int:
        columns.append(column)
        return len(column)

    def times(numbers: NDArray[np.float64]) -> Grid | int:
        return _on_grid(numbers) or add(numbers.astype(np.float32))

    packed = PackedRun(
        table,
        {
            key: Chart(
                chart.y,
                chart.marks[:MOST_MARKS],
                [times(x) for x in chart.xs],
                [item.with_values(add(_round(item.y))) for item in chart.series],
            )
            for key, chart in charts.items()
        },
    )
    header = msgspec.json.encode(packed)
    header += b" " * (-len(header) % 4)
    data = np.concatenate(columns) if columns else np.zeros(0, np.float32)
    # The first bytes of all numbers, then the second ones: neighbouring bytes are similar and compress
    # better.
    planes = data.astype("<f4").view(np.uint8).reshape(-1, 4).T.tobytes()
    content = len(header).to_bytes(4, "little") + header + planes
    return base64.b64encode(zlib.compress(content, 6)).decode("ascii")


def _on_grid(times: NDArray[np.float64]) -> Grid | None:
    if len(times) < 3:
        return None
    step = float(times[-1] - times[0]) / (len(times) - 1)
    even = times[0] + step * np.arange(len(times))
    if step <= 0 or not bool(np.all(np.abs(times - even) <= _GRID * step)):
        return None
    return Grid(float(f"{times[0]:.9g}"), float(f"{step:.12g}"), len(times))


def _round(values: NDArray[np.float64]) -> NDArray[np.float32]:
    """Values with fewer bits, which compress better; NaN is preserved."""
    bits = np.array(values, dtype=np.float32).view(np.uint32)
    drop = 23 - _MANTISSA_BITS
    kept = (bits + np.uint32(1 << (drop - 1))) & np.uint32(0xFFFFFFFF << drop & 0xFFFFFFFF)
    numbers = np.where(np.isfinite(values), kept, np.uint32(0x7FC00000)).astype(np.uint32)
    return numbers.view(np.float32)


def unpack(text: str) -> tuple[dict[str, NumberChart], str]:
    """Unpacks charts and table of a run: the counterpart of the page's code, for tests and other readers."""
    content = zlib.decompress(base64.b64decode(text))
    length = int.from_bytes(content[:4], "little")
    header = msgspec.json.decode(content[4 : 4 + length], type=PackedRun)
    planes = np.frombuffer(content[4 + length :], np.uint8).reshape(4, -1)
    data = np.ascontiguousarray(planes.T).view("<f4").reshape(-1)
    place = 0

    def column(packed: Grid | int) -> NDArray[np.float64]:
        nonlocal place
        if isinstance(packed, Grid):
            return np.asarray(packed.start + packed.step * np.arange(packed.count), np.float64)
        place += packed
        return data[place - packed : place].astype(np.float64)

    charts = {
        key: NumberChart(
            chart.y,
            chart.marks,
            [column(x) for x in chart.xs],
            [item.with_values(column(item.y)) for item in chart.series],
        )
        for key, chart in header.charts.items()
    }
    return charts, header.table
