"""Real-time schemes in scenarios: their allowed settings, and the errors for others."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from compare_kit import on_terminal
from narrows import _native
from narrows.campaign.plan import make_plan
from narrows.documents.agent import MachineFacts
from narrows.errors import ScenarioError
from narrows.report import data, figures, tables
from narrows.report.drawing import Options
from narrows.scenario import loads, registry
from narrows.scenario.schema import schema
from narrows.schemes import reference
from narrows.schemes.listing import NATIVE, Machine, describe
from report_campaigns import Spec, write_campaign

HERE = Path(__file__).resolve().parent

METRONOME: dict[str, Any] = {
    "name": "metronome",
    "summary": "Frames at a steady beat",
    "source": "made for tests",
    "ecn": "none",
    "page": "Frames at a steady beat.\n\nProvenance: made for tests. Deviations: none.\n",
    "media": True,
    "frames": True,
    "transport": {},
    "profiles": [
        {
            "name": "small",
            "doc": "Small packets.",
            "params": {"beat": 20_000_000},
            "transport": {"packet_size": 600},
        }
    ],
    "params": [
        {
            "name": "beat",
            "kind": "span",
            "choices": None,
            "default": 40_000_000,
            "min": None,
            "max": None,
            "required": False,
            "doc": "Time between two frames.",
            "source": "",
        }
    ],
}

SCENARIO = """\
schema: narrows/scenario/1
question: Does it keep time?
path:
  forward: [{rate: 12 Mbit/s, queue: {droptail: 1 bdp}}, {delay: 20 ms}]
  backward: [{delay: 20 ms}]
schemes: [SCHEMES]
flows: {FLOWS}
duration: 10 s
"""


@pytest.fixture(autouse=True)
def known(monkeypatch: pytest.MonkeyPatch) -> registry.Registry:
    """The tests' registry with a real-time scheme in it."""
    document = json.loads((HERE / "registry.json").read_text())
    document["schemes"].append(METRONOME)
    size = {"name": "packet_size", "kind": "bytes", "default": 1500, "min": 128, "max": 9000}
    document["transport"].append(size)
    found = registry.parse(json.dumps(document))
    monkeypatch.setattr(registry, "load", lambda: found)
    return found


def written(schemes: str, flows: str = "count: 2, interval: 1 s") -> str:
    return SCENARIO.replace("SCHEMES", schemes).replace("FLOWS", flows)


def problems_of(text: str) -> list[str]:
    with pytest.raises(ScenarioError) as error:
        loads(text, "test.yaml")
    return [str(problem) for problem in error.value.problems]


def test_a_scheme_like_any_other() -> None:
    text = "reno, metronome, {scheme: metronome, profile: small}, {scheme: metronome, beat: 10 ms}"
    scenario = loads(written(text), "test.yaml")
    rows = {row.label: row.flows[1] for row in scenario.schemes}
    assert rows["metronome"].params == {"beat": 40_000_000}
    assert not rows["metronome"].transport
    small = rows["metronome profile=small"]
    assert (small.params, small.transport) == ({"beat": 20_000_000}, {"packet_size": 600})
    assert rows["metronome beat=10ms"].params == {"beat": 10_000_000}
    for where in ("simulate", "emulate"):
        scenario = loads(written(text).replace("duration", f"where: {where}\nduration"), "test.yaml")
        plan = make_plan(scenario, MachineFacts(congestion_controls=[]))
        assert not plan.skipped
        assert len(plan.cells) == 4


@pytest.mark.parametrize(
    ("word", "kind"), [("[small]", "a list"), ("{}", "keys with values"), ("", "nothing")]
)
def test_a_profile_is_one_name(word: str, kind: str) -> None:
    (said,) = problems_of(written(f"{{scheme: metronome, profile: {word}}}"))
    assert f"schemes.0.profile: must be one name, not {kind}; known: small" in said


def test_of_the_transport_it_takes_the_packet_size_only() -> None:
    right = "{scheme: metronome, transport: {packet_size: 800 B}}"
    flow = loads(written(right), "test.yaml").schemes[0].flows[0]
    assert flow.transport == {"packet_size": 800}
    (said,) = problems_of(written("{scheme: metronome, transport: {initial_window: 4 packets}}"))
    assert "transport.initial_window: unknown key; allowed here: packet_size" in said


