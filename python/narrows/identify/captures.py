"""Traces from captures of one end, or of both.

At the sender, acknowledgements show which packets arrived, and when the sender learned of it. At the
receiver, holes in the stream show losses, and the time stamps (RFC 7323) when packets were sent. UDP,
and thus QUIC, shows sizes and times alone. Captures of both ends show all. The work per packet is in
`formats/src/connections` (Rust).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from narrows.errors import DataError
from narrows.formats.imports import pcapng
from narrows.formats.imports._choice import name_of
from narrows.formats.imports._ends import MatchedPackets, Pair, match_ends
from narrows.formats.runs import NEVER
from narrows.identify.trace import (
    ANSWERS,
    ARRIVALS,
    DELAYS,
    GAPS,
    LOSSES,
    SENDING,
    WINDOW,
    Bools,
    Floats,
    Trace,
    find_data,
    resolve,
)  # fmt: skip

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from narrows.formats.imports._capture import Capture

    Times = NDArray[np.int64]

#: Fewer packets of data show nothing.
LEAST_PACKETS = 100
#: Times of sending that are less exact than this do not show gaps between packets.
EXACT_NS = 50_000
#: A run of more round trips was within a host, or is too long to be measured in rounds.
MOST_ROUNDS = 500_000
#: A round trip needs this many ticks of time stamps.
LEAST_TICKS = 10
_TCP = 6
_S = 1e9
_ENCRYPTED = "QUIC and other protocols over UDP encrypt what arrived"


@dataclass(frozen=True, eq=False)
class Fates:
    """The packets with data of a connection in one capture, as columns, and counters."""

    #: The end that sent the data: 0 or 1.
    data_from: int
    #: `sender`, `receiver`, `between`, or unknown.
    side: str | None
    #: The smallest round-trip times from the capture to both ends.
    to_receiver_ns: int | None
    to_sender_ns: int | None
    #: The accuracy of times of sending that follow from time stamps.
    tick_ns: int | None
    #: Packets that arrived but were not captured, or out of order.
    unclear: int
    #: Frames of several packets.
    large_frames: int
    #: When packets were sent; the smallest number if that is unknown.
    sent_ns: Times
    #: At the sender the time of the acknowledgement, at the receiver that of the arrival.
    known_ns: Times
    size_bytes: NDArray[np.uint32]
    #: Packets that repeat data.
    again: NDArray[np.bool_]
    #: At the sender, when their data were sent again.
    repeated_ns: Times
    answers_ns: Times


@dataclass(frozen=True, eq=False)
class _Packets:
    """The packets of one direction in both captures, as columns."""

    size_bytes: NDArray[np.uint32]
    sent_ns: Times
    #: The smallest number for a packet that did not arrive.
    arrived_ns: Times


@dataclass(frozen=True)
class _Place:
    """A connection in a capture."""

    capture: Capture
    place: int

    def name(self, data_from: int) -> str:
        """The connection with the sender of its data first, and its number."""
        connection = self.capture.connections[self.place]
        names = name_of(connection).split(" > ")
        ends = " > ".join(names if data_from == 0 else reversed(names))
        count = len(self.capture.connections)
        return f"connection {self.place + 1} of {count} in {self.capture.file.name}, {ends}"

    def fates(self) -> Fates:
        """Its packets. Raises `DataError` if it carried no data."""
        fates = self.capture.view.fates(self.place)
        if fates is None:
            number = self.place + 1
            raise DataError(f"{self.capture.file}: connection {number} of the capture carried no data")
        return Fates(**fates)


def read_capture(files: Sequence[Path], flow: int | None = None) -> Trace:
    """The trace of the largest connection of captures of one end or of both ends of it, or of the connection
    with the number `flow` in the first of them. Raises `DataError` if it cannot be measured."""
    captures = [capture for file in files for capture in pcapng.read_captures(file)]
    chosen = _choose(captures, flow)
    unmatched = None
    for other in captures:
        if other is chosen.capture:
            continue
        for pair in match_ends(chosen.capture, other, [chosen.place], most=1):
            if pair.packets is not None:
                return _limit(_at_both(chosen, other, pair, pair.packets))
            unmatched = (other, pair)
    notes: tuple[str, ...] = ()
    if unmatched is not None:
        chosen, notes = _nearer(chosen, *unmatched)
    elif len(files) > 1:
        names = " and ".join(str(file) for file in files)
        raise DataError(f"{names}: do not show the same connection; identify each of them alone")
    return _limit(_at_one(chosen, notes))


def show_same(first: Path, second: Path) -> bool:
    """True if two captures show the same connection, of which that with most data counts."""
    chosen = _choose(pcapng.read_captures(first), None)
    others = pcapng.read_captures(second)
    return any(match_ends(chosen.capture, other, [chosen.place], most=1) for other in others)


def _limit(trace: Trace) -> Trace:
    """A trace without lines of rounds if it has too many of these."""
    if WINDOW in trace.missing or trace.duration_s <= MOST_ROUNDS * trace.min_rtt_s:
        return trace
    why = f"round trips of {1e6 * trace.min_rtt_s:.3g} us are too short for a run of {trace.duration_s:.3g} s"
    return replace(trace, missing={**trace.missing, **dict.fromkeys((SENDING, WINDOW), why)})


def _choose(captures: Sequence[Capture], flow: int | None) -> _Place:
    first = captures[0].file
    places = [
        _Place(capture, place)
        for capture in captures
        if capture.file == first
        for place in range(len(capture.connections))
    ]
    if flow is not None:
        same = [each for each in places if each.place == flow - 1]
        if not same:
            most = max(each.place for each in places) + 1
            raise DataError(f"{first}: the capture has no connection {flow}; its last one is {most}")
        return max(same, key=_payload)
    return max(places, key=_payload)


def _payload(place: _Place) -> int:
    return sum(place.capture.connections[place.place].payload)


def _nearer(chosen: _Place, other: Capture, pair: Pair) -> tuple[_Place, tuple[str, ...]]:
    """Of two captures whose packets can't be combined, that of the sender, and a sentence."""
    there = _Place(other, pair.there)
    if pair.kind == "same place":
        return chosen, (f"both captures were taken at the same place; {chosen.capture.file.name} is used",)
    use = chosen
    if chosen.fates().side != "sender" and there.fates().side == "sender":
        use = there
    text = (
        "the packets of one capture can't be recognised in the other (network adapters segment or merge them,"
        f" or too few bytes were kept), so {use.capture.file.name} alone is used"
    )
    return use, (text,)


