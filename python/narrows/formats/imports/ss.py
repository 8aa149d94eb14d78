"""Logs of repeated `ss -tin`: the kernel's information about its TCP connections.

```sh
while sleep 0.1; do date +%s.%N; ss -tin dst 192.0.2.7; done > ss.log
while sleep 0.1; do ss -tinHO state established; done | ts '%.s' > ss.log
```

Either each snapshot begins with a line that has a time, or every line begins with one (`_ss_times` lists the
forms). Every connection is a flow; if its counters restart, another flow begins. Connections that sent
nothing are omitted.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from narrows.errors import DataError
from narrows.files import read_decompressed
from narrows.formats.imports._ss_times import past_midnight, split_time, spread
from narrows.formats.runs import (
    MOST_FLOWS,
    Columns,
    Facts,
    Floats,
    Flow,
    MeasuredRun,
    Progress,
    Times,
    Unread,
    carry_forward,
    join_columns,
    note,
    states_of,
)

PATTERNS = ("*.ss", "ss*.log", "*ss.log", "ss*.txt")
IDLE = "connections that sent nothing, or were seen once"
TEXT = "lines that ss does not write"
ODD = "numbers out of range"
_STATE = r"ESTAB|SYN-\S+|FIN-\S+|CLOSE-\S+|LAST-ACK|CLOSING|TIME-WAIT|UNCONN|LISTEN"
_ADDRESS = r"(?:\S+):(?:\d{1,5}|\*|[A-Za-z][\w.+-]*)"
#: With a filter for one state ss prints no column of states.
_CONNECTION = re.compile(
    rf"(?:tcp\s+)?(?:(?P<state>{_STATE})\s+)?\d{{1,12}}\s+\d{{1,12}}\s+(?P<here>{_ADDRESS})\s+(?P<there>{_ADDRESS})(?=\s|$)"
)
_HEADER = re.compile(r"(?:Netid\s+)?(?:State\s+)?Recv-Q\s+Send-Q\s")
_INFO = re.compile(r"(?:^|\s)(?:rto|rtt|cwnd):")
_MAPPED = re.compile(r"\[::ffff:([0-9.]+)\]", re.IGNORECASE)
_PAIR = re.compile(r"([a-z_]+):(\S+)")
#: Values that follow their name and a space.
_SPACED = re.compile(r"\b(send|pacing_rate|delivery_rate) ([0-9.]+)([KMGT]?)bps")
_SCALE = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
#: Words of `ss -i` before the congestion control, which itself precedes the first of these names
#: (tcp_stats_print in ss.c of iproute2). Kernels have names of less than 16 characters.
_FLAGS = {"ts", "sack", "ecn", "ecnseen", "accecn", "fastopen"}
_BEHIND_SCHEME = re.compile(r"(?:^|\s)(?:wscale|rto):")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,14}")
#: The kernel reports 2^64 - 1 bytes/s without a pacing rate; nothing sends a petabit per second.
_MOST_BPS = 1e15
_MOST = 2.0**62
_LONGEST_S = 366 * 86_400.0
#: A pause is reported if it is longer than a second and this many usual steps.
_PAUSE_STEPS = 5


@dataclass
class _Row:
    """The numbers that `ss` prints about a connection, under its names; NaN if it omits one."""

    cwnd: float = np.nan
    mss: float = np.nan
    ssthresh: float = np.nan
    rtt: float = np.nan
    minrtt: float = np.nan
    bytes_sent: float = np.nan
    bytes_acked: float = np.nan
    bytes_retrans: float = np.nan
    unacked: float = np.nan
    sacked: float = np.nan
    lost: float = np.nan
    retrans: float = np.nan
    pacing_rate: float = np.nan
    delivery_rate: float = np.nan

    @property
    def in_flight(self) -> float:
        """The kernel's tcp_packets_in_flight; `ss` omits zeros."""
        left = sum(count for count in (self.sacked, self.lost) if count >= 0)
        return sum(count for count in (self.unacked, self.retrans) if count >= 0) - left


_NAMES = {each.name for each in fields(_Row)}


@dataclass
class _Connection:
    scheme: str = ""
    times: list[float] = field(default_factory=list)
    rows: list[_Row] = field(default_factory=list)

    def goes_back(self, row: _Row) -> bool:
        """True if the counters of a row belong to another connection with the same ports."""
        before = self.rows[-1] if self.rows else _Row()
        return row.bytes_acked < before.bytes_acked or row.bytes_sent < before.bytes_sent

    def column(self, value: Callable[[_Row], float]) -> Floats:
        """A number of all snapshots."""
        return np.array([value(row) for row in self.rows])

    def sends(self) -> bool:
        """True if any data was acknowledged between two snapshots."""
        acked = [row.bytes_acked for row in self.rows if np.isfinite(row.bytes_acked)]
        return len(self.times) > 1 and len(acked) > 1 and acked[-1] > acked[0]


