"""Traces from logs of repeated `ss -tin` at the sender.

Such a log has counters at the times of its snapshots: bytes sent, acknowledged and sent again, packets in
flight, and the smoothed round trip. Packets are spread evenly between them. Lines that need single rounds
are measured only if each round trip has several snapshots.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from operator import itemgetter
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from narrows.errors import DataError
from narrows.formats.imports import ss
from narrows.formats.runs import MeasuredRun, Progress, Times
from narrows.identify.trace import ANSWERS, DELAYS, GAPS, SENDING, WINDOW, Bools, Floats, Trace

#: Snapshots that the usual round trip needs.
LEAST_SNAPSHOTS = 2
#: More packets than any log of one run has.
MOST_PACKETS = 50_000_000
#: Fewer snapshots show nothing.
FEWEST_SNAPSHOTS = 20
_S = 1e9
#: Bytes of a packet of Ethernet, if the log has no size.
_USUAL_BYTES = 1448.0


@dataclass(frozen=True, eq=False)
class _States:
    """Columns of states of all connections."""

    flow: NDArray[np.uint16]
    time_ns: Times
    inflight_bytes: Floats
    retransmitted_bytes: Floats
    srtt_ns: Floats

    def of_flow(self, number: int) -> _States:
        """The states of one connection."""
        mine = self.flow == number
        return _States(*(getattr(self, each.name)[mine] for each in fields(self)))


@dataclass(frozen=True)
class _Facts:
    """Both ends of a connection, and the size of its segments."""

    local: str
    peer: str
    mss: int = 0


def read_ss(file: Path, flow: int | None = None) -> Trace:
    """The trace of the connection of a log that sent most, or of that with the number `flow`.

    Raises `DataError` if it cannot be measured.
    """
    run = ss.read([file])[0]
    if flow is not None and not 1 <= flow <= len(run.flows):
        raise DataError(
            f"{file}: the log has no connection {flow} that sent; its last one is {len(run.flows)}"
        )
    sums = [float(each.sent_bytes[-1]) for each in run.progress]
    index = int(np.argmax(sums)) if flow is None else flow - 1
    return _trace(file, run, index)


def _trace(file: Path, run: MeasuredRun, index: int) -> Trace:
    progress, number = run.progress[index], run.flows[index].number
    if run.states is None:
        raise DataError(f"{file}: has no states of the connection")
    whole = _States(**{each.name: run.states[each.name] for each in fields(_States)})
    states = whole.of_flow(number)
    facts = _Facts(**run.flows[index].facts)  # type: ignore[arg-type]
    packet = float(facts.mss or _USUAL_BYTES)
    times = progress.time_ns / _S
    if len(times) < FEWEST_SNAPSHOTS:
        raise DataError(f"{file}: has {len(times)} snapshots; at least {FEWEST_SNAPSHOTS} are needed")
    sent, resolved, again, delay = _counters(progress, states, times)
    count = int(sent[-1] // packet)
    if not 1 <= count <= MOST_PACKETS:
        raise DataError(f"{file}: has {count} packets of data; between 1 and {MOST_PACKETS} can be measured")
    ends: Floats = np.arange(1, count + 1, dtype=np.float64) * packet
    sent_s = _when(ends, sent, times)
    resolved_s = np.maximum(_when(ends, resolved, times), sent_s)
    lost = _mark_lost(again / packet, times, resolved_s)
    shortest = float(np.nanmin(delay))
    waiting = np.interp(sent_s, times, delay) - shortest
    arrived = np.where(lost, np.nan, sent_s + shortest / 2 + waiting)
    step = float(np.median(np.diff(times)))
    missing = {
        GAPS: "a log of ss has no single packets",
        ANSWERS: "a log of ss has no acknowledgements",
    }
    usual = float(np.nanmedian(delay))
    if step * LEAST_SNAPSHOTS > usual:
        why = (
            f"snapshots every {1e3 * step:.3g} ms are too few for round trips of {1e3 * usual:.3g} ms, of"
            f" which each needs {LEAST_SNAPSHOTS}"
        )
        missing |= dict.fromkeys((SENDING, WINDOW), why)
    if not np.isfinite(delay).any():
        missing[DELAYS] = "the log has no round-trip times"
    about = [
        f"taken at the sender: connection {index + 1} of {len(run.flows)} in {file.name},"
        f" {facts.local} > {facts.peer}",
        "a log of ss has counters: its packets are spread evenly between snapshots, delays are smoothed round"
        " trips less the smallest, and packets that were sent again count as lost",
        *map(itemgetter("text"), run.reasons),
    ]
    return Trace(
        cell=file.name,
        settings=None,
        duration_s=float(times[-1]),
        sent_s=sent_s,
        size_bytes=np.full(count, packet),
        arrived_s=arrived,
        lost=lost,
        resolved_s=resolved_s,
        answered_s=resolved_s[np.isfinite(resolved_s)],
        others_s=np.empty(0),
        others_bytes=np.empty(0),
        missing=missing,
        about=tuple(about),
    )


def _counters(progress: Progress, states: _States, times: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """At each snapshot: bytes sent, bytes no longer in flight, bytes sent again, round-trip times."""
    moments = states.time_ns / _S

    def at(values: Floats) -> Floats:
        known = np.isfinite(values)
        if not known.any():
            return np.full(len(times), np.nan)
        return np.asarray(np.interp(times, moments[known], values[known]))

    flight = np.nan_to_num(at(states.inflight_bytes))
    # A connection that is older than the log has packets in flight at its beginning.
    sent = progress.sent_bytes + flight[0]
    resolved = np.maximum.accumulate(np.clip(sent - flight, 0, sent))
    return sent, resolved, np.nan_to_num(at(states.retransmitted_bytes)), at(states.srtt_ns) / _S


def _when(ends: Floats, counter: Floats, times: Floats) -> Floats:
    """When a counter reached values; infinite if it did not. Between snapshots it grows evenly."""
    # Of snapshots with equal counts the last one: what follows is counted from there.
    last = np.append(np.diff(counter) > 0, True)
    reached = np.asarray(np.interp(ends, counter[last], times[last]))
    return np.where(ends <= counter[-1], reached, np.inf)


def _mark_lost(again: Floats, times: Floats, resolved_s: Floats) -> Bools:
    """As many packets are lost as were sent again, those that left the flight at that time."""
    lost = np.zeros(len(resolved_s), np.bool_)
    counts = np.diff(np.floor(again + 0.5))
    for place in np.flatnonzero(counts > 0):
        first = int(np.searchsorted(resolved_s, times[place]))
        lost[first : first + int(counts[place])] = True
    return lost & np.isfinite(resolved_s)