# -- one end ---------------------------------------------------------------------------------------


def _at_one(place: _Place, notes: tuple[str, ...]) -> Trace:
    fates = place.fates()
    connection = place.capture.connections[place.place]
    about = [f"{_WHERE[fates.side]}: {place.name(fates.data_from)}", *notes]
    about += map(itemgetter("text"), place.capture.reasons)
    if fates.unclear:
        about.append(f"{fates.unclear} packets that arrived are not in the capture, and do not count")
    if fates.large_frames:
        about.append(
            f"{fates.large_frames} frames hold several packets, because they were captured before the network"
            " adapter segments or after it merges; their packets count as sent, or arrived, at once"
        )
    if connection.protocol != _TCP:
        return _of_datagrams(place, fates, about)
    if fates.side == "receiver":
        return _at_receiver(place, fates, about)
    return _at_sender(place, fates, about)


_WHERE = {
    "sender": "taken at the sender",
    "receiver": "taken at the receiver",
    "between": "taken between both ends, whose round trips are those from there to the receiver",
    None: "taken at the sender or at the receiver, which is not clear",
}


def _at_sender(place: _Place, fates: Fates, about: list[str]) -> Trace:
    zero = place.capture.connections[place.place].first_ns
    order = np.argsort(fates.sent_ns, kind="stable")
    order = order[find_data(fates.size_bytes[order])]
    sent, acked = _seconds(fates.sent_ns[order], zero), _seconds(fates.known_ns[order], zero)
    _check(place, len(sent))
    if not np.isfinite(acked).any():
        raise DataError(f"{place.capture.file}: has no acknowledgement of the connection's data")
    half = float(np.nanmin(acked - sent)) / 2
    returned = np.sort(_seconds(fates.answers_ns, zero))
    arrived = acked - half
    lost = _find_lost(acked)
    resolved = resolve(arrived, lost, returned - half, returned)
    # A sender that sends again has noticed the loss, even if acknowledgements are not selective.
    repeated = _seconds(fates.repeated_ns[order], zero)
    resolved = np.where(lost, np.fmin(resolved, repeated), resolved)
    missing: dict[str, str] = {}
    if lost.any() and not _is_selective(acked, repeated, lost, fates.again[order]):
        why = "acknowledgements are not selective, so packets behind a loss are known only after its repair"
        missing = dict.fromkeys((DELAYS, WINDOW), why)
    return Trace(
        cell=place.capture.file.name,
        settings=None,
        duration_s=_last(sent, acked, returned),
        sent_s=sent,
        size_bytes=fates.size_bytes[order].astype(np.float64),
        arrived_s=arrived,
        lost=lost,
        resolved_s=resolved,
        answered_s=returned - half,
        others_s=np.empty(0),
        others_bytes=np.empty(0),
        missing=missing,
        about=tuple(about),
    )


