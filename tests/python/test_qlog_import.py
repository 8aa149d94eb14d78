"""Imports of qlog: odd events, connections, views of both ends, versions. Files are made by hand from
the drafts; those of real stacks are in the corpus (`test_corpus_qlog.py`)."""

from __future__ import annotations

import gzip
import json
import lzma
from pathlib import Path
from typing import Any

import pytest

from narrows.campaign import results
from narrows.errors import DataError
from narrows.formats import import_files

Event = dict[str, Any]
HEAD: Event = {
    "qlog_version": "0.3",
    "qlog_format": "JSON-SEQ",
    "trace": {"vantage_point": {"type": "server"}, "common_fields": {"time_format": "relative"}},
}


def packet(name: str, time: float, number: int, size: int, frames: Any = None, kind: str = "1RTT") -> Event:
    data: Event = {
        "header": {"packet_type": kind, "packet_number": number},
        "raw": {"length": size},
        "frames": [] if frames is None else frames,
    }
    return {"time": time, "name": f"transport:packet_{name}", "data": data}


def ack(*ranges: list[int], kind: str = "ack") -> list[Event]:
    return [{"frame_type": kind, "acked_ranges": list(ranges)}]


def sender_events(count: int = 500, start: float = 0.0) -> list[Event]:
    """1200 bytes each millisecond, each acknowledged after 20 ms: 9.6 Mbit/s."""
    found = [packet("sent", start + number, number, 1200) for number in range(count)]
    found += [packet("received", start + n + 20, n, 40, ack([n, n])) for n in range(count)]
    return sorted(found, key=lambda event: event["time"])


def sequence(events: list[Any], head: Event = HEAD) -> str:
    texts = [event if isinstance(event, str) else json.dumps(event) for event in [head, *events]]
    return "".join(f"\x1e{text}\n" for text in texts)


class Imported:
    """The runs of some files."""

    def __init__(self, folder: Path, *files: Path) -> None:
        self.said: list[str] = []
        done = import_files("qlog", list(files), folder / "campaign", say=self.said.append)
        found = results.read(folder / "campaign")
        self.rows = found.rows
        self.records = [
            json.loads((cell / "run.json").read_text(encoding="utf-8"))
            for cell in sorted((folder / "campaign" / "cells").iterdir())
        ]
        self.unread = {part.kind: part.count for part in done.unread}

    def rate(self, flow: int | str = "all") -> float:
        value = next(row.metrics for row in self.rows if row.flow == flow)["throughput_bps"]
        assert value is not None
        return float(value) / 1e6

    @property
    def verdict(self) -> str:
        return str(self.records[0]["verdict"])


def import_text(folder: Path, text: str, name: str = "stack.sqlog") -> Imported:
    (folder / name).write_text(text, encoding="utf-8")
    return Imported(folder, folder / name)


#: An inserted event, the kind that is counted, and whether the numbers then rest on a part of the file.
ODD: dict[str, tuple[Any, str, bool]] = {
    "no JSON": (
        '{"time": 3, "name": "transport:packet_sent", "data": {"raw": NaN}}',
        "events that are not JSON objects",
        True,
    ),
    "half a record": ('{"time": 3, "name": "transport:packet_sent", "da', "records that are not JSON", True),
    "a list": ([1, 2, 3], "events that are not JSON objects", True),
    "a number": ("17", "records that are not JSON", True),
    "no time": ({**packet("sent", 0, 9000, 1200), "time": None}, "events without a time", True),
    "no data": ({"time": 3, "name": "transport:packet_sent", "data": None}, "events without data", True),
    "frames of null": (
        {"time": 3, "name": "transport:packet_received", "data": {"raw": {"length": 40}, "frames": None}},
        "received packets whose frames are not logged",
        True,
    ),
    "an odd frame": (packet("received", 3, 9001, 40, [7]), "frames that are not objects", True),
    "ranges of null": (
        packet("received", 3, 9002, 40, [{"frame_type": "ack", "acked_ranges": None}]),
        "acknowledgements without ranges",
        True,
    ),
    "an odd range": (
        packet("received", 3, 9003, 40, [{"frame_type": "ack", "acked_ranges": [["x", None]]}]),
        "ranges of acknowledgements that are not numbers",
        True,
    ),
    "another kind": ({"time": 3, "name": "h3:frame_created", "data": {}}, "frame_created", False),
}


