"""JSON documents of iperf3 (`iperf3 -c HOST -J > FILE`).

Every stream is a flow. Of TCP there are bytes, window, round-trip time and retransmissions per interval, of
UDP bytes, jitter and losses. What an iperf3 that sends counts as transferred in an interval was handed to
the socket: over short intervals it may run ahead of what arrived by the socket's buffer."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from narrows.errors import DataError
from narrows.files import read_whole
from narrows.formats.runs import Flow, MeasuredRun, Progress, joined, note, scheme_of, states_of

PATTERNS = ("*.json",)
_S = 1_000_000_000


def read(files: list[Path], scheme: str | None = None) -> list[MeasuredRun]:
    """One run per document; raises `DataError` where a file is none of iperf3's."""
    return [_run(file, _document(file), scheme) for file in files]


def _document(file: Path) -> dict[str, Any]:
    try:
        content = json.loads(read_whole(file, "document of iperf3"))
    except DataError as error:
        raise DataError(f"{file}: {error}") from None
    except (ValueError, RecursionError):
        raise DataError(f"{file}: is no whole JSON document; iperf3 -J writes it when it ends") from None
    if not isinstance(content, dict) or not isinstance(content.get("intervals"), list):
        raise DataError(f"{file}: is no document of iperf3, which has 'start', 'intervals' and 'end'")
    if content.get("error") and not content["intervals"]:
        raise DataError(f"{file}: iperf3 failed: {str(content['error'])[:100]}")
    return content


def _run(file: Path, content: dict[str, Any], scheme: str | None) -> MeasuredRun:
    try:
        return _measured(file, content, scheme)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        what = (
            f"{error.args[0]!r} is missing" if isinstance(error, KeyError) else "a value is of another kind"
        )
        raise DataError(f"{file}: is no document of iperf3 that can be read: {what}") from None


def _measured(file: Path, content: dict[str, Any], scheme: str | None) -> MeasuredRun:
    start, end = content.get("start") or {}, content.get("end") or {}
    test = start.get("test_start") or {}
    udp = test.get("protocol") == "UDP"
    congestion = end.get("sender_tcp_congestion") or start.get("congestion_used")
    name = scheme or ("udp" if udp else str(congestion or scheme_of(file)))
    rows: dict[int, list[dict[str, Any]]] = {}
    for interval in content["intervals"]:
        for stream in interval["streams"]:
            rows.setdefault(int(stream["socket"]), []).append(stream)
    if not rows:
        raise DataError(f"{file}: iperf3 measured no interval")
    totals = _totals(end)
    flows, progress, states = [], [], []
    width = 0
    for number, (socket, samples) in enumerate(rows.items(), start=1):
        times = np.array([float(one["end"]) for one in samples])
        begins = np.array([float(one["start"]) for one in samples])
        if not np.all(np.isfinite(times)) or np.any(np.diff(times) < 0) or times[-1] > 7 * 86_400:
            raise DataError(f"{file}: the intervals of stream {socket} are not in order")
        sizes = np.array([float(one["bytes"]) for one in samples])
        time_ns = np.concatenate([[round(begins[0] * _S)], np.round(times * _S)]).astype(np.int64)
        sent = np.concatenate([[0.0], np.cumsum(sizes)])
        progress.append(Progress(number, time_ns, sent, sent))
        width = max(width, round(float(np.median(times - begins)) * _S))
        total = totals.get(socket, {})
        again = np.cumsum([float(one.get("retransmits") or 0) for one in samples])
        sender = {"sent_bytes": total.get("sender", {}).get("bytes")}
        if samples[0].get("retransmits") is not None:
            sender["retransmitted_packets"] = int(again[-1])
        receiver = {"goodput_bytes": total.get("receiver", {}).get("bytes")}
        if udp and total.get("udp"):
            receiver["lost_datagrams"] = total["udp"].get("lost_packets")
            receiver["received_packets"] = total["udp"].get("packets")
            receiver["jitter_ns"] = round(float(total["udp"].get("jitter_ms") or 0) * 1e6)
        flows.append(
            Flow(
                number, name, sender=_integers(sender), receiver=_integers(receiver), facts={"socket": socket}
            )
        )
        if not udp:
            states.append(_states(number, time_ns[1:], samples, sent[1:], again, start))
    started = (start.get("timestamp") or {}).get("timesecs")
    reasons = []
    if content.get("error"):
        reasons.append(note("iperf3", f"iperf3 ended with: {str(content['error'])[:100]}.", "degraded"))
    return MeasuredRun(
        name,
        [file],
        flows,
        progress=progress,
        states=joined(states),
        bin_ns=max(width, 1_000_000),
        started_at=_moment(started),
        reasons=reasons,
        facts={
            key: value
            for key, value in {
                "version": start.get("version"),
                "protocol": test.get("protocol"),
                "reverse": bool(test.get("reverse")),
                "host": (start.get("connecting_to") or {}).get("host"),
            }.items()
            if value
        },
    )


def _states(
    number: int,
    time_ns: Any,
    samples: list[dict[str, Any]],
    sent: Any,
    again: Any,
    start: dict[str, Any],
) -> dict[str, Any]:
    def column(name: str, scale: float = 1.0) -> Any:
        values = [one.get(name) for one in samples]
        return np.array([np.nan if value is None else float(value) * scale for value in values])

    mss = float(start.get("tcp_mss") or start.get("tcp_mss_default") or 1448)
    return states_of(
        number,
        time_ns,
        cwnd_bytes=column("snd_cwnd"),
        srtt_ns=column("rtt", 1000.0),
        delivered_bytes=sent,
        retransmitted_bytes=again * mss if samples[0].get("retransmits") is not None else again * np.nan,
    )


def _totals(end: dict[str, Any]) -> dict[int, dict[str, Any]]:
    found: dict[int, dict[str, Any]] = {}
    for stream in end.get("streams") or []:
        for part in stream.values():
            if isinstance(part, dict) and "socket" in part:
                found.setdefault(int(part["socket"]), {}).update(stream)
    return found


def _integers(counters: dict[str, Any]) -> dict[str, int]:
    return {name: int(value) for name, value in counters.items() if value is not None}


def _moment(seconds: Any) -> str | None:
    try:
        return f"{datetime.fromtimestamp(float(seconds), UTC):%Y-%m-%dT%H:%M:%S}Z"
    except (TypeError, ValueError, OverflowError, OSError):
        return None
