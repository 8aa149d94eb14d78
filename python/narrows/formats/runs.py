"""The output of importers: runs of other tools, as columns.

A tool that saw packets at both ends yields `Packets`: each packet with its time of sending and of arrival. A
tool that saw one end yields `Progress`: the bytes of each flow that were sent and acknowledged by a given
time. Either may come with `States`, samples of the sender.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Words at the end of file names that state the end, the flow or the run.
_ENDING = re.compile(
    r"([-_.](sender|receiver|client|server|flow[0-9]+|r?[0-9]+|run[-_]?[0-9]+))+$", re.IGNORECASE
)

Floats = NDArray[np.float64]
Times = NDArray[np.int64]
#: The columns of a table by name, one value per row.
Columns = dict[str, NDArray[Any]]
#: A tool's own facts, which are kept unchanged.
Facts = dict[str, object]

#: The member `ends` of a run that was measured at one end.
ONE_END = (
    "Only one end of the flows was measured: throughput is what was acknowledged there, and losses and"
    " one-way delays are not known."
)
#: Value of `arrived_ns` for a packet that did not arrive.
NEVER = np.iinfo(np.int64).min
#: Width of bins, unless a tool measured in wider ones.
BIN_NS = 100_000_000
#: Bytes of a full packet, used to count packets when only bytes are known.
PACKET = 1500
#: A bin with more bytes is considered an error.
MOST_BYTES = 1 << 50
#: Maximum number of bins of a flow; longer measurements have wider bins.
MOST_BINS = 100_000
#: Maximum number of flows of a run: their numbers have 16 bits.
MOST_FLOWS = 65_535
#: Maximum number of state samples kept per flow.
MOST_STATES = 20_000
#: Columns of states, all as floats with NaN for unknown values: `states.parquet` in docs/guide/records.md.
STATES = (
    "cwnd_bytes", "ssthresh_bytes", "pacing_bps", "rtt_ns", "srtt_ns", "min_rtt_ns", "inflight_bytes",
    "delivered_bytes", "delivery_rate_bps", "retransmitted_bytes", "lost_packets",
)  # fmt: skip


@dataclass
class Flow:
    """One flow of a run."""

    number: int
    #: Name of the scheme, without the tool.
    scheme: str
    #: Facts shown beside it.
    label: str = ""
    #: `forward` or `backward`: the direction of its data on the path.
    direction: str = "forward"
    #: The tool's facts about it, kept in run.json.
    facts: Facts = field(default_factory=dict)
    #: Counters of the sender and the receiver, as in run.json.
    sender: dict[str, int] = field(default_factory=dict)
    receiver: dict[str, int] = field(default_factory=dict)


@dataclass
class Progress:
    """Cumulative bytes of one flow over time: the bytes sent and the bytes arrived at `time_ns`."""

    flow: int
    time_ns: Times
    sent_bytes: Floats
    arrived_bytes: Floats
    #: True if the data of the flow went backward.
    backward: bool = False


@dataclass(frozen=True)
class Unread:
    """Parts of a file of one kind that an importer did not read."""

    #: A plural noun phrase that can precede a number in brackets: "fragments without ports".
    kind: str
    count: int
    #: True if the run's numbers rest on a part of the file because these parts are missing.
    matters: bool = False


@dataclass
class MeasuredRun:
    """One run of another tool."""

    #: Name of the scheme, without the tool; runs of the same name are runs 1, 2, 3 ...
    scheme: str
    files: list[Path]
    flows: list[Flow]
    #: Data packets and those in the opposite direction, as columns; all times share one base.
    data: Columns | None = None
    back: Columns | None = None
    progress: list[Progress] = field(default_factory=list)
    #: Columns `flow`, `time_ns` and those of `STATES`.
    states: Columns | None = None
    bin_ns: int = BIN_NS
    started_at: str | None = None
    #: Remarks about the run: code, severity, text.
    reasons: list[dict[str, str]] = field(default_factory=list)
    #: Parts of the files that were not read.
    unread: list[Unread] = field(default_factory=list)
    #: Facts about the measurement, kept in run.json.
    facts: Facts = field(default_factory=dict)
    #: Fixed delay of each direction, if the tool states it; the rest of each delay is then queueing.
    propagation_ns: dict[str, int] = field(default_factory=dict)
    #: The limits of a run that was measured at one end.
    limits: str = ONE_END
    #: True if the ends may have different clocks.
    two_clocks: bool = False


def scheme_of(file: Path) -> str:
    """The scheme in the name of a file: cubic for `cubic-r2-sender.pcapng` and `cubic_run3.json`."""
    stem = file.name.partition(".")[0]
    return _ENDING.sub("", stem) or stem


def note(code: str, text: str, severity: str = "note") -> dict[str, str]:
    """A remark about a run."""
    return {"code": code, "severity": severity, "text": text}


def bins_of(progress: list[Progress], width: int) -> Columns:
    """The bins of `bins.parquet`, from bytes over time; between two times, bytes are spread evenly."""
    parts = [_bins_of_flow(item, width) for item in progress]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _bins_of_flow(item: Progress, width: int) -> Columns:
    last = int(item.time_ns[-1]) if len(item.time_ns) else 0
    count = max(1, -(-last // width))
    edges = np.arange(count + 1, dtype=np.int64) * width
    # The cumulative values are rounded, so that no byte is lost.
    sent, arrived = (
        np.diff(np.round(np.interp(edges, item.time_ns, total))).clip(0, MOST_BYTES).astype(np.uint64)
        for total in (item.sent_bytes, item.arrived_bytes)
    )
    sent_packets, arrived_packets = ((size + (PACKET - 1)) // PACKET for size in (sent, arrived))
    grows = np.flatnonzero(np.diff(item.arrived_bytes) > 0)
    begin = int(item.time_ns[grows[0]]) if len(grows) else 0
    end = int(item.time_ns[grows[-1] + 1]) if len(grows) else last
    return {
        "flow": np.full(count, item.flow, dtype=np.uint16),
        "backward": np.full(count, item.backward),
        "bin_ns": edges[:-1].astype(np.uint64),
        # Arrived data was sent before: a tool may count the sending later than the arrival.
        "sent_packets": np.maximum(sent_packets, arrived_packets).astype(np.uint64),
        "sent_bytes": np.maximum(sent, arrived).astype(np.uint64),
        "arrived_packets": arrived_packets.astype(np.uint64),
        "arrived_bytes": arrived,
        "first_arrival_ns": np.clip(begin, edges[:-1], edges[1:] - 1).astype(np.uint64),
        "last_arrival_ns": np.clip(end, edges[:-1], edges[1:] - 1).astype(np.uint64),
    }


def states_of(flow: int, time_ns: Times, **columns: Floats) -> Columns:
    """States of one flow, thinned out evenly to at most `MOST_STATES` samples."""
    keep = slice(None, None, max(1, -(-len(time_ns) // MOST_STATES)))
    empty = np.full(len(time_ns), np.nan)
    return {
        "flow": np.full(len(time_ns[keep]), flow, dtype=np.uint16),
        "time_ns": np.ascontiguousarray(time_ns[keep], dtype=np.int64),
        **{name: np.ascontiguousarray(columns.get(name, empty)[keep], dtype=np.float64) for name in STATES},
    }


def join_columns(parts: list[Columns]) -> Columns | None:
    """Concatenates the columns of several flows."""
    if not parts:
        return None
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def carry_forward(values: Floats) -> Floats:
    """The last known value at each place; NaN before the first."""
    known = np.where(np.isfinite(values), np.arange(len(values)), -1)
    place = np.maximum.accumulate(known) if len(known) else known
    return np.where(place >= 0, values[np.maximum(place, 0)], np.nan)
