"""The measured part of a run, the start of flows, and statistics of unknown times."""

from __future__ import annotations

from typing import Any

import pytest

from narrows.campaign.expectations import FAILS, HOLDS, judge
from narrows.campaign.measurement import over_runs
from narrows.documents.resolved import Requirement
from narrows.documents.results import Expectation, Outcome, Row, Statistics
from narrows.errors import ScenarioError
from narrows.scenario import loads
from narrows.scenario.measure import measure_in_words
from narrows.scenario.model import Scenario, cells_of, start_offset
from narrows.statistics.runs import summarise_happened
from results_kit import made_metric, made_row

pytestmark = pytest.mark.usefixtures("fixed_registry")

GOOD = """\
schema: narrows/scenario/1
question: Does it work?
path:
  forward:
    - {rate: 12 Mbit/s, queue: {droptail: 60 kB}, name: narrow}
    - {delay: 20 ms}
schemes: [reno, cubic]
flows: {count: 3, interval: 2 s}
duration: 10 s
runs: 4
"""


def problems_of(text: str) -> list[str]:
    with pytest.raises(ScenarioError) as error:
        loads(text, "test.yaml")
    return [str(problem) for problem in error.value.problems]


def starts(scenario: Scenario) -> dict[tuple[str, int], list[int]]:
    return {
        (cell.scheme, cell.run): [flow["start_ns"] for flow in cell.to_json()["flows"]]
        for cell in cells_of(scenario)
    }


def test_a_part_of_the_run_and_links() -> None:
    scenario = loads(GOOD + "measure: {from: 4 s, to: 9 s, links: [narrow]}\ntransfers: bins\n")
    content = cells_of(scenario)[0].to_json()
    assert content["measure"] == {"from_ns": 4 * 10**9, "to_ns": 9 * 10**9, "links": ["narrow"]}
    assert content["transfers"] == "bins"
    plain = loads(GOOD)
    assert scenario.hash != plain.hash
    # Nothing is added to scenarios that do not request it, so results of earlier versions remain valid.
    assert not {"measure", "transfers"} & set(cells_of(plain)[0].to_json())
    assert loads(GOOD + "transfers: all\n").hash == plain.hash


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("{from: 10 s}", "measure.from: must be before the end of the scenario (10 s)"),
        ("{from: 5 s, to: 5 s}", "measure.from: must be before to (5 s)"),
        ("{to: 11 s}", "measure.to: is after the end of the scenario at 10 s (duration)"),
        ("{to: 0 s}", "measure.to: must be after 0 s"),
        ("{until: 5 s}", "measure.until: unknown key"),
        ("{links: narrow}", "must be a list of names of bottlenecks"),
        ("{links: [narow]}", 'bottleneck "narow" does not exist; did you mean "narrow"?'),
        ("{links: [forward.1]}", 'bottleneck "forward.1" does not exist'),
        ("{links: [narrow, narrow]}", '"narrow" is there twice'),
        ("60 s", "measure"),
    ],
)
def test_impossible_measurements_are_refused(written: str, told: str) -> None:
    problems = problems_of(GOOD + f"measure: {written}\n")
    assert len(problems) == 1
    assert told in problems[0]


