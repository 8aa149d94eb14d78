"""Logs of repeated `ss -tin`: what the kernel tells about its TCP connections.

```sh
while sleep 0.1; do date +%s.%N; ss -tin dst 192.0.2.7; done > ss.log
```

A snapshot begins with a line that is a time: seconds since 1970 (`date +%s.%N`) or a date (`date -Ins`).
Every pair of addresses is a flow; connections that sent nothing are left out."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from narrows.errors import DataError
from narrows.files import read_whole
from narrows.formats.runs import Flow, MeasuredRun, Progress, joined, states_of

PATTERNS = ("*.ss", "ss*.log", "*ss.log", "ss*.txt")
_SECONDS = re.compile(r"[0-9]{9,11}(\.[0-9]+)?")
_STATES = r"ESTAB|SYN-\S+|FIN-\S+|CLOSE-\S+|LAST-ACK|CLOSING"
_CONNECTION = re.compile(rf"(?:tcp\s+)?(?:{_STATES})\s+\d+\s+\d+\s+(\S+)\s+(\S+)")
_PAIR = re.compile(r"([a-z_]+):(\S+)")
#: Values that stand behind their name and a space.
_SPACED = re.compile(r"\b(send|pacing_rate|delivery_rate) ([0-9.]+)([KMGT]?)bps")
_SCALE = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_NOT_SCHEMES = {"ts", "sack", "ecn", "ecnseen", "fastopen", "app_limited", "tcp-ulp-tls"}
_COLUMNS = (
    "cwnd", "mss", "ssthresh", "rtt", "minrtt", "bytes_sent", "bytes_acked", "bytes_retrans", "unacked",
    "pacing_rate", "delivery_rate",
)  # fmt: skip


@dataclass
class _Connection:
    scheme: str = ""
    times: list[float] = field(default_factory=list)
    rows: list[dict[str, float]] = field(default_factory=list)


def read(files: list[Path], scheme: str | None = None) -> list[MeasuredRun]:
    """One run per log; raises `DataError` where a file is no such log or has no times."""
    return [_run(file, scheme) for file in files]


def _run(file: Path, scheme: str | None) -> MeasuredRun:
    try:
        text = read_whole(file, "log of ss").decode("utf-8", "replace")
    except DataError as error:
        raise DataError(f"{file}: {error}") from None
    connections = {key: one for key, one in _connections(file, text).items() if _sends(one)}
    if not connections:
        raise DataError(f"{file}: has no connection that sent something (bytes_acked in two snapshots)")
    zero = min(one.times[0] for one in connections.values())
    flows, progress, states = [], [], []
    steps = []
    for number, ((here, there), one) in enumerate(connections.items(), start=1):
        time_ns = np.round((np.array(one.times) - zero) * 1e9).astype(np.int64)
        columns = {
            name: np.array([row.get(name, np.nan) for row in one.rows], dtype=np.float64) for name in _COLUMNS
        }
        acked = np.nan_to_num(columns["bytes_acked"])
        sent = np.where(np.isfinite(columns["bytes_sent"]), columns["bytes_sent"], acked)
        # A connection that was there before has sent before; that is not part of the measurement.
        progress.append(Progress(number, time_ns, sent - sent[0], np.maximum.accumulate(acked - acked[0])))
        mss = columns["mss"]
        states.append(
            states_of(
                number,
                time_ns,
                cwnd_bytes=columns["cwnd"] * mss,
                ssthresh_bytes=columns["ssthresh"] * mss,
                pacing_bps=columns["pacing_rate"],
                srtt_ns=columns["rtt"] * 1e6,
                min_rtt_ns=columns["minrtt"] * 1e6,
                inflight_bytes=columns["unacked"] * mss,
                delivered_bytes=acked - acked[0],
                delivery_rate_bps=columns["delivery_rate"],
                retransmitted_bytes=_since_start(columns["bytes_retrans"]),
            )
        )
        steps.append(float(np.median(np.diff(time_ns))))
        again = _since_start(columns["bytes_retrans"])
        sender = {"sent_bytes": int(sent[-1] - sent[0])}
        if np.isfinite(again[-1]):
            sender["retransmitted_bytes"] = int(again[-1])
        name = scheme or one.scheme or "tcp"
        flows.append(Flow(number, name, sender=sender, facts={"local": here, "peer": there}))
    names = list(dict.fromkeys(flow.scheme for flow in flows))
    started = datetime.fromtimestamp(zero, UTC)
    return MeasuredRun(
        "+".join(names),
        [file],
        flows,
        progress=progress,
        states=joined(states),
        bin_ns=max(1_000_000, round(max(100e6, 2 * min(steps)))),
        started_at=f"{started:%Y-%m-%dT%H:%M:%S}.{started.microsecond // 1000:03d}Z",
    )


def _since_start(values: Any) -> Any:
    # The kernel leaves a counter out as long as it is zero.
    known = np.nan_to_num(values)
    return known - known[0]


def _sends(one: _Connection) -> bool:
    acked = [row["bytes_acked"] for row in one.rows if "bytes_acked" in row]
    return len(one.times) > 1 and len(acked) > 1 and acked[-1] > acked[0]


def _connections(file: Path, text: str) -> dict[tuple[str, str], _Connection]:
    now: float | None = None
    current: _Connection | None = None
    found: dict[tuple[str, str], _Connection] = {}
    known = False
    for number, raw in enumerate(text.splitlines(), start=1):
        line = raw.strip()
        moment = _time_of(line)
        if moment is not None:
            if now is not None and moment < now:
                raise DataError(f"{file}:{number}: the time is earlier than one above it")
            now, current = moment, None
            continue
        if match := _CONNECTION.match(line):
            known = True
            if now is None:
                raise DataError(
                    f"{file}:{number}: no time stands before this snapshot; log one before each, as in:"
                    " while sleep 0.1; do date +%s.%N; ss -tin; done"
                )
            current = found.setdefault((match[1], match[2]), _Connection())
            line = line[match.end() :].strip()
        if current is not None and now is not None and ("cwnd:" in line or "rtt:" in line):
            current.times.append(now)
            current.rows.append(_values(line))
            current.scheme = current.scheme or _scheme(line)
            current = None
    if not known:
        raise DataError(f"{file}: is no log of ss -tin: no line is a connection (ESTAB 0 0 ADDRESS ADDRESS)")
    return found


def _time_of(line: str) -> float | None:
    if _SECONDS.fullmatch(line):
        return float(line)
    if len(line) < 19 or not line[:4].isdigit() or line[4] != "-":
        return None
    try:
        moment = datetime.fromisoformat(re.sub(r"[,.](\d{6})\d*", r".\1", line))
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _scheme(line: str) -> str:
    for word in line.split():
        if ":" in word:
            break
        if word not in _NOT_SCHEMES:
            return word
    return ""


def _values(line: str) -> dict[str, float]:
    values: dict[str, float] = {}
    for name, text in _PAIR.findall(line):
        number = text.partition("/")[0].rstrip(",")
        try:
            values[name] = float(number)
        except ValueError:
            continue
    for name, number, prefix in _SPACED.findall(line):
        values[name] = float(number) * _SCALE[prefix]
    return values
