"""Answers of another host are checked before use: the host may be broken, or lie."""

from __future__ import annotations

import copy
import json
import os
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from narrows.agent import process, schema
from narrows.agent.location import ROOT, USER, Location, find_agent
from narrows.agent.session import Lines
from narrows.documents.agent import HostFacts
from narrows.documents.data import from_data, to_data
from narrows.errors import UnavailableError
from narrows.hosts import check, clocks, path_probe, sysctls
from narrows.text import has_hidden

_LIAR = Path(__file__).with_name("lying_agent.py")

_ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from([2**62, -(2**63), 10**400])
    | st.floats()
    | st.text()
    | st.sampled_from(["1e999", "-1", "\x1b[2J", "a\nb", "٣"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


def here() -> Location:
    return Location("near", [str(find_agent())], USER)


@cache
def facts() -> dict[str, Any]:
    found = to_data(here().ask(HostFacts, "host"))
    change = {"name": "net.core.rmem_max", "before": 1, "now": 2}
    keeper = {"program": "chrony", "reference": "192.0.2.7", "stratum": 2}
    found["clock"] |= {"bound_ns": 5, "correction_ppb": 7, "keeper": keeper}
    return {**found, "left_behind": [change]}


def _paths(value: Any, before: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [before, *(path for key, one in inside for path in _paths(one, (*before, key)))]


def _copied(document: dict[str, Any], path: tuple[Any, ...]) -> tuple[dict[str, Any], Any]:
    """A copy, and the part of it that contains the last step of the path."""
    made = copy.deepcopy(document)
    place: Any = made
    for key in path[:-1]:
        place = place[key]
    return made, place


def _changed(document: dict[str, Any], path: tuple[Any, ...], value: Any) -> Any:
    if not path:
        return value
    made, place = _copied(document, path)
    place[path[-1]] = value
    return made


def _without(document: dict[str, Any], path: tuple[Any, ...]) -> dict[str, Any]:
    made, place = _copied(document, path)
    del place[path[-1]]
    return made


def _use(theirs: Any) -> None:
    """Performs everything that uses a host's facts: it must succeed, or refuse them in one line."""
    try:
        host = schema.read_answer("far", theirs, HostFacts)
    except UnavailableError as error:
        told = str(error)
        assert told.startswith("far: the agent's answer is malformed: ") and not has_hidden(told), told
        return
    ours = from_data(facts(), HostFacts)
    rows = check._machines(here(), Location("far", [], ROOT), ours, host)
    assert not any(has_hidden(word) for row in rows for word in (row.here, row.there))
    sysctls.plan_changes(host)
    clocks.by_ntp(ours.clock, host.clock)


# The first example asks the agent.
@settings(deadline=None)
@given(st.data())
def test_facts_of_a_host_are_used_or_refused(data: st.DataObject) -> None:
    path = data.draw(st.sampled_from(_paths(facts())))
    _use(_changed(facts(), path, data.draw(_ANYTHING)))


def test_missing_facts_of_a_host_are_tolerated_or_refused() -> None:
    for path in filter(None, _paths(facts())):
        _use(_without(facts(), path))


@given(st.binary(max_size=60) | st.integers(1, 100_000).map(lambda depth: b"[" * depth))
def test_lines_that_are_no_objects_are_none(line: bytes) -> None:
    found = schema.parse(line)
    assert found is None or isinstance(found, dict)


def _best(**changes: Any) -> dict[str, Any]:
    stamps = {"asked_ns": 0, "arrived_ns": 1, "answered_ns": 1, "back_ns": 2, "seen": "127.0.0.1:9"}
    return stamps | changes


def _opened(**changes: Any) -> str:
    return json.dumps({"opened": [{"asked": 0, "port": 1, "index": 0, "why": None} | changes]})


def _report(**changes: Any) -> str:
    port: dict[str, Any] = {
        "packets": 0,
        "largest": 0,
        "from": None,
        "answers": {},
        "best": None,
        "strangers": 0,
    }
    return json.dumps({"ports": [port | changes]})


@pytest.mark.parametrize(
    ("number", "words", "told"),
    [
        (0, "no JSON", r"far: the agent answers with something that is not a JSON object: b'no JSON'"),
        (0, '{"clock_shift_ns": "late"}', r"its answer.clock_shift_ns is not a whole number"),
        (
            0,
            '{"event": "error", "message": {"a": 1}}',
            "far: the agent failed without giving a reason",
        ),
        (1, '{"opened": []}', "far: the agent opened other ports than it was asked for"),
        (1, '{"opened": {}}', "its answer.opened is not a list"),
        (1, _opened(index=True), r"opened\[0\].index is not a whole number"),
        (1, '{"opened": [{"asked": 0}]}', r"its answer.opened\[0\].port is missing"),
        (1, '{"error": "\\u001b[2J"}', "far: the agent failed without giving a reason"),
        pytest.param(
            2, "[" * 50_000, "far: the agent answers with something that is not a JSON object", id="deep"
        ),
        (2, _report(**{"from": "nowhere"}), r"its answer.ports\[0\].from is not an IP address with port"),
        (
            2,
            _report(**{"from": "[fe80::1%\x1b]:9"}),
            r"its answer.ports\[0\].from is not an IP address with port",
        ),
        (
            2,
            _report(answers={"127.0.0.1:x": 1}),
            r"a name in its answer.ports\[0\].answers is not an IP address",
        ),
        (2, _report(best=_best(back_ns=1e300)), r"best.back_ns is not a whole number"),
        (2, _report(largest=-1), r"its answer.ports\[0\].largest is not a count"),
    ],
)
def test_an_examination_with_a_lying_agent_reports_the_error(
    number: int, words: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(path_probe, "_PATIENCE_S", 0.1)
    liar = Location("far", [sys.executable, str(_LIAR), str(number), words, str(find_agent())], USER)
    with pytest.raises(UnavailableError, match=told) as caught:
        path_probe.probe_path(here(), liar, "127.0.0.1", [0])
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    "says",
    [
        "printf '{\"chang'; cat >/dev/null",
        "while printf x; do sleep 0.05; done",
        "yes | tr -d '\\n'",
    ],
    ids=["half a line", "a letter now and then", "a line without end"],
)
def test_an_answer_without_end_is_not_waited_for(says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sysctls, "_ANSWER_S", 0.5)
    # A process that did not end with its pipes would be waited for longer than a test may last.
    monkeypatch.setattr(process, "_DEATH_S", 1000.0)
    liar = Location("far", ["sh", "-c", says], ROOT)
    with pytest.raises(UnavailableError, match="far: the agent does not answer any more"):
        sysctls.SysctlOverride(liar).__enter__()


@given(st.lists(st.binary(max_size=5)))
def test_lines_come_whole_however_they_are_cut(pieces: list[bytes]) -> None:
    ends = os.pipe()
    with os.fdopen(ends[0], "rb") as stream:
        heard = Lines(stream, 1 << 10)
        for piece in filter(None, pieces):
            os.write(ends[1], piece)
            heard.read()
        os.close(ends[1])
        told = iter(lambda: heard.next(5.0), None)
        assert list(told) == b"".join(pieces).split(b"\n")[:-1]
        assert heard.ended and not heard.endless


def test_with_an_honest_agent_in_its_place_the_examination_finds_the_way() -> None:
    honest = Location("far", [sys.executable, str(_LIAR), "-1", "", str(find_agent())], USER)
    way = path_probe.probe_path(here(), honest, "127.0.0.1", [39_471])
    # Only one machine has the port.
    assert way.we_may_listen == [39_471] and way.rtt_ns