@pytest.mark.parametrize("what", ODD)
def test_an_unreadable_event_is_skipped_alone_and_counted(tmp_path: Path, what: str) -> None:
    event, kind, matters = ODD[what]
    events = sender_events()
    found = import_text(tmp_path, sequence([*events[:100], event, *events[100:]]))
    assert found.rate() == pytest.approx(9.6, rel=0.01)
    counts = [count for name, count in found.unread.items() if kind in name]
    assert counts == [1], found.unread
    assert found.verdict == ("degraded" if matters else "ok")
    assert any(kind in sentence for sentence in found.said)


@pytest.mark.parametrize("what", ["frames", "raw", "header", "trigger"])
def test_a_field_of_null_leaves_the_others(tmp_path: Path, what: str) -> None:
    events = sender_events()
    events[50]["data"][what] = None
    found = import_text(tmp_path, sequence(events))
    assert found.rate() == pytest.approx(9.6, rel=0.01)
    assert found.records[0]["flows"][0]["sender"]["sent_packets"] == 500


def test_sizes_count_even_without_frames_of_sent_packets(tmp_path: Path) -> None:
    events = sender_events()
    for event in events:
        if event["name"].endswith("sent"):
            event["data"]["frames"] = None
    head = {"qlog_version": "0.3", "traces": [{**HEAD["trace"], "events": events}]}
    found = import_text(tmp_path, json.dumps(head), "stack.qlog")
    assert found.rate() == pytest.approx(9.6, rel=0.01)
    assert (found.verdict, found.unread) == ("ok", {})


def test_a_log_without_sizes_is_not_taken_for_that_of_a_receiver(tmp_path: Path) -> None:
    events = sender_events()
    for event in events:
        if event["name"].endswith("sent"):
            event["data"]["raw"] = None
    found = import_text(tmp_path, sequence(events))
    assert found.rows[0].metrics["throughput_bps"] is None
    assert found.unread == {"packets without a size": 500}
    assert found.verdict == "degraded"