def test_a_requirement_is_part_of_a_run_and_said_in_words() -> None:
    written = "{throughput: 2.5 Mbit/s, loss: [0, 2 %], delay: {p99.9: [300 ms, 1 s], p50: [20 ms, 90 ms]}}"
    scenario = loads(GOOD + f"measure: {{requirement: {written}}}\n")
    cell = cells_of(scenario)[0].to_json()
    assert cell["measure"]["requirement"] == {
        "throughput_bps": 2_500_000,
        "loss": {"optimal": 0, "unacceptable": 0.02},
        "delays": [
            {"share": 0.5, "optimal_ns": 20_000_000, "unacceptable_ns": 90_000_000},
            {"share": 0.999, "optimal_ns": 300_000_000, "unacceptable_ns": 1_000_000_000},
        ],
    }
    assert scenario.hash != loads(GOOD).hash
    assert measure_in_words(scenario.measure) == (
        "Quality of outcome is scored against the scenario's requirement: throughput of at least 2.5 Mbit/s,"
        " loss 0 % to 2 %, p50 of one-way delay 20 ms to 90 ms, p99.9 of one-way delay 300 ms to 1 s"
        " (optimal to unacceptable)."
    )
    only = loads(GOOD + "measure: {from: 1 s, requirement: {throughput: 1 Mbit/s}}\n").measure
    assert only.requirement == Requirement(throughput_bps=10**6)
    assert measure_in_words(only).endswith("requirement: throughput of at least 1 Mbit/s.")


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("4 Mbit/s", "measure.requirement: must be keys with values"),
        ("{}", "measure.requirement: needs throughput, loss or delay; write for example {throughput"),
        ("{latency: 3 ms}", "measure.requirement.latency: unknown key"),
        ("{throughput: 4}", "4 has no unit; write a rate"),
        ("{throughput: 0 Mbit/s}", "out of range"),
        ("{loss: 5 %}", "measure.requirement.loss: must be the optimal and the unacceptable value"),
        ("{loss: [5 %, 1 %]}", "the unacceptable value (1 %) must be above the optimal one (5 %)"),
        ("{loss: [1 %, 101 %]}", "measure.requirement.loss.1: 1.01 is out of range"),
        ("{delay: 200 ms}", "must be keys with values, such as {p99: [200 ms, 500 ms]}"),
        ("{delay: {}}", "needs throughput, loss or delay"),
        ("{delay: {p99: [500 ms, 500 ms]}}", "the unacceptable value (500 ms) must be above"),
        ("{delay: {p100: [1 ms, 2 ms]}}", '"p100" is not a percentile above p0 and below p100'),
        ("{delay: {p0.0: [1 ms, 2 ms]}}", '"p0.0" is not a percentile'),
        ("{delay: {'99': [1 ms, 2 ms]}}", '"99" is not a percentile'),
        ("{delay: {p99: [1 ms, 2 ms], p99.0: [1 ms, 2 ms]}}", '"p99.0" is there twice'),
        ("{delay: {p99: [1 ms, -2 ms]}}", "-2 ms is negative"),
    ],
)
def test_requirements_without_meaning_are_refused(written: str, told: str) -> None:
    problems = problems_of(GOOD + f"measure: {{requirement: {written}}}\n")
    assert len(problems) == 1, problems
    assert told in problems[0]


@pytest.mark.parametrize("sign", ["+-", "±"])
def test_starts_are_drawn_per_run_and_flow(sign: str) -> None:
    scenario = loads(GOOD.replace("2 s}", f"2 s {sign} 500 ms}}"))
    found = starts(scenario)
    for run in range(1, 5):
        first, second, third = found["reno", run]
        assert found["cubic", run] == [first, second, third], "common to all schemes"
        assert first == 0
        assert abs(second - 2 * 10**9) <= 5 * 10**8
        assert abs(third - 4 * 10**9) <= 5 * 10**8
    others = {tuple(found["reno", run]) for run in range(1, 5)}
    assert len(others) == 4, "another draw in every run"
    assert all(
        "start_spread_ns" not in flow for cell in cells_of(scenario) for flow in cell.to_json()["flows"]
    )
    assert starts(loads(GOOD))["reno", 1] == [0, 2 * 10**9, 4 * 10**9]


def test_the_draw_of_starts_is_uniform_and_fixed() -> None:
    drawn = [start_offset(seed, flow, 1000) for seed in range(400) for flow in range(1, 6)]
    assert min(drawn) >= -1000
    assert max(drawn) <= 1000
    # Standard error of the mean of 2000 uniform draws: 1000 / sqrt(3 x 2000) = 13; five of them.
    assert abs(sum(drawn) / len(drawn)) < 65
    # A quarter in each quarter, 500 with a standard deviation of 19; five of them.
    for low in (-1000, -500, 0, 500):
        assert abs(sum(low <= one < low + 500 for one in drawn) - 500) < 97
    # Part of the identity of runs: must not change.
    assert start_offset(1, 2, 500_000_000) == START_OF_FLOW_2


