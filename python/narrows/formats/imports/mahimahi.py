"""Logs of mahimahi's links: `mm-link up.trace down.trace --uplink-log=up.log --downlink-log=down.log`.

One log is one direction of the data; another log of the same name with `up` for `down` (or the other way
round) is its return path. The direction that carried more bytes has the data. The delay of a packet in a log
is that in the link, which is queueing; the delay of `mm-delay` is not included, but stated in the header, and
is added here. Times are whole milliseconds. All packets are one flow, unless a fork of mahimahi logged their
ports.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from narrows.errors import DataError
from narrows.files import read_decompressed
from narrows.formats.runs import (
    MOST_FLOWS,
    NEVER,
    Columns,
    Flow,
    MeasuredRun,
    Times,
    Unread,
    note,
    scheme_of,
)

PATTERNS = ("*.log",)
STRANGERS = "departures of packets that never came"
CUT = "lines that are cut off at the end"
#: The direction in a file's name, as a whole word: not in backup.log.
_WAY = re.compile(
    r"(?<![A-Za-z])(?P<word>(?i:up|down))(?i:link)?(?![A-Za-z])|(?<=[a-z])(?P<camel>Up|Down)(?:[Ll]ink)?(?![a-z])"
)
#: The commands around mm-link in the header, and its own command, which may contain others.
_OUTER_DELAY = re.compile(r"\[delay (\d{1,9}) ms\]")
_INNER_DELAY = re.compile(r"mm-delay'?\s+'?(\d{1,9})\b")
_MS = 1_000_000
_HOUR_MS = 3_600_000
_ROUNDED = "The logs have whole milliseconds: delays may be off by one, and packets leave in groups."


@dataclass
class _Link:
    """One log: its packets and opportunities, the header, and its unread parts."""

    file: Path
    #: The start of the link by its clock; times are since then.
    base_ns: int
    #: The ports of each flow; none if they were not logged.
    ports: list[tuple[int, int]]
    #: Per packet.
    flow: NDArray[np.uint16]
    sent_ns: Times
    arrived_ns: Times
    size_bytes: NDArray[np.uint32]
    opportunity_ns: Times
    opportunity_bytes: NDArray[np.uint32]
    #: The delays of the commands around the link and in it, in ms.
    delays: list[int]
    unread: list[Unread] = field(default_factory=list)

    @property
    def bytes(self) -> int:
        return int(self.size_bytes.sum(dtype=np.int64))

    @property
    def propagation_ns(self) -> int:
        return sum(self.delays) * _MS

    @property
    def columns(self) -> Columns:
        return {
            "flow": self.flow,
            "sent_ns": self.sent_ns,
            "arrived_ns": self.arrived_ns,
            "size_bytes": self.size_bytes,
            "opportunity_ns": self.opportunity_ns,
            "opportunity_bytes": self.opportunity_bytes,
        }

    def align(self, base_ns: int, numbers: dict[tuple[int, int], int]) -> None:
        """Moves times to another base, adds propagation, and assigns flows their numbers."""
        moved = self.base_ns - base_ns
        never = self.arrived_ns == NEVER
        self.arrived_ns = np.where(never, NEVER, self.arrived_ns + moved + self.propagation_ns)
        self.sent_ns = self.sent_ns + moved
        # The link's opportunities shifted to the receiver, so that they and arrivals cover the same time.
        self.opportunity_ns = self.opportunity_ns + moved + self.propagation_ns
        if self.ports:
            self.flow = np.array([0, *(numbers[pair] for pair in self.ports)], dtype=np.uint16)[self.flow]


def read(files: list[Path], scheme: str | None = None) -> list[MeasuredRun]:
    """One run per pair of logs, or per log; raises `DataError` if a file is not a log of mm-link."""
    pairs: dict[tuple[Path, str], dict[str, Path]] = {}
    for file in files:
        way, rest = _way_of(file)
        taken = pairs.setdefault((file.parent, rest), {})
        if way in taken:
            taken = pairs.setdefault((file.parent, file.name), {})
        taken[way] = file
    return [_run(list(pair.values()), scheme, rest) for (_, rest), pair in pairs.items()]


def _way_of(file: Path) -> tuple[str, str]:
    """The direction in the name of a file, `up` by default, and the name without it."""
    match = _WAY.search(file.name)
    if match is None:
        return "up", file.name
    way = (match["word"] or match["camel"]).lower()
    before, after = file.name[: match.start()], file.name[match.end() :]
    # One separator remains where the word stood between two: cubic_up_1 and cubic_1.
    if before[-1:] in {"-", "_", " "} and after[:1] in {"-", "_", " "}:
        after = after[1:]
    return way, before + after


def _run(files: list[Path], scheme: str | None, rest: str) -> MeasuredRun:
    links = [_read(file) for file in files]
    links.sort(key=lambda link: -link.bytes)
    data = links[0]
    back = links[1] if len(links) > 1 else None
    known = dict.fromkeys(pair for link in links for pair in link.ports)
    ports = {pair: number for number, pair in enumerate(known, start=1)}
    if len(ports) > MOST_FLOWS:
        raise DataError(f"{data.file}: has {len(ports)} flows; {MOST_FLOWS} are read at most")
    base_ns = data.base_ns
    for link in links:
        link.align(base_ns, ports)
    stem = rest.partition(".")[0].strip("-_. ")
    name = scheme or (scheme_of(Path(stem)) if stem else data.file.name.partition(".")[0])
    reasons = [note("milliseconds", _ROUNDED)]
    delays = data.delays or (back.delays if back else [])
    if delays:
        text = f"Delays of the log are those of the link; mm-delay {_list_logs(delays)} ms is added to them."
    else:
        text = "The header of the log names no mm-delay: one-way delays are those of the link alone."
    reasons.append(note("link_delay", text))
    flows = _flows(name, ports, data, back)
    return MeasuredRun(
        name,
        [link.file for link in links],
        flows,
        data=data.columns,
        back=back.columns if back else None,
        reasons=reasons,
        unread=[part for link in links for part in link.unread],
        facts={"data": data.file.name},
        propagation_ns={
            "forward": data.propagation_ns,
            "backward": (back or data).propagation_ns,
        },
    )


def _list_logs(delays: list[int]) -> str:
    return " + ".join(map(str, delays))


def _flows(name: str, ports: dict[tuple[int, int], int], data: _Link, back: _Link | None) -> list[Flow]:
    """The flows by their ports; the data of each is the direction with more bytes."""
    if not ports:
        return [Flow(1, name)]
    count = len(ports) + 1
    sizes = [
        np.bincount(link.flow, weights=link.size_bytes, minlength=count)
        for link in (data, back)
        if link is not None
    ]
    flows = []
    for pair, number in ports.items():
        backward = len(sizes) > 1 and sizes[1][number] > sizes[0][number]
        direction = "backward" if backward else "forward"
        flows.append(Flow(number, name, direction=direction, facts={"ports": list(pair)}))
    return flows


def _read(file: Path) -> _Link:
    from narrows import _native

    try:
        content = read_decompressed(file, "log of mm-link")
    except DataError as error:
        raise DataError(f"{file}: {error}") from None
    try:
        columns = _native.read_mahimahi(file, content)
    except ValueError as error:
        raise DataError(str(error)) from None
    head = "\n".join(_header(content))
    delays = [int(delay) for form in (_OUTER_DELAY, _INNER_DELAY) for delay in form.findall(head)]
    if sum(delays) > _HOUR_MS:
        raise DataError(f"{file}: its header names mm-delay of {_list_logs(delays)} ms; an hour is allowed")
    unread = [Unread(STRANGERS, columns.pop("strangers")), Unread(CUT, columns.pop("cut"))]
    return _Link(file, **columns, delays=delays, unread=unread)


def _header(content: bytes) -> list[str]:
    """The comments before the first event."""
    lines = []
    for line in content[:100_000].splitlines():
        if line.strip() and not line.startswith(b"#"):
            break
        lines.append(line.decode("utf-8", "replace"))
    return lines
