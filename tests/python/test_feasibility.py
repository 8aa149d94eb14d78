"""Impossible settings are refused in the plan: with the reason, the place and the allowed values.

The oracle is the simulator: a refused setting lets no data through there, and its nearest allowed neighbour
does.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from pathlib import Path
from typing import Any

import pytest

from campaign_kit import narrows
from narrows import _native
from narrows.errors import ScenarioError
from narrows.scenario import chance, loads, registry
from narrows.scenario.files import name_in_store
from narrows.scenario.loading import load_text
from narrows.scenario.model import cells_of

BASE = """\
schema: narrows/scenario/1
question: Why?
where: simulate
duration: 1 s
schemes: [reno]
path:
  forward: [{rate: 10 Mbit/s, queue: QUEUE}, {delay: DELAY}, ELEMENT]
"""


def scenario(
    element: str = "{mtu: 9 kB}", queue: str = "{droptail: 60 kB}", delay: str = "10 ms", more: str = ""
) -> str:
    return BASE.replace("QUEUE", queue).replace("DELAY", delay).replace("ELEMENT", element) + more


def simulated(text: str, seed: int = 1) -> tuple[dict[str, Any], str]:
    """The run of the only cell, whatever the plan says about it, and the digest of its packets."""
    planned = load_text(text, is_point=True).scenario
    cell = cells_of(planned)[0].to_json()
    with tempfile.TemporaryDirectory() as place:
        record, files = Path(place) / "record", Path(place) / "files"
        files.mkdir()
        for sha256, content in planned.files.contents.items():
            (files / name_in_store(planned.files.names[sha256], sha256)).write_bytes(content)
        run = json.loads(_native.simulate(json.dumps({**cell, "seed": seed}), record, files))
        return run, hashlib.sha256((record / "packets.parquet").read_bytes()).hexdigest()


def arrived(text: str) -> int:
    """The number of data packets of the first flow that arrive in the simulator."""
    return int(simulated(text)[0]["flows"][0]["receiver"]["received_packets"])


#: The refused setting, a part of the message, and the nearest allowed one.
OBSTACLES = [
    (
        {"queue": "{droptail: 1499 B}"},
        "room for 1.499 kB and packets have 1.5 kB",
        {"queue": "{droptail: 1500 B}"},
    ),
    ({"queue": "{codel: {bytes: 1 kB}}"}, "room for 1 kB", {"queue": "{codel: {bytes: 1500 B}}"}),
    ({"queue": "{fqcodel: {memory: 1 kB}}"}, "room for 1 kB", {"queue": "{fqcodel: {memory: 3 kB}}"}),
    ({"queue": "{droptail: 0.05 bdp}"}, "packets have 1.5 kB", {"queue": "{droptail: 0.1 bdp}"}),
    ({"element": "{loss: 100 %}"}, "every packet is lost", {"element": "{loss: 10 %}"}),
    ({"element": "{corrupt: 100 %}"}, "every packet is damaged", {"element": "{corrupt: 10 %}"}),
    (
        {"element": "{gilbert: {p: 100 %, r: 0 %}}"},
        "after the first are lost",
        {"element": "{gilbert: {p: 10 %, r: 50 %}}"},
    ),
    (
        {"element": "{gilbert: {p: 1 %, r: 1 %, good: 100 %}}"},
        "every packet is lost",
        {"element": "{gilbert: {p: 1 %, r: 50 %, good: 10 %}}"},
    ),
    (
        {"element": "{periodicloss: 1 packet}"},
        "every packet is lost",
        {"element": "{periodicloss: 9 packets}"},
    ),
    ({"element": "{gate: {open: false}}"}, "the gate is closed", {"element": "{gate: {open: true}}"}),
    (
        {"element": "{outage: {start: 0 s, length: 1 s}}"},
        "lasts as long as the scenario",
        {"element": "{outage: {start: 100 ms, length: 100 ms}}"},
    ),
    (
        {"element": "{policer: {rate: 5 Mbit/s, burst: 1 kB}}"},
        "never fit into the bucket of 1 kB",
        {"element": "{policer: {rate: 5 Mbit/s, burst: 10 kB}}"},
    ),
    (
        {"element": "{rate: 10 kbit/s}"},
        "takes longer than the whole scenario",
        {"element": "{rate: 100 kbit/s}"},
    ),
    ({"delay": "1 s"}, "the scenario is over before a packet of flow 1 arrives", {"delay": "100 ms"}),
    ({"delay": "40 s"}, "are 40 s", {"delay": "100 ms"}),
]


@pytest.mark.parametrize(("bad", "words", "good"), OBSTACLES)
def test_elements_that_no_packet_passes_are_refused_and_their_neighbours_are_not(
    bad: dict[str, str], words: str, good: dict[str, str]
) -> None:
    with pytest.raises(ScenarioError) as error:
        loads(scenario(**bad), "test.yaml")
    (problem,) = error.value.problems
    assert problem.position.startswith("test.yaml:") and problem.key and words in problem.text
    assert "; write" in problem.text
    # The bad state begins after the packet that triggers it.
    assert arrived(scenario(**bad)) == (1 if "the first" in words else 0)
    loads(scenario(**good), "test.yaml")
    assert arrived(scenario(**good)) > 0


def test_a_duration_below_the_round_trip_time_is_refused() -> None:
    with pytest.raises(ScenarioError) as error:
        loads(scenario(delay="500 ms"), "test.yaml")
    (problem,) = error.value.problems
    assert (problem.position, problem.key) == ("test.yaml:4:11", "duration")
    assert "its round-trip time is 1 s" in problem.text
    loads(scenario(delay="499 ms"))
    # Datagrams need no acknowledgements.
    flows = "flows: [{traffic: {cbr: 1 Mbit/s}}]\n"
    datagrams = scenario(delay="500 ms").replace("schemes: [reno]\n", flows)
    loads(datagrams)
    assert arrived(datagrams) > 0


def test_acknowledgements_that_never_come_back_are_refused() -> None:
    with pytest.raises(ScenarioError, match="no acknowledgement of flow 1 comes back"):
        loads(scenario() + "  backward: [{loss: 100 %}]\n")


def test_only_what_flows_pass_counts_and_what_a_timeline_changes_does_not() -> None:
    opened = scenario("{name: way, loss: 100 %}", more="timeline: [{at: 100 ms, set: {way: 1 %}}]\n")
    opened = opened.replace("duration: 1 s", "duration: 4 s")
    loads(opened)
    assert arrived(opened) > 0
    network = (
        "network: {hosts: [a, b, c], routers: [r], links: [{between: [a, r], forward: [{delay: 1 ms}]},"
        " {between: [r, b], forward: [{delay: 1 ms}]}, {between: [r, c], forward: [{loss: 100 %}]}]}\n"
    )
    text = scenario().partition("path:")[0] + network
    loads(text + "flows: [{from: a, to: b}]\n")
    with pytest.raises(ScenarioError, match=r"links\.2\.forward\.0\.loss: every packet is lost"):
        loads(text + "flows: [{from: a, to: c}]\n")


def test_a_combination_of_a_matrix_may_have_too_little_of_a_bdp_with_a_warning() -> None:
    text = scenario(queue="{droptail: 0.1 bdp}", more="matrix: {path.forward.1.delay: [1 ms, 20 ms]}\n")
    (warning,) = loads(text, "test.yaml").warnings
    assert "packets have 1.5 kB" in warning.text and warning.position.startswith("test.yaml:7:")


def test_the_round_trip_time_of_a_bdp_is_said_where_flows_have_extra_ones() -> None:
    text = scenario(queue="{droptail: 1 bdp}", more="flows: {count: 2, extra_rtt: [0 ms, 80 ms]}\n")
    resolved = loads(text, "test.yaml")
    # 10 Mbit/s x 20 ms / 8, by hand.
    assert resolved.to_json()["network"]["forward"][0]["queue"]["bytes"] == 25_000
    (warning,) = resolved.warnings
    assert "by the path's round-trip time of 20 ms, without the extra_rtt of flows" in warning.text
    assert not loads(text.replace("1 bdp", "25 kB")).warnings


def test_runs_without_chance_are_said_to_be_equal() -> None:
    (warning,) = loads(scenario(more="runs: 3\n"), "test.yaml").warnings
    assert (warning.position, warning.key) == ("test.yaml:8:7", "runs")
    assert "all 3 runs of a scheme are equal" in warning.text
    for other in (
        scenario(more="runs: 1\n"),
        scenario("{loss: 1 %}", more="runs: 3\n"),
        scenario(queue="{red: {bytes: 60 kB}}", more="runs: 3\n"),
        scenario(more="runs: 3\n").replace("[reno]", "[bbr1]"),
        scenario(more="runs: 3\n").replace("where: simulate", "where: emulate"),
        scenario(more="runs: 3\nflows: {count: 2, interval: 100 ms +- 10 ms}\n"),
        scenario(more="runs: 3\ndraw: {path.forward.1.delay: {uniform: [5 ms, 20 ms]}}\n"),
    ):
        assert not loads(other).warnings, other


def test_a_plan_prints_its_warnings_and_a_run_says_them(tmp_path: Path) -> None:
    file = tmp_path / "test.yaml"
    file.write_text(scenario(more="runs: 2\n"))
    assert "warning: " in narrows("run", file, "--dry-run").output
    plan = json.loads(narrows("run", file, "--dry-run", "--json").stdout)
    assert len(plan["warnings"]) == 1 and "are equal" in plan["warnings"][0]
    assert "are equal" in narrows("run", file, "-o", tmp_path / "out", "--no-report").output


def examples() -> list[tuple[str, str, str]]:
    """For each part that is declared deterministic: family, name, and the syntax on its page."""
    document = json.loads(_native.registry())
    return [
        (family, entry["name"], entry["example"]["written"])
        for family in ("links", "queues", "rates")
        for entry in document[family]
        if entry["name"] in chance.WITHOUT[family]
    ]


def test_parts_without_chance_are_parts_of_the_registry() -> None:
    known = registry.load()
    for family, names in chance.WITHOUT.items():
        assert set(names) <= {*getattr(known, family), "udp"}


@pytest.mark.parametrize(("family", "name", "written"), examples())
def test_a_part_without_chance_runs_equal_with_any_seed(family: str, name: str, written: str) -> None:
    text = scenario("{periodicloss: 200 packets}", more="flows: {count: 2, interval: 100 ms}\n")
    if family == "links":
        text = text.replace("{periodicloss: 200 packets}", written)
    elif family == "queues":
        text = text.replace("{droptail: 60 kB}", written)
    else:
        text = text.replace("rate: 10 Mbit/s", f"rate: {written}")
    assert simulated(text, 1)[1] == simulated(text, 2)[1], name


@pytest.mark.parametrize("scheme", [one for one in chance.WITHOUT["schemes"] if one != "udp"])
def test_a_scheme_without_chance_runs_equal_with_any_seed(scheme: str) -> None:
    text = scenario("{periodicloss: 200 packets}", more="flows: {count: 2, interval: 100 ms}\n")
    text = text.replace("[reno]", f"[{scheme}]").replace("duration: 1 s", "duration: 4 s")
    assert simulated(text, 1)[1] == simulated(text, 2)[1]


def test_chance_makes_runs_differ() -> None:
    for text in (scenario("{loss: 1 %}"), scenario().replace("[reno]", "[bbr1]")):
        assert simulated(text, 1)[1] != simulated(text, 2)[1]
