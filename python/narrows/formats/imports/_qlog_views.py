"""Connections in qlogs from the view of each trace: which views show the same connection, and which belong to
one run.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from narrows.formats.runs import NEVER, Columns, Unread

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Times = NDArray[np.int64]
    Sizes = NDArray[np.uint32]

#: Columns of metrics, which are states of the sender.
METRICS = (
    "cwnd_bytes", "inflight_bytes", "ssthresh_bytes", "pacing_bps", "rtt_ns", "srtt_ns", "min_rtt_ns",
)  # fmt: skip
#: The two ends of a connection.
_ENDS = ("client", "server")
#: This share of the packets that one end received must have been sent by the other, with the same size.
_SAME = 0.9
#: Clocks of both ends may differ by this much, in ns: a minute.
_CLOCKS_NS = 60_000_000_000


@dataclass
class View:
    """One connection from the view of one trace. Times are since 1970 if they are `absolute`."""

    file: Path
    #: Index of the trace in its file.
    trace: int
    #: The trace's name for the connection; empty if there is none.
    group: str
    vantage_point: str
    version: str
    title: str
    absolute: bool
    sent_ns: Times
    sent_bytes: Sizes
    #: Packet number and space combined; negative if there is none.
    sent_key: Times
    #: NEVER if the packet was not acknowledged.
    acked_ns: Times
    received_ns: Times
    received_bytes: Sizes
    received_key: Times
    lost_ns: Times
    #: The number of packets lost at `lost_ns`.
    lost_packets: NDArray[np.uint64]
    metrics_ns: Times
    metrics: dict[str, NDArray[np.float64]]
    unread: list[Unread]
    #: True if this end sent most of the data.
    sends: bool

    @classmethod
    def from_log(
        cls,
        file: Path,
        *,
        sent_space: Times,
        sent_number: Times,
        received_space: Times,
        received_number: Times,
        sent_bytes: Sizes,
        received_bytes: Sizes,
        unread: list[tuple[str, int, str]],
        **columns: Any,
    ) -> View:
        """Creates a view from the columns that the core read."""
        sends = _sends(sent_bytes, received_bytes)
        return cls(
            file,
            sent_key=_keys(sent_number, sent_space),
            received_key=_keys(received_number, received_space),
            sent_bytes=sent_bytes,
            received_bytes=received_bytes,
            metrics={name: columns.pop(name) for name in METRICS},
            # At the end that received the data, events that only report acknowledgements are irrelevant.
            unread=[
                Unread(kind, count, matters == "always" or (matters == "sender" and sends))
                for kind, count, matters in unread
            ],
            sends=sends,
            **columns,
        )

    @property
    def acked(self) -> NDArray[np.bool_]:
        """Which of the sent packets were acknowledged."""
        return np.not_equal(self.acked_ns, NEVER)

    @property
    def first_ns(self) -> int:
        """The time of its first event."""
        times = [times for times in (self.sent_ns, self.received_ns, self.metrics_ns) if len(times)]
        return int(min(each.min() for each in times))

    @property
    def last_ns(self) -> int:
        """The time of its last event."""
        times = [times for times in (self.sent_ns, self.received_ns, self.metrics_ns) if len(times)]
        return int(max(each.max() for each in times))


def _keys(number: Times, space: Times) -> Times:
    """Packet numbers and spaces combined."""
    return np.where(number < 0, -1, number * 4 + space)


def _sends(sent: Any, received: Any) -> bool:
    """True if an end sent more than it received: in bytes, or in packets if many have no size."""
    sized = [not len(sizes) or np.count_nonzero(sizes) > len(sizes) / 2 for sizes in (sent, received)]
    if all(sized):
        return int(sent.sum(dtype=np.int64)) >= int(received.sum(dtype=np.int64))
    return len(sent) >= len(received)


def runs_of(views: list[View]) -> list[list[View]]:
    """The views of each run, in the order in which runs first appear. One run has the views of one trace, of
    both ends of a connection, and of traces of one file and end that overlap in time.
    """
    traces = list(dict.fromkeys((view.file, view.trace) for view in views))
    run = {trace: index for index, trace in enumerate(traces)}

    def unite(view: View, other: View) -> None:
        here, there = run[view.file, view.trace], run[other.file, other.trace]
        for trace, index in run.items():
            if index == max(here, there):
                run[trace] = min(here, there)

    for one, other in _pairs(views):
        unite(one, other)
    by_file: dict[tuple[Path, str], list[View]] = {}
    for view in views:
        by_file.setdefault((view.file, view.vantage_point), []).append(view)
    for group in by_file.values():
        timed = sorted((view for view in group if view.absolute), key=lambda view: view.first_ns)
        for one, other in pairwise(timed):
            if one.trace != other.trace and _overlap(one, other):
                unite(one, other)
    return [
        [view for view in views if run[view.file, view.trace] == index] for index in sorted(set(run.values()))
    ]


def _overlap(view: View, other: View) -> bool:
    """True if two views share more than half of the time of the shorter one."""
    shared = min(view.last_ns, other.last_ns) - max(view.first_ns, other.first_ns)
    shorter = min(view.last_ns - view.first_ns, other.last_ns - other.first_ns)
    return 2 * shared > shorter


def _pairs(views: list[View]) -> list[tuple[View, View]]:
    """Pairs of views of one connection: a client's and a server's."""
    pairs = []
    clients, servers = ([view for view in views if view.vantage_point == end] for end in _ENDS)
    by_group: dict[str, list[View]] = {}
    for server in servers:
        by_group.setdefault(server.group, []).append(server)
    taken: set[int] = set()
    for client in clients:
        # Traces that do not name their connection belong to one if their files have the same name.
        known = [
            view for view in by_group.get(client.group, []) if client.group or _have_like_names(client, view)
        ]
        other = next((view for view in known if id(view) not in taken and _agree(client, view)), None)
        if other is not None:
            taken.add(id(other))
            pairs.append((client, other))
    return pairs


def _have_like_names(view: View, other: View) -> bool:
    if view.file == other.file:
        return True
    return view.file.parent == other.file.parent and _without_end(view.file) == _without_end(other.file)


def _without_end(file: Path) -> str:
    name = file.name.lower()
    for end in _ENDS:
        name = name.replace(end, "")
    return name


def _agree(view: View, other: View) -> bool:
    """True if each end received what the other sent, and at the same time if the clocks allow a
    comparison.
    """
    if view.absolute and other.absolute:
        apart = max(view.first_ns, other.first_ns) - min(view.last_ns, other.last_ns)
        if apart > _CLOCKS_NS:
            return False
    shares = [_same_share(view, other), _same_share(other, view)]
    told = [share for share in shares if share is not None]
    return bool(told) and min(told) >= _SAME


def _same_share(sender: View, receiver: View) -> float | None:
    """The share of received packets that were sent, with the same size if both ends know it."""
    rows = np.flatnonzero(receiver.received_key >= 0)
    if not len(rows):
        return None
    place = _places(receiver.received_key[rows], sender.sent_key)
    came = receiver.received_bytes[rows]
    sent = sender.sent_bytes[np.maximum(place, 0)] if len(sender.sent_bytes) else came
    same = (place >= 0) & ((came == sent) | (came == 0) | (sent == 0))
    return float(np.count_nonzero(same)) / len(rows)


def _places(wanted: Times, known: Times) -> Times:
    """The first index of each element of `wanted` in `known`; -1 if it is absent."""
    if not len(known):
        return np.full(len(wanted), -1, dtype=np.int64)
    order = np.argsort(known, kind="stable")
    place = np.minimum(np.searchsorted(known[order], wanted), len(order) - 1)
    values = order[place]
    return np.where((known[values] == wanted) & (wanted >= 0), values, -1)


def flows_of(views: list[View]) -> list[list[View]]:
    """The connections of a run, each with its views, the authoritative one first."""
    flows = []
    other_of: dict[int, View] = {}
    for first, second in _pairs(views):
        other_of[id(first)], other_of[id(second)] = second, first
    seen: set[int] = set()
    for view in views:
        if id(view) in seen:
            continue
        other = other_of.get(id(view))
        ends = [view] if other is None else _better_first(view, other)
        seen.update(id(end) for end in ends)
        flows.append(ends)
    return flows


def _better_first(item: View, other: View) -> list[View]:
    """Orders two views: first that of the end that sent the data, which knows the acknowledged data and the
    data in flight.
    """
    sent = [int(view.sent_bytes.sum(dtype=np.int64)) for view in (item, other)]
    return [item, other] if sent[0] >= sent[1] else [other, item]


def join_views(flows: list[list[View]]) -> tuple[Columns, Columns | None, int] | None:
    """The packets of connections that were all logged at both ends, with data and acknowledgements, and the
    number of arrivals that were not sent; `None` if an end is missing, the clocks can't be compared, or sizes
    are unknown.
    """
    if not all(len(ends) == 2 and ends[0].absolute and ends[1].absolute for ends in flows):
        return None
    if not all(ends[0].sent_bytes.any() for ends in flows):
        return None
    strangers = 0
    parts: tuple[list[Columns], list[Columns]] = ([], [])
    for number, (sender, receiver) in enumerate(flows, 1):
        for part, (near, far) in zip(parts, ((sender, receiver), (receiver, sender)), strict=True):
            rows, unknown = _direction(number, near, far)
            strangers += unknown
            part.append(rows)
    data, back = ({name: np.concatenate([rows[name] for rows in part]) for name in part[0]} for part in parts)
    return data, back if len(back["flow"]) else None, strangers


def _direction(flow: int, near: View, far: View) -> tuple[Columns, int]:
    """The packets from `near` with their arrivals at `far`, and the number of arrivals that `near` did not
    send.
    """
    # Packets without a number negotiate the version, or can't be identified.
    numbered = near.sent_key >= 0
    place = _places(near.sent_key[numbered], far.received_key)
    came = far.received_ns[np.maximum(place, 0)] if len(far.received_ns) else np.zeros(len(place), np.int64)
    sizes = near.sent_bytes[numbered]
    if len(far.received_bytes):
        sizes = np.where((sizes == 0) & (place >= 0), far.received_bytes[np.maximum(place, 0)], sizes)
    rows: Columns = {
        "flow": np.full(len(place), flow, dtype=np.uint16),
        "size_bytes": sizes.astype(np.uint32),
        "sent_ns": near.sent_ns[numbered],
        "arrived_ns": np.where(place >= 0, came, NEVER),
    }
    unknown = _places(far.received_key, near.sent_key)
    return rows, int(np.count_nonzero((unknown < 0) & (far.received_key >= 0)))
