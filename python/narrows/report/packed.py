"""Numbers of charts inside a page, small: columns of 32-bit floats, shuffled, deflated, in base64.

The page unpacks a run when it is looked at (`charts.js` has the other half), so that a report of hundreds of
runs opens as fast as one of two.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Json = dict[str, Any]

#: Bits of a mantissa that are kept: 16 of 23, a relative error of 1/130,000, less than a screen shows.
_MANTISSA_BITS = 16
#: Times on a grid are stored as start, step and count if none is further off than this share of the step.
_GRID = 1e-3


def pack(charts: Mapping[str, Json], table: str) -> str:
    """The charts of a run by their keys, and its table as a piece of a page, as text that can stand inside a
    script element."""
    columns: list[NDArray[np.float32]] = []

    def column(values: Any, *, time: bool) -> Any:
        numbers = np.asarray(values, dtype=np.float64)
        if time and (grid := _on_grid(numbers)) is not None:
            return grid
        columns.append(numbers.astype(np.float32) if time else _round(numbers))
        return len(numbers)

    told = {
        key: {
            **chart,
            "xs": [column(x, time=True) for x in chart["xs"]],
            "series": [{**item, "y": column(item["y"], time=False)} for item in chart["series"]],
        }
        for key, chart in charts.items()
    }
    header = json.dumps({"table": table, "charts": told}, separators=(",", ":"), allow_nan=False).encode()
    header += b" " * (-len(header) % 4)
    data = np.concatenate(columns) if columns else np.zeros(0, np.float32)
    # The first bytes of all numbers, then the second ones: neighbours are alike, and deflate better.
    planes = data.astype("<f4").view(np.uint8).reshape(-1, 4).T.tobytes()
    content = len(header).to_bytes(4, "little") + header + planes
    return base64.b64encode(zlib.compress(content, 6)).decode("ascii")


def _on_grid(times: NDArray[np.float64]) -> Json | None:
    if len(times) < 3:
        return None
    step = float(times[-1] - times[0]) / (len(times) - 1)
    even = times[0] + step * np.arange(len(times))
    if step <= 0 or not bool(np.all(np.abs(times - even) <= _GRID * step)):
        return None
    return {"start": float(f"{times[0]:.9g}"), "step": float(f"{step:.12g}"), "count": len(times)}


def _round(values: NDArray[np.float64]) -> NDArray[np.float32]:
    """Values with fewer bits, so that they deflate; what is not a number stays that."""
    bits = np.array(values, dtype=np.float32).view(np.uint32)
    drop = 23 - _MANTISSA_BITS
    kept = (bits + np.uint32(1 << (drop - 1))) & np.uint32(0xFFFFFFFF << drop & 0xFFFFFFFF)
    numbers = np.where(np.isfinite(values), kept, np.uint32(0x7FC00000)).astype(np.uint32)
    return numbers.view(np.float32)


def unpack(text: str) -> tuple[dict[str, Json], str]:
    """Charts and table of a run as they were packed: what the page does, for tests and other readers."""
    content = zlib.decompress(base64.b64decode(text))
    length = int.from_bytes(content[:4], "little")
    header = json.loads(content[4 : 4 + length])
    planes = np.frombuffer(content[4 + length :], np.uint8).reshape(4, -1)
    data = np.ascontiguousarray(planes.T).view("<f4").reshape(-1)
    place = 0

    def column(told: Any) -> list[float]:
        nonlocal place
        if isinstance(told, dict):
            return [told["start"] + told["step"] * number for number in range(told["count"])]
        place += told
        return [float(value) for value in data[place - told : place]]

    for chart in header["charts"].values():
        chart["xs"] = [column(x) for x in chart["xs"]]
        for item in chart["series"]:
            item["y"] = column(item["y"])
    return header["charts"], header["table"]
