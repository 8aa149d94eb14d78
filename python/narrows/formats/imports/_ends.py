"""Captures of both ends of connections, as a run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from narrows.formats.imports._choice import Chosen
from narrows.formats.imports._streams import facts_of, large_frames, one_end, read_end
from narrows.formats.runs import Columns, Flow, MeasuredRun, Unread, join_columns, note

if TYPE_CHECKING:
    from narrows._native import Connection
    from narrows.formats.imports._capture import Capture

STRANGERS = "packets that the capture of the far end has and that of the near end lacks"
ONE_ONLY = "connections that only one of both captures has"
#: Maximum number of pairs of connections on the same ports that are compared.
_MOST_PAIRS = 64
#: Connections in two captures may be the same if they overlap in this share of the time and of the data. The
#: near end of a path with losses sees repeated data that the far one lacks.
_TOGETHER, _SAME = 0.8, 0.5
_UNMATCHED = (
    "Both captures show the same connection, but the packets of the one can't be recognised in the other, so"
    " only {which} is used. Where network adapters segment or merge packets (offloads), capture again after"
    " 'ethtool -K IFACE tso off gso off gro off' on both hosts, and keep enough of packets (tcpdump -s 96)."
)


@dataclass(frozen=True)
class MatchedPackets:
    """The packets of a connection with their times in both captures, as columns, and counters."""

    #: Packets that only the far capture has.
    strangers: int
    near_packets: int
    far_packets: int
    matched_packets: int
    goodput_bytes: int
    large_frames: int
    data: Columns
    back: Columns


@dataclass
class Pair:
    """One connection in two captures: its indices, how they are related, and the data that both saw."""

    here: int
    there: int
    #: `unmatched`, `same place` or `ends`.
    kind: str
    near: int = 0
    packets: MatchedPackets | None = None


def match_ends(
    capture: Capture, other: Capture, places: Sequence[int] | None = None, most: int | None = None
) -> list[Pair]:
    """The connections that two captures share, the largest first; only those in `places` of the first
    capture, and no more than `most` different ones.
    """
    from narrows import _native

    theirs: dict[object, list[int]] = {}
    for place, connection in enumerate(other.connections):
        for key in _keys(connection):
            theirs.setdefault(key, []).append(place)
    mine = range(len(capture.connections)) if places is None else places
    shared = [place for place in mine if any(key in theirs for key in _keys(capture.connections[place]))]
    shared.sort(key=lambda place: sum(capture.connections[place].payload), reverse=True)
    pairs: list[Pair] = []
    taken: set[int] = set()
    for place in shared[:most]:
        keys = _keys(capture.connections[place])
        partners = dict.fromkeys(partner for key in keys for partner in theirs.get(key, [])[:_MOST_PAIRS])
        for partner in partners:
            if partner in taken:
                continue
            kind, near, packets = _native.relate(capture.view, place, other.view, partner)
            if kind != "unrelated":
                taken.add(partner)
                matched = None if packets is None else MatchedPackets(**packets)
                pairs.append(Pair(place, partner, kind, near, matched))
                break
    return pairs


def _keys(connection: Connection) -> list[object]:
    """Keys that two captures of a connection share: its addresses and ports and, for translated addresses,
    the initial sequence numbers of both ends.
    """
    addresses = (connection.protocol, frozenset(connection.ends))
    numbers = connection.handshake
    return [addresses] if numbers is None else [addresses, frozenset(numbers)]


def _translation_notes(capture: Capture, other: Capture, pairs: Iterable[Pair]) -> list[dict[str, str]]:
    """The note that addresses or ports differ between both captures; none if they don't."""
    changed = [
        ends
        for pair in pairs
        if set(ends := capture.connections[pair.here].ends) != set(other.connections[pair.there].ends)
    ]
    if not changed:
        return []
    first = " and ".join(f"{address} port {port}" for address, port in changed[0])
    text = (
        f"Addresses or ports differ between both captures (address translation) for {len(changed)} of the"
        f" connections, such as that of {first}; these were matched by their initial sequence numbers."
    )
    return [note("translated", text)]


