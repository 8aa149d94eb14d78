"""qlog of any QUIC stack (draft-00 to 0.4 and later schemas; JSON, JSON-SEQ or a line per event).

A trace is the log of one end, and may contain several connections. The end that sent the data yields sent and
acknowledged data and its metrics; the end that received them yields arrivals. The byte counts decide which of
both a trace is. If both ends of a connection were logged, both traces form one run, and packets have their
times at both ends.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from narrows.errors import DataError
from narrows.files import read_decompressed
from narrows.formats.imports._qlog_views import METRICS, View, flows_of, join_views, runs_of
from narrows.formats.runs import (
    Columns,
    Facts,
    Flow,
    MeasuredRun,
    Progress,
    Unread,
    carry_forward,
    join_columns,
    note,
    scheme_of,
    states_of,
)

PATTERNS = ("*.qlog", "*.sqlog", "*.qlogseq")
#: Maximum size of a file after decompression, in bytes.
MOST_BYTES = 2_000_000_000


def read(files: list[Path], scheme: str | None = None) -> list[MeasuredRun]:
    """The runs of all files: traces of one connection, or of connections at the same time in one file, are
    one run. Raises `DataError` if a file is not a qlog.
    """
    views = [view for file in files for view in read_views(file)]
    return [_run(run, scheme) for run in runs_of(views)]


def read_views(file: Path) -> list[View]:
    """The connections of a file, from the view of its traces. Raises `DataError` if it is not a qlog."""
    from narrows import _native

    try:
        logs = _native.read_qlog(read_decompressed(file, "qlog", MOST_BYTES))
    except (DataError, ValueError) as error:
        raise DataError(f"{file}: {error}") from None
    return [View.from_log(file, **log) for log in logs]


def _run(views: list[View], scheme: str | None) -> MeasuredRun:
    """The run of these views."""
    flows = flows_of(views)
    name = scheme or scheme_of(views[0].file)
    run = MeasuredRun(name, list(dict.fromkeys(view.file for view in views)), [])
    # Nothing happens at time zero.
    zero = min(view.first_ns for view in views) - 1
    if all(view.absolute for view in views):
        run.started_at = f"{np.datetime64(zero // 1_000_000, 'ms')}Z"
    both = join_views(flows)
    states = []
    for number, ends in enumerate(flows, 1):
        view = ends[0]
        # Traces without a common clock start together.
        start = zero if view.absolute else view.first_ns - 1
        progress = _as_sender(view, number, start) if view.sends else _as_receiver(view, number, start)
        if both is None:
            run.progress.append(progress)
        # Packets keep the times of their clocks, and so do the states beside them.
        samples = _states(view, progress, number, start, 0 if both is None else start)
        states += [] if samples is None else [samples]
        sent = {"sent_packets": len(view.sent_ns), "sent_bytes": int(view.sent_bytes.sum())}
        facts: Facts = {"connection": view.group} if view.group else {}
        run.flows.append(Flow(number, name, sender=sent if view.sends else {}, facts=facts))
        run.reasons += _reasons(ends, joined_ends=both is not None)
    if both is not None:
        run.data, run.back, strangers = both
        run.two_clocks = True
        run.unread += [Unread("packets that the trace of their sender lacks", strangers, matters=True)]
    run.states = join_columns(states)
    for view in views:
        run.unread += view.unread
    first = flows[0][0]
    facts = {"qlog": first.version, "vantage_point": first.vantage_point, "title": first.title}
    run.facts = {key: value for key, value in facts.items() if value} | {"sends_data": first.sends}
    return run


def _reasons(ends: list[View], *, joined_ends: bool) -> list[dict[str, str]]:
    view = ends[0]
    reasons = []
    if len(ends) > 1 and not joined_ends:
        text = (
            "Both ends of the connection were logged, but their clocks can't be compared: the numbers are"
            f" those of the {view.vantage_point or 'end'} that {'sent' if view.sends else 'received'} the"
            f" data ({view.file.name})."
        )
        reasons.append(note("views", text))
    sizes = view.sent_bytes if view.sends else view.received_bytes
    if len(sizes) and not sizes.any():
        reasons.append(note("sizes", "The log has no sizes of packets, so throughput is not known."))
    elif view.sends and len(sizes) and not view.acked.any() and not joined_ends:
        text = "The log has no acknowledgements, so it is not known how much arrived."
        reasons.append(note("acknowledgements", text, "degraded"))
    return reasons


def _as_sender(view: View, flow: int, zero: int) -> Progress:
    """The packets sent, and the times of their acknowledgements; a number that was sent twice counts once."""
    sizes = view.sent_bytes.astype(np.float64)
    acked = np.flatnonzero(view.acked)
    _, first = np.unique(view.sent_key[acked], return_index=True)
    acked = acked[first]
    return _progress(flow, view.sent_ns - zero, sizes, view.acked_ns[acked] - zero, sizes[acked])


def _as_receiver(view: View, flow: int, zero: int) -> Progress:
    sizes = view.received_bytes.astype(np.float64)
    times = view.received_ns - zero
    return _progress(flow, times, sizes, times, sizes)


def _progress(flow: int, sent_at: Any, sent: Any, arrived_at: Any, arrived: Any) -> Progress:
    """Both sums at the times of either, and just before the first value of each, where its time begins."""
    before = [max(int(times.min()) - 1, 0) for times in (sent_at, arrived_at) if len(times)]
    time = np.unique(np.concatenate([before, sent_at, arrived_at])).astype(np.int64)

    def sums(at: Any, sizes: Any) -> Any:
        order = np.argsort(at, kind="stable")
        total = np.concatenate([[0.0], np.cumsum(sizes[order])])
        return total[np.searchsorted(at[order], time, side="right")]

    return Progress(flow, time, sums(sent_at, sent), sums(arrived_at, arrived))


def _states(view: View, progress: Progress, flow: int, zero: int, base: int) -> Columns | None:
    """The metrics as states, with times since `zero`, which corresponds to `base`."""
    time = view.metrics_ns - zero
    if not len(time):
        return None
    order = np.argsort(time, kind="stable")
    time = time[order]
    # An event contains only changed values.
    metrics = {name: carry_forward(view.metrics[name][order]) for name in METRICS}
    place = np.maximum(np.searchsorted(progress.time_ns, time, side="right") - 1, 0)
    lost = np.argsort(view.lost_ns, kind="stable")
    total = np.concatenate([[0.0], np.cumsum(view.lost_packets[lost].astype(np.float64))])
    return states_of(
        flow,
        time + base,
        delivered_bytes=progress.arrived_bytes[place],
        lost_packets=total[np.searchsorted(view.lost_ns[lost] - zero, time, side="right")],
        **metrics,
    )