def _find_lost(times: Floats) -> Bools:
    """The packets without a time before the last one that has one."""
    return np.asarray(np.isnan(times) & (np.arange(len(times)) < np.flatnonzero(np.isfinite(times))[-1]))


def _is_selective(acked: Floats, repeated: Floats, lost: Bools, again: Bools) -> bool:
    """True if a packet behind a lost one was acknowledged before that was sent again."""
    first = np.flatnonzero(np.isfinite(acked) & ~again)
    missing = np.flatnonzero(lost & np.isfinite(repeated))
    place = np.searchsorted(first, missing)
    missing, place = missing[place < len(first)], place[place < len(first)]
    return bool((acked[first[place]] < repeated[missing]).any())


def _at_receiver(place: _Place, fates: Fates, about: list[str]) -> Trace:
    zero = place.capture.connections[place.place].first_ns
    data = find_data(fates.size_bytes)
    arrived = _seconds(fates.known_ns[data], zero)
    answered = np.sort(_seconds(fates.answers_ns, zero))
    _check(place, int(np.isfinite(arrived).sum()))
    about.append(
        "losses are holes in the stream that were filled later; of repetitions, and at the end of a burst,"
        " they are not seen"
    )
    sent = _seconds(fates.sent_ns[data], zero)
    missing: dict[str, str] = {}
    half = 0.0
    if fates.tick_ns is None or fates.to_sender_ns is None:
        why = "a capture at the receiver shows when packets were sent only by time stamps, which it lacks"
        missing = dict.fromkeys((SENDING, GAPS, DELAYS, WINDOW), why)
        sent = _fill_backwards(arrived)
    else:
        half = fates.to_sender_ns / _S / 2
        ticks = f"{fates.tick_ns / 1e6:g} ms, the tick of the sender's time stamps"
        per_tick = len(sent) * fates.tick_ns / _S / (_last(arrived) - float(np.nanmin(arrived)))
        about.append(
            f"times of sending are known to {ticks}, and windows to {max(0.5, per_tick):.1f} packets:"
            " laws of growth that differ by less are not told apart"
        )
        if fates.tick_ns > EXACT_NS:
            missing[GAPS] = f"at the receiver, times of sending are known to {ticks}"
        if fates.to_sender_ns < LEAST_TICKS * fates.tick_ns:
            why = f"round trips are shorter than {LEAST_TICKS} times {ticks}"
            missing |= dict.fromkeys((SENDING, DELAYS, WINDOW), why)
    lost = _find_lost(arrived)
    return Trace(
        cell=place.capture.file.name,
        settings=None,
        duration_s=_last(sent, arrived, answered),
        sent_s=sent,
        size_bytes=fates.size_bytes[data].astype(np.float64),
        arrived_s=arrived,
        lost=lost,
        resolved_s=resolve(arrived, lost, answered, answered + half),
        answered_s=answered,
        others_s=np.empty(0),
        others_bytes=np.empty(0),
        missing=missing,
        about=tuple(about),
    )