def test_it_carries_no_traffic_and_has_one_connection() -> None:
    (said,) = problems_of(written("reno, metronome", "count: 2, connections: 3"))
    assert "metronome has one connection; remove connections" in said
    said_all = problems_of(written("metronome", "traffic: {web: 1 Mbit/s}"))
    assert len(said_all) == 1
    assert "metronome has no traffic but its own media; remove traffic" in said_all[0]
    # A default may be written explicitly.
    loads(written("metronome", "connections: 1, traffic: bulk"), "test.yaml")


def test_the_schema_knows_it(known: registry.Registry) -> None:
    definitions = schema(known)["definitions"]
    one = jsonschema.Draft7Validator({"$ref": "#/definitions/scheme", "definitions": definitions})
    for good in ({"transport": {"packet_size": "1200 B"}}, {"profile": "small"}):
        assert one.is_valid({"scheme": "metronome", **good}), good
    for bad in ({"transport": {"ack_every": "2 packets"}}, {"profile": "large"}):
        assert not one.is_valid({"scheme": "metronome", **bad}), bad


def test_the_list_and_the_reference_describe_real_time_schemes(known: registry.Registry) -> None:
    info = describe(known.schemes["metronome"], NATIVE, Machine(MachineFacts(), None))
    assert info.planes == ("simulate", "emulate")
    assert (info.to_json()["media"], info.to_json()["frames"]) == (True, True)
    assert describe(known.schemes["reno"], NATIVE, Machine(MachineFacts(), None)).to_json()["media"] is False
    text = reference.markdown(known)
    assert "A real-time scheme: it is both ends of a flow, and sends the frames of an encoder." in text


def test_the_report_tells_of_frames_where_there_are_any(tmp_path: Path) -> None:
    with_frames = [one["name"] for one in json.loads(_native.registry())["schemes"] if one.get("frames")]
    specs = [
        Spec("cubic", runs_as=("cubic",)),
        *(Spec(name, runs_as=(name, "cubic")) for name in with_frames),
    ]
    campaign = data.load(write_campaign(tmp_path / "made", specs, simulated=True))
    figure = figures.registry()["frames"]
    shown = {metric.name for metric in tables.meaningful_metrics(campaign)}
    about_frames = {"frame_delay_p95_ns", "frame_loss_ratio", "freezes", "media_sent_bps"}
    if not with_frames:
        assert tables.medians(campaign, "frames") is None
        assert not shown & about_frames
        assert figure.absent(campaign)
        return
    assert about_frames <= shown
    table = tables.medians(campaign, "frames")
    assert table is not None
    # A row for each flow that sends frames, and none for the bulk flows.
    assert [row[0].text for row in table.rows] == with_frames
    assert figure.absent(campaign) is None
    assert set(figure.numbers(campaign)["scheme"]) == set(with_frames)
    assert figure.figure(campaign, Options()).axes


def test_the_terminal_has_one_table_of_frames(tmp_path: Path) -> None:
    text = "schema: narrows/scenario/1\nquestion: Does the picture freeze?\nwhere: simulate\n"
    text += "path: {forward: [{rate: 3 Mbit/s, queue: {droptail: 1 bdp}}, {delay: 20 ms}]}\n"
    (tmp_path / "s.yaml").write_text(text + "schemes: [gcc, scream, cubic]\nduration: 3 s\n")
    for flows in ("1", "2"):
        words = ("s.yaml", "-o", flows, "--no-report", "--flows", flows)
        on_terminal("run", *words, columns=100, cwd=tmp_path)
    shown = on_terminal("show", tmp_path / "1", columns=100)
    table = shown[shown.index("frames lost") :]
    assert re.findall(r"^(gcc|scream|cubic) .* [0-9.]+\s*$", table, re.MULTILINE) == ["gcc", "scream"]
    # With several flows, each has a row.
    shown = on_terminal("show", tmp_path / "2", columns=100)
    table = shown[shown.index("frames lost") :]
    assert re.findall(r"^(?:gcc|scream) +([12]) ", table, re.MULTILINE) == ["1", "2", "1", "2"]
