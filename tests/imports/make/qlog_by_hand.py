#!/usr/bin/env python3
"""Qlogs after the published forms of stacks that were not run: `qlog_by_hand.py FOLDER`.

Each has 300 packets of 1200 bytes, one each millisecond, each acknowledged 20 ms after it was sent: 9.6
Mbit/s from the first to the last acknowledgement, of which the first brings 1200 bytes at the start of the time."""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path
from typing import Any

COUNT = 300
Event = dict[str, Any]


def _events(size: Any) -> list[Event]:
    """Times in ms; `size` makes the members that state the size."""
    sent = [(float(n), "packet_sent", n, size(1200), []) for n in range(COUNT)]
    acks = [
        (n + 20.0, "packet_received", n, size(40), [{"frame_type": "ack", "acked_ranges": [[0, n]]}])
        for n in range(COUNT)
    ]
    return [
        {"time": time, "name": name, "number": number, "size": sized, "frames": frames}
        for time, name, number, sized, frames in sorted(sent + acks, key=lambda row: row[0])
    ]


def _sequence(head: Event, events: list[Event], begin: str = "\x1e") -> str:
    return "".join(f"{begin}{json.dumps(one, separators=(',', ':'))}\n" for one in [head, *events])


def mvfst() -> str:
    """Draft-00 in mvfst's form: lists of fields, microseconds as text, and mvfst's names of metrics."""
    rows: list[Any] = []
    for event in _events(lambda size: {"packet_size": size}):
        header = {"packet_number": event["number"], **event["size"]}
        frames = [{**frame, "frame_type": "ack_ecn", "ack_delay": 0} for frame in event["frames"]]
        data = {"frames": frames, "header": header, "packet_type": "1RTT"}
        rows.append([str(round(event["time"] * 1000)), "TRANSPORT", event["name"], "DEFAULT", data])
    window = {"bytes_in_flight": 24_000, "current_cwnd": 36_000, "congestion_event": "congestion packet ack"}
    rows.append(["319000", "METRIC_UPDATE", "congestion_metric_update", "DEFAULT", window])
    rtts = {"latest_rtt": 20_000, "min_rtt": 20_000, "smoothed_rtt": 20_000, "ack_delay": 0}
    rows.append(["319000", "METRIC_UPDATE", "metric_update", "DEFAULT", rtts])
    trace = {
        "common_fields": {"dcid": "", "protocol_type": "QUIC_HTTP3", "reference_time": "0", "scid": ""},
        "configuration": {"time_offset": 0, "time_units": "us"},
        "event_fields": ["relative_time", "category", "event_type", "trigger", "data"],
        "events": rows,
        "title": "mvfst qlog from single connection",
        "vantage_point": {"name": "server", "type": "SERVER"},
    }
    return json.dumps({"qlog_version": "draft-00", "title": "mvfst qlog", "traces": [trace]})


def draft_01() -> str:
    """Draft-01: lists of fields, milliseconds, a group for each event."""
    rows = [
        [
            event["time"],
            "c0ffee",
            "transport",
            event["name"],
            {
                "packet_type": "1RTT",
                "header": {"packet_number": str(event["number"]), **event["size"]},
                "frames": [
                    {**frame, "acked_ranges": [[str(end) for end in pair] for pair in frame["acked_ranges"]]}
                    for frame in event["frames"]
                ],
            },
        ]
        for event in _events(lambda size: {"packet_size": size})
    ]
    trace = {
        "vantage_point": {"type": "server"},
        "event_fields": ["relative_time", "group_id", "CATEGORY", "EVENT_TYPE", "DATA"],
        "events": rows,
    }
    return json.dumps({"qlog_version": "draft-01", "traces": [trace]})


def _objects(space: str) -> list[Event]:
    return [
        {
            "time": event["time"],
            "name": f"{space}:{event['name']}",
            "data": {
                "header": {"packet_type": "1RTT", "packet_number": event["number"]},
                "raw": event["size"],
                "frames": event["frames"],
            },
        }
        for event in _events(lambda size: {"length": size, "payload_length": size - 20})
    ]


def quiche() -> str:
    """0.3 in JSON-SEQ as quiche and quinn write it with the qlog crate."""
    trace = {
        "vantage_point": {"type": "server"},
        "title": "quiche-server",
        "description": "quiche-server qlog id=f0",
        "configuration": {"time_offset": 0.0},
    }
    head = {"qlog_version": "0.3", "qlog_format": "JSON-SEQ", "title": "quiche-server qlog", "trace": trace}
    metrics = {"time": 319.0, "name": "recovery:metrics_updated"}
    data = {"min_rtt": 20.0, "smoothed_rtt": 20.0, "congestion_window": 36_000, "bytes_in_flight": 24_000}
    return _sequence(head, [*_objects("transport"), {**metrics, "data": data}])


def lines() -> str:
    """Draft-02 with an event per line, times as differences."""
    events = _objects("transport")
    before = 0.0
    for event in events:
        event["time"], before = event["time"] - before, event["time"]
    trace = {"vantage_point": {"type": "server"}, "common_fields": {"time_format": "delta"}}
    return _sequence({"qlog_version": "draft-02", "qlog_format": "NDJSON", "trace": trace}, events, "")


def contained() -> str:
    """The schema of drafts from 10 on: one document, namespace quic, times since 1970."""
    events = _objects("quic")
    for event in events:
        event["time"] += 1_700_000_000_000.0
    clock = {"clock_type": "system", "epoch": "1970-01-01T00:00:00.000Z"}
    trace = {
        "event_schemas": ["urn:ietf:params:qlog:events:quic-12"],
        "vantage_point": {"type": "server"},
        "common_fields": {"time_format": "relative_to_epoch", "reference_time": clock},
        "events": events,
    }
    head = {"file_schema": "urn:ietf:params:qlog:file:contained"}
    return json.dumps({**head, "serialization_format": "application/qlog+json", "traces": [trace]})


def main() -> None:
    """Writes all forms."""
    folder = Path(sys.argv[1])
    forms = {
        "mvfst-draft-00.qlog": mvfst,
        "draft-01.qlog": draft_01,
        "quiche-0.3.sqlog": quiche,
        "lines-draft-02.qlog": lines,
        "contained-0.4.qlog": contained,
    }
    for name, make in forms.items():
        (folder / f"{name}.gz").write_bytes(gzip.compress(make().encode(), 9, mtime=0))


if __name__ == "__main__":
    main()
