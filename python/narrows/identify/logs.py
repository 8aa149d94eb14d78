"""Traces from logs of other tools: qlogs of the end that sent the data, captures, and logs of ss.

A qlog has the times at which packets were sent and at which their acknowledgements arrived. A packet
counts as arrived half of the smallest round trip before its acknowledgement, so that delays are round trips
less the smallest one, with the receiver's delay of acknowledgements. Other flows are not part of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from types import ModuleType

import numpy as np

from narrows.errors import DataError
from narrows.formats.imports import pcapng, qlog, ss
from narrows.formats.imports._qlog_views import View
from narrows.identify.captures import LEAST_PACKETS, read_capture, show_same
from narrows.identify.ss_logs import read_ss
from narrows.identify.trace import Trace, find_data, read_trace, resolve

#: Ends of names of compressed files.
_COMPRESSED = (".gz", ".bz2", ".xz", ".zst")
_S = 1e9


@dataclass(frozen=True)
class Log:
    """The log of a connection: a file or, of captures of both ends, two."""

    files: tuple[Path, ...]
    #: The number of the connection; None for that which sent most.
    flow: int | None = None


def _format_of(file: Path) -> ModuleType | None:
    """The reader of the format that a file is called like, compressed or not."""
    plain = file.name.lower()
    for end in _COMPRESSED:
        plain = plain.removesuffix(end)
    for reader in (qlog, pcapng, ss):
        if any(fnmatch(plain, pattern) for pattern in reader.PATTERNS):
            return reader
    return None


def is_log(name: str) -> bool:
    """True for an existing file that is called like a qlog, a capture or a log of ss."""
    file = Path(name)
    return file.is_file() and _format_of(file) is not None


def find_partners(names: list[str]) -> dict[str, str]:
    """By the name of a capture, that of the next one which shows the same connection at its other end.

    Raises `DataError` if a capture can't be read.
    """
    captures = [name for name in names if is_log(name) and _format_of(Path(name)) is pcapng]
    partners: dict[str, str] = {}
    while captures:
        first = captures.pop(0)
        other = next((name for name in captures if show_same(Path(first), Path(name))), None)
        if other is not None:
            captures.remove(other)
            partners[first] = other
    return partners


def read_any(place: Path | Log) -> Trace:
    """The trace of a record or of a log. Raises `DataError` if it cannot be measured."""
    if isinstance(place, Log):
        return read_log(place)
    return read_log(Log((place,))) if place.is_file() else read_trace(place)


def read_log(log: Log) -> Trace:
    """The trace of a connection of a log. Raises `DataError` if it cannot be measured."""
    file = log.files[0]
    reader = _format_of(file)
    if reader is pcapng:
        return read_capture(log.files, log.flow)
    if reader is ss:
        return read_ss(file, log.flow)
    views = qlog.read_views(file)
    senders = [view for view in views if view.sends and view.acked.any()]
    if not senders:
        why = (
            "has no acknowledgements" if any(view.sends for view in views) else "is of the end that received"
        )
        raise DataError(f"{file}: {why}; the log of the end that sent the data shows what its sender does")
    if log.flow is not None:
        if not 1 <= log.flow <= len(senders):
            raise DataError(f"{file}: has no connection {log.flow} that sent; its last one is {len(senders)}")
        return _trace(file, senders[log.flow - 1])
    return _trace(file, max(senders, key=lambda view: int(view.sent_bytes.sum(dtype=np.int64))))


def _trace(file: Path, view: View) -> Trace:
    zero = view.first_ns
    numbered = np.flatnonzero(view.sent_key >= 0)
    order = numbered[np.argsort(view.sent_ns[numbered], kind="stable")]
    if not view.sent_bytes[order].any():
        raise DataError(f"{file}: has no sizes of packets")
    order = order[find_data(view.sent_bytes[order])]
    if len(order) < LEAST_PACKETS:
        raise DataError(f"{file}: has {len(order)} packets of data; at least {LEAST_PACKETS} are needed")
    sent = (view.sent_ns[order] - zero) / _S
    acked = np.where(view.acked[order], (view.acked_ns[order] - zero) / _S, np.nan)
    half = float(np.nanmin(acked - sent)) / 2
    arrived = acked - half
    known = np.flatnonzero(np.isfinite(acked))
    returned = np.unique(acked[known])
    lost = np.isnan(acked) & (np.arange(len(acked)) < known[-1])
    return Trace(
        cell=file.name,
        settings=None,
        duration_s=(view.last_ns - zero) / _S,
        sent_s=sent,
        size_bytes=view.sent_bytes[order].astype(np.float64),
        arrived_s=arrived,
        lost=lost,
        resolved_s=resolve(arrived, lost, returned - half, returned),
        answered_s=returned - half,
        others_s=np.empty(0),
        others_bytes=np.empty(0),
    )
