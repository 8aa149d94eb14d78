"""Tries an element of a path in the core, with packets made up for the purpose."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from msgspec import Struct, to_builtins
from msgspec import field as renamed
from numpy.typing import NDArray

from narrows import _native
from narrows.campaign.series import read_throughput
from narrows.scenario import Scenario, loads, registry

NS_PER_S = 1_000_000_000
#: ECN fields by name (RFC 3168).
ECN = {"Not-ECT": 0, "ECT(1)": 1, "ECT(0)": 2}


class Change(Struct, frozen=True):
    """A change of the element, as in the timeline of a cell."""

    at_ns: int
    element: str
    values: dict[str, object] = renamed(name="set")


@dataclass
class Packets:
    """A train of packets; times in ns."""

    time_ns: NDArray[np.uint64]
    size: NDArray[np.uint32]
    flow: NDArray[np.uint16]
    ecn: NDArray[np.uint8]
    dscp: NDArray[np.uint8]
    ack: NDArray[np.bool_]

    @classmethod
    def at_once(cls, count: int, size: int) -> Packets:
        """Packets of one flow that all come at time 0."""
        zeros = np.zeros(count, dtype=np.uint64)
        bare = zeros.astype(np.uint8)
        sizes, flows = np.full(count, size, dtype=np.uint32), np.ones(count, dtype=np.uint16)
        return cls(zeros, sizes, flows, bare, bare, bare.astype(np.bool_))


@dataclass(frozen=True)
class Fates:
    """The effect of an element on packets: times in ns, -1 for never; copies in the order of leaving."""

    left_ns: NDArray[np.int64]
    dropped_ns: NDArray[np.int64]
    reason: list[str | None]
    marked: NDArray[np.bool_]
    corrupt: NDArray[np.bool_]
    dscp: NDArray[np.uint8]
    copy_of: NDArray[np.uint64]
    copy_left_ns: NDArray[np.int64]


@dataclass(frozen=True)
class Stream:
    """Packets of one flow at a steady distance during some spans of time (seconds)."""

    every_us: float
    spans_s: tuple[tuple[float, float], ...]
    size: int = 1500
    ecn: str = "Not-ECT"
    dscp: int = 0
    ack: bool = False


@dataclass(frozen=True)
class Load:
    """The packets that are sent into an element: a stream per flow, from 1."""

    streams: tuple[Stream, ...] = field(default_factory=tuple)

    def packets(self) -> Packets:
        """All packets in order of time."""
        rows: list[tuple[int, int, Stream]] = []
        for flow, stream in enumerate(self.streams, 1):
            for begin, end in stream.spans_s:
                count = round((end - begin) * 1e6 / stream.every_us)
                start = round(begin * NS_PER_S)
                rows += [
                    (start + round(index * stream.every_us * 1e3), flow, stream) for index in range(count)
                ]
        rows.sort(key=lambda row: row[:2])
        return Packets(
            time_ns=np.array([time for time, _, _ in rows], dtype=np.uint64),
            size=np.array([stream.size for _, _, stream in rows], dtype=np.uint32),
            flow=np.array([flow for _, flow, _ in rows], dtype=np.uint16),
            ecn=np.array([ECN[stream.ecn] for _, _, stream in rows], dtype=np.uint8),
            dscp=np.array([stream.dscp for _, _, stream in rows], dtype=np.uint8),
            ack=np.array([stream.ack for _, _, stream in rows], dtype=np.bool_),
        )


def scenario(element: str, flows: str = "schemes: [cubic]\n", duration: str = "10 s") -> Scenario:
    """A scenario around one element of its path, as YAML; refuses what scenarios refuse."""
    text = "schema: narrows/scenario/1\nquestion: What does this element do?\nwhere: simulate\n"
    text += f"path:\n  forward:\n    - {element}\n    - {{delay: 10 ms}}\nduration: {duration}\n"
    return loads(text + flows)


def play(element: str, packets: Packets, changes: Sequence[Change] = ()) -> Fates:
    """Runs the packets through the element, which changes at these times."""
    resolved = scenario(element)
    fates = _native.probe_element(
        json.dumps(next(resolved.network.elements).to_members()),
        packets.time_ns,
        packets.size,
        packets.flow,
        packets.ecn,
        packets.dscp,
        packets.ack,
        timeline=json.dumps(to_builtins(changes) or None),
        files=resolved.files.contents,
    )
    return Fates(**fates)


def simulate_load(traffic: str, seconds: int, bin_ms: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The load of a flow with this traffic over 20 Mbit/s: starts of bins (s) and bit/s."""
    from narrows.scenario import cells_of

    kind = traffic.strip("{}").split(":")[0]
    # Datagrams are under no scheme.
    scheme = "" if registry.load().traffic[kind].datagram else ", scheme: cubic"
    flows = f"flows:\n  - {{traffic: {traffic}{scheme}}}\n"
    path = "{rate: 20 Mbit/s, queue: {droptail: 100 kB}}"
    (cell,) = cells_of(scenario(path, flows, duration=f"{seconds} s"))
    with tempfile.TemporaryDirectory() as folder:
        record = Path(folder) / "record"
        _native.simulate(cell.to_text(), str(record))
        series = read_throughput(record, bin_ms * 1_000_000)
    return series.time_s, series.flows[1].arrived_bps
