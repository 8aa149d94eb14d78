"""The connections in a capture of one end, as a run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from narrows.errors import DataError
from narrows.formats.imports._choice import Chosen
from narrows.formats.runs import (
    ONE_END,
    Columns,
    Facts,
    Floats,
    Flow,
    MeasuredRun,
    Progress,
    Times,
    Unread,
    join_columns,
    note,
    states_of,
)

if TYPE_CHECKING:
    from narrows.formats.imports._capture import Capture

_TCP, _UDP = 6, 17
_PROTOCOLS = {_TCP: "tcp", _UDP: "udp"}
_RECEIVER = (
    "Only the receiver of the flows was measured: throughput is what arrived there, and losses and one-way"
    " delays are not known."
)
MISSED = "bytes of data that were acknowledged but not captured"


@dataclass(frozen=True)
class OneEnd:
    """A connection from the view of one capture: counters, and columns of events and of samples."""

    #: The end that sent the data: 0 or 1.
    data_from: int
    #: `sender`, `receiver`, `between`, or unknown.
    side: str | None
    #: Median times from data to answers on both sides of the capture.
    to_receiver_ns: int | None
    to_sender_ns: int | None
    sent_packets: int
    retransmitted_packets: int
    goodput_bytes: int
    missed_bytes: int
    large_frames: int
    #: True if no acknowledgement was captured.
    unanswered: bool
    repeated_bytes: int
    time_ns: Times
    sent_bytes: Floats
    arrived_bytes: Floats
    sample_ns: Times
    rtt_ns: Floats
    inflight_bytes: Floats
    delivered_bytes: Floats
    retransmitted_bytes: Floats


def read_end(capture: Capture, place: int) -> OneEnd | None:
    """The view of a connection; None if it carried no data."""
    end = capture.view.one_end(place)
    return None if end is None else OneEnd(**end)


def one_end(capture: Capture, chosen: Chosen, scheme: str, files: Sequence[Path]) -> MeasuredRun:
    """The run of one capture. Raises `DataError` if none of its connections carried data."""
    if not chosen.places:
        raise DataError(f"{capture.file}: no connection of the capture carried data")
    zero = min(capture.connections[place].first_ns for place in chosen.places)
    flows: list[Flow] = []
    progress, states = [], []
    protocols: list[int] = []
    ends: list[OneEnd] = []
    for place in chosen.places:
        end = read_end(capture, place)
        if end is None:
            continue
        flow = Flow(len(flows) + 1, scheme, facts=facts_of(capture, place, end.data_from))
        flow.sender = {
            "sent_packets": end.sent_packets,
            "sent_bytes": int(end.sent_bytes[-1]) if len(end.sent_bytes) else 0,
        }
        if capture.connections[place].protocol == _TCP:
            flow.sender |= {
                "retransmitted_packets": end.retransmitted_packets,
                "retransmitted_bytes": end.repeated_bytes,
            }
        if not end.unanswered:
            flow.receiver = {"goodput_bytes": end.goodput_bytes}
        flows.append(flow)
        ends.append(end)
        protocols.append(capture.connections[place].protocol)
        progress.append(_progress(flow.number, end, zero))
        if len(end.sample_ns):
            states.append(_states(flow.number, end, zero))
    if not flows:
        raise DataError(f"{capture.file}: no connection of the capture carried data")
    missed = Unread(MISSED, sum(end.missed_bytes for end in ends), matters=True)
    return MeasuredRun(
        scheme,
        list(files),
        flows,
        progress=progress,
        states=join_columns(states),
        started_at=f"{np.datetime64(zero // 1_000_000, 'ms')}Z",
        reasons=[
            *chosen.reasons,
            *capture.reasons,
            *_sides(ends),
            *large_frames(end.large_frames for end in ends),
            *_count_unanswered(protocols, ends),
        ],
        unread=[*capture.unread, *chosen.unread, *([missed] if missed.count else [])],
        facts={"captures": [capture.view.name]},
        limits=_RECEIVER if all(end.side == "receiver" for end in ends) else ONE_END,
    )


def facts_of(capture: Capture, place: int, data_from: int) -> Facts:
    """Facts about a connection; the end that sends its data comes first."""
    connection = capture.connections[place]
    ends = [connection.ends[data_from], connection.ends[1 - data_from]]
    return {
        "protocol": _PROTOCOLS.get(connection.protocol, "ip"),
        "ports": [port for _, port in ends],
        "hosts": [host for host, _ in ends],
        "connection": place + 1,
    }


def large_frames(counts: Iterable[int]) -> list[dict[str, str]]:
    """A remark about frames that combine several packets."""
    count = sum(counts)
    if not count:
        return []
    text = (
        f"{count} frames hold several packets, because they were captured before the network adapter segments"
        " (TSO, GSO) or after it merges (GRO, LRO); they count as the packets that they are on the wire."
    )
    return [note("large_frames", text)]


def _progress(number: int, end: OneEnd, zero: int) -> Progress:
    time = end.time_ns - zero
    # The first moment counts as zero, so that its bytes have a preceding time.
    before = max(int(time[0]) - 1, 0)
    return Progress(
        number,
        np.concatenate([[before], time]).astype(np.int64),
        np.concatenate([[0.0], end.sent_bytes]),
        np.concatenate([[0.0], end.arrived_bytes]),
    )


def _states(number: int, end: OneEnd, zero: int) -> Columns:
    rtt = end.rtt_ns
    return states_of(
        number,
        end.sample_ns - zero,
        rtt_ns=rtt,
        min_rtt_ns=np.fmin.accumulate(rtt),
        inflight_bytes=end.inflight_bytes,
        delivered_bytes=end.delivered_bytes,
        retransmitted_bytes=end.retransmitted_bytes,
    )


def _sides(ends: Sequence[OneEnd]) -> list[dict[str, str]]:
    """Remarks about captures that were not taken at the sender."""
    reasons = []
    for side in ("receiver", "between"):
        flows = [number for number, end in enumerate(ends, start=1) if end.side == side]
        if not flows:
            continue
        of_all = len(flows) == len(ends)
        which = "" if of_all else f" of flow {', '.join(str(number) for number in flows[:8])}"
        first = ends[flows[0] - 1]
        near, far = first.to_receiver_ns, first.to_sender_ns
        times = "" if near is None else f": its answers come after {near / 1e6:.3f} ms"
        times += "" if near is None or far is None else f", those of the sender after {far / 1e6:.3f} ms"
        if side == "receiver":
            text = (
                f"The capture was taken at the receiver of the data{which}{times}. Throughput is what"
                " arrived; round-trip times and bytes in flight of the sender are not known, and"
                " retransmissions are"
                " those that were seen here."
            )
            reasons.append(note("at_receiver", text))
        else:
            text = (
                f"The capture was taken between both ends{which}{times}: its round-trip times are those from"
                " there to the receiver and back."
            )
            reasons.append(note("between", text, "degraded"))
    return reasons


def _count_unanswered(protocols: Sequence[int], ends: Sequence[OneEnd]) -> list[dict[str, str]]:
    reasons = []
    silent = [
        number
        for number, (protocol, end) in enumerate(zip(protocols, ends, strict=True), start=1)
        if end.unanswered and protocol == _TCP
    ]
    if silent:
        text = (
            f"No acknowledgement of flow {', '.join(str(number) for number in silent[:8])} was captured:"
            " throughput is what was captured of the data."
        )
        reasons.append(note("no_acknowledgements", text, "degraded"))
    if _UDP in protocols:
        reasons.append(note("udp", "Throughput of UDP is what was captured, whether it arrived or not."))
    return reasons
