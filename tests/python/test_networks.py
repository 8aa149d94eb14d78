"""Networks of every shape: their resolved form, and the errors for bad ones."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

from narrows.errors import ScenarioError
from narrows.scenario import Override, load, loads
from narrows.scenario.model import Scenario, cells_of

pytestmark = pytest.mark.usefixtures("fixed_registry")

HEAD = "schema: narrows/scenario/1\nquestion: Why?\nduration: 10 s\nschemes: [reno]\n"

STAR = """\
topology:
  star:
    access: [{rate: 100 Mbit/s, queue: {droptail: 1 bdp}}, {delay: 1 ms}]
    hosts:
      left: {down: [{rate: 100 Mbit/s, queue: {toy_aqm: {}}}, {delay: 5 ms, name: slow}]}
"""

NETWORK = """\
network:
  hosts: {a: , b: {tcp_sack: 0}, c: }
  routers: [r1, r2, r3]
  links:
    - {between: [a, r1], elements: [{rate: 50 Mbit/s, queue: {droptail: 1 bdp}, name: nic}]}
    - {between: [r1, r2], forward: [{delay: 10 ms}], backward: [{delay: 20 ms}]}
    - {between: [r1, r3], forward: [{delay: 4 ms}, {loss: 1 %}]}
    - {between: [r3, r2], name: detour, forward: [{delay: 6 ms}]}
    - {between: [r2, b], forward: [{rate: 8 Mbit/s, queue: {droptail: 1 bdp}}]}
    - {between: [r2, c], forward: []}
