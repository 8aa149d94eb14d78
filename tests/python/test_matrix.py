"""The key matrix: every combination of values, with separate rows."""

from __future__ import annotations

from pathlib import Path

import pytest

from narrows.errors import ScenarioError
from narrows.scenario import Override, load, loads
from narrows.scenario.model import cells_of

pytestmark = pytest.mark.usefixtures("fixed_registry")

TEXT = """\
schema: narrows/scenario/1
question: Why?
duration: 10 s
runs: 2
schemes: [reno, cubic]
path: {forward: [{rate: 10 Mbit/s, queue: {droptail: 1 bdp}}, {delay: 5 ms}]}
matrix:
  path.forward.0.rate: [1 Mbit/s, 10 Mbit/s]
  path.forward.0.queue: [{droptail: 2 bdp}, toy_aqm]
"""


def test_every_combination_has_separate_rows() -> None:
    scenario = loads(TEXT, "test.yaml")
    assert [row.label for row in scenario.schemes] == [
        "reno (rate 1 Mbit/s, queue droptail 2 bdp)",
        "cubic (rate 1 Mbit/s, queue droptail 2 bdp)",
        "reno (rate 1 Mbit/s, queue toy_aqm)",
        "cubic (rate 1 Mbit/s, queue toy_aqm)",
        "reno (rate 10 Mbit/s, queue droptail 2 bdp)",
        "cubic (rate 10 Mbit/s, queue droptail 2 bdp)",
        "reno (rate 10 Mbit/s, queue toy_aqm)",
        "cubic (rate 10 Mbit/s, queue toy_aqm)",
    ]
    cells = cells_of(scenario)
    assert len(cells) == 16
    assert cells[0].id == "reno-rate-1-mbit-s-queue-droptail-2-bdp-r1"
    found = [
        (
            cell.to_json()["network"]["forward"][0]["rate"]["rate"],
            cell.to_json()["network"]["forward"][0]["queue"],
        )
        for cell in cells
        if cell.run == 1 and cell.scheme.startswith("reno")
    ]
    assert [rate for rate, _ in found] == [1_000_000, 1_000_000, 10_000_000, 10_000_000]
    # Amounts in bdp follow the rate of their combination.
    assert [queue.get("bytes") for _, queue in found] == [2_500, None, 25_000, None]
    # Common random numbers over all combinations.
    assert len({cell.seed for cell in cells if cell.run == 1}) == 1


def test_flows_duration_and_hosts_may_vary() -> None:
    text = TEXT.split("matrix:", maxsplit=1)[0] + (
        "matrix: {flows.count: [1, 2], duration: [5 s, 6 s], hosts.all.tcp_sack: [0, 1]}\n"
    )
    cells = {cell.scheme: cell.to_json() for cell in cells_of(loads(text))}
    cell = cells["reno (count 2, duration 6 s, tcp_sack 0)"]
    assert len(cell["flows"]) == 2
    assert cell["duration_ns"] == 6 * 10**9
    assert cell["network"]["hosts"][0]["settings"] == {"tcp_sack": 0}


def test_expectations_hold_for_all_combinations_of_a_scheme() -> None:
    expect = "expect: [{metric: throughput_bps, scheme: cubic, at_least: 1 Mbit/s}]\n"
    wanted = [one.scheme for one in loads(TEXT + expect).expect]
    assert len(wanted) == 4
    assert all(str(label).startswith("cubic (rate") for label in wanted)


def test_it_can_be_given_and_changed_from_the_command_line(tmp_path: Path) -> None:
    file = tmp_path / "s.yaml"
    file.write_text(TEXT)
    changes = ["matrix={path.forward.1.delay: [1 ms, 2 ms, 3 ms]}"]
    assert len(load(file, [Override.from_set(one) for one in changes]).scenario.schemes) == 6


@pytest.mark.parametrize(
    ("matrix", "words"),
    [
        ("[1]", "matrix: must be keys with values"),
        ("{}", "matrix: needs a key with a list of values"),
        ("{path.forward.0.rate: 1 Mbit/s}", "matrix.path.forward.0.rate: must be a list of values"),
        ("{path.forward.0.rate: []}", "must be a list of values"),
        ("{path.forward.0.rate: [1 Mbit/s, 1 Mbit/s]}", "1 Mbit/s is in the list already"),
        (
            "{path.forward.0.rate: [1 Mbit/s, 1 ms]}",
            "test.yaml:7:42: path.forward.0.rate: 1 ms is not a rate",
        ),
        ("{path.forward.9.rate: [1 Mbit/s]}", "matrix.path.forward.9.rate: path.forward is a list of 2"),
        ("{path.forward.0.rat: [1 Mbit/s]}", 'path.forward.0.rat: unknown key; did you mean "rate"?'),
        ("{runs: [1, 2]}", "matrix.runs: runs is the same for a whole campaign"),
        ("{schemes: [[reno]]}", "matrix.schemes: schemes is the same for a whole campaign"),
        (
            "{duration: [" + ", ".join(f"{n} s" for n in range(1, 1002)) + "]}",
            "has 1001 combinations, more than 1000",
        ),
    ],
)
def test_refusals(matrix: str, words: str) -> None:
    text = TEXT.split("matrix:", maxsplit=1)[0] + f"matrix: {matrix}\n"
    with pytest.raises(ScenarioError) as error:
        loads(text, "test.yaml")
    found = [str(problem) for problem in error.value.problems]
    assert any(words in problem for problem in found), found
    assert all(problem.startswith("test.yaml:") for problem in found), found
