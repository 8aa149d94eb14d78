"""What a capture of one end tells about its conversations."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from narrows.errors import DataError
from narrows.formats.runs import Flow, MeasuredRun, Progress, joined, note, states_of

_TCP = 6
_SYN, _ACK = 0x02, 0x10
#: Most conversations that are looked at: numbers of flows have 16 bits, and a capture of a scan has many.
MOST_FLOWS = 4096


def one_end(file: Path, name: str, columns: dict[str, Any], talk: Any, scheme: str) -> MeasuredRun:
    """The run of one capture, whose packets (in the order of time) belong to the conversations `talk`.

    Raises `DataError` if none of them carried data.
    """
    time = columns["time_ns"]
    zero = int(time[0])
    talks = groups(talk)
    left_out = max(0, len(talks) - MOST_FLOWS)
    if left_out:
        largest = sorted(talks, key=lambda one: len(talks[one]), reverse=True)[:MOST_FLOWS]
        kept = set(largest)
        talks = {one: rows for one, rows in talks.items() if one in kept}
    flows: list[Flow] = []
    progress, states = [], []
    for rows in talks.values():
        own = {key: values[rows] for key, values in columns.items()}
        number = len(flows) + 1
        measured = _conversation(own, number, zero)
        if measured is None:
            continue
        bytes_by_time, samples, sender = measured
        ports = [int(own["source_port"][0]), int(own["destination_port"][0])]
        protocol = "tcp" if own["protocol"][0] == _TCP else "udp"
        flows.append(Flow(number, scheme, sender=sender, facts={"protocol": protocol, "ports": ports}))
        progress.append(bytes_by_time)
        if samples is not None:
            states.append(samples)
    if not flows:
        raise DataError(f"{file}: no conversation of the capture carried data")
    reasons = []
    if left_out:
        text = f"{left_out} conversations with few packets are left out."
        reasons.append(note("conversations", text))
    return MeasuredRun(
        scheme,
        [file],
        flows,
        progress=progress,
        states=joined(states),
        started_at=f"{np.datetime64(zero // 1_000_000, 'ms')}Z",
        reasons=reasons,
        facts={"captures": [name]},
    )


def groups(values: Any) -> dict[int, Any]:
    """The places of each of these values, in the order in which they first appear. Sorted once, so that many
    values do not cost the square of their number."""
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    begins = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    parts = np.split(order, begins[1:])
    return {int(values[part[0]]): part for part in sorted(parts, key=lambda part: int(part[0]))}


def _conversation(
    own: dict[str, Any], number: int, zero: int
) -> tuple[Progress, dict[str, Any] | None, dict[str, int]] | None:
    """Bytes by time, states and counters of one conversation; None if it carried no data."""
    # Who sends is told apart by port and address of the first packet.
    mine = (own["source"] == own["source"][0]) & (own["source_port"] == own["source_port"][0])
    payload = own["payload_bytes"].astype(np.int64)
    if payload[mine].sum() < payload[~mine].sum():
        mine = ~mine
    data = mine & (payload > 0)
    if not np.any(data):
        return None
    time = own["time_ns"] - zero
    sizes = own["size_bytes"].astype(np.float64)
    if own["protocol"][0] != _TCP:
        total = np.concatenate([[0.0], np.cumsum(sizes[data])])
        at = np.concatenate([[time[data][0]], time[data]]).astype(np.int64)
        sender = {"sent_packets": int(np.count_nonzero(data)), "sent_bytes": int(total[-1])}
        return Progress(number, at, total, total), None, sender
    return _stream(own, number, time, sizes, data, ~mine)


def _stream(
    own: dict[str, Any], number: int, time: Any, sizes: Any, data: Any, answers: Any
) -> tuple[Progress, dict[str, Any] | None, dict[str, int]]:
    sent_at = time[data]
    sequence = _unwrapped(own["sequence"][data])
    ends = sequence + own["payload_bytes"][data].astype(np.int64)
    newest = np.maximum.accumulate(ends)
    again = np.concatenate([[False], sequence[1:] < newest[:-1]])
    heard = answers & (own["flags"] & _ACK > 0) & (own["flags"] & _SYN == 0)
    # Acknowledgements wrap as the sequence numbers do; the first lies near the first of them.
    acks = _unwrapped(own["acknowledgement"][heard], near=int(sequence[0]) if len(sequence) else 0)
    heard_at = time[heard]
    acks = np.maximum.accumulate(np.clip(acks, sequence[0], newest[-1])) if len(acks) else acks
    # A packet has arrived when something at or beyond its end is acknowledged.
    fresh = np.flatnonzero(~again)
    place = np.searchsorted(acks, ends[fresh], side="left")
    known = place < len(acks)
    arrived_at = heard_at[place[known]] if len(acks) else np.array([], dtype=np.int64)
    arrived = sizes[data][fresh][known]
    moments = np.unique(np.concatenate([sent_at[:1], sent_at, arrived_at])).astype(np.int64)
    sent_sum = np.concatenate([[0.0], np.cumsum(sizes[data])])
    order = np.argsort(arrived_at, kind="stable")
    arrived_sum = np.concatenate([[0.0], np.cumsum(arrived[order])])
    # The first moment stands for nothing yet, so that its bytes have a time before them.
    start = np.concatenate([[max(int(moments[0]) - 1, 0)], moments]).astype(np.int64)
    progress = Progress(
        number,
        start,
        np.concatenate([[0.0], sent_sum[np.searchsorted(sent_at, moments, side="right")]]),
        np.concatenate([[0.0], arrived_sum[np.searchsorted(arrived_at[order], moments, side="right")]]),
    )
    sender = {
        "sent_packets": len(sent_at),
        "sent_bytes": int(sizes[data].sum()),
        "retransmitted_packets": int(np.count_nonzero(again)),
        "retransmitted_bytes": int(sizes[data][again].sum()),
    }
    states = _states(number, sent_at, ends, newest, again, acks, heard_at, sequence[0], sizes[data])
    return progress, states, sender


def _states(
    number: int,
    sent_at: Any,
    ends: Any,
    newest: Any,
    again: Any,
    acks: Any,
    heard_at: Any,
    begin: int,
    sizes: Any,
) -> dict[str, Any] | None:
    """A sample at each acknowledgement of something new."""
    if not len(acks):
        return None
    grows = np.flatnonzero(np.diff(np.concatenate([[begin], acks])) > 0)
    if not len(grows):
        return None
    at, upto = heard_at[grows], acks[grows]
    before = np.searchsorted(sent_at, at, side="right")
    out = np.where(before > 0, newest[np.maximum(before - 1, 0)], begin) - upto
    # The newest packet that is acknowledged as a whole, if it and what it covers were sent once (Karn).
    fresh = np.flatnonzero(~again)
    place = np.searchsorted(ends[fresh], upto, side="right") - 1
    sent = sent_at[fresh[np.maximum(place, 0)]]
    repeats = np.cumsum(again)
    last = np.maximum(np.searchsorted(sent_at, at, side="right") - 1, 0)
    clean = (place >= 0) & (repeats[last] == repeats[fresh[np.maximum(place, 0)]]) & (at >= sent)
    rtt = np.where(clean, (at - sent).astype(np.float64), np.nan)
    repeated = np.concatenate([[0.0], np.cumsum(np.where(again, sizes, 0.0))])
    least = np.fmin.accumulate(rtt)
    return states_of(
        number,
        at,
        rtt_ns=rtt,
        min_rtt_ns=least,
        inflight_bytes=np.maximum(out, 0).astype(np.float64),
        delivered_bytes=(upto - begin).astype(np.float64),
        retransmitted_bytes=repeated[before],
    )


def _unwrapped(numbers: Any, near: int | None = None) -> Any:
    """Numbers of 32 bits that wrap, as numbers that go on growing; the first one is the one nearest to
    `near`."""
    if not len(numbers):
        return numbers.astype(np.int64)
    steps = np.diff(numbers.astype(np.int64))
    steps = (steps + (1 << 31)) % (1 << 32) - (1 << 31)
    first = int(numbers[0])
    if near is not None:
        first = near + ((first - near + (1 << 31)) % (1 << 32) - (1 << 31))
    return first + np.concatenate([[0], np.cumsum(steps)])
