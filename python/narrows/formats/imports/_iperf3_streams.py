"""The streams of one iperf3 document: the counts of its end per interval, and the sums of both ends."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
from msgspec import UNSET

from narrows.errors import DataError
from narrows.formats.imports._iperf3_documents import Counts, Document, StreamSums
from narrows.formats.runs import MOST_FLOWS, Floats

#: Larger numbers (bytes, packets, microseconds) are considered errors.
_MOST = 2.0**60
#: Longest test, in seconds: a year.
_LONGEST_S = 366 * 86_400.0


@dataclass(frozen=True)
class Sum:
    """Bytes of a stream at one of its ends, and the time of that end in seconds since its start; None if
    unknown.
    """

    bytes: float | None = None
    end_s: float | None = None
    retransmits: float | None = None


@dataclass(frozen=True)
class Datagrams:
    """iperf3's sums of a UDP stream."""

    packets: float
    lost: float
    out_of_order: float | None
    jitter_ms: float | None


@dataclass
class Stream:
    """One stream as counted by one end."""

    socket: int
    #: True if this end sent the data; True if the data went from the server to the client.
    sends: bool
    backward: bool
    #: The client's port, by which both ends identify the connection; 0 if the document omits it.
    port: int = 0
    #: Seconds since the start: first the start of counting, then the end of each interval.
    time_s: Floats = field(default_factory=lambda: np.zeros(1))
    #: Cumulative bytes.
    bytes: Floats = field(default_factory=lambda: np.zeros(1))
    #: Per interval; NaN if the document omits it.
    retransmits: Floats = field(default_factory=lambda: np.zeros(0))
    cwnd_bytes: Floats = field(default_factory=lambda: np.zeros(0))
    rtt_us: Floats = field(default_factory=lambda: np.zeros(0))
    sent: Sum = Sum()
    received: Sum = Sum()
    datagrams: Datagrams | None = None
    #: Numbers of omitted intervals: those before the end of -O, those without usable numbers, and repeated
    #: ones.
    omitted: int = 0
    odd: int = 0
    again: int = 0

    @property
    def own(self) -> Sum:
        """iperf3's sum for this end."""
        return self.sent if self.sends else self.received


def number(value: float | None, most: float = _MOST) -> float | None:
    """Returns a number of a document if it lies between 0 and `most`."""
    return value if value is not None and 0 <= value <= most else None


def is_client(document: Document) -> bool:
    """True if the client wrote the document, judging by its facts about the connection, or by the direction
    of the data.
    """
    flags = _flags(document)
    if document.start.accepted_connection is not UNSET:
        return False
    if len(flags) != 1:
        return True
    return flags != {_reverse(document)}


def is_bidirectional(document: Document) -> bool:
    """True if data went both ways (--bidir)."""
    return len(_flags(document)) == 2


def congestion_controls(document: Document) -> dict[bool, str]:
    """The congestion control of the data forward (False) and backward (True), if the document names them."""
    end = document.end
    sender, receiver = end.sender_tcp_congestion.strip(), end.receiver_tcp_congestion.strip()
    if not is_bidirectional(document):
        return {_reverse(document): sender}
    # iperf3 adds both names after its last pass over the streams. With --bidir, that is at either end the
    # pass of the reverse direction, whose sums it adds too: sender is the server, receiver the client.
    if end.sum_sent_bidir_reverse or end.sum_received_bidir_reverse or end.sum_bidir_reverse:
        return {False: receiver, True: sender}
    client = is_client(document)
    return {False: sender if client else receiver, True: receiver if client else sender}


def read_streams(document: Document) -> list[Stream]:
    """The streams in the document, in the order of the file.

    Raises `DataError`, without the file, if there are none or their intervals are out of order.
    """
    result: dict[int, Stream] = {}
    rows: dict[int, list[Counts]] = {}
    client = is_client(document)
    ports = _ports(document, client)
    lost_rows = 0

    def stream_of(socket: int, row: Counts) -> Stream:
        if socket not in result:
            sends, backward = _direction(document, client, row.sender)
            result[socket] = Stream(socket, sends, backward, ports.get(socket, 0))
        return result[socket]

    for row in _rows(document):
        if row.socket is None:
            lost_rows += 1
            continue
        stream = stream_of(row.socket, row)
        if row.omitted:
            stream.omitted += 1
        else:
            rows.setdefault(row.socket, []).append(row)
    for part in document.end.streams:
        _add_sums(document, part, stream_of)
    if not result:
        raise DataError("iperf3 measured no interval, and has no sums of streams")
    if len(result) > MOST_FLOWS:
        raise DataError(f"has {len(result)} streams; {MOST_FLOWS} are read at most")
    _share_received(document, list(result.values()))
    for socket, stream in result.items():
        _add_intervals(stream, rows.get(socket, []))
    if all(len(stream.time_s) < 2 for stream in result.values()):
        raise DataError("is not a document of iperf3 that can be read: no interval has a time and bytes")
    next(iter(result.values())).odd += lost_rows
    return list(result.values())


def _rows(document: Document) -> Iterator[Counts]:
    for interval in document.intervals:
        yield from interval.streams


def _reverse(document: Document) -> bool:
    return bool(document.start.test_start.reverse)


def protocol(document: Document) -> str:
    """TCP, UDP or SCTP."""
    return document.start.test_start.protocol.strip().upper() or "TCP"


