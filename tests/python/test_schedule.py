"""Flows with traffic, background, timelines and expectations: their resolved form, and refusals."""

from __future__ import annotations

from typing import Any

import pytest

from narrows.campaign.expectations import add_answers, judge
from narrows.documents.data import to_data
from narrows.documents.results import Answer, Expectation, Outcome, StateQuestion
from narrows.errors import ScenarioError
from narrows.scenario import loads
from narrows.scenario.model import Scenario, cells_of
from results_kit import made_metric, made_row

pytestmark = pytest.mark.usefixtures("fixed_registry")

HEAD = """\
schema: narrows/scenario/1
question: Why?
duration: 10 s
path: {forward: [{rate: 10 Mbit/s, queue: {droptail: 20 kB}}, {delay: 5 ms}]}
"""
STAR = HEAD.replace("path: {forward:", "topology: {star: {access:").replace("}]}\n", "}]}}\n")


def scenario_of(text: str, head: str = HEAD) -> Scenario:
    return loads(head + ("" if "schemes:" in text else "schemes: [reno]\n") + text, "test.yaml")


def problems_of(text: str, head: str = HEAD) -> list[str]:
    with pytest.raises(ScenarioError) as error:
        scenario_of(text, head)
    return [str(problem) for problem in error.value.problems]


def flows_of(text: str, head: str = HEAD) -> list[dict[str, Any]]:
    flows: list[dict[str, Any]] = scenario_of(text, head).to_json()["schemes"][0]["flows"]
    return flows


# -- flows -------------------------------------------------------------------------------------------


def test_defaults_are_omitted_from_cells() -> None:
    """Scenarios of the first release thus keep their identity."""
    assert set(flows_of("")[0]) == {
        "flow",
        "scheme",
        "params",
        "start_ns",
        "stop_ns",
        "direction",
        "extra_rtt_ns",
    }


def test_everything_about_a_flow() -> None:
    flows = flows_of(
        "flows:\n"
        "  - {connections: 30, dscp: EF, label: many}\n"
        "  - {traffic: {web: 38 Mbit/s}, count: 2, interval: 1 s, label: web, direction: backward}\n"
        "  - {traffic: {cbr: {rate: 2 Mbit/s, packet: 200 B}}, start: 1 s, stop: 9 s, dscp: 8}\n"
        "background:\n  - {scheme: cubic, extra_rtt: 30 ms}\n"
    )
    assert [flow["flow"] for flow in flows] == [1, 2, 3, 4, 5]
    assert (flows[0]["connections"], flows[0]["dscp"], flows[0]["label"]) == (30, 46, "many")
    assert [flow["label"] for flow in flows[1:3]] == ["web 1", "web 2"]
    assert flows[2]["traffic"] == {"kind": "web", "load": 38_000_000}
    assert (flows[2]["direction"], flows[2]["start_ns"]) == ("backward", 10**9)
    assert flows[3]["scheme"] == "udp"
    assert flows[3]["traffic"] == {"kind": "cbr", "rate": 2_000_000, "packet": 200}
    assert flows[4]["background"] is True
    assert (flows[4]["scheme"], flows[4]["extra_rtt_ns"]) == ("cubic", 30_000_000)


def test_background_is_not_part_of_the_label_of_a_row() -> None:
    scenario = scenario_of("schemes: [reno]\nbackground: [{scheme: cubic, count: 2}]\n")
    assert [(row.label, row.slug) for row in scenario.schemes] == [("reno", "reno")]


def test_hosts_of_flows_on_a_path_give_the_direction() -> None:
    flows = flows_of("flows: [{from: receiver, to: sender}, {to: receiver}, {from: receiver}]\n")
    assert [flow["direction"] for flow in flows] == ["backward", "forward", "backward"]
    assert "from" not in flows[0]


