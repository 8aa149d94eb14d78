"""A run second by second, like the output of `iperf -i`: the bytes of each flow that arrived in each
interval.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from narrows.errors import DataError

if TYPE_CHECKING:
    from narrows.documents.resolved import Cell

#: iperf counts bytes in powers of 1024, and bits in powers of 1000.
_BYTES = ((2**30, "GBytes"), (2**20, "MBytes"), (2**10, "KBytes"))
_BITS = ((1e9, "Gbits/sec"), (1e6, "Mbits/sec"), (1e3, "Kbits/sec"))
SUM = "SUM"
#: A table with more lines is refused.
_MOST = 1_000_000


@dataclass(frozen=True)
class Interval:
    """The bytes of IP packets of a flow (or of all, `SUM`) that arrived from `start_s` to `end_s`."""

    flow: str
    label: str
    start_s: float
    end_s: float
    bytes: float

    @property
    def bits_per_second(self) -> float:
        """The rate in the interval, in bit/s; 0 for an empty interval."""
        length = self.end_s - self.start_s
        return self.bytes * 8 / length if length > 0 else 0.0

    def to_json(self) -> dict[str, str | float]:
        """As plain data, in base units."""
        return {
            "flow": self.flow,
            "label": self.label,
            "start_s": self.start_s,
            "end_s": self.end_s,
            "bytes": self.bytes,
            "throughput_bps": self.bits_per_second,
        }


def intervals(path: Path, length_ns: int) -> list[Interval]:
    """The intervals of all flows under test of a record, in order of time, with the sum if there are several
    flows, and at the end one interval over the whole life of each.

    `length_ns` is the length of an interval.
    """
    from narrows.campaign.json_files import read_run
    from narrows.campaign.series import read_throughput
    from narrows.documents.resolved import read_cell

    cell = read_cell(read_run(path).cell)
    if length_ns * _MOST < cell.duration_ns:
        raise DataError(f"{path}: has more than {_MOST} such intervals; take longer ones")
    try:
        series = read_throughput(path, length_ns)
    except (ValueError, OSError) as error:
        raise DataError(str(error)) from None
    rates = {number: rates.arrived_bps for number, rates in series.flows.items()}
    return list(_lines(cell, rates, length_ns / 1e9))


def _lines(cell: Cell, series: dict[int, Any], step: float) -> Iterator[Interval]:
    lives = {}
    most = 0
    flows = [flow for flow in cell.flows if not flow.background]
    for flow in flows:
        rates = series.get(flow.number, ())
        # Bytes that arrive after the stop of a flow no longer count as its own.
        stop_ns = cell.duration_ns if flow.stop_ns is None else flow.stop_ns
        lives[flow.number] = (flow.start_ns / 1e9, stop_ns / 1e9, rates)
        most = max(most, len(rates))
    labels = {flow.number: flow.label or "" for flow in flows}
    totals = dict.fromkeys(lives, 0.0)
    for index in range(most):
        row = []
        for number, (start, stop, rates) in lives.items():
            low, high = max(start, index * step), min(stop, (index + 1) * step)
            if low >= high:
                continue
            amount = float(rates[index]) * step / 8 if index < len(rates) else 0.0
            totals[number] += amount
            row.append(Interval(str(number), labels[number], low, high, amount))
        yield from row
        if len(lives) > 1 and row:
            yield _sum(row)
    whole = [
        Interval(str(number), labels[number], start, stop, totals[number])
        for number, (start, stop, _) in lives.items()
    ]
    yield from whole
    if len(whole) > 1:
        yield _sum(whole)


def _sum(row: Sequence[Interval]) -> Interval:
    start, end = min(interval.start_s for interval in row), max(interval.end_s for interval in row)
    return Interval(SUM, "", start, end, sum(interval.bytes for interval in row))


def in_iperfs_words(lines: Sequence[Interval]) -> list[str]:
    """The lines as iperf 2 writes them: `[  3]  1.0- 2.0 sec   312 KBytes  2.56 Mbits/sec`."""
    texts = ["[ ID] Interval           Transfer     Bandwidth"]
    width = max((len(f"{line.end_s:.1f}") for line in lines), default=4)
    for line in lines:
        name = line.flow.rjust(3)
        span = f"{line.start_s:{width}.1f}-{line.end_s:{width}.1f} sec"
        label = f"  {line.label}" if line.label else ""
        texts.append(
            f"[{name}] {span}  {_scale(line.bytes, _BYTES, 'Bytes')}  "
            f"{_scale(line.bits_per_second, _BITS, 'bits/sec')}{label}"
        )
    return texts


def _scale(value: float, units: Sequence[tuple[float, str]], plain: str) -> str:
    """Three digits and the unit, in iperf's notation."""
    scale, unit = next(((size, name) for size, name in units if value >= size), (1.0, plain))
    scaled = value / scale
    digits = 2 if scaled < 9.995 else 1 if scaled < 99.95 else 0
    return f"{scaled:.{digits}f}".rjust(4) + f" {unit}"
