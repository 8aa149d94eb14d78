"""The connections in a capture of one end, as a run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from narrows.errors import DataError
from narrows.formats.imports._choice import Chosen
from narrows.formats.runs import ONE_END, Flow, MeasuredRun, Progress, Unread, join_columns, note, states_of

if TYPE_CHECKING:
    from narrows.formats.imports._capture import Capture

_PROTOCOLS = {6: "tcp", 17: "udp"}
_RECEIVER = (
    "Only the receiver of the flows was measured: throughput is what arrived there, and losses and one-way"
    " delays are not known."
)
MISSED = "bytes of data that were acknowledged but not captured"


def one_end(capture: Capture, chosen: Chosen, scheme: str, files: Sequence[Path]) -> MeasuredRun:
    """The run of one capture. Raises `DataError` if none of its connections carried data."""
    if not chosen.places:
        raise DataError(f"{capture.file}: no connection of the capture carried data")
    zero = min(capture.connections[place].first_ns for place in chosen.places)
    flows: list[Flow] = []
    progress, states = [], []
    ends: list[dict[str, Any]] = []
    for place in chosen.places:
        end = capture.view.one_end(place)
        if end is None:
            continue
        flow = Flow(len(flows) + 1, scheme, facts=facts_of(capture, place, end["data_from"]))
        flow.sender = {
            "sent_packets": end["sent_packets"],
            "sent_bytes": int(end["sent_bytes"][-1]) if len(end["sent_bytes"]) else 0,
        }
        if flow.facts["protocol"] == "tcp":
            flow.sender["retransmitted_packets"] = end["retransmitted_packets"]
            flow.sender["retransmitted_bytes"] = end["repeated_bytes"]
        if not end["unanswered"]:
            flow.receiver = {"goodput_bytes": end["goodput_bytes"]}
        flows.append(flow)
        ends.append(end)
        progress.append(_progress(flow.number, end, zero))
        if len(end["sample_ns"]):
            states.append(_states(flow.number, end, zero))
    if not flows:
        raise DataError(f"{capture.file}: no connection of the capture carried data")
    missed = Unread(MISSED, sum(end["missed_bytes"] for end in ends), matters=True)
    return MeasuredRun(
        scheme,
        list(files),
        flows,
        progress=progress,
        states=join_columns(states),
        started_at=f"{np.datetime64(zero // 1_000_000, 'ms')}Z",
        reasons=[
            *chosen.reasons,
            *capture.reasons,
            *_sides(ends),
            *large_frames(ends),
            *_count_unanswered(flows, ends),
        ],
        unread=[*capture.unread, *chosen.unread, *([missed] if missed.count else [])],
        facts={"captures": [capture.view.name]},
        limits=_RECEIVER if all(end["side"] == "receiver" for end in ends) else ONE_END,
    )


def facts_of(capture: Capture, place: int, data_from: int) -> dict[str, Any]:
    """Facts about a connection; the end that sends its data comes first."""
    connection = capture.connections[place]
    ends = [connection.ends[data_from], connection.ends[1 - data_from]]
    return {
        "protocol": _PROTOCOLS.get(connection.protocol, "ip"),
        "ports": [port for _, port in ends],
        "hosts": [host for host, _ in ends],
        "connection": place + 1,
    }


def large_frames(ends: Sequence[dict[str, Any]]) -> list[dict[str, str]]:
    """A remark about frames that combine several packets."""
    count = sum(end["large_frames"] for end in ends)
    if not count:
        return []
    text = (
        f"{count} frames hold several packets, because they were captured before the network adapter segments"
        " (TSO, GSO) or after it merges (GRO, LRO); they count as the packets that they are on the wire."
    )
    return [note("large_frames", text)]


def _progress(number: int, end: dict[str, Any], zero: int) -> Progress:
    time = end["time_ns"] - zero
    # The first moment counts as zero, so that its bytes have a preceding time.
    before = max(int(time[0]) - 1, 0)
    return Progress(
        number,
        np.concatenate([[before], time]).astype(np.int64),
        np.concatenate([[0.0], end["sent_bytes"]]),
        np.concatenate([[0.0], end["arrived_bytes"]]),
    )


def _states(number: int, end: dict[str, Any], zero: int) -> dict[str, Any]:
    rtt = end["rtt_ns"]
    return states_of(
        number,
        end["sample_ns"] - zero,
        rtt_ns=rtt,
        min_rtt_ns=np.fmin.accumulate(rtt),
        inflight_bytes=end["inflight_bytes"],
        delivered_bytes=end["delivered_bytes"],
        retransmitted_bytes=end["retransmitted_bytes"],
    )


def _sides(ends: Sequence[dict[str, Any]]) -> list[dict[str, str]]:
    """Remarks about captures that were not taken at the sender."""
    reasons = []
    for side in ("receiver", "between"):
        flows = [number for number, end in enumerate(ends, start=1) if end["side"] == side]
        if not flows:
            continue
        of_all = len(flows) == len(ends)
        which = "" if of_all else f" of flow {', '.join(str(number) for number in flows[:8])}"
        first = ends[flows[0] - 1]
        near, far = first["to_receiver_ns"], first["to_sender_ns"]
        times = "" if near is None else f": its answers come after {near / 1e6:.3f} ms"
        times += "" if near is None or far is None else f", those of the sender after {far / 1e6:.3f} ms"
        if side == "receiver":
            text = (
                f"The capture was taken at the receiver of the data{which}{times}. Throughput is what"
                " arrived; round-trip times and bytes in flight of the sender are not known, and"
                " retransmissions are"
                " those that were seen here."
            )
            reasons.append(note("at_receiver", text))
        else:
            text = (
                f"The capture was taken between both ends{which}{times}: its round-trip times are those from"
                " there to the receiver and back."
            )
            reasons.append(note("between", text, "degraded"))
    return reasons


def _count_unanswered(flows: Sequence[Flow], ends: Sequence[dict[str, Any]]) -> list[dict[str, str]]:
    reasons = []
    silent = [
        flow.number
        for flow, end in zip(flows, ends, strict=True)
        if end["unanswered"] and flow.facts["protocol"] == "tcp"
    ]
    if silent:
        text = (
            f"No acknowledgement of flow {', '.join(str(number) for number in silent[:8])} was captured:"
            " throughput is what was captured of the data."
        )
        reasons.append(note("no_acknowledgements", text, "degraded"))
    if any(flow.facts["protocol"] == "udp" for flow in flows):
        reasons.append(note("udp", "Throughput of UDP is what was captured, whether it arrived or not."))
    return reasons