def test_backward_in_a_network_swaps_the_hosts() -> None:
    flows = flows_of("flows: [{direction: backward}, {from: top, to: left}]\n", STAR)
    assert [(flow["from"], flow["to"]) for flow in flows] == [("left", "right"), ("top", "left")]
    assert {flow["direction"] for flow in flows} == {"forward"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("flows: [{schem: reno}]", 'flows.0.schem: unknown key; did you mean "scheme"?'),
        ("flows: [{traffic: {wbe: 1 Mbit/s}}]", 'flows.0.traffic.wbe: unknown key; did you mean "web"?'),
        ("flows: [{traffic: {web: 1 ms}}]", "flows.0.traffic.web: 1 ms is not a rate"),
        ("flows: [{traffic: web}]", "flows.0.traffic: web needs load: a rate"),
        ("flows: [{scheme: udp}]", "flows.0.scheme: udp is for traffic of datagrams"),
        ("schemes: [udp]", "schemes.0: udp is for traffic of datagrams"),
        (
            "flows: [{}, {scheme: reno, traffic: {cbr: 1 Mbit/s}}]",
            "flows.1.scheme: cbr sends datagrams, which no scheme governs; leave it out",
        ),
        (
            "flows: [{traffic: {web: 1 Mbit/s}, connections: 2}]",
            "flows.0.connections: web makes its own connections",
        ),
        ("flows: [{connections: 0}]", "flows.0.connections: 0 is out of range"),
        ("flows: [{dscp: 64}]", 'flows.0.dscp: "64" is not a code point; write a number from 0 to 63'),
        ("flows: [{dscp: EFF}]", 'flows.0.dscp: "EFF" is not a code point; did you mean "EF"?'),
        ("flows: [{label: 3}]", "flows.0.label: must be a word"),
        ("flows: [{label: a}, {label: a}]", 'flows.1.label: the label "a" is that of another flow'),
        ("flows: [{count: 20000}]", "flows.0.count: 20000 is out of range"),
        ("flows: [{count: 6000}, {count: 6000}]", "flows.1: makes more than 10000 flows in all"),
        (
            "flows: [{count: 3, interval: 2 s, start: 1 s, stop: 5 s}]",
            "flows.0.interval: flow 3 would start at 5 s but it stops at 5 s",
        ),
        ("flows: [{from: sender, direction: backward}]", "flows.0.direction: from and to say it already"),
        ("background: [{}]", "background.0: needs the key scheme: background traffic is the same"),
        ("background: {scheme: reno}", "background: must be a list of flows"),
        ("background: [{scheme: reno, extra_rtt: [1 ms, 2 ms]}]", "lists 2 values for 1 flows"),
    ],
)
def test_refused_flows(text: str, words: str) -> None:
    found = problems_of(text + "\n")
    assert any(words in problem for problem in found), found
    assert all(problem.startswith("test.yaml:") for problem in found), found


# -- timeline ----------------------------------------------------------------------------------------


