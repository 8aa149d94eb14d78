"""Descriptions of schemes: the list, a page, the generated reference, the status."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from narrows.documents.agent import MachineFacts
from narrows.errors import DataError, ScenarioError
from narrows.scenario import registry
from narrows.scenario.registry import Entry, Param
from narrows.scenario.resolve import resolve
from narrows.scenario.yaml_tree import parse
from narrows.schemes import header, listing, page, reference, status
from narrows.schemes.listing import Machine

HERE = Machine(MachineFacts(kernel="6.18", congestion_controls=["reno", "cubic", "bbr"]), None)
NOWHERE = Machine(MachineFacts(), "emulation is not possible here: no agent")

PAGE = """Foo: a scheme.

Provenance: a paper (1999), second edition. Deviations: none.

It likes long paths.

| mode | meaning |
|---|---|
| a | b |

| parameter | default | source |
|---|---|---|
| c | 0.4 packets/s^3 | a paper, 2 |
| `beta` | 0.7 | a paper, 3; 0.8 elsewhere |
"""


def test_headers_are_taken_apart() -> None:
    told = header.read(PAGE)
    assert told.first == "Foo: a scheme."
    assert (told.provenance, told.deviations) == ("a paper (1999), second edition.", "none.")
    # Other tables remain part of the text.
    assert [text.split("\n")[0] for text in told.paragraphs[1:]] == [
        "It likes long paths.",
        "| mode | meaning |",
    ]
    assert (told.rows["c"].unit, told.rows["c"].source) == ("packets/s^3", "a paper, 2")
    assert (told.rows["beta"].unit, told.rows["beta"].source) == ("", "a paper, 3; 0.8 elsewhere")


def test_parts_in_paragraphs_of_their_own_are_found() -> None:
    told = header.read("X.\n\nDeviations: one,\ntwo.\n\nProvenance: a book.")
    assert (told.provenance, told.deviations) == ("a book.", "one, two.")


@pytest.mark.parametrize("name", registry.load().schemes)
def test_every_scheme_has_a_page_with_all_its_parameters(name: str) -> None:
    found = page.page_of(name, HERE)
    assert found.header.provenance
    assert found.header.deviations
    assert {row.name for row in found.params} == {
        param.name for param in registry.load().schemes[name].params
    }
    assert all(row.default and row.allowed and row.doc for row in found.params)
    sources = {param.name: param.source for param in registry.load().schemes[name].params}
    assert {row.name: row.source for row in found.params} == sources
    json.dumps(found.to_json())


def test_units_stand_beside_parameters() -> None:
    units = {row.name: row.unit for row in page.page_of("cubic", HERE).params}
    assert (units["c"], units["beta"]) == ("packets/s^3", "share")
    spans = Param("x", "span", (), 5_000_000, None, None, False, "A time.", "somewhere")
    (row,) = page.rows(_entry("foo", (spans,)), header.read(""))
    assert (row.unit, row.default, row.source) == ("ms", "5 ms", "somewhere")


def _entry(name: str, params: tuple[Param, ...] = (), native: str = "") -> Entry:
    return Entry(name, f"what {name} is", "a paper", params, (), page=PAGE, native=native)


def test_programs_and_kernel_schemes_know_their_counterparts(monkeypatch: pytest.MonkeyPatch) -> None:
    known = registry.load()
    program = _entry("bpf:cubic", native="cubic")
    extended = replace(
        known,
        schemes={**known.schemes, "bbr1": _entry("bbr1"), "cubic-linux": _entry("cubic-linux")},
        bpf={"bpf:cubic": program},
    )
    monkeypatch.setattr(registry, "load", lambda: extended)

    def names(name: str) -> list[str]:
        return [one.name for one in page.page_of(name, HERE).counterparts]

    assert names("cubic") == ["bpf:cubic", "cubic-linux", "linux:cubic"]
    assert names("cubic-linux") == ["cubic", "linux:cubic"]
    assert names("bbr1") == ["linux:bbr"]
    assert names("bpf:cubic")[0] == "cubic"
    assert names("linux:bbr") == ["bbr1"]
    listed = {one.name: one for one in listing.list_schemes(HERE)}
    assert listed["bpf:cubic"].kind == listing.BPF
    assert "simulate" not in listed["bpf:cubic"].planes


def test_missing_parts_are_reported() -> None:
    listed = {one.name: one for one in listing.list_schemes(NOWHERE)}
    assert listed["reno"].planes == ("simulate",)
    assert listed["reno"].missing == NOWHERE.trouble
    assert not any(one.kind == listing.LINUX for one in listed.values())


def test_unknown_names_get_a_hint() -> None:
    with pytest.raises(DataError, match='did you mean "cubic"'):
        page.page_of("cubik", HERE)
    with pytest.raises(DataError, match='this kernel has no scheme "nonsense"'):
        page.page_of("linux:nonsense", HERE)


def test_the_reference_names_everything() -> None:
    known = registry.load()
    text = reference.markdown(known)
    for entry in known.schemes.values():
        told = header.read(entry.page)
        section = text.split(f"\n## `{entry.name}`\n")[1].split("\n## ")[0]
        assert told.first in section
        assert told.deviations.split(".")[0][1:] in text
        for param in entry.params:
            assert f"| `{param.name}` |" in section


def test_the_status_comes_from_the_shipped_file(tmp_path: Path) -> None:
    file = tmp_path / "verification.json"
    assert status.status_of("reno", file).word == status.UNVERIFIED
    checks = [{"what": "a", "ok": True}]
    entries = {
        "reno": {"status": "verified", "date": "2026-01-01", "version": "1", "checks": checks},
        "cubic": {"status": "unverified", "reason": "too slow", "checks": []},
    }
    other = tmp_path / "other.json"
    other.write_text(json.dumps({"format": status.FORMAT, "schemes": entries}))
    assert status.status_of("reno", other).word == status.VERIFIED
    assert status.status_of("cubic", other).reason == "too slow"
    assert status.status_of("linux:cubic", other).word == status.REFERENCE
    assert status.status_of("foo", other).reason.startswith("it has not been checked")
    strange = tmp_path / "strange.json"
    strange.write_text(json.dumps({"format": "narrows/verification/2", "schemes": entries}))
    assert status.status_of("reno", strange).word == status.UNVERIFIED


def test_settings_and_profiles_are_shown_in_scenario_notation() -> None:
    told = page.page_of("copa", HERE)
    assert told.transport["min_rto"] == "2 s"
    assert "delta: 0.1" in told.profiles["pantheon"]
    assert "packet_size: 1.468 kB" in told.profiles["pantheon"]
    assert not page.page_of("reno", HERE).profiles


SETTINGS = """\
schema: narrows/scenario/1
question: Whose settings count?
path: {forward: [{rate: 12 Mbit/s, queue: {droptail: 1 bdp}}, {delay: 20 ms}], backward: [{delay: 20 ms}]}
schemes: [copa, {scheme: copa, profile: pantheon}, {scheme: copa, transport: {ack_every: 3 packets}},
  cubic, gcc]
