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

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from narrows.errors import DataError
from narrows.files import read_decompressed
from narrows.formats.runs import Unread
from narrows.text import printable, shorten

Json = dict[str, Any]

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


@dataclass
class Document:
    """The output of one end of a test."""

    file: Path
    start: Json
    intervals: list[Json]
    end: Json
    error: str = ""
    #: False if iperf3 stopped before it wrote its sums.
    complete: bool = True
    unread: list[Unread] = field(default_factory=list)

    @property
    def cookie(self) -> str:
        """The identifier of the test that both ends know; empty if the document omits it."""
        cookie = self.start.get("cookie")
        return cookie if isinstance(cookie, str) else ""


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
        self.values: list[Json] = []
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

    def _keep(self, value: Json) -> None:
        if value.get("event") in _EVENTS and "data" in value:
            self.stream.add(str(value["event"]), value["data"])
        elif "intervals" in value or {"start", "end"} <= value.keys():
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


def _objects(text: str, note: Callable[[str], None]) -> Iterator[tuple[int, Json, int]]:
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
        yield begin, value, end
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


class _Stream:
    """Turns events of `--json-stream` into documents; an event `start` begins one."""

    def __init__(self) -> None:
        self._parts: list[dict[str, Any]] = []

    def add(self, event: str, data: Any) -> None:
        if event == "start" or not self._parts or "end" in self._parts[-1]:
            self._parts.append({"intervals": []})
        if event == "interval":
            self._parts[-1]["intervals"].append(data)
        else:
            self._parts[-1][event] = data

    def documents(self, file: Path) -> list[Document]:
        result: list[Document] = []
        for part in self._parts:
            result += _documents(file, part, complete="end" in part)
        return result


def _documents(file: Path, value: Json, *, complete: bool = True) -> list[Document]:
    """The document in a JSON object, and the server's if it is a member."""
    intervals = value.get("intervals") or []
    start, end = value.get("start") or {}, value.get("end") or {}
    if not isinstance(intervals, list) or not isinstance(start, dict) or not isinstance(end, dict):
        raise DataError(
            "is not a document of iperf3, in which 'start' and 'end' are objects and 'intervals' a list"
        )
    error = printable(shorten(str(value["error"]), 100)) if value.get("error") else ""
    document = Document(file, start, intervals, end, error, complete and bool(end))
    server = value.get("server_output_json")
    documents = [document]
    if isinstance(server, dict) and server.get("intervals"):
        documents += _documents(file, server)
    elif value.get("server_output_text"):
        document.unread.append(Unread(OUTPUTS, 1))
    return documents
