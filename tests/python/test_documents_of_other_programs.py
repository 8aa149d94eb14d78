"""Documents of other programs: members of another form are as if they were absent."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from narrows.documents.other_programs import read_foreign
from narrows.formats.imports import iperf3
from narrows.formats.imports._iperf3_documents import Counts, End, Output, Start


@pytest.mark.parametrize("data", [None, [], "start", 3, True])
def test_data_that_is_no_object_has_no_members(data: object) -> None:
    assert read_foreign(data, Counts) == Counts()


def test_members_of_another_form_are_absent_and_the_others_stay() -> None:
    data = {
        "socket": "5",
        "bytes": 1000,
        "start": True,
        "end": 10**400,
        "rtt": None,
        "sender": False,
        "new": 1,
    }
    assert read_foreign(data, Counts) == Counts(bytes=1000.0, sender=False)


def test_damage_is_confined_to_the_innermost_object() -> None:
    data = {
        "cookie": 3,
        "connected": [{"socket": 5, "local_port": "x"}, 7],
        "test_start": {"protocol": "UDP"},
    }
    start = read_foreign(data, Start)
    assert start.cookie == ""
    assert [(entry.socket, entry.local_port) for entry in start.connected] == [(5, 0), (None, 0)]
    assert start.test_start.protocol == "UDP"


def test_an_optional_object_with_a_damaged_member_keeps_the_others() -> None:
    end = read_foreign({"streams": [{"sender": {"bytes": 7, "end": "?"}, "udp": 1}, None]}, End)
    assert [part.sender and part.sender.bytes for part in end.streams] == [7.0, None]


def test_an_event_that_is_no_text_is_not_an_event() -> None:
    assert read_foreign({"event": ["start"], "data": {}}, Output).event == ""


def test_intervals_that_are_no_objects_are_counted(tmp_path: Path) -> None:
    rows = [{"streams": [{"socket": 5, "start": n, "end": n + 1, "bytes": 1000}]} for n in range(3)]
    document = {"start": {}, "intervals": [*rows, 7, {"streams": 3}], "end": {}}
    file = tmp_path / "odd.json"
    file.write_text(json.dumps(document), encoding="utf-8")
    (run,) = iperf3.read([file])
    assert {part.kind: part.count for part in run.unread if part.count} == {iperf3.ODD: 1}