def likely_translated(item: Capture, other: Capture) -> bool:
    """True if the largest connections of two captures may be the same one behind address translation: with
    one end in common, at the same time, with nearly the same data.
    """
    mine, theirs = (
        max(capture.connections, key=lambda connection: sum(connection.payload), default=None)
        for capture in (item, other)
    )
    if mine is None or theirs is None or mine.protocol != theirs.protocol:
        return False
    common = set(mine.ends) & set(theirs.ends)
    both = min(mine.last_ns, theirs.last_ns) - max(mine.first_ns, theirs.first_ns)
    shorter = min(mine.last_ns - mine.first_ns, theirs.last_ns - theirs.first_ns)
    volumes = sorted(max(connection.payload) for connection in (mine, theirs))
    return len(common) == 1 and both > 0 and both >= _TOGETHER * shorter and volumes[0] >= _SAME * volumes[1]


def both_ends(capture: Capture, other: Capture, chosen: Chosen, scheme: str) -> MeasuredRun:
    """The run of two captures that share connections, those of `chosen` in the first one: each packet has its
    times at both ends.
    """
    pairs = {pair.here: pair for pair in match_ends(capture, other, chosen.places)}
    seen = [(pair, pair.packets) for _, pair in sorted(pairs.items()) if pair.packets is not None]
    if not seen:
        return _from_one(capture, other, chosen, list(pairs.values()), scheme)
    flows: list[Flow] = []
    data, back = [], []
    strangers = 0
    for pair, packets in seen:
        number = len(flows) + 1
        near, place = ((capture, pair.here), (other, pair.there))[pair.near]
        payload = near.connections[place].payload
        flow = Flow(number, scheme, facts=facts_of(near, place, int(payload[1] > payload[0])))
        flow.receiver = {"goodput_bytes": packets.goodput_bytes}
        flows.append(flow)
        data.append(_columns(number, packets.data))
        back.append(_columns(number, packets.back))
        strangers += packets.strangers
    unmatched = [pair for pair in pairs.values() if pair.kind == "unmatched"]
    reasons = [*chosen.reasons, *capture.reasons, *other.reasons]
    reasons += _translation_notes(capture, other, [pair for pair, _ in seen])
    reasons += large_frames(packets.large_frames for _, packets in seen)
    if unmatched:
        reasons.append(note("unmatched", _UNMATCHED.format(which="the rest of the connections"), "degraded"))
    alone = len(chosen.places) - len(seen) - len(unmatched)
    whole = join_columns(back)
    zero = min(capture.connections[pair.here].first_ns for pair, _ in seen)
    return MeasuredRun(
        scheme,
        list(dict.fromkeys([capture.file, other.file])),
        flows,
        data=join_columns(data),
        back=whole if whole is not None and len(whole["flow"]) else None,
        started_at=f"{np.datetime64(zero // 1_000_000, 'ms')}Z",
        reasons=reasons,
        unread=[
            *capture.unread, *(other.unread if other.file != capture.file else []), *chosen.unread,
            Unread(STRANGERS, strangers, matters=True), Unread(ONE_ONLY, alone),
        ],
        facts={"captures": [capture.view.name, other.view.name]},
        two_clocks=capture.file != other.file,
    )  # fmt: skip


def _from_one(
    capture: Capture, other: Capture, chosen: Chosen, pairs: Sequence[Pair], scheme: str
) -> MeasuredRun:
    """The run of two captures from one place, or whose packets can't be matched: that of the sender's
    capture.
    """
    use, places = capture, chosen.places
    pair = next((pair for pair in pairs if pair.kind == "unmatched"), None)
    if pair is not None and _is_sender(other, pair.there) and not _is_sender(capture, pair.here):
        use, places = other, [pair.there for pair in pairs]
    files = list(dict.fromkeys([capture.file, other.file]))
    run = one_end(use, Chosen(places, chosen.reasons, chosen.unread), scheme, files)
    name = use.file.name if capture.file != other.file else f"interface {use.view.name}"
    if pair is not None:
        run.reasons.append(note("unmatched", _UNMATCHED.format(which=name), "degraded"))
    else:
        text = f"Both captures were taken at the same place, so only {name} is used."
        run.reasons.append(note("same_place", text))
    return run


def _is_sender(capture: Capture, place: int) -> bool:
    end = read_end(capture, place)
    return end is not None and end.side == "sender"


def _columns(number: int, rows: Columns) -> Columns:
    return {"flow": np.full(len(rows["sent_ns"]), number, dtype=np.uint16), **rows}