background: [{scheme: copa}]
duration: 2 s
"""


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("", [{}, {"packet_size": 1468, "rack": False}, {"ack_every": 3}, {}, {}, {}]),
        # The scenario's settings take precedence over scheme and profile, even if they equal the general
        # default; unset ones follow the scenario's settings.
        (
            "transport: {reliable: true, ack_every: 2 packets, packet_size: 1500 B, min_rto: 300 ms}",
            [
                {"reliable": True, "ack_every": 2, "min_rto": 300_000_000},
                {"packet_size": 1500, "rack": False, "reliable": True, "ack_every": 2},
                {"ack_every": 3, "reliable": True},
                {},
                {},
                {"reliable": True, "ack_every": 2},
            ],
        ),
    ],
)
def test_written_settings_precede_those_of_profiles(written: str, expected: list[dict[str, object]]) -> None:
    scenario = resolve(parse(SETTINGS + written, "test.yaml"), registry.load(), "test.yaml", None)
    own = [row.flows[0].transport for row in scenario.schemes]
    own.append(scenario.schemes[0].flows[1].transport)
    for found, wanted in zip(own, expected, strict=True):
        assert wanted.items() <= found.items()
        assert bool(found) == bool(wanted)


@pytest.mark.parametrize(
    ("schemes", "settings", "place"),
    [
        ("[cubic]", "transport: {sack: false, acks_per_rtt: 4}", "transport.acks_per_rtt"),
        ("[cubic]", "transport: {sack: false, sack_reach: 30}", "transport.sack_reach"),
        ("[copa]", "transport: {reliable: false, sack: false}", "transport.reliable"),
        ("[{scheme: copa, transport: {sack: false, reliable: false}}]", "", "schemes.0.transport.reliable"),
    ],
)
def test_settings_that_need_selective_acknowledgements_are_refused_without(
    schemes: str, settings: str, place: str
) -> None:
    text = re.sub(r"schemes: \[.*\]\n", f"schemes: {schemes}\n", SETTINGS, flags=re.DOTALL) + settings
    with pytest.raises(ScenarioError, match=f"{place}: needs selective acknowledgements"):
        resolve(parse(text, "test.yaml"), registry.load(), "test.yaml", None)