@dataclass
class _Log:
    connections: list[tuple[tuple[str, str], _Connection]] = field(default_factory=list)
    #: The time of each snapshot; False if they are not since 1970.
    times: list[float] = field(default_factory=list)
    absolute: bool = True
    text: int = 0
    odd: int = 0


def read(files: list[Path], scheme: str | None = None) -> list[MeasuredRun]:
    """One run per log; raises `DataError` if a file is not such a log or has no times."""
    return [_run(file, scheme) for file in files]


def _run(file: Path, scheme: str | None) -> MeasuredRun:
    try:
        text = read_decompressed(file, "log of ss").decode("utf-8-sig", "replace")
    except DataError as error:
        raise DataError(f"{file}: {error}") from None
    log = _read_log(file, text)
    reasons = _even_out(log)
    senders = [(ends, connection) for ends, connection in log.connections if connection.sends()]
    if not senders:
        raise DataError(f"{file}: has no connection that sent something (bytes_acked in two snapshots)")
    if len(senders) > MOST_FLOWS:
        raise DataError(f"{file}: has {len(senders)} connections that sent; {MOST_FLOWS} are read at most")
    zero = min(connection.times[0] for _, connection in senders)
    if max(connection.times[-1] for _, connection in senders) - zero > _LONGEST_S:
        raise DataError(f"{file}: its times are more than a year apart, so it is not the log of one run")
    flows, progress, states, steps = [], [], [], []
    for number, ((here, there), connection) in enumerate(senders, start=1):
        time_ns = np.round((np.array(connection.times) - zero) * 1e9).astype(np.int64)
        acked = np.nan_to_num(carry_forward(connection.column(lambda row: row.bytes_acked)))
        sent = connection.column(lambda row: row.bytes_sent)
        sent = np.where(np.isfinite(sent), sent, acked)
        sent = np.maximum.accumulate(sent)
        # A connection that existed before has sent data before; that is not part of the measurement.
        progress.append(Progress(number, time_ns, sent - sent[0], np.maximum.accumulate(acked - acked[0])))
        again = _since_start(connection.column(lambda row: row.bytes_retrans))
        states.append(_states(number, time_ns, connection, acked, again))
        steps.append(float(np.median(np.diff(time_ns))))
        sender = {"sent_bytes": int(sent[-1] - sent[0])}
        if np.isfinite(again[-1]):
            sender["retransmitted_bytes"] = int(again[-1])
        name = scheme or connection.scheme or "tcp"
        flows.append(Flow(number, name, sender=sender, facts=_facts(here, there, connection)))
    names = list(dict.fromkeys(flow.scheme for flow in flows))
    return MeasuredRun(
        "+".join(names),
        [file],
        flows,
        progress=progress,
        states=join_columns(states),
        bin_ns=max(1_000_000, round(max(100e6, 2 * min(steps)))),
        started_at=_moment(zero) if log.absolute else None,
        reasons=reasons,
        unread=[
            Unread(IDLE, len(log.connections) - len(senders)),
            Unread(TEXT, log.text),
            Unread(ODD, log.odd, matters=True),
        ],
    )


def _states(number: int, time_ns: Times, connection: _Connection, acked: Floats, again: Floats) -> Columns:
    column = connection.column
    mss = column(lambda row: row.mss)
    pacing = column(lambda row: row.pacing_rate)
    return states_of(
        number,
        time_ns,
        cwnd_bytes=column(lambda row: row.cwnd) * mss,
        ssthresh_bytes=column(lambda row: row.ssthresh) * mss,
        pacing_bps=np.where(pacing < _MOST_BPS, pacing, np.nan),
        srtt_ns=column(lambda row: row.rtt) * 1e6,
        min_rtt_ns=column(lambda row: row.minrtt) * 1e6,
        inflight_bytes=np.maximum(column(lambda row: row.in_flight), 0.0) * mss,
        delivered_bytes=acked - acked[0],
        delivery_rate_bps=column(lambda row: row.delivery_rate),
        retransmitted_bytes=again,
    )


def _facts(here: str, there: str, connection: _Connection) -> Facts:
    sizes = connection.column(lambda row: row.mss)
    known: Facts = {"mss": int(np.nanmedian(sizes))} if np.isfinite(sizes).any() else {}
    return {"local": here, "peer": there, **known}


def _moment(seconds: float) -> str | None:
    try:
        started = datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        return None
    return f"{started:%Y-%m-%dT%H:%M:%S}.{started.microsecond // 1000:03d}Z"


def _since_start(values: Floats) -> Floats:
    # The kernel omits a counter while it is zero.
    known = np.nan_to_num(carry_forward(values))
    return np.asarray(known - known[0])