#: The first 64 bits of the SHA-256 of `narrows/start/1:1:2`, scaled to -500 to 500 ms.
START_OF_FLOW_2 = -105_735_832


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("2 s +- 1.1 s", "varies by more than half of itself; write at most 1 s behind +-"),
        ("2 s +- 5", "flows.interval"),
        ("2 s +- ", "flows.interval"),
        ("4.9 s +- 300 ms", "flow 3 would start at"),
    ],
)
def test_spreads_that_are_refused(written: str, told: str) -> None:
    problems = problems_of(GOOD.replace("interval: 2 s", f"interval: {written}"))
    assert len(problems) == 1
    assert told in problems[0]


NETWORK = """\
schema: narrows/scenario/1
question: Does it work?
topology:
  dumbbell:
    left: [one, two, web]
    right: [one-peer, two-peer, web-peer]
path:
  forward: [{rate: 12 Mbit/s, queue: {droptail: 60 kB}}, {delay: 20 ms}]
schemes: [reno]
flows: [{from: one, to: one-peer}]
background:
  - {scheme: reno, from: two, to: two-peer}
  - {scheme: reno, from: web-peer, to: one}
duration: 10 s
"""


def settings_of(scenario: Scenario) -> dict[str, Any]:
    return {host["name"]: host.get("settings", {}) for host in scenario.to_json()["network"]["hosts"]}


def test_hosts_of_background_flows_have_one_name() -> None:
    text = "hosts: {two: {tcp_sack: 1}, background: {tcp_sack: 0}, all: {mtu: 1400 B}}\n"
    found = settings_of(loads(NETWORK + text))
    # Hosts that a flow under test also uses, or that no flow uses, are excluded.
    assert found["one"] == found["web"] == {"mtu": 1400}
    assert found["web-peer"] == found["two-peer"] == {"mtu": 1400, "tcp_sack": 0}
    assert found["two"] == {"mtu": 1400, "tcp_sack": 1}, "what is said of one host weighs more"
    alone = NETWORK[: NETWORK.index("background:")] + "duration: 10 s\n"
    (problem,) = problems_of(alone + "hosts: {background: {tcp_sack: 0}}\n")
    assert "no host is used by background flows alone" in problem
    (problem,) = problems_of(NETWORK.replace("web", "background"))[:1]
    assert '"background" means every host that only background flows use' in problem


def test_times_that_did_not_happen_enter_no_mean() -> None:
    metrics = [made_metric("convergence", happened="converged"), made_metric("converged")]

    def row(time: float | None, verdict: str = "ok") -> Row:
        happened = None if time == 0 else float(time is not None)
        return made_row("x", {"convergence": time or None, "converged": happened}, verdict=verdict)

    # Two converged, one did not, one is undetermined, one is invalid.
    found = over_runs([row(15.0), row(None), row(35.0), row(0), row(5.0, "invalid")], metrics)
    assert found["convergence"] == Statistics(
        mean=None, median=25.0, ci95=None, n=2, happened=2, of=3, share=2 / 3
    )
    assert found["converged"].mean == pytest.approx(2 / 3)
    never = summarise_happened([], [0.0, 0.0])
    assert (never.median, never.share) == (None, 0.0)
    assert "convergence" not in over_runs([row(0)], metrics)


def test_expectations_count_events_that_never_happened_as_late() -> None:
    metrics = [made_metric("convergence_10s_ns", unit="ns", happened="converged")]

    def judged(times: list[float | None], limit: dict[str, float | None]) -> Outcome:
        rows = [
            made_row("x", {"convergence_10s_ns": time, "converged": float(time is not None)})
            for time in times
        ]
        limits: dict[str, Any] = {"at_least": None, "at_most": None, **limit}
        one = Expectation(metric="convergence_10s_ns", scheme=None, flow="all", statistic="median", **limits)
        return judge([one], ["x"], rows, {}, metrics)[0]

    at_most: dict[str, float | None] = {"at_most": 20e9}
    assert judged([15e9, 15e9, None], at_most).outcome == HOLDS
    found = judged([15e9, None, None], at_most)
    assert (found.outcome, found.value) == (FAILS, None)
    assert found.reason == "in 2 of 3 runs it did not happen"
