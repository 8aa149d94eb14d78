"""The key draw: values of the network that are drawn for every run."""

from __future__ import annotations

import json
import math

import pytest

from narrows.errors import ScenarioError
from narrows.scenario import loads
from narrows.scenario.draws import share_of
from narrows.scenario.model import cells_of, run_seed

pytestmark = pytest.mark.usefixtures("fixed_registry")

HEAD = """\
schema: narrows/scenario/1
question: Why?
duration: 10 s
runs: 200
schemes: [reno, cubic]
path: {forward: [{rate: 10 Mbit/s, queue: {droptail: 2 bdp}}, {delay: 5 ms}]}
"""
TEXT = (
    HEAD
    + """\
draw:
  path.forward.0.rate: {loguniform: [1 Mbit/s, 100 Mbit/s]}
  path.forward.1.delay: {uniform: [10 ms, 50 ms]}
"""
)


def _drawn(law: str, address: str = "path.forward.1.delay", head: str = HEAD) -> list[str]:
    scenario = loads(f"{head}draw: {{{address}: {law}}}\n", "test.yaml")
    return [one.values[address] for one in scenario.drawn]


def test_all_schemes_of_a_run_meet_what_its_seed_draws_and_bdp_follows() -> None:
    scenario = loads(TEXT, "test.yaml")
    cells = cells_of(scenario)
    rates: dict[int, tuple[int, int]] = {}
    for cell in cells:
        bottleneck, delay = cell.to_json()["network"]["forward"]
        back = cell.to_json()["network"]["backward"][0]["delay"]
        rate, rtt = bottleneck["rate"]["rate"], delay["delay"] + back
        # The other direction, which is not written, has the delays of this one.
        assert back == delay["delay"]
        assert bottleneck["queue"]["bytes"] == round(2 * rate * rtt / 8e9)
        assert rates.setdefault(cell.run, (rate, rtt)) == (rate, rtt)
        share = share_of(run_seed(1, cell.run), "path.forward.0.rate")
        assert rate == round(1e6 * math.exp(share * math.log(100)))
        assert set(cell.to_json()["drawn"]) == {"path.forward.0.rate", "path.forward.1.delay"}
    assert len(set(rates.values())) == 200
    # A uniform share has the mean 1/2 and the deviation 0.289; five standard errors of 200 draws.
    shares = [math.log(rate / 1e6) / math.log(100) for rate, _ in rates.values()]
    assert abs(sum(shares) / 200 - 0.5) < 5 * 0.289 / math.sqrt(200)
    # Both streams are independent.
    delays = [(rtt / 2e6 - 10) / 40 for _, rtt in rates.values()]
    both = sum((a - 0.5) * (b - 0.5) for a, b in zip(shares, delays, strict=True)) / 200 / 0.289**2
    assert abs(both) < 5 / math.sqrt(200)


def test_more_runs_leave_the_others_as_they_are() -> None:
    few = loads(TEXT.replace("runs: 200", "runs: 3"), "test.yaml")
    many = loads(TEXT, "test.yaml")
    assert few.drawn == many.drawn[:3]
    assert cells_of(few)[0].hash == cells_of(many)[0].hash


def test_drawn_values_are_reported() -> None:
    scenario = loads(TEXT.replace("runs: 200", "runs: 2"), "test.yaml")
    stored = json.loads(json.dumps(scenario.to_json()))
    assert stored["draw"]["path.forward.1.delay"] == "uniform [10 ms, 50 ms]"
    assert [one["values"] for one in stored["drawn"]] == [one.values for one in scenario.drawn]
    # The scenario's own network is that of the medians.
    assert stored["network"]["forward"][0]["rate"]["rate"] == 10_000_000
    assert stored["network"]["forward"][1]["delay"] == 30_000_000
    assert "drawn" not in loads(HEAD, "test.yaml").to_json()