def _of_datagrams(place: _Place, fates: Fates, about: list[str]) -> Trace:
    zero = place.capture.connections[place.place].first_ns
    data = find_data(fates.size_bytes)
    at_receiver = fates.side == "receiver"
    times = np.sort(_seconds((fates.known_ns if at_receiver else fates.sent_ns)[data], zero))
    _check(place, len(times))
    answered = np.sort(_seconds(fates.answers_ns, zero))
    missing = dict.fromkeys((DELAYS, WINDOW, LOSSES), f"{_ENCRYPTED}; the sender's qlog shows it")
    if at_receiver:
        missing |= dict.fromkeys((SENDING, GAPS), "a capture at the receiver has no times of sending of UDP")
    else:
        missing[ARRIVALS] = missing[SENDING] = missing[LOSSES]
        about.append("the rate of the bottleneck is taken to be that at which the fastest tenth was sent")
        if fates.side is None:
            missing[GAPS] = "it is not clear at which end the capture was taken"
    return Trace(
        cell=place.capture.file.name,
        settings=None,
        duration_s=_last(times, answered),
        sent_s=times,
        size_bytes=fates.size_bytes[data].astype(np.float64),
        arrived_s=times,
        lost=np.zeros(len(times), np.bool_),
        resolved_s=times,
        answered_s=answered,
        others_s=np.empty(0),
        others_bytes=np.empty(0),
        missing=missing if len(answered) else {**missing, ANSWERS: "no packet of the receiver was captured"},
        about=tuple(about),
    )


def _fill_backwards(times: Floats) -> Floats:
    """Times, of which unknown ones are those of the next known one."""
    return np.asarray(np.fmin.accumulate(times[::-1])[::-1])


# -- both ends -------------------------------------------------------------------------------------


def _at_both(chosen: _Place, other: Capture, pair: Pair, packets: MatchedPackets) -> Trace:
    partner = _Place(other, pair.there)
    near, far = (chosen, partner) if pair.near == 0 else (partner, chosen)
    zero = near.capture.connections[near.place].first_ns
    data, back = _Packets(**packets.data), _Packets(**packets.back)
    rows = np.argsort(data.sent_ns, kind="stable")
    rows = rows[find_data(data.size_bytes[rows])]
    _check(near, len(rows))
    sent, arrived = _seconds(data.sent_ns[rows], zero), _seconds(data.arrived_ns[rows], zero)
    answered, returned = _seconds(back.sent_ns, zero), _seconds(back.arrived_ns, zero)
    payload = near.capture.connections[near.place].payload
    about = [f"taken at both ends: {near.name(int(payload[1] > payload[0]))}"]
    if np.isfinite(arrived).any() and np.isfinite(returned).any():
        # Clocks of two hosts differ; half of the fastest round trip is taken for each direction.
        ahead = (float(np.nanmin(arrived - sent)) - float(np.nanmin(returned - answered))) / 2
        arrived, answered = arrived - ahead, answered - ahead
    else:
        raise DataError(f"{near.capture.file}: no packets of both directions are in both captures")
    if packets.strangers:
        about.append(f"{packets.strangers} packets of {far.capture.file.name} are not in the other capture")
    lost = _find_lost(arrived)
    came = np.isfinite(returned)
    return Trace(
        cell=near.capture.file.name,
        settings=None,
        duration_s=_last(sent, arrived, returned),
        sent_s=sent,
        size_bytes=data.size_bytes[rows].astype(np.float64),
        arrived_s=arrived,
        lost=lost,
        resolved_s=resolve(arrived, lost, answered[came], returned[came]),
        answered_s=np.sort(answered),
        others_s=np.empty(0),
        others_bytes=np.empty(0),
        about=tuple(about),
    )


def _check(place: _Place, count: int) -> None:
    if count < LEAST_PACKETS:
        raise DataError(
            f"{place.capture.file}: connection {place.place + 1} has {count} packets of data; at least"
            f" {LEAST_PACKETS} are needed"
        )


def _seconds(times_ns: Times, zero: int) -> Floats:
    """Times since `zero`; NaN for never."""
    return np.where(times_ns == NEVER, np.nan, (times_ns - zero) / _S)


def _last(*times: Floats) -> float:
    """The latest time."""
    return max(float(np.nanmax(each)) for each in times if np.isfinite(each).any())
