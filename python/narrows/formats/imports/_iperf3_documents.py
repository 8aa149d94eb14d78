"""The iperf3 documents in a file, whatever surrounds them.

```text
iperf3 -J            one JSON object, at the end of the test
iperf3 --json-stream (3.17) a line {"event": "start" | "interval" | "end" | "error" | ..., "data": ...} each,
                     which becomes one document here
```

Documents may follow each other in one file, with lines of text (what iperf3 wrote to standard error) before,
between and after them. With `--get-server-output` the server's document is a member of the client's.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from msgspec import UNSET, field

from narrows.documents.other_programs import Foreign, read_foreign
from narrows.errors import DataError
from narrows.files import read_decompressed
from narrows.formats.runs import Unread
from narrows.text import printable, shorten

TEXT = "lines of text around the documents"
CUT = "documents that are cut off or damaged"
OTHERS = "JSON documents that are not of iperf3"
OUTPUTS = "texts of the server's output"
#: Numbers in iperf3's notation that JSON lacks: in a test of zero duration, for example.
_NOT_NUMBERS = re.compile(r"(?<=[:\[,])(\s*)[-+]?(?:nan|inf(?:inity)?)\b", re.IGNORECASE)
#: A heading in iperf3's output for people.
_PLAIN = re.compile(r"^\[ ID\] +(\[Role\] +)?Interval ", re.MULTILINE)
_NOT_WHOLE = "is not a complete JSON document; iperf3 -J writes it when it ends"
#: Positions at which a document may begin: a brace at the start of a line.
_BEGIN = re.compile(r"^\{", re.MULTILINE)
#: The number of further positions to try after one that is not a document.
_MOST_TRIES = 1000
_EVENTS = {"start", "interval", "end", "error", "server_output_json", "server_output_text"}


class Connected(Foreign, frozen=True):
    """A connection of the test."""

    socket: int | None = None
    local_port: int = 0
    remote_port: int = 0


class TestStart(Foreign, frozen=True):
    """The parameters of the test."""

    protocol: str = ""
    reverse: bool | int = False


class ConnectingTo(Foreign, frozen=True):
    """The server of the test."""

    host: str | None = None


class Timestamp(Foreign, frozen=True):
    """The start of the test, in seconds since 1970."""

    timesecs: float | str | None = None


class Start(Foreign, frozen=True):
    """The facts of an end before the test."""

    #: The identifier of the test that both ends know.
    cookie: str = ""
    version: str | None = None
    timestamp: Timestamp = Timestamp()
    connected: list[Connected] = field(default_factory=list)
    connecting_to: ConnectingTo = ConnectingTo()
    #: Only in documents of the server.
    accepted_connection: object = UNSET
    test_start: TestStart = TestStart()
    tcp_mss: int = 0
    tcp_mss_default: int = 0


class Counts(Foreign, frozen=True):
    """The counts of a stream: of an interval, or of the whole test."""

    socket: int | None = None
    #: True if the end that wrote the document sent the data.
    sender: bool | None = None
    #: In seconds since the start of the test.
    start: float | None = None
    end: float | None = None
    bytes: float | None = None
    retransmits: float | None = None
    #: In bytes.
    snd_cwnd: float | None = None
    #: In microseconds.
    rtt: float | None = None
    omitted: bool = False
    packets: float | None = None
    #: Negative if datagrams were duplicated.
    lost_packets: float | None = None
    out_of_order: float | None = None
    jitter_ms: float | None = None


class Interval(Foreign, frozen=True):
    """The counts of all streams in an interval."""

    streams: list[Counts] = field(default_factory=list)


class StreamSums(Foreign, frozen=True):
    """The sums of a stream: of TCP by end, of UDP of both."""

    sender: Counts | None = None
    receiver: Counts | None = None
    udp: Counts | None = None


class End(Foreign, frozen=True):
    """The sums of the test."""

    streams: list[StreamSums] = field(default_factory=list)
    sum_received: Counts = Counts()
    sum_received_bidir_reverse: Counts | None = None
    sum_sent_bidir_reverse: Counts | None = None
    sum_bidir_reverse: Counts | None = None
    sender_tcp_congestion: str = ""
    receiver_tcp_congestion: str = ""


class Output(Foreign, frozen=True):
    """An object that iperf3 wrote: a document, or an event of `--json-stream`."""

    event: str = ""
    data: object = UNSET
    start: object = UNSET
    intervals: object = UNSET
    end: object = UNSET
    error: object = None
    server_output_json: object = None
    server_output_text: object = None


@dataclass
class Document:
    """The output of one end of a test."""

    file: Path
    start: Start
    intervals: list[Interval]
    end: End
    error: str = ""
    #: False if iperf3 stopped before it wrote its sums.
    complete: bool = True
    unread: list[Unread] = dataclasses.field(default_factory=list)


def read_documents(file: Path) -> list[Document]:
    """The documents in a file, in order; raises `DataError` if it has no readable one."""
    try:
        text = read_decompressed(file, "document of iperf3").decode("utf-8-sig", "replace")
        content = _Content(text)
        documents = [document for value in content.values for document in _documents(file, value)]
        documents += content.stream.documents(file)
    except DataError as error:
        raise DataError(f"{file}: {error}") from None
    if not documents:
        raise DataError(f"{file}: {content.problem()}")
    counts = {TEXT: content.lines, CUT: content.cut, OTHERS: content.others}
    documents[-1].unread += [Unread(kind, count) for kind, count in counts.items() if count]
    return documents


class _Content:
    """The JSON values of a text, those of `--json-stream` separately, and counts of everything else."""

    def __init__(self, text: str) -> None:
        self.values: list[Output] = []
        self.stream = _Stream()
        self.lines = self.cut = self.others = 0
        self._why = ""
        plain = _NOT_NUMBERS.sub(r"\1null", text)
        place = 0
        for begin, value, end in _objects(plain, self._note):
            self._count_lines(plain[place:begin])
            place = end
            self._keep(value)
        self._count_lines(plain[place:])
        if not plain.strip():
            self._note(_NOT_WHOLE)
        elif _PLAIN.search(plain):
            self._note("is what iperf3 prints without -J; run it with -J, and keep its output")

    def _keep(self, value: Output) -> None:
        if value.event in _EVENTS and value.data is not UNSET:
            self.stream.add(value.event, value.data)
        elif value.intervals is not UNSET or (value.start is not UNSET and value.end is not UNSET):
            self.values.append(value)
        else:
            self.others += 1

    def _note(self, why: str) -> None:
        self._why = self._why or why
        self.cut += 1

    def _count_lines(self, text: str) -> None:
        self.lines += sum(1 for line in text.splitlines() if line.strip())

    def problem(self) -> str:
        """Why there is no document."""
        if self._why:
            return self._why
        return "is not a document of iperf3, which has 'start', 'intervals' and 'end'"


def _objects(text: str, note: Callable[[str], None]) -> Iterator[tuple[int, Output, int]]:
    """The JSON objects of a text with their positions; `note` receives a sentence about each that begins like
    an object and cannot be read.
    """
    decoder = json.JSONDecoder()
    place = tries = 0
    while tries <= _MOST_TRIES:
        begin = _next_object(text, place)
        if begin is None:
            return
        try:
            value, end = decoder.raw_decode(text, begin)
        except (ValueError, RecursionError) as error:
            note(_why_unreadable(error, text))
            tries += 1
            place = begin + 1
            continue
        yield begin, read_foreign(value, Output), end
        place = end


def _next_object(text: str, place: int) -> int | None:
    """The next possible start of an object: here after white space, or at the start of a line."""
    here = place + len(text[place : place + 4096]) - len(text[place : place + 4096].lstrip())
    if text[here : here + 1] == "{":
        return here
    match = _BEGIN.search(text, place)
    return match.start() if match else None


def _why_unreadable(error: Exception, text: str) -> str:
    if not isinstance(error, json.JSONDecodeError):
        return (
            "is not a document of iperf3: its JSON is nested too deep, or has a number of thousands of digits"
        )
    if error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated string"):
        return _NOT_WHOLE
    return f"line {error.lineno}, column {error.colno} is not JSON ({error.msg})"


@dataclass
class _Part:
    """The events of a test; those of intervals are a list."""

    intervals: list[object] = dataclasses.field(default_factory=list)
    members: dict[str, object] = dataclasses.field(default_factory=dict)


class _Stream:
    """Turns events of `--json-stream` into documents; an event `start` begins one."""

    def __init__(self) -> None:
        self._parts: list[_Part] = []

    def add(self, event: str, data: object) -> None:
        if event == "start" or not self._parts or "end" in self._parts[-1].members:
            self._parts.append(_Part())
        if event == "interval":
            self._parts[-1].intervals.append(data)
        else:
            self._parts[-1].members[event] = data

    def documents(self, file: Path) -> list[Document]:
        result: list[Document] = []
        for part in self._parts:
            value = read_foreign({**part.members, "intervals": part.intervals}, Output)
            result += _documents(file, value, complete=value.end is not UNSET)
        return result


def _documents(file: Path, value: Output, *, complete: bool = True) -> list[Document]:
    """The document in a JSON object, and the server's if it is a member."""
    intervals, start, end = value.intervals or [], value.start or {}, value.end or {}
    if not isinstance(intervals, list) or not isinstance(start, dict) or not isinstance(end, dict):
        raise DataError(
            "is not a document of iperf3, in which 'start' and 'end' are objects and 'intervals' a list"
        )
    document = Document(
        file,
        read_foreign(start, Start),
        [_interval(interval) for interval in intervals],
        read_foreign(end, End),
        printable(shorten(str(value.error), 100)) if value.error else "",
        complete and bool(end),
    )
    server = read_foreign(value.server_output_json, Output)
    documents = [document]
    if server.intervals:
        documents += _documents(file, server)
    elif value.server_output_text:
        document.unread.append(Unread(OUTPUTS, 1))
    return documents


def _interval(value: object) -> Interval:
    """An interval; a value that is not an object counts as a row without numbers."""
    return read_foreign(value, Interval) if isinstance(value, dict) else Interval(streams=[Counts()])