def test_each_law_keeps_its_promises() -> None:
    assert set(_drawn("{choice: [5 ms, 1 s, 20 ms]}")) == {"5 ms", "1 s", "20 ms"}
    assert set(_drawn("{normal: [20 ms, 0 ms]}")) == {"20 ms"}
    normal = [float(text.split()[0]) for text in _drawn("{normal: [50 ms, 10 ms]}")]
    # Five standard errors of the mean.
    assert abs(sum(normal) / 200 - 50) < 5 * 10 / math.sqrt(200)
    wide = loads(HEAD + "draw: {path.forward.1.delay: {normal: [1 ms, 10 ms]}}\n", "test.yaml")
    assert all(cell.to_json()["network"]["forward"][1]["delay"] >= 0 for cell in cells_of(wide))
    buffers = loads(HEAD + "draw: {path.forward.0.queue.droptail: {uniform: [1 bdp, 3 bdp]}}\n", "test.yaml")
    sizes = [cell.to_json()["network"]["forward"][0]["queue"]["bytes"] for cell in cells_of(buffers)]
    assert 12_500 <= min(sizes) < max(sizes) <= 37_500
    head = HEAD.replace("]}\n", "], backward: [{delay: 1 ms}]}\n")
    both = loads(
        head + "draw: {path.forward.1.delay: {uniform: [1 ms, 9 ms]},"
        " path.backward.0.delay: {same: path.forward.1.delay}}\n",
        "test.yaml",
    )
    for cell in cells_of(both):
        network = cell.to_json()["network"]
        assert network["forward"][1]["delay"] == network["backward"][0]["delay"]


def test_combinations_of_a_matrix_meet_the_same_draws() -> None:
    text = (
        TEXT.replace("runs: 200", "runs: 2")
        + "matrix: {path.forward.0.queue: [{droptail: 1 bdp}, toy_aqm]}\n"
    )
    cells = cells_of(loads(text, "test.yaml"))
    assert len(cells) == 8
    rates = {(cell.run, cell.to_json()["network"]["forward"][0]["rate"]["rate"]) for cell in cells}
    assert len(rates) == 2
    json.dumps(loads(text, "test.yaml").to_json())


@pytest.mark.parametrize(
    ("draw", "says"),
    [
        ("{}", "needs a key with a law"),
        ("{duration: {uniform: [1 s, 2 s]}}", "only values inside of"),
        ("{path.forward.0.rate: 5 Mbit/s}", "must name one law"),
        ("{path.forward.0.rate: {unifrom: [1 Mbit/s, 2 Mbit/s]}}", "uniform"),
        ("{path.forward.0.rate: {uniform: [1 Mbit/s]}}", "takes two values"),
        ("{path.forward.0.rate: {uniform: [1 Mbit/s, 2 ms]}}", "are not of one kind"),
        ("{path.forward.0.rate: {uniform: [2 Mbit/s, 1 Mbit/s]}}", "write the lower one first"),
        ("{path.forward.1.delay: {loguniform: [0 ms, 1 ms]}}", "must be above 0"),
        ("{path.forward.1.delay: {normal: [0 ms, 1 ms]}}", "the mean must be above 0"),
        ("{path.forward.1.delay: {uniform: [1 ms, often]}}", "often"),
        ("{path.forward.1.delay: {choice: []}}", "must be a list of values"),
        ("{path.forward.1.delay: {same: path.forward.1.delay}}", "is not the address of another key"),
        ("{path.forward.0.rate: {uniform: [1 ms, 2 ms]}}", "is not a rate"),
        ("{path.forward.7.rate: {uniform: [1 Mbit/s, 2 Mbit/s]}}", "is a list of 2"),
    ],
)
def test_mistakes_have_a_sentence_at_their_place(draw: str, says: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        loads(f"{HEAD}draw: {draw}\n", "test.yaml")
    assert len(caught.value.problems) == 1, str(caught.value)
    assert says in str(caught.value)
    assert "test.yaml:7" in str(caught.value)


def test_too_many_runs_are_refused() -> None:
    with pytest.raises(ScenarioError, match="1001 are more than 1000"):
        loads(TEXT.replace("runs: 200", "runs: 1001"), "test.yaml")