flows: [{from: a, to: b}]
"""


def scenario_of(text: str, head: str = HEAD) -> Scenario:
    return loads(head + text, "test.yaml")


def problems_of(text: str, head: str = HEAD) -> list[str]:
    with pytest.raises(ScenarioError) as error:
        scenario_of(text, head)
    return [str(problem) for problem in error.value.problems]


def links(scenario: Scenario) -> dict[str, list[dict[str, Any]]]:
    return {link["name"]: link["elements"] for link in scenario.to_json()["network"]["links"]}


def routes(scenario: Scenario) -> dict[tuple[str, str], list[str]]:
    return {(one["from"], one["to"]): one["links"] for one in scenario.to_json()["network"]["routes"]}


def test_a_star_joins_four_hosts_at_a_router() -> None:
    scenario = scenario_of(STAR)
    assert scenario.topology == "star"
    assert [host["name"] for host in scenario.to_json()["network"]["hosts"]] == [
        "top",
        "bottom",
        "left",
        "right",
    ]
    assert scenario.to_json()["network"]["routers"] == ["center"]
    found = links(scenario)
    assert len(found) == 8
    assert found["right-center"][0]["rate"] == {"kind": "constant", "rate": 100_000_000}
    assert found["center-left"][0]["queue"]["kind"] == "toy_aqm"
    assert found["center-left"][1] == {"name": "slow", "kind": "delay", "delay": 5_000_000}
    assert found["left-center"][1] == {"name": "left-center.1", "kind": "delay", "delay": 1_000_000}
    # Flows go from right to left by default, and 1 bdp follows from their round trip.
    assert scenario.base_rtt_ns == 8_000_000
    assert found["right-center"][0]["queue"]["bytes"] == 100_000_000 * 8 // 8000
    assert routes(scenario) == {
        ("right", "left"): ["right-center", "center-left"],
        ("left", "right"): ["left-center", "center-right"],
    }
    flow = scenario.schemes[0].flows[0]
    assert (flow.origin, flow.target, flow.direction) == ("right", "left", "forward")


def test_a_dumbbell_may_have_hosts_with_other_access_links() -> None:
    scenario = scenario_of(
        "path: {forward: [{rate: 10 Mbit/s, queue: {droptail: 30 kB}}, {delay: 10 ms}]}\n"
        "topology: {dumbbell: {pairs: 2, access: [{delay: 1 ms}],"
        " hosts: {sender2: {up: [{delay: 21 ms}], down: []}}}}\n"
        "flows: {count: 3}\n"
    )
    found = links(scenario)
    assert list(found)[:2] == ["forward", "backward"]
    assert found["forward"][0]["name"] == "forward.0"
    assert found["backward"] == [{"name": "backward.0", "kind": "delay", "delay": 10_000_000}]
    assert found["sender2-router1"][0]["delay"] == 21_000_000
    assert found["router1-sender2"] == []
    flows = scenario.schemes[0].flows
    assert [(flow.origin, flow.target) for flow in flows] == [
        ("sender1", "receiver1"),
        ("sender2", "receiver2"),
        ("sender1", "receiver1"),
    ]
    assert scenario.base_rtt_ns == 24_000_000


def test_a_parking_lot_has_cross_flows() -> None:
    near = "{access: [{rate: 1 Gbit/s}, {delay: 10 ms}]}"
    scenario = scenario_of(
        "topology:\n  parking-lot:\n    hops: 3\n"
        "    forward: [{rate: 100 Mbit/s, queue: {droptail: 1 bdp}}, {delay: 10 ms}]\n"
        f"    access: [{{rate: 1 Gbit/s}}]\n    hosts: {{source1: &near {near}, sink1: *near, source2: *near,"
        " sink2: *near, source3: *near, sink3: *near}\n"
    )
    flows = [(flow.origin, flow.target) for flow in scenario.schemes[0].flows]
    assert flows == [("source", "sink"), ("source1", "sink1"), ("source2", "sink2"), ("source3", "sink3")]
    long = routes(scenario)["source", "sink"]
    assert long == [
        "source-router1",
        "router1-router2",
        "router2-router3",
        "router3-router4",
        "router4-sink",
    ]
    assert routes(scenario)["source2", "sink2"] == ["source2-router2", "router2-router3", "router3-sink2"]
    # All round trips are 60 ms, so 1 bdp is one amount on each of the three links.
    for hop in ("router1-router2", "router2-router3", "router3-router4"):
        assert links(scenario)[hop][0]["queue"]["bytes"] == 750_000


def test_a_chain_has_links_between_its_routers() -> None:
    scenario = scenario_of(
        "topology: {chain: {links: [{forward: [{delay: 5 ms}]}, {forward: [{delay: 7 ms}], backward: []}]}}\n"
    )
    assert list(links(scenario)) == [
        "sender-router1",
        "router1-sender",
        "router1-receiver",
        "receiver-router1",
    ]
    assert scenario.base_rtt_ns == 17_000_000


def test_free_network_and_its_routes() -> None:
    scenario = scenario_of(NETWORK)
    assert scenario.topology == "network"
    # Both via r3 and directly via r2 it takes 10 ms; the direct route has fewer links.
    assert routes(scenario)["a", "b"] == ["a-r1", "r1-r2", "r2-b"]
    # Back, the direct link takes 20 ms and the detour 10 ms.
    assert routes(scenario)["b", "a"] == ["b-r2", "detour.backward", "r3-r1", "r1-a"]
    assert scenario.base_rtt_ns == 20_000_000
    found = links(scenario)
    assert found["r3-r1"] == [{"name": "r3-r1.0", "kind": "delay", "delay": 4_000_000}]
    assert found["a-r1"][0]["name"] == "a-r1.nic"
    assert found["r1-a"][0]["name"] == "r1-a.nic"
    assert found["r2-b"][0]["queue"]["bytes"] == 8_000_000 * 20 // 8000
    assert scenario.to_json()["network"]["hosts"][1] == {"name": "b", "settings": {"tcp_sack": 0}}


def test_given_routes_replace_shortest_ones() -> None:
    scenario = scenario_of(
        NETWORK.replace("flows:", "  routes: [{from: a, to: b, via: [r1, r3, r2]}]\nflows:")
    )
    assert routes(scenario)["a", "b"] == ["a-r1", "r1-r3", "detour.forward", "r2-b"]
    assert scenario.base_rtt_ns == 20_000_000


def test_host_settings_of_a_path() -> None:
    text = "path: {forward: [{delay: 5 ms}]}\n"
    assert "hosts" not in scenario_of(text).to_json()["network"]
    found = scenario_of(
        text + "hosts: {receiver: {mtu: 1000 B, tcp_sack: 1}, all: {tcp_sack: 0}}\n"
    ).to_json()["network"]
    assert found["hosts"] == [
        {"name": "sender", "settings": {"tcp_sack": 0}},
        {"name": "receiver", "settings": {"tcp_sack": 1, "mtu": 1000}},
    ]


def test_bottlenecks_say_only_what_differs() -> None:
    text = "path: {forward: [{rate: 1 Mbit/s, queue: unlimited, overhead: 38 B, atm: false, name: dsl}]}\n"
    assert scenario_of(text).to_json()["network"]["forward"] == [
        {
            "name": "dsl",
            "kind": "bottleneck",
            "rate": {"kind": "constant", "rate": 1_000_000},
            "queue": {"kind": "unlimited"},
            "overhead": 38,
        }
    ]


def test_lists_and_steps_are_read_with_units() -> None:
    text = (
        "path:\n  forward:\n"
        "    - {rate: {toy_steps: [[0 s, 1 Mbit/s], [40 s, 2.5 Mbit/s]]}}\n"
        "    - {toy_list: [3, 7]}\n    - {toy_list: 5}\n    - {toy_moves: [[0 s, 1 ms], [2 s, 3 ms]]}\n"
    )
    rate, some, one, moves = scenario_of(text).to_json()["network"]["forward"]
    assert rate["rate"] == {"kind": "toy_steps", "steps": [[0, 1_000_000], [40 * 10**9, 2_500_000]]}
    assert some["packets"] == [3, 7] and one["packets"] == [5]
    assert moves["steps"] == [[0, 1_000_000], [2 * 10**9, 3_000_000]]


def test_only_the_fixed_delay_counts_for_the_round_trip() -> None:
    """Reordering has a parameter called delay as well, but most packets do not have it."""
    text = "path: {forward: [{delay: 5 ms}, {toy_reorder: {ratio: 1 %, delay: 50 ms}}]}\n"
    scenario = scenario_of(text)
    assert scenario.base_rtt_ns == 10_000_000
    assert [element["kind"] for element in scenario.to_json()["network"]["backward"]] == ["delay"]


def test_files_are_known_by_their_content(tmp_path: Path) -> None:
    (tmp_path / "traces").mkdir()
    (tmp_path / "traces" / "up link.trace").write_text("1\n2\n")
    file = tmp_path / "s.yaml"
    file.write_text(f"{HEAD}path: {{forward: [{{rate: {{toy_trace: traces/up link.trace}}}}]}}\n")
    scenario = load(file).scenario
    sha256 = hashlib.sha256(b"1\n2\n").hexdigest()
    assert scenario.to_json()["network"]["forward"][0]["rate"] == {
        "kind": "toy_trace",
        "file": {"name": "up-link.trace", "sha256": sha256},
        "loop": True,
    }
    assert scenario.files.contents == {sha256: b"1\n2\n"}
    before = scenario.hash
    (tmp_path / "traces" / "up link.trace").write_text("1\n3\n")
    assert load(file).scenario.hash != before
    file.write_text(file.read_text().replace("up link", "up lnk"))
    with pytest.raises(
        ScenarioError, match=r"s\.yaml:5:\d+: path\.forward\.0\.rate\.toy_trace: file .* does not exist"
    ):
        load(file)


def test_overrides_reach_every_place(tmp_path: Path) -> None:
    file = tmp_path / "s.yaml"
    file.write_text(HEAD + STAR)
    changes = [
        "topology.star.access.0.rate=10 Mbit/s",
        "hosts.all.tcp_sack=0",
        "flows.connections=3",
        "topology.star.hosts.left.down.1.delay=9 ms",
        "timeline=[{at: 1 s, cut: left-center}]",
    ]
    scenario = load(file, [Override.from_set(change) for change in changes]).scenario
    assert links(scenario)["right-center"][0]["rate"]["rate"] == 10_000_000
    assert links(scenario)["center-left"][1]["delay"] == 9_000_000
    assert scenario.to_json()["network"]["hosts"][0]["settings"] == {"tcp_sack": 0}
    assert scenario.schemes[0].flows[0].connections == 3
    assert scenario.timeline[0].element == "left-center.gate"


def test_cells_carry_the_graph() -> None:
    cell = cells_of(scenario_of(NETWORK))[0].to_json()
    assert cell["network"]["kind"] == "graph"
    assert "timeline" not in cell
    assert cell["flows"][0]["from"] == "a"


PATH = "path: {forward: [{delay: 5 ms}]}\n"

BAD = [
    ("topology: ring\n" + PATH, '"ring" is not one of dumbbell, path, star, parking-lot or chain'),
    ("topology: star\n", "topology: star needs settings, such as topology: {star:"),
    ("topology: {sart: {}}\n", 'topology.sart: unknown key; did you mean "star"?'),
    ("topology: {star: {acces: []}}\n", 'topology.star.acces: unknown key; did you mean "access"?'),
    (STAR.replace("left:", "lef:"), 'topology.star.hosts.lef: unknown key; did you mean "left"?'),
    (STAR + PATH, "test.yaml:10:1: path: a star has its links under topology.star; remove path"),
    (
        STAR.replace("      left", "      bottom: {access: [{dleay: 1 ms}]}\n      left"),
        'topology.star.hosts.bottom.access.0.dleay: unknown key; did you mean "delay"?',
    ),
    (
        STAR + "flows: [{from: rihgt, to: left}]\n",
        'flows.0.from: host "rihgt" does not exist; did you mean "right"?',
    ),
    (STAR + "flows: [{from: left, to: left}]\n", "flows.0.to: must be another host than from"),
    (STAR + "flows: [{from: left, to: right, extra_rtt: 1 ms}]\n", "write a delay on the link"),
    (STAR + "hosts: {lft: {tcp_sack: 0}}\n", 'hosts.lft: unknown key; did you mean "left"?'),
    (STAR + "hosts: {left: {tcp_sak: 0}}\n", 'hosts.left.tcp_sak: unknown key; did you mean "tcp_sack"?'),
    (STAR + "hosts: {left: {tcp_sack: 2}}\n", "hosts.left.tcp_sack: 2 is out of range"),
    ("topology: {dumbbell: {}}\n" + PATH, "topology.dumbbell: needs the key left"),
    ("topology: {dumbbell: {pairs: 0}}\n" + PATH, "topology.dumbbell.pairs: 0 is out of range"),
    ("topology: {dumbbell: {pairs: 2}}\n", "the key path is missing"),
    ("topology: {chain: {}}\n", "topology.chain: needs the keys hops and forward"),
    ("topology: {chain: {hops: 2}}\n", "topology.chain: needs the keys hops and forward"),
    ("topology: {parking-lot: {hops: 2, links: []}}\n", "topology.parking-lot.hops: links lists every hop"),
    ("network: {}\n", "network: needs the key hosts"),
    ("network: {hosts: [a, b]}\n", "network: needs the key links"),
    ("network: {hosts: [a], links: []}\n", "network.hosts: needs at least two hosts"),
    ("network: {hosts: [a, b a], links: []}\n", 'network.hosts.1: "b a" can\'t be a name'),
    ("network: {hosts: [a, all], links: []}\n", 'network.hosts.1: "all" means every host'),
    ("network: {hosts: [a, a], links: []}\n", 'network.hosts.1: the name "a" is there twice'),
    (NETWORK + PATH, "path: the key network describes all links"),
    (NETWORK.replace("[r1, r2], f", "[r1, r9], f"), 'network.links.1.between.1: node "r9" does not exist'),
    (NETWORK.replace("[r1, r2], f", "[r1], f"), "network.links.1.between: must be the two nodes"),
    (NETWORK.replace("[r1, r2], f", "[r1, r1], f"), "joins r1 with itself"),
    (
        NETWORK.replace("name: detour, ", "").replace("[r3, r2]", "[r1, r2]"),
        'another link is called "r1-r2" already',
    ),
    (
        NETWORK.replace("    - {between: [r2, c], forward: []}\n", ""),
        "test.yaml:6:34: network.hosts.c: the host can't be reached from a; add a link that joins it",
    ),
    (NETWORK.replace("[{from: a, to: b}]", "[{}]"), "flows.0: needs the keys from and to"),
    (
        NETWORK.replace("flows:", "  routes: [{from: a, to: b, via: [r2]}]\nflows:"),
        "network.routes.0: there is no link from a to r2",
    ),
    (
        NETWORK.replace("flows:", "  routes: [{from: a, to: b, via: [r1, c]}]\nflows:"),
        "network.routes.0.via: c is a host, and packets do not pass through hosts",
    ),
    (
        NETWORK.replace("to: b}]", "to: b}, {from: a, to: c}]")
        .replace("elements:", "forward:")
        .replace("[r2, c], forward: []", "[r2, c], forward: [{delay: 3 ms}]"),
        "1 bdp is not one amount here, because flows with round-trip times of 20 ms and 26 ms pass this link;"
        " write an amount such as 150 kB",
    ),
    ("path: {forward: [{delay: 5 ms, name: x y}]}\n", "path.forward.0.name: must be a name"),
    (
        "path: {forward: [{delay: 5 ms, name: x}, {delay: 5 ms, name: x}]}\n",
        'path.forward.1: the name "x" is used by path.forward.0 already',
    ),
    ("path: {forward: [{delay: 5 ms, name: forward.1}, {loss: 1 %}]}\n", 'the name "forward.1" is used by'),
    ("path: {forward: [{rate: 1 Mbit/s, overhed: 38 B}]}\n", 'did you mean "overhead"?'),
    ("path: {forward: [{rate: 1 Mbit/s, overhead: 38}]}\n", "path.forward.0.overhead: 38 has no unit"),
    ("path: {forward: [{toy_list: []}]}\n", "must be a list of whole numbers such as [3, 7]"),
    ("path: {forward: [{toy_list: [3, x]}]}\n", 'toy_list.1: "x" is not a whole number'),
    ("path: {forward: [{toy_list: [0]}]}\n", "toy_list.0: 0 is out of range; it must be 1 or more"),
    (
        "path: {forward: [{toy_moves: [[2 s, 1 ms], [2 s, 3 ms]]}]}\n",
        "toy_moves.1: the time 2 s is not after 2 s of the step before",
    ),
    ("path: {forward: [{toy_moves: [[2 s]]}]}\n", "toy_moves.0: must be a time and a value"),
    ("path: {forward: [{toy_moves: [[2 s, 3 Mbit/s]]}]}\n", "toy_moves.0.1: 3 Mbit/s is not a time"),
    ("path: {forward: [{toy_reorder: 1 %}]}\n", "toy_reorder also needs delay: a time such as 20 ms"),
    ("path: {forward: [{rate: {toy_trace: nowhere}}]}\n", 'no shipped trace is named "nowhere"'),
    ("path: {forward: [{rate: {toy_trace: [a]}}]}\n", "must be the name of a file"),
]


@pytest.mark.parametrize(("text", "words"), BAD)
def test_refusals(text: str, words: str) -> None:
    found = problems_of(text)
    assert any(words in problem for problem in found), found
    assert all(problem.startswith("test.yaml:") for problem in found), found
