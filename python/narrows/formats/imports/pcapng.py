"""Captures: pcapng or pcap of one end, or of both.

Two files that hold the same packets are two ends of one run (`tcpdump` on both hosts, or what `narrows
export` writes), as are two interfaces of one file. Packets are recognised at the other end by addresses,
ports, IP identification, sequence numbers, time stamps and length, or by the number that a capture gives
them; so each packet has its delay, and those that never came are lost. Everything else is a capture of one
end, of which follow throughput (by what was acknowledged), round-trip times, bytes in flight and
retransmissions."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from narrows.errors import DataError, NarrowsError
from narrows.formats.imports._streams import groups, one_end
from narrows.formats.runs import NEVER, Flow, MeasuredRun, joined, note, scheme_of

PATTERNS = ("*.pcapng", "*.pcap", "*.cap")
#: Most flows of a run: numbers of flows have 16 bits.
MOST_FLOWS = 65_535
#: Share of the packets of one capture that must be in another one for both to be of one run.
_SAME = 0.5
#: Names that exports give to interfaces: two of one name are not both ends of one run.
_ENDS = ("sender", "receiver")


@dataclass
class Capture:
    """What one interface saw: columns in the order of time, and for each packet its conversation."""

    file: Path
    name: str
    columns: dict[str, Any]
    #: Per packet a number that both ends give it, and the number of its source's end of the conversation.
    key: Any
    talk: Any
    #: Per packet: True if the lower of both addresses with its port sent it.
    low: Any


def read(files: list[Path], scheme: str | None = None) -> list[MeasuredRun]:
    """One run per pair of captures or single capture; raises `DataError` where a file is no capture."""
    captures = [one for file in files for one in _captures(file)]
    runs = []
    left = list(captures)
    while left:
        first = left.pop(0)
        other = next((one for one in left if _same(first, one)), None)
        if other is None:
            runs.append(one_end(first.file, first.name, first.columns, first.talk, _name([first], scheme)))
        else:
            left.remove(other)
            runs.append(_both_ends(first, other, _name([first, other], scheme)))
    return runs


def _name(captures: list[Capture], scheme: str | None) -> str:
    return scheme or scheme_of(captures[0].file)


def _captures(file: Path) -> list[Capture]:
    """The interfaces of a file, each as a capture of its own."""
    from narrows import _native

    try:
        columns = dict(_native.read_capture(file))
    except ValueError as error:
        raise DataError(str(error)) from None
    except OSError as error:
        raise NarrowsError(str(error)) from None
    names, addresses = columns.pop("interfaces"), columns.pop("addresses")
    columns.pop("others")
    if not len(columns["time_ns"]):
        raise DataError(f"{file}: the capture has no TCP or UDP packets")
    # Numbers that are the same in every file.
    hashes = np.array([_hash_of(text) for text in addresses], dtype=np.uint64)
    found = []
    for number in np.unique(columns["interface"]).tolist():
        mine = np.flatnonzero(columns["interface"] == number)
        mine = mine[np.argsort(columns["time_ns"][mine], kind="stable")]
        own = {name: values[mine] for name, values in columns.items()}
        found.append(_capture(file, names[number], own, hashes))
    return found


def _hash_of(text: str) -> int:
    import hashlib

    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little")


def _mixed(*parts: Any) -> Any:
    """One number for each row of several columns (splitmix64)."""
    mixed = np.zeros(len(parts[0]), dtype=np.uint64)
    with np.errstate(over="ignore"):
        for part in parts:
            mixed = (mixed ^ part.astype(np.uint64)) + np.uint64(0x9E3779B97F4A7C15)
            mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            mixed ^= mixed >> np.uint64(31)
    return mixed


def _capture(file: Path, name: str, columns: dict[str, Any], hashes: Any) -> Capture:
    here = _mixed(hashes[columns["source"]], columns["source_port"])
    there = _mixed(hashes[columns["destination"]], columns["destination_port"])
    low = here < there
    talk = _mixed(np.minimum(here, there), np.maximum(here, there), columns["protocol"])
    parts = ("packet_id", "ip_id", "sequence", "acknowledgement", "flags", "stamp", "size_bytes")
    key = _mixed(talk, low, *(columns[part] for part in parts))
    if np.any(columns["packet_id"]):
        # What our exports add for analysers has no number, and is no packet of the run.
        key = np.where(columns["packet_id"] > 0, key, 0)
    # Packets that look alike are told by their order.
    key = np.where(key > 0, _mixed(key, _order_among_equals(key)), 0)
    return Capture(file, name, columns, key, talk, low)


def _order_among_equals(values: Any) -> Any:
    """0, 1, 2 ... for the first, second, third of equal values."""
    order = np.argsort(values, kind="stable")
    sorted_values = values[order]
    begins = np.flatnonzero(np.concatenate([[True], sorted_values[1:] != sorted_values[:-1]]))
    lengths = np.diff(np.concatenate([begins, [len(values)]]))
    rank = np.arange(len(values)) - np.repeat(begins, lengths)
    found = np.empty(len(values), dtype=np.uint64)
    found[order] = rank
    return found


def _same(one: Capture, other: Capture) -> bool:
    if one.name == other.name and one.name in _ENDS:
        return False
    shared = np.isin(one.key, other.key) & (one.key > 0)
    return bool(np.count_nonzero(shared) > _SAME * min(len(one.key), len(other.key)))


def _both_ends(one: Capture, other: Capture, scheme: str) -> MeasuredRun:
    """The packets of both captures, each with its times at both ends."""
    place = _places(one.key, other.key)
    matched = place >= 0
    apart = other.columns["time_ns"][np.maximum(place, 0)] - one.columns["time_ns"]
    here, there = groups(one.talk), groups(other.talk)
    nothing = np.array([], dtype=np.int64)
    parts: dict[bool, list[dict[str, Any]]] = {False: [], True: []}
    flows: list[Flow] = []
    strangers = 0
    for talk in list(dict.fromkeys([*here, *there]))[:MOST_FLOWS]:
        mine, theirs = here.get(talk, nothing), there.get(talk, nothing)
        # Packets come out later at the farther end; clocks that differ move both directions alike.
        paired = mine[matched[mine]]
        medians = {low: _median(apart[paired[one.low[paired] == low]]) for low in (False, True)}
        if medians[True] is None and medians[False] is None:
            continue
        number = len(flows) + 1
        low_is_here = _low_is_near(medians)
        payload = {
            low: sum(
                int(end.columns["payload_bytes"][rows[end.low[rows] == low]].sum())
                for end, rows in ((one, mine), (other, theirs))
            )
            for low in (False, True)
        }
        data_is_low = payload[True] >= payload[False]
        for low in (False, True):
            ends = ((one, mine), (other, theirs))
            (near, sent), (far, came) = ends if low == low_is_here else ends[::-1]
            sent, came = sent[near.low[sent] == low], came[far.low[came] == low]
            rows, unknown = _direction(near, far, sent, came, number)
            strangers += unknown
            parts[low != data_is_low].append(rows)
        flows.append(Flow(number, scheme, facts=_facts(one, other, mine, theirs)))
    data, back = joined(parts[False]), joined(parts[True])
    if data is None or back is None or not flows:
        raise DataError(f"{one.file}: the captures of both ends have no conversation in common")
    reasons = []
    if strangers:
        text = (
            f"{strangers} packets were seen at the far end only and are left out: the near one missed them."
        )
        reasons.append(note("strangers", text, "degraded"))
    base = int(min(one.columns["time_ns"][0], other.columns["time_ns"][0]))
    return MeasuredRun(
        scheme,
        list(dict.fromkeys([one.file, other.file])),
        flows,
        data=data,
        back=back if len(back["flow"]) else None,
        started_at=f"{np.datetime64(base // 1_000_000, 'ms')}Z",
        reasons=reasons,
        facts={"captures": [one.name, other.name]},
        two_clocks=True,
    )


def _median(values: Any) -> float | None:
    return float(np.median(values)) if len(values) else None


def _low_is_near(medians: dict[bool, float | None]) -> bool:
    """True if the capture from which times were taken is at the end of the lower address."""
    low, high = medians[True], medians[False]
    if low is not None and high is not None:
        return low > high
    return low > 0 if low is not None else (high or 0.0) < 0


def _places(wanted: Any, known: Any) -> Any:
    """Where each of `wanted` is among `known`; -1 where it is not."""
    order = np.argsort(known, kind="stable")
    place = np.searchsorted(known[order], wanted)
    place = np.minimum(place, len(order) - 1)
    found = order[place]
    return np.where((known[found] == wanted) & (wanted > 0), found, -1)


def _direction(near: Capture, far: Capture, sent: Any, came: Any, flow: int) -> tuple[dict[str, Any], int]:
    """The packets of one direction of a conversation, and how many came that nobody saw leave."""
    leaving, coming = sent[near.key[sent] > 0], came[far.key[came] > 0]
    place = _places(near.key[leaving], far.key[coming]) if len(coming) else np.full(len(leaving), -1)
    arrived = np.full(len(leaving), NEVER, dtype=np.int64)
    there = place >= 0
    if len(coming):
        arrived[there] = far.columns["time_ns"][coming[place[there]]]
    rows = {
        "flow": np.full(len(leaving), flow, dtype=np.uint16),
        "size_bytes": near.columns["size_bytes"][leaving].astype(np.uint32),
        "sent_ns": near.columns["time_ns"][leaving].astype(np.int64),
        "arrived_ns": arrived,
    }
    return rows, len(coming) - int(np.count_nonzero(there))


def _facts(one: Capture, other: Capture, mine: Any, theirs: Any) -> dict[str, Any]:
    source, rows = (one, mine) if len(mine) else (other, theirs)
    first = int(rows[0])
    ports = [int(source.columns[f"{end}_port"][first]) for end in ("source", "destination")]
    protocol = {6: "tcp", 17: "udp"}.get(int(source.columns["protocol"][first]), "ip")
    return {"protocol": protocol, "ports": ports}