def _flags(document: Document) -> set[bool]:
    """The values of `sender`: whether the end that wrote the document sent the data of a stream."""
    flags = {row.sender for row in _rows(document)} - {None}
    for part in document.end.streams if not flags else ():
        flags |= {sums.sender for sums in (part.sender, part.receiver, part.udp) if sums}
    return {flag for flag in flags if flag is not None}


def _direction(document: Document, client: bool, flag: bool | None) -> tuple[bool, bool]:
    """Whether the end that wrote the document sent the data of a stream, and whether the data went
    backward.
    """
    reverse = _reverse(document)
    if flag is None:
        return client != reverse, reverse
    return flag, (client != flag if is_bidirectional(document) else reverse)


def _ports(document: Document, client: bool) -> dict[int, int]:
    pairs = [
        (entry.socket, entry.local_port if client else entry.remote_port)
        for entry in document.start.connected
    ]
    return {socket: port for socket, port in pairs if socket is not None and port > 0}


def _add_sums(document: Document, part: StreamSums, stream_of: Callable[[int, Counts], Stream]) -> None:
    """Adopts the sums of one stream."""
    for sums in (part.sender, part.receiver, part.udp):
        if sums is None or sums.socket is None:
            continue
        stream = stream_of(sums.socket, sums)
        if sums is part.udp:
            _add_datagrams(document, stream, sums)
            continue
        begin, end = number(sums.start, _LONGEST_S), number(sums.end, _LONGEST_S)
        span = end - (begin or 0.0) if end is not None else None
        known = number(sums.bytes)
        # An end does not know the other end's sum if that end did not or could not report it; it is then 0.
        if not known and stream.sends != (sums is part.sender):
            known = None
        result = Sum(known, span, number(sums.retransmits))
        if sums is part.sender:
            stream.sent = result
        else:
            stream.received = result


def _add_datagrams(document: Document, stream: Stream, sums: Counts) -> None:
    packets, lost = number(sums.packets), sums.lost_packets
    span = number(sums.end, _LONGEST_S)
    size = number(sums.bytes)
    total = _sum_received(document, stream.backward)
    received_s = number(total.end, _LONGEST_S) or span
    stream.sent = Sum(size or None, span)
    came = number(total.bytes)
    if not stream.sends:
        stream.received = Sum(None, received_s)
    elif came == 0 and packets and lost != packets:
        # The receiver did not report: it was stopped, or this is the server's document, which never has it.
        return
    if packets and lost is not None:
        # Duplicate and late datagrams can make iperf3's count negative.
        gone = min(max(lost, 0.0), packets)
        stream.datagrams = Datagrams(packets, gone, number(sums.out_of_order), number(sums.jitter_ms))
        if stream.sends and size is not None:
            stream.received = Sum(size * (1 - gone / packets), received_s)


def _sum_received(document: Document, backward: bool) -> Counts:
    """iperf3's sum of received data over all streams of one direction."""
    if backward and is_bidirectional(document):
        return document.end.sum_received_bidir_reverse or Counts()
    return document.end.sum_received


def _share_received(document: Document, streams: list[Stream]) -> None:
    """Divides iperf3's sum of data received by UDP, which it states for all streams together, among the
    streams by their received datagrams.
    """
    for backward in (False, True):
        own = [item for item in streams if item.backward == backward and item.sends and item.datagrams]
        shares = [item.received.bytes or 0.0 for item in own]
        whole = number(_sum_received(document, backward).bytes)
        if whole is not None and sum(shares) > 0:
            for stream, share in zip(own, shares, strict=True):
                stream.received = Sum(whole * share / sum(shares), stream.received.end_s)


def _add_intervals(stream: Stream, rows: list[Counts]) -> None:
    """The columns of a stream, from its intervals; intervals without a time or bytes are counted."""
    usable: list[tuple[float, float, Counts]] = []
    for row in rows:
        end, size = number(row.end, _LONGEST_S), number(row.bytes)
        if end is None or size is None:
            stream.odd += 1
        elif usable and usable[-1][:2] == (end, size) and usable[-1][2].start == row.start:
            # An interrupted iperf3 writes the last interval again.
            stream.again += 1
        else:
            usable.append((end, size, row))
    if not usable:
        span = stream.own.end_s or 0.0
        if stream.own.bytes and span > 0:
            stream.time_s, stream.bytes = np.array([0.0, span]), np.array([0.0, stream.own.bytes])
            unknown = np.array([np.nan])
            stream.retransmits, stream.cwnd_bytes, stream.rtt_us = unknown, unknown, unknown
        return
    # After the period of -O iperf3 counts from 0 again, but the first interval may have an older start.
    begin = 0.0 if stream.omitted else number(usable[0][2].start, _LONGEST_S) or 0.0
    stream.time_s = np.array([min(begin, usable[0][0]), *(end for end, _, _ in usable)])
    if np.any(np.diff(stream.time_s) < 0):
        raise DataError(f"the intervals of stream {stream.socket} are not in order")
    stream.bytes = np.concatenate([[0.0], np.cumsum([size for _, size, _ in usable])])

    def column(values: Iterable[float | None]) -> Floats:
        return np.array([np.nan if number(value) is None else value for value in values])

    stream.retransmits = column(row.retransmits for _, _, row in usable)
    stream.cwnd_bytes = column(row.snd_cwnd for _, _, row in usable)
    stream.rtt_us = column(row.rtt for _, _, row in usable)
