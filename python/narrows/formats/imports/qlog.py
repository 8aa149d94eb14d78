"""qlog of any QUIC stack (drafts 01 to 0.4, JSON, JSON-SEQ or a line per event).

A log tells what one end saw. Of the end that sent the data come what it sent, what was acknowledged, and its
metrics; of the end that received them what arrived. Which one a log is follows from the bytes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from narrows.errors import DataError, NarrowsError
from narrows.formats.runs import Flow, MeasuredRun, Progress, carried, joined, note, scheme_of, states_of

PATTERNS = ("*.qlog", "*.sqlog", "*.qlogseq")
#: Times beyond this are since 1970 and not since the start, in ns: ten years.
_ABSOLUTE = 10 * 365 * 86_400 * 1_000_000_000


def read(files: list[Path], scheme: str | None = None) -> list[MeasuredRun]:
    """One run per trace; raises `DataError` where a file is no qlog."""
    from narrows import _native

    runs = []
    for file in files:
        try:
            logs = _native.read_qlog(file)
        except ValueError as error:
            raise DataError(str(error)) from None
        except OSError as error:
            raise NarrowsError(str(error)) from None
        name = scheme or scheme_of(file)
        runs += [_run(log, file, name) for log in logs]
    return runs


def _run(log: dict[str, Any], file: Path, scheme: str) -> MeasuredRun:
    times = [log[name] for name in ("sent_ns", "received_ns", "metrics_ns") if len(log[name])]
    if not times:
        raise DataError(f"{file}: the qlog has neither packets nor metrics, so there is nothing to measure")
    zero = int(min(time.min() for time in times))
    started = None
    if zero > _ABSOLUTE:
        started = f"{np.datetime64(zero // 1_000_000, 'ms')}Z"
    sent, received = int(log["sent_bytes"].sum()), int(log["received_bytes"].sum())
    sender = sent >= received
    progress = _as_sender(log, zero) if sender else _as_receiver(log, zero)
    facts = {"qlog": log["version"], "vantage_point": log["vantage_point"], "title": log["title"]}
    reasons = []
    if not sent and not received:
        text = "The log tells no sizes of packets, so throughput is not known."
        reasons.append(note("sizes", text))
    states = _states(log, zero, progress)
    flow = Flow(1, scheme, sender={"sent_packets": len(log["sent_ns"]), "sent_bytes": sent} if sender else {})
    return MeasuredRun(
        scheme,
        [file],
        [flow],
        progress=[progress],
        states=states,
        started_at=started,
        reasons=reasons,
        facts={key: value for key, value in facts.items() if value} | {"sends_data": sender},
    )


def _as_sender(log: dict[str, Any], zero: int) -> Progress:
    """What was sent, and what of it was acknowledged by when."""
    numbers, first = np.unique(log["sent_number"], return_index=True)
    order = np.argsort(log["acked_ns"], kind="stable")
    acked, place_of_first = np.unique(log["acked_number"][order], return_index=True)
    times = log["acked_ns"][order][place_of_first]
    place = np.searchsorted(numbers, acked)
    known = (place < len(numbers)) & (acked >= 0)
    known[known] = numbers[place[known]] == acked[known]
    sizes = log["sent_bytes"][first[place[known]]].astype(np.float64)
    return _progress(log["sent_ns"] - zero, log["sent_bytes"].astype(np.float64), times[known] - zero, sizes)


def _as_receiver(log: dict[str, Any], zero: int) -> Progress:
    sizes = log["received_bytes"].astype(np.float64)
    times = log["received_ns"] - zero
    return _progress(times, sizes, times, sizes)


def _progress(sent_at: Any, sent: Any, arrived_at: Any, arrived: Any) -> Progress:
    """Both sums at the times of either."""
    time = np.unique(np.concatenate([[0], sent_at, arrived_at])).astype(np.int64)

    def sums(at: Any, sizes: Any) -> Any:
        order = np.argsort(at, kind="stable")
        total = np.concatenate([[0.0], np.cumsum(sizes[order])])
        return total[np.searchsorted(at[order], time, side="right")]

    return Progress(1, time, sums(sent_at, sent), sums(arrived_at, arrived))


def _states(log: dict[str, Any], zero: int, progress: Progress) -> dict[str, Any] | None:
    time = log["metrics_ns"] - zero
    if not len(time):
        return None
    order = np.argsort(time, kind="stable")
    time = time[order]
    # An event tells what has changed only.
    names = (
        "cwnd_bytes",
        "inflight_bytes",
        "ssthresh_bytes",
        "pacing_bps",
        "rtt_ns",
        "srtt_ns",
        "min_rtt_ns",
    )
    columns = {name: carried(log[name][order]) for name in names}
    place = np.maximum(np.searchsorted(progress.time_ns, time, side="right") - 1, 0)
    lost = np.sort(log["lost_ns"] - zero)
    columns["delivered_bytes"] = progress.arrived_bytes[place]
    columns["lost_packets"] = np.searchsorted(lost, time, side="right").astype(np.float64)
    return joined([states_of(1, time, **columns)])