def test_timelines_change_elements_in_order_of_time() -> None:
    scenario = scenario_of(
        "timeline:\n"
        "  - {at: 4 s, set: {forward.0: {rate: 5 Mbit/s, overhead: 18 B}, forward.1: 50 ms}}\n"
        "  - {at: 2 s, set: {forward.0: {queue: {droptail: 10 kB}}}}\n"
        "  - {at: 3 s, set: {forward.0: {queue: {packets: 7 packets}}, backward.0: {delay: 1 ms}}}\n"
    )
    assert [(one.at_ns // 10**9, one.element, one.values.to_members()) for one in scenario.timeline] == [
        (2, "forward.0", {"queue": {"bytes": 10_000}}),
        (3, "forward.0", {"queue": {"packets": 7}}),
        (3, "backward.0", {"delay": 1_000_000}),
        (4, "forward.0", {"rate": {"kind": "constant", "rate": 5_000_000}, "overhead": 18}),
        (4, "forward.1", {"delay": 50_000_000}),
    ]
    assert cells_of(scenario)[0].to_json()["timeline"] == scenario.to_json()["timeline"]
    # The elements themselves start as written.
    assert scenario.to_json()["network"]["forward"][0]["queue"]["bytes"] == 20_000


def test_named_elements_and_no_gates_without_cuts() -> None:
    head = HEAD.replace("{delay: 5 ms}", "{delay: 5 ms, name: sea}")
    scenario = scenario_of("timeline: [{at: 1 s, set: {sea: {delay: 9 ms}}}]\n", head)
    assert scenario.timeline[0].element == "sea"
    assert [element.kind for element in scenario.network.directed[0].elements] == ["bottleneck", "delay"]


def test_cuts_of_a_path() -> None:
    scenario = scenario_of(
        "timeline: [{at: 1 s, cut: path}, {at: 2 s, restore: forward}, {at: 3 s, restore: backward}]\n"
    )
    for direction in ("forward", "backward"):
        gate = scenario.to_json()["network"][direction][0]
        assert gate == {"name": f"{direction}.gate", "kind": "gate", "open": True}
    # The others keep their names.
    assert scenario.to_json()["network"]["forward"][1]["name"] == "forward.0"
    assert [(one.at_ns // 10**9, one.element, one.values.flag("open")) for one in scenario.timeline] == [
        (1, "forward.gate", False),
        (1, "backward.gate", False),
        (2, "forward.gate", True),
        (3, "backward.gate", True),
    ]


def test_cuts_in_a_network() -> None:
    scenario = scenario_of("timeline: [{at: 1 s, cut: [left, center]}, {at: 2 s, cut: right-center}]\n", STAR)
    gated = [link.name for link in scenario.network.directed if link.elements[0].kind == "gate"]
    assert gated == ["left-center", "center-left", "right-center"]


def test_flows_start_and_stop() -> None:
    scenario = scenario_of(
        "flows: [{label: late}, {}, {stop: 9 s}]\n"
        "timeline: [{at: 3 s, start: late}, {at: 8 s, stop: late}, {at: 7 s, stop: 2}, {at: 1 s, start: 3}]\n"
    )
    times = [(flow.start_ns, flow.stop_ns) for flow in scenario.schemes[0].flows]
    assert times == [(3 * 10**9, 8 * 10**9), (0, 7 * 10**9), (10**9, 9 * 10**9)]
    assert scenario.timeline == []


@pytest.mark.parametrize(
    ("timeline", "words"),
    [
        (
            "[{at: 1 s, set: {forwrd.0: {rate: 5 Mbit/s}}}]",
            'test.yaml:6:28: timeline.0.set.forwrd.0: element "forwrd.0" does not exist;'
            ' did you mean "forward.0"?',
        ),
        ("[{at: 1 s, set: {bottleneck: {rate: 5 Mbit/s}}}]", "elements are forward.0, forward.1, backward.0"),
        ("[{at: 1 s, set: {forward.0: {rat: 5 Mbit/s}}}]", 'unknown key; did you mean "rate"?'),
        ("[{at: 1 s, set: {forward.0: {rate: 5 ms}}}]", "timeline.0.set.forward.0.rate: 5 ms is not a rate"),
        ("[{at: 1 s, set: {forward.0: {rate: 0 Mbit/s}}}]", "timeline.0.set.forward.0.rate: 0 bit/s is out"),
        ("[{at: 1 s, set: {forward.0: {queue: {toy_aqm: {}}}}}]", "can't become another discipline"),
        ("[{at: 1 s, set: {forward.0: {queue: {droptail: 1 bdp}}}}]", "1 bdp is not defined in a timeline"),
        ("[{at: 1 s, set: {forward.1: {dely: 5 ms}}}]", 'unknown key; did you mean "delay"?'),
        ("[{at: 1 s, set: {forward.1: 5 Mbit/s}}]", "is not a time"),
        ("[{at: 10 s, cut: forward}]", "timeline.0.at: 10 s is not before the end of the scenario at 10 s"),
        ("[{at: 1, cut: forward}]", "timeline.0.at: 1 has no unit"),
        ("[{cut: forward}]", "timeline.0: needs the key at: the time"),
        ("[{at: 1 s}]", "timeline.0: needs the key one of set, cut, restore, start or stop"),
        ("[{at: 1 s, cut: forwrd}]", 'link "forwrd" does not exist; did you mean "forward"?'),
        ("[{at: 1 s, cut: [sender, reciever]}]", 'node "reciever" does not exist; did you mean "receiver"?'),
        ("[{at: 1 s, restore: forward}]", "forward is not cut at 1 s; cut it before"),
        ("[{at: 2 s, restore: forward}, {at: 3 s, cut: forward}]", "forward is not cut at 2 s"),
        ("[{at: 1 s, cut: forward}, {at: 2 s, cut: forward}]", "timeline.1.cut: forward is cut already"),
        ("[{at: 1 s, start: 4}]", 'flow "4" does not exist; flows are 1 to 1'),
        ("[{at: 1 s, start: 1}, {at: 2 s, start: 1}]", "a flow starts and stops once"),
        (
            "[{at: 5 s, start: 1}, {at: 4 s, stop: 1}]",
            "flow 1 would start at 5 s, which is not before it stops",
        ),
        ("{at: 1 s}", "timeline: must be a list of changes"),
        ("[{at: 1 s, ct: forward}]", 'timeline.0.ct: unknown key; did you mean "cut"?'),
    ],
)
def test_refused_timelines(timeline: str, words: str) -> None:
    found = problems_of(f"timeline: {timeline}\n")
    assert any(words in problem for problem in found), found
    assert all(problem.startswith("test.yaml:") for problem in found), found


def test_a_stop_in_the_timeline_replaces_that_of_the_flow() -> None:
    (flow,) = flows_of("flows: [{stop: 3 s}]\ntimeline: [{at: 2 s, stop: 1}]\n")
    assert flow["stop_ns"] == 2_000_000_000


def test_a_flow_is_not_stopped_twice() -> None:
    problems = problems_of("timeline: [{at: 2 s, stop: 1}, {at: 3 s, stop: 1}]\n")
    assert any("a flow starts and stops once" in problem for problem in problems), problems


# -- expectations ------------------------------------------------------------------------------------


def test_expectations_are_resolved_and_change_no_identity() -> None:
    expect = (
        "schemes: [reno, cubic]\n"
        "flows: [{}, {label: web}]\n"
        "expect:\n"
        "  - {metric: throughput_bps, at_least: 1 Mbit/s}\n"
        "  - {metric: delay_p95_ns, scheme: cubic, flow: web, of: max, at_most: 20 ms}\n"
        "  - {metric: loss_ratio, at_least: 0 %, at_most: 0.5}\n"
    )
    scenario = scenario_of(expect)
    assert to_data(scenario.expect) == [
        {
            "metric": "throughput_bps",
            "scheme": None,
            "flow": "all",
            "of": "median",
            "at_least": 1_000_000,
            "at_most": None,
        },
        {
            "metric": "delay_p95_ns",
            "scheme": "cubic",
            "flow": 2,
            "of": "max",
            "at_least": None,
            "at_most": 20_000_000,
        },
        {
            "metric": "loss_ratio",
            "scheme": None,
            "flow": "all",
            "of": "median",
            "at_least": 0.0,
            "at_most": 0.5,
        },
    ]
    assert scenario_of(expect.split("expect:", 1)[0]).hash == scenario.hash


@pytest.mark.parametrize(
    ("expect", "words"),
    [
        ("[{metric: troughput_bps, at_least: 1 Mbit/s}]", 'unknown metric "troughput_bps"; did you mean'),
        ("[{at_least: 1 Mbit/s}]", "expect.0: needs the key metric"),
        ("[{metric: throughput_bps}]", "expect.0: needs at_least or at_most"),
        ("[{metric: throughput_bps, at_least: 1 ms}]", "expect.0.at_least: 1 ms is not a rate"),
        ("[{metric: throughput_bps, at_least: 2 Mbit/s, at_most: 1 Mbit/s}]", "is more than at_most"),
        (
            "[{metric: throughput_bps, at_least: 1 Mbit/s, scheme: cubc}]",
            'does not test "cubc"; it tests reno',
        ),
        ("[{metric: throughput_bps, at_least: 1 Mbit/s, flow: 7}]", 'flow "7" does not exist; write all'),
        ("[{metric: throughput_bps, at_least: 1 Mbit/s, of: most}]", '"most" is not one of median, mean'),
        ("{metric: throughput_bps}", "expect: must be a list of expectations"),
    ],
)
def test_refused_expectations(expect: str, words: str) -> None:
    found = problems_of(f"expect: {expect}\n")
    assert any(words in problem for problem in found), found


def test_expectations_of_modes_and_values() -> None:
    scenario = scenario_of(
        "expect:\n"
        "  - {mode: probe_rtt, measure: interval, from: 2 s, at_least: 5 s}\n"
        "  - {mode: probe_bw, measure: share, at_most: 99 %}\n"
        "  - {value: bandwidth_bps, measure: max, until: 1 s, at_least: 10 Mbit/s}\n"
    )
    questions = [(one.flow, one.question, one.at_least, one.at_most) for one in scenario.expect]
    assert questions == [
        (
            1,
            StateQuestion(mode="probe_rtt", measure="interval", from_ns=2_000_000_000),
            5_000_000_000,
            None,
        ),
        (1, StateQuestion(mode="probe_bw", measure="share"), None, 0.99),
        (
            1,
            StateQuestion(value="bandwidth_bps", measure="max", until_ns=1_000_000_000),
            10_000_000,
            None,
        ),
    ]
    first = scenario.expect[0]
    row = made_row("reno", {}, number=1)
    add_answers([row], [first], [Answer(value=4e9)])
    found = judge([first], ["reno"], [row], {}, [])[0]
    assert found.outcome == "fails"
    wanted = "reno, flow 1: median mean time between visits to probe_rtt (from 2 s) at least 5 s"
    assert found.text == wanted
    add_answers([row], [first], [Answer(absent="the sender was never in probe_rtt")])
    assert judge([first], ["reno"], [row], {}, [])[0].reason == "the sender was never in probe_rtt"


@pytest.mark.parametrize(
    ("expect", "words"),
    [
        (
            "[{mode: drain, at_least: 1}]",
            "expect.0: needs measure: first, visits, interval, longest or share",
        ),
        ("[{mode: drain, measure: mean, at_least: 1}]", '"mean" is not one of first, visits'),
        ("[{mode: drain, measure: first, at_least: 10}]", "expect.0.at_least: 10 has no unit"),
        ("[{mode: drain, value: cwnd_bytes, measure: first, at_least: 1 s}]", "has mode and value"),
        ("[{value: cwnd_bytes, measure: first, from: 1 kB, at_least: 1 kB}]", "expect.0.from"),
    ],
)
def test_refused_questions(expect: str, words: str) -> None:
    found = problems_of(f"expect: {expect}\n")
    assert any(words in problem for problem in found), found


METRICS = [made_metric("throughput_bps", label="throughput", unit="bit/s")]


def _judged(values: list[float | None], **expectation: Any) -> Outcome:
    wanted: dict[str, Any] = {
        "metric": "throughput_bps",
        "scheme": None,
        "flow": "all",
        "statistic": "median",
        "at_least": None,
        "at_most": None,
    }
    rows = [
        made_row(
            "reno",
            {"throughput_bps": value},
            verdict="ok" if value != 99 else "invalid",
            absent={"throughput_bps": "nothing arrived"} if value is None else {},
        )
        for value in values
    ]
    skipped = {"linux:cubic": "no kernel"}
    labels = [expectation["scheme"]] if expectation.get("scheme") else ["reno"]
    return judge([Expectation(**wanted | expectation)], labels, rows, skipped, METRICS)[0]


def test_expectations_are_judged_by_their_statistic() -> None:
    assert _judged([1e6, 5e6, 2e6], at_least=2_000_000).outcome == "holds"
    assert _judged([1e6, 5e6, 2e6], at_least=2_000_001).outcome == "fails"
    assert (
        _judged([1e6, 5e6, 3e6], statistic="mean", at_least=3_000_000, at_most=3_000_000).outcome == "holds"
    )
    assert _judged([1e6, 5e6], statistic="max", at_most=4_000_000).value == 5e6
    # Invalid runs are ignored, and a missing value is a failure.
    assert _judged([1e6, 99], statistic="min", at_least=1_000_000).outcome == "holds"
    none = _judged([None], at_least=1)
    assert (none.outcome, none.reason) == ("fails", "nothing arrived")
    skipped = _judged([1e6], scheme="linux:cubic", at_least=1)
    assert (skipped.outcome, skipped.reason) == ("skipped", "no kernel")
    found = _judged([1e6], at_least=2_500_000)
    assert found.text == "reno, all flows: median throughput at least 2.5 Mbit/s"