def test_a_truncated_document_is_read_up_to_its_end(tmp_path: Path) -> None:
    text = json.dumps({"qlog_version": "0.3", "traces": [{**HEAD["trace"], "events": sender_events()}]})
    found = import_text(tmp_path, text[: len(text) * 9 // 10], "cut.qlog")
    assert found.rate() == pytest.approx(9.6, rel=0.02)
    assert found.unread == {"records that the end of the file cuts off": 1}


def test_times_that_only_grow_are_no_differences(tmp_path: Path) -> None:
    trace = {"vantage_point": {"type": "server"}, "common_fields": {"time_format": "delta"}}
    found = import_text(tmp_path, sequence(sender_events(), {**HEAD, "trace": trace}))
    assert found.verdict == "degraded"
    assert found.rate() == pytest.approx(9.6, rel=0.01)


def test_acknowledgements_that_repeat_their_ranges_count_once(tmp_path: Path) -> None:
    events = [packet("sent", number, number, 1200) for number in range(6000)]
    events += [packet("received", n + 20.5, n, 40, ack([0, n])) for n in range(6000)]
    found = import_text(tmp_path, sequence(events))
    assert found.rate() == pytest.approx(9.6, rel=0.01)
    assert found.records[0]["flows"][0]["sender"]["sent_bytes"] == 6000 * 1200


def test_packet_number_spaces_are_apart(tmp_path: Path) -> None:
    events = sender_events()
    # An Initial packet 400 that is never acknowledged, and an acknowledgement of Handshake packets 0 to 499.
    events.insert(0, packet("sent", 0, 400, 1000, kind="Initial"))
    events.insert(1, packet("received", 0.5, 0, 60, ack([0, 499]), kind="handshake"))
    found = import_text(tmp_path, sequence(events))
    assert found.rate() == pytest.approx(9.6, rel=0.01)


@pytest.mark.parametrize("key", ["group_id", "ODCID"])
def test_connections_that_a_trace_names_are_flows_of_one_run(tmp_path: Path, key: str) -> None:
    events = [{**event, key: name} for event in sender_events() for name in ("aa", "bb")]
    found = import_text(tmp_path, sequence(events))
    assert len(found.records) == 1
    assert found.rate(1) == pytest.approx(9.6, rel=0.01)
    assert found.rate(2) == pytest.approx(9.6, rel=0.01)
    assert found.rate() == pytest.approx(19.2, rel=0.01)


def handshake(ours: str, theirs: str, first: str, at: float) -> list[Event]:
    """The Initial packets of a server's connection: received, and the answer."""
    came = packet("received", at, 0, 1200, kind="initial")
    came["data"]["header"] |= {"dcid": first, "scid": theirs}
    answer = packet("sent", at + 0.1, 0, 1200, ack([0, 0]), kind="initial")
    answer["data"]["header"] |= {"dcid": theirs, "scid": ours}
    return [came, answer]


def with_ids(events: list[Event], ours: str, theirs: str, at: float) -> list[Event]:
    for event in events:
        event["time"] += at
        event["data"]["header"]["dcid"] = theirs if event["name"].endswith("sent") else ours
    return events


def test_unnamed_connections_are_distinguished_by_their_ids(tmp_path: Path) -> None:
    events = []
    for index in range(2):
        ours, theirs = f"s{index}", f"c{index}"
        events += handshake(ours, theirs, f"o{index}", index / 4)
        events += with_ids(sender_events(), ours, theirs, index / 4 + 1)
    events.sort(key=lambda event: event["time"])
    found = import_text(tmp_path, sequence(events))
    assert len(found.rows) == 3
    assert found.rate() == pytest.approx(19.2, rel=0.01)


def test_a_connection_that_migrates_is_one_flow(tmp_path: Path) -> None:
    events = handshake("s0", "c0", "o0", 0.0)
    later = with_ids(sender_events(), "s0", "c0", 1)
    for event in later[600:]:
        event["data"]["header"]["dcid"] += "-new"
    found = import_text(tmp_path, sequence(events + later))
    assert {row.flow for row in found.rows} == {1, "all"}
    assert found.rate() == pytest.approx(9.6, rel=0.01)


#: 2023-11-14T22:13:20Z in ms.
EPOCH = 1_700_000_000_000.0


def views(start: float | None = EPOCH, group: str = "c0ffee") -> dict[str, str]:
    """Both ends of a connection: a packet each millisecond with a delay of 15 ms, every 50th lost."""
    ends: dict[str, list[Event]] = {"server": [], "client": []}
    base = start or 0.0
    for number in range(500):
        ends["server"].append(packet("sent", base + number, number, 1200))
        if number % 50 == 49:
            continue
        ends["client"].append(packet("received", base + number + 15, number, 1200))
        ends["client"].append(packet("sent", base + number + 15.1, number, 40, ack([number, number])))
        ends["server"].append(packet("received", base + number + 30.1, number, 40, ack([number, number])))
    texts = {}
    for end, events in ends.items():
        common: Event = {"time_format": "relative" if start is None else "absolute"}
        common |= {"ODCID": group} if group else {}
        trace = {"vantage_point": {"type": end}, "common_fields": common}
        events.sort(key=lambda event: event["time"])
        texts[end] = sequence(events, {"qlog_version": "0.3", "qlog_format": "JSON-SEQ", "trace": trace})
    return texts


def write_views(folder: Path, texts: dict[str, str], name: str = "run") -> list[Path]:
    files = []
    for end, text in texts.items():
        files.append(folder / f"{name}_{end}.sqlog")
        files[-1].write_text(text, encoding="utf-8")
    return files


@pytest.mark.parametrize("group", ["c0ffee", ""])
def test_both_ends_of_a_connection_are_one_run_with_its_delays(tmp_path: Path, group: str) -> None:
    found = Imported(tmp_path, *write_views(tmp_path, views(group=group)))
    assert len(found.records) == 1
    metrics = next(row.metrics for row in found.rows if row.flow == 1)
    assert metrics["delay_mean_ns"] == pytest.approx(15e6, rel=1e-3)
    # No packet arrived after the last lost one.
    assert metrics["loss_ratio"] == pytest.approx(9 / 499, rel=1e-3)
    assert metrics["throughput_bps"] == pytest.approx(490 * 1200 * 8 / 0.498, rel=0.01)


def test_both_ends_in_one_file_are_one_run(tmp_path: Path) -> None:
    text = "".join(views().values())
    found = import_text(tmp_path, text)
    assert len(found.records) == 1
    assert found.rows[0].metrics["delay_mean_ns"] == pytest.approx(15e6, rel=1e-3)


def test_both_ends_without_a_common_clock_are_one_run_of_the_senders_numbers(tmp_path: Path) -> None:
    found = Imported(tmp_path, *write_views(tmp_path, views(start=None)))
    assert len(found.records) == 1
    assert found.records[0]["import"]["sends_data"] is True
    sentence = next(reason["text"] for reason in found.records[0]["reasons"] if reason["code"] == "views")
    assert "run_server.sqlog" in sentence


def test_ends_of_different_connections_stay_apart(tmp_path: Path) -> None:
    one, other = views(group="aa"), views(start=EPOCH + 3_600_000, group="bb")
    files = write_views(tmp_path, {"server": one["server"]}, "a")
    files += write_views(tmp_path, {"client": other["client"]}, "b")
    assert len(Imported(tmp_path, *files).records) == 2


def test_runs_of_one_end_are_runs(tmp_path: Path) -> None:
    files = write_views(tmp_path, {"server": views(start=None)["server"]}, "x-r1")
    files += write_views(tmp_path, {"server": views(start=None, group="b0")["server"]}, "x-r2")
    assert len(Imported(tmp_path, *files).records) == 2


def test_names_of_mvfst_and_of_microseconds_are_read(tmp_path: Path) -> None:
    rows: list[Any] = []
    for event in sender_events():
        header = {"packet_number": event["data"]["header"]["packet_number"]}
        header["packet_size"] = event["data"]["raw"]["length"]
        frames = [{**frame, "frame_type": "ack_ecn"} for frame in event["data"]["frames"]]
        name = event["name"].partition(":")[2]
        data = {"packet_type": "1RTT", "header": header, "frames": frames}
        rows.append([str(round(event["time"] * 1000)), "TRANSPORT", name, "DEFAULT", data])
    update = {"bytes_in_flight": 12_000, "current_cwnd": 24_000}
    rows.append(["400000", "METRIC_UPDATE", "congestion_metric_update", "DEFAULT", update])
    rows.append(["400000", "METRIC_UPDATE", "metric_update", "DEFAULT", {"latest_rtt": 20_000}])
    trace = {
        "vantage_point": {"type": "SERVER"},
        "configuration": {"time_units": "us", "time_offset": 0},
        "common_fields": {"reference_time": "0"},
        "event_fields": ["relative_time", "category", "event_type", "trigger", "data"],
        "events": rows,
    }
    found = import_text(tmp_path, json.dumps({"qlog_version": "draft-00", "traces": [trace]}), "m.qlog")
    assert found.rate() == pytest.approx(9.6, rel=0.01)
    from narrows import _native

    states: Any = _native.state_series(next((tmp_path / "campaign" / "cells").iterdir()))[1]
    assert (states["cwnd_bytes"][-1], states["inflight_bytes"][-1], states["rtt_ns"][-1]) == (
        24_000,
        12_000,
        20e6,
    )


def test_a_version_that_is_not_known_is_named(tmp_path: Path) -> None:
    head = {**HEAD, "qlog_version": "7.1"}
    found = import_text(tmp_path, sequence(sender_events(), head))
    assert found.verdict == "degraded"
    assert found.rate() == pytest.approx(9.6, rel=0.01)
    assert any("'7.1'" in sentence for sentence in found.said)
    (tmp_path / "new.sqlog").write_text(sequence([{"t": 1, "n": "sent"}], head), encoding="utf-8")
    with pytest.raises(DataError, match=r"'7\.1'"):
        import_files("qlog", [tmp_path / "new.sqlog"], tmp_path / "d")


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress])
def test_compressed_logs_are_read(tmp_path: Path, pack: Any) -> None:
    (tmp_path / "stack.sqlog.packed").write_bytes(pack(sequence(sender_events()).encode()))
    assert Imported(tmp_path, tmp_path / "stack.sqlog.packed").rate() == pytest.approx(9.6, rel=0.01)