def _even_out(log: _Log) -> list[dict[str, str]]:
    """Spreads times in whole seconds, and returns remarks about the times."""
    reasons = []
    distinct = sorted(set(log.times))
    whole = all(time == int(time) for time in distinct)
    if whole and len(distinct) < len(log.times):
        # Snapshots are in order, and so are a connection's samples: one in each.
        even = spread(log.times)
        for _, connection in log.connections:
            connection.times = [even[int(place)] for place in connection.times]
        text = "The log has times in whole seconds; snapshots within a second are spread evenly over it."
        reasons.append(note("seconds", text))
        log.times = even
    else:
        for _, item in log.connections:
            item.times = [log.times[int(place)] for place in item.times]
    steps = np.diff(np.unique([time for _, connection in log.connections for time in connection.times]))
    if len(steps):
        usual = float(np.median(steps))
        pauses = steps[(steps > _PAUSE_STEPS * usual) & (steps > 1.0)]
        if len(pauses):
            text = (
                f"No snapshot was taken for {float(pauses.max()):.1f} s"
                + (f", the longest of {len(pauses)} pauses" if len(pauses) > 1 else "")
                + f", where {usual:.2g} s is usual; what was sent meanwhile is spread evenly over it."
            )
            reasons.append(note("pause", text))
    return reasons


def _read_log(file: Path, text: str) -> _Log:
    """The connections of a log, each with the numbers of its snapshots in place of times."""
    log = _Log()
    newest: dict[tuple[str, str], _Connection] = {}
    seen: set[tuple[str, str]] = set()
    now: float | None = None
    ends: tuple[str, str] | None = None
    known = False
    for number, raw in enumerate(text.splitlines(), start=1):
        moment, absolute, line = split_time(raw.strip())
        if moment is not None:
            moment = moment if absolute or now is None else past_midnight(now, moment)
            if now is not None and moment < now:
                raise DataError(
                    f"{file}:{number}: the time is earlier than one above it: was the clock set back?"
                )
            if now != moment or not line:
                log.times.append(moment)
                seen = set()
            now, log.absolute = moment, log.absolute and absolute
        if not line or _HEADER.match(line):
            continue
        if match := _CONNECTION.match(line):
            known = True
            if now is None:
                raise DataError(
                    f"{file}:{number}: no time stands before this snapshot; log one before each, as in:"
                    " while sleep 0.1; do date +%s.%N; ss -tin; done"
                )
            ends = None
            if match["state"] not in {"LISTEN", "UNCONN"}:
                ends = (_plain(match["here"]), _plain(match["there"]))
                if moment is not None and ends in seen:
                    # If all lines begin with a time in whole seconds: the next snapshot within the same
                    # second.
                    log.times.append(moment)
                    seen = set()
                seen.add(ends)
            line = line[match.end() :].strip()
            if not line:
                continue
        if not _INFO.search(line):
            log.text += not known or ends is None
            continue
        if ends is None:
            continue
        row, odd = _values(line)
        log.odd += odd
        current = newest.get(ends)
        if current is None or current.goes_back(row):
            current = newest[ends] = _Connection()
            log.connections.append((ends, current))
        current.times.append(len(log.times) - 1)
        current.rows.append(row)
        current.scheme = current.scheme or _scheme(line)
        ends = None
    if not known:
        raise DataError(
            f"{file}: is not a log of ss -tin: no line is a connection (ESTAB 0 0 ADDRESS ADDRESS)"
        )
    return log


def _plain(address: str) -> str:
    """An address; an IPv4 address without its IPv6 prefix."""
    return _MAPPED.sub(r"\1", address)


def _scheme(line: str) -> str:
    """The congestion control, which is the last word before `wscale:` or `rto:`; empty if there is none."""
    match = _BEHIND_SCHEME.search(line)
    words = line[: match.start()].split() if match else []
    if not words or words[-1] in _FLAGS or not _NAME.fullmatch(words[-1]):
        return ""
    return words[-1]


def _values(line: str) -> tuple[_Row, int]:
    """The numbers of a line, and the number of values out of range."""
    values: dict[str, float] = {}
    odd = 0
    scaled = [(name, text.partition("/")[0].rstrip(","), 1.0) for name, text in _PAIR.findall(line)]
    scaled += [(name, text, _SCALE[prefix]) for name, text, prefix in _SPACED.findall(line)]
    for name, text, scale in scaled:
        if name not in _NAMES:
            continue
        try:
            value = float(text) * scale
        except ValueError:
            odd += 1
            continue
        if 0 <= value <= _MOST or (name == "pacing_rate" and value > 0):
            values[name] = value
        else:
            odd += 1
    return _Row(**values), odd
