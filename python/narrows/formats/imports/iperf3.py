"""iperf3 documents (`iperf3 -c HOST -J > FILE`, `--json-stream`), of either end or both.

Every stream is a flow, in the direction in which its data went: forward is from the client to the server. The
end that wrote a document counted, per interval, the bytes that it passed to its socket or read from it. The
total of the other end, and its time, are in the sums at the end of the document. Documents with one cookie
belong to one test, so they form one run, in which each end has its own intervals.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from narrows.errors import DataError
from narrows.formats.imports._iperf3_documents import Document, Start, read_documents
from narrows.formats.imports._iperf3_streams import (
    Stream,
    Sum,
    congestion_controls,
    is_client,
    protocol,
    read_streams,
)
from narrows.formats.runs import (
    Columns,
    Facts,
    Flow,
    MeasuredRun,
    Progress,
    Unread,
    join_columns,
    note,
    scheme_of,
    states_of,
)

PATTERNS = ("*.json",)
AGAIN = "documents of a test of which another document of the same end was read"
OMITTED = "intervals that iperf3 itself leaves out (-O)"
ODD = "intervals without a time or a number of bytes"
TWICE = "intervals that were written twice"
_LIMITS = (
    "iperf3 counts bytes per interval: throughput is its own sum of what was received, where it has one, and"
    " losses of TCP and one-way delays are not known."
)
#: A relative difference between a stream's intervals and iperf3's sum beyond rounding.
_UNEQUAL = 0.01


@dataclass
class _Test:
    """One test: the documents of its ends."""

    client: Document | None = None
    server: Document | None = None
    again: int = 0

    @property
    def documents(self) -> list[Document]:
        return [document for document in (self.client, self.server) if document is not None]


def read(files: list[Path], scheme: str | None = None) -> list[MeasuredRun]:
    """One run per test; raises `DataError` if a file has no readable iperf3 document."""
    documents = [document for file in files for document in read_documents(file)]
    return [_run(test, scheme) for test in _tests(documents)]


def _tests(documents: list[Document]) -> list[_Test]:
    """The tests in the order of their first documents; the cookie joins both ends."""
    tests: dict[object, _Test] = {}
    for place, document in enumerate(documents):
        test = tests.setdefault(document.start.cookie or place, _Test())
        end = "client" if is_client(document) else "server"
        known = getattr(test, end)
        test.again += known is not None
        # With --json-stream-full-output a test appears both as events and as a document.
        if known is None or (document.complete and not known.complete):
            setattr(test, end, document)
    return list(tests.values())


@dataclass
class _Flow:
    """One stream, from the end whose document comes first and, if both wrote one, from the other end."""

    stream: Stream
    other: Stream | None = None

    @property
    def sender(self) -> Stream | None:
        """The stream as counted by its sender."""
        return self.stream if self.stream.sends else self.other

    @property
    def receiver(self) -> Stream | None:
        """The stream as counted by its receiver."""
        return self.other if self.stream.sends else self.stream


def _run(test: _Test, scheme: str | None) -> MeasuredRun:
    documents = test.documents
    first = documents[0]
    streams = [_streams(document) for document in documents]
    flows = _flows(streams)
    names: dict[bool, str] = {}
    for document in reversed(documents):
        names |= {backward: name for backward, name in congestion_controls(document).items() if name}
    kind = protocol(first)
    other = kind.lower() if kind != "TCP" else scheme_of(first.file)
    result: list[Flow] = []
    progress, states = [], []
    reasons = _remarks(documents, names)
    for number, flow in enumerate(flows, start=1):
        name = scheme or names.get(flow.stream.backward) or other
        result.append(_describe_flow(number, flow, name, kind))
        progress.append(_progress(number, flow))
        if flow.sender is not None and kind == "TCP" and len(flow.sender.retransmits):
            states.append(_states(number, flow.sender, first))
        reasons += _doubts(flow)
    own = [part for document in documents for part in document.unread]
    own.append(Unread(AGAIN, test.again))
    every = [stream for some in streams for stream in some]
    own.append(Unread(OMITTED, sum(stream.omitted for stream in every)))
    own.append(Unread(ODD, sum(stream.odd for stream in every), matters=True))
    own.append(Unread(TWICE, sum(stream.again for stream in every)))
    schemes = list(dict.fromkeys(flow.scheme for flow in result))
    widths = [np.median(np.diff(stream.time_s)) for stream in every if len(stream.time_s) > 1]
    return MeasuredRun(
        "+".join(schemes),
        list(dict.fromkeys(document.file for document in documents)),
        result,
        progress=progress,
        states=join_columns(states),
        bin_ns=max(round(float(max(widths, default=0.0)) * 1e9), 1_000_000),
        started_at=_moment(first.start),
        reasons=list({reason["text"]: reason for reason in reasons}.values()),
        unread=own,
        limits=_LIMITS,
        facts=_facts(documents, kind),
    )


def _streams(document: Document) -> list[Stream]:
    if document.error and not document.intervals:
        raise DataError(f"{document.file}: iperf3 failed: {document.error}")
    try:
        return read_streams(document)
    except DataError as error:
        raise DataError(f"{document.file}: {error}") from None


def _flows(streams: list[list[Stream]]) -> list[_Flow]:
    """The streams of a test; those of both ends are paired by the client's port, or by their order if a
    document omits it.
    """
    flows = [_Flow(stream) for stream in streams[0]]
    others = streams[1] if len(streams) > 1 else []
    ported = all(stream.port for some in streams for stream in some)
    left: dict[tuple[bool, bool, int], list[Stream]] = {}
    for stream in reversed(others):
        left.setdefault((stream.backward, stream.sends, stream.port if ported else 0), []).append(stream)
    for flow in flows:
        own = flow.stream
        matches = left.get((own.backward, not own.sends, own.port if ported else 0))
        flow.other = matches.pop() if matches else None
    return flows


def _describe_flow(number: int, flow: _Flow, scheme: str, kind: str) -> Flow:
    """The flow with the counters of its ends."""
    stream = flow.stream
    sent, received = _sums(flow)
    sender: dict[str, float | None] = {"sent_bytes": sent.bytes}
    if kind == "TCP":
        sender["retransmitted_packets"] = sent.retransmits
    receiver: dict[str, float | None] = {"goodput_bytes": received.bytes}
    # The receiver counts datagrams; it sends the count to the sender at the end.
    counted = next((item.datagrams for item in (flow.receiver, flow.sender) if item and item.datagrams), None)
    if counted is not None:
        jitter = counted.jitter_ms
        receiver |= {
            "lost_datagrams": counted.lost,
            "received_packets": counted.packets - counted.lost,
            "out_of_order_datagrams": counted.out_of_order,
            "jitter_ns": None if jitter is None else jitter * 1e6,
        }
    facts: Facts = {
        "protocol": kind,
        "socket": stream.socket,
        **({"port": stream.port} if stream.port else {}),
    }
    return Flow(
        number,
        scheme,
        direction="backward" if stream.backward else "forward",
        sender=_integers(sender),
        receiver=_integers(receiver),
        facts=facts,
    )


def _sums(flow: _Flow) -> tuple[Sum, Sum]:
    """Bytes sent and received in total: iperf3's sums, or else the sums of that end's intervals."""
    views = [stream for stream in (flow.sender, flow.receiver) if stream is not None]

    def of(own: Stream | None, name: str) -> Sum:
        sums: list[Sum] = [getattr(stream, name) for stream in ([own] if own else []) + views]
        known = next((item for item in sums if item.bytes is not None), sums[0])
        if own is None:
            return known
        again = known.retransmits
        if again is None and np.any(np.isfinite(own.retransmits)):
            again = float(np.nansum(own.retransmits))
        return Sum(float(own.bytes[-1]) if known.bytes is None else known.bytes, known.end_s, again)

    return of(flow.sender, "sent"), of(flow.receiver, "received")


def _progress(number: int, flow: _Flow) -> Progress:
    """Bytes sent and received by time."""
    sent, received = _sums(flow)
    sender, receiver = flow.sender, flow.receiver
    own = flow.stream
    came = _curve(receiver, received) if receiver else _estimate(own, received, own.datagrams is None)
    went = _curve(sender, sent) if sender else _estimate(own, sent, steady=False)
    time = np.unique(np.concatenate([went[0], came[0]]))
    columns = [np.interp(time, at, total) for at, total in (went, came)]
    return Progress(
        number, np.round(time * 1e9).astype(np.int64), columns[0], columns[1], backward=own.backward
    )


def _curve(stream: Stream, total: Sum) -> tuple[Any, Any]:
    """The end's counts, extended to its sum: the sum may include data after the last interval, and its time,
    by which iperf3 divides, may be a little longer.
    """
    time, count = stream.time_s, stream.bytes
    if total.bytes is None or stream.own.end_s is None or len(time) < 2:
        return time, count
    last = max(stream.own.end_s, time[-1])
    if total.bytes > count[-1] and last > time[-1]:
        return np.append(time, last), np.append(count, total.bytes)
    scale = total.bytes / count[-1] if count[-1] > 0 else 1.0
    return np.append(time[:-1], last), count * scale


def _estimate(stream: Stream, total: Sum, steady: bool) -> tuple[Any, Any]:
    """An estimate of the other end's counts: its sum, spread over its time like this end's bytes over this
    end's time. If it received less than was sent (`steady`), bytes were in flight throughout, and arrived
    evenly while nothing was sent.
    """
    time, count = stream.time_s, stream.bytes
    if total.bytes is None or count[-1] <= 0:
        return time, count
    if steady and stream.sends and total.bytes < count[-1]:
        grows = np.concatenate([[True], np.diff(count) > 0])
        time, count = time[grows], count[grows]
        time = np.concatenate([time[:-1], stream.time_s[-1:]])
    last = total.end_s or time[-1]
    return time * (last / time[-1]), count * (total.bytes / count[-1])


def _states(number: int, stream: Stream, document: Document) -> Columns:
    sizes = (document.start.tcp_mss, document.start.tcp_mss_default)
    mss = next((size for size in sizes if 0 < size < 1 << 16), 1448)
    return states_of(
        number,
        np.round(stream.time_s[1:] * 1e9).astype(np.int64),
        cwnd_bytes=stream.cwnd_bytes,
        srtt_ns=stream.rtt_us * 1000.0,
        delivered_bytes=stream.bytes[1:],
        retransmitted_bytes=np.cumsum(stream.retransmits) * mss,
    )


def _remarks(documents: list[Document], names: dict[bool, str]) -> list[dict[str, str]]:
    """Oddities of the documents of a test."""
    remarks = []
    for document in documents:
        if document.error:
            remarks.append(note("iperf3", f"iperf3 ended with: {document.error}.", "degraded"))
        elif not document.complete:
            text = (
                f"{document.file.name} ends before iperf3's own sums: it was stopped, or the file is cut off."
            )
            remarks.append(note("incomplete", text, "degraded"))
    if len(set(names.values())) == 2:
        text = (
            f"Forward (from the client) the data were sent with {names[False]}, backward with {names[True]}."
        )
        remarks.append(note("directions", text))
    return remarks


def _doubts(flow: _Flow) -> list[dict[str, str]]:
    """Oddities of the sums of a stream."""
    doubts = []
    for stream in (flow.sender, flow.receiver):
        if stream is None or not stream.own.bytes:
            continue
        counted, last = float(stream.bytes[-1]), float(stream.time_s[-1])
        # The sum may include data after the last interval.
        rest = max((stream.own.end_s or last) - last, 0.0) / last if last > 0 else 0.0
        if abs(counted - stream.own.bytes) > (_UNEQUAL + 2 * rest) * max(counted, stream.own.bytes):
            text = (
                f"The intervals of stream {stream.socket} have {counted:.0f} bytes, iperf3's own sum"
                f" {stream.own.bytes:.0f}: intervals are missing. Numbers are by the sum."
            )
            doubts.append(note("sums", text, "degraded"))
    if flow.receiver is None and _sums(flow)[1].bytes is None:
        text = "The receiver's sums are not known, so throughput is what was handed to the sender's sockets."
        doubts.append(note("sent", text))
    return doubts


def _facts(documents: list[Document], kind: str) -> Facts:
    start = documents[0].start
    facts: Facts = {
        "version": start.version,
        "protocol": kind,
        "host": start.connecting_to.host,
        "documents": ["client" if is_client(document) else "server" for document in documents],
        "cookie": start.cookie,
    }
    return {name: value for name, value in facts.items() if value}


def _integers(counters: dict[str, float | None]) -> dict[str, int]:
    return {name: round(value) for name, value in counters.items() if value is not None}


def _moment(start: Start) -> str | None:
    try:
        seconds = float(start.timestamp.timesecs or "")
        return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}Z"
    except (ValueError, OverflowError, OSError):
        return None
