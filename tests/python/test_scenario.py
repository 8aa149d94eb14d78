"""Scenario files: their meaning, and the errors in bad ones."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from narrows.errors import DataError, NarrowsError, ScenarioError, UsageError
from narrows.scenario import Override, load, loads
from narrows.scenario.model import Scenario, cells_of, run_seed

pytestmark = pytest.mark.usefixtures("fixed_registry")

GOOD = """\
schema: narrows/scenario/1
question: Does it work?
path:
  forward:
    - {rate: 12 Mbit/s, queue: {droptail: 1.5 bdp}}
    - {delay: 20 ms}
    - {loss: 0.1 %}
  backward:
    - {delay: 30 ms}
schemes: ["linux:cubic", reno, {scheme: cubic, beta: 0.8}]
flows: {count: 3, interval: 2 s, extra_rtt: [0 ms, 10 ms, 20 ms]}
duration: 10 s
runs: 2
seed: 7
"""


def problems_of(text: str) -> list[str]:
    with pytest.raises(ScenarioError) as error:
        loads(text, "test.yaml")
    return [str(problem) for problem in error.value.problems]


def changed(before: str, after: str) -> str:
    assert before in GOOD
    return GOOD.replace(before, after, 1)


def test_a_scenario_is_resolved_to_base_units() -> None:
    scenario = loads(GOOD, "My Test.yaml")
    assert scenario.name == "my-test"
    assert scenario.where == "simulate"
    assert scenario.base_rtt_ns == 50_000_000
    bottleneck, delay, loss = scenario.to_json()["network"]["forward"]
    assert bottleneck == {
        "name": "forward.0",
        "kind": "bottleneck",
        "rate": {"kind": "constant", "rate": 12_000_000},
        "queue": {"kind": "droptail", "bytes": 112_500, "packets": None},
    }
    assert delay == {"name": "forward.1", "kind": "delay", "delay": 20_000_000}
    assert loss == {"name": "forward.2", "kind": "loss", "ratio": 0.001}
    assert [row.label for row in scenario.schemes] == ["linux:cubic", "reno", "cubic beta=0.8"]
    assert [row.slug for row in scenario.schemes] == ["linux-cubic", "reno", "cubic-beta-0.8"]
    flows = scenario.schemes[2].flows
    assert [flow.start_ns for flow in flows] == [0, 2 * 10**9, 4 * 10**9]
    assert {flow.stop_ns for flow in flows} == {10 * 10**9}
    assert [flow.extra_rtt_ns for flow in flows] == [0, 10**7, 2 * 10**7]
    assert flows[0].params == {"c": 0.4, "beta": 0.8, "hystart": True}
    assert scenario.transport == {"initial_window": 10, "ack_every": 2, "rtt_variance": "linux"}


def test_backward_mirrors_the_delays_only() -> None:
    text = GOOD.replace("  backward:\n    - {delay: 30 ms}\n", "")
    scenario = loads(text)
    assert scenario.to_json()["network"]["backward"] == [
        {"name": "backward.0", "kind": "delay", "delay": 20_000_000}
    ]
    assert scenario.base_rtt_ns == 40_000_000


def test_a_queue_of_the_registry_needs_no_python() -> None:
    scenario = loads(changed("{droptail: 1.5 bdp}", "{toy_aqm: {target: 3 ms, mode: hard, max_p: 20 %}}"))
    assert scenario.to_json()["network"]["forward"][0]["queue"] == {
        "kind": "toy_aqm",
        "target": 3_000_000,
        "mode": "hard",
        "max_p": 0.2,
        "limit": 10,
    }
    assert (
        loads(changed("{droptail: 1.5 bdp}", "toy_aqm")).to_json()["network"]["forward"][0]["queue"]["limit"]
        == 10
    )


def test_queue_defaults_to_unlimited_and_takes_packets() -> None:
    assert loads(changed(", queue: {droptail: 1.5 bdp}", "")).to_json()["network"]["forward"][0]["queue"] == {
        "kind": "unlimited"
    }
    queue = loads(changed("1.5 bdp", "100 packets")).to_json()["network"]["forward"][0]["queue"]
    assert queue == {"kind": "droptail", "bytes": None, "packets": 100}


def test_list_of_flows_makes_one_mixed_row() -> None:
    text = GOOD.replace('schemes: ["linux:cubic", reno, {scheme: cubic, beta: 0.8}]\n', "").replace(
        "flows: {count: 3, interval: 2 s, extra_rtt: [0 ms, 10 ms, 20 ms]}",
        "flows: [{scheme: reno}, {scheme: 'linux:bbr', start: 2 s, stop: 5 s, direction: backward}]",
    )
    scenario = loads(text)
    assert [(row.label, row.slug) for row in scenario.schemes] == [("reno + linux:bbr", "reno+linux-bbr")]
    assert scenario.schemes[0].flows[1].direction == "backward"
    assert [cell.id for cell in cells_of(scenario)] == ["reno+linux-bbr-r1", "reno+linux-bbr-r2"]


def test_seed_of_a_run_is_the_same_for_all_schemes_and_never_changes() -> None:
    cells = cells_of(loads(GOOD))
    assert len({cell.seed for cell in cells if cell.run == 1}) == 1
    assert cells[0].seed != cells[1].seed
    # A recorded value: other seeds would change every simulation ever published.
    assert run_seed(1, 1) == 2120814992793041


def test_identity_ignores_words_and_nothing_else() -> None:
    base = loads(GOOD).hash
    assert loads(changed("Does it work?", "Will it work?")).hash == base
    assert loads(changed("12 Mbit/s", "12000 kbit/s")).hash == base
    for before, after in (
        ("seed: 7", "seed: 8"),
        ("20 ms}", "21 ms}"),
        ("runs: 2", "runs: 3"),
        ("0.8", "0.7"),
    ):
        assert loads(changed(before, after)).hash != base


BAD = [
    ("duration: 10 s", "durations: 10 s", 'test.yaml:12:1: durations: unknown key; did you mean "duration"?'),
    (
        "12 Mbit/s",
        "12",
        "test.yaml:5:14: path.forward.0.rate: 12 has no unit; write a rate, for example 12 Mbit/s",
    ),
    ("12 Mbit/s", "-12 Mbit/s", "path.forward.0.rate: -12 Mbit/s is negative; it must be 0 or more"),
    ("12 Mbit/s", "0 Mbit/s", "path.forward.0.rate: 0 bit/s is out of range"),
    ("droptail", "droptial", 'path.forward.0.queue.droptial: unknown key; did you mean "droptail"?'),
    ("{droptail: 1.5 bdp}", "75 kB", 'unknown queue "75 kB"; write {droptail: 75 kB}'),
    ("reno,", "remo,", 'schemes.1: unknown scheme "remo"; did you mean "reno"?'),
    ('"linux:cubic"', '"linux:CU BIC"', "is not a kernel scheme"),
    ('"linux:cubic"', "{scheme: 'linux:cubic', beta: 0.5}", "linux:cubic takes no parameters"),
    ("beta: 0.8", "beta: 2", "beta: 2 is out of range; it must be between 0.05 and 0.95"),
    ("beta: 0.8", "betta: 0.8", 'unknown key; did you mean "beta"?'),
    ("runs: 2", "runs: 0", "runs: 0 is out of range; it must be between 1 and 10000"),
    ("runs: 2", "runs: two", "is not a whole number"),
    ("runs: 2", "runs: 2\nruns: 2", "test.yaml:14:1: the key runs is written twice (first in line 13)"),
    ("interval: 2 s", "interval: 5 s", "flow 3 would start at 10 s but the duration is 10 s"),
    ("[0 ms, 10 ms, 20 ms]", "[0 ms]", "lists 1 values for 3 flows"),
    ("schema: narrows/scenario/1", "schema: narrows/scenario/2", "can't read; it reads narrows/scenario/1"),
    ("schema: narrows/scenario/1\n", "", "test.yaml:1:1: the key schema is missing"),
    ("seed: 7", "seed: 7\nmatrix: {}", "matrix: needs a key with a list of values"),
    ("seed: 7", "seed: 7\nwhere: hosts", "real_path: needs the other host"),
    ("{delay: 20 ms}", "{delay: 20 ms, loss: 1 %}", "write each as a separate item"),
    ("{delay: 20 ms}", "{queue: {droptail: 5 kB}}", "a queue belongs to a bottleneck"),
    (
        "{loss: 0.1 %}",
        "{loss: 0.1}",
        "0.1 has no unit; write a share: 10 % for 1 in 10, or 0.1 % for 1 in 1000",
    ),
    ("{loss: 0.1 %}", "{loss: 0.025}", "write a share: 2.5 % for 1 in 40, or 0.025 % for 1 in 4000"),
    ("{loss: 0.1 %}", "{loss: 3}", "3 has no unit; write a share, for example 3 %"),
    ("seed: 7", "seed: 7\ntopology: path", "an extra RTT needs separate hosts"),
    (
        "seed: 7",
        "seed: 7\ntransport: {ack_evry: 2}",
        'transport.ack_evry: unknown key; did you mean "ack_every"?',
    ),
    ("reno,", "reno, reno,", "reno is in the list already"),
    ("question: Does it work?", "question: !secret x", "the tag !secret has no meaning"),
    ("path:", "path: &a [*a]\nx:", "this alias contains itself"),
    ("  forward:", " forward:", "is not valid YAML"),
]


@pytest.mark.parametrize(("before", "after", "words"), BAD)
def test_refusals(before: str, after: str, words: str) -> None:
    found = problems_of(changed(before, after))
    assert any(words in problem for problem in found), found


FLOWS = "flows: {count: 3, interval: 2 s, extra_rtt: [0 ms, 10 ms, 20 ms]}"


@pytest.mark.parametrize(
    ("flows", "words"),
    [
        (
            "flows: [{start: 3 s, stop: 2 s}]",
            "flows.0.start: the flow starts at 3 s, which is not before it stops at 2 s",
        ),
        ("flows: [{start: 11 s}]", "the flow starts at 11 s, but the scenario ends at 10 s"),
        ("flows: [{stop: 11 s}]", "the flow stops at 11 s, after the end of the scenario"),
        ("flows: [{direction: up}]", '"up" is not one of forward or backward'),
        ("flows: []", "needs at least one flow"),
        ("flows: 3", "must be keys such as {count: 3, interval: 10 s}"),
        ("flows: [{scheme: reno}]", "has no effect because every flow names its own scheme"),
    ],
)
def test_bad_flows_are_refused(flows: str, words: str) -> None:
    found = problems_of(changed(FLOWS, flows))
    assert any(words in problem for problem in found), found


def test_all_problems_are_reported_at_once() -> None:
    text = changed("12 Mbit/s", "12").replace("runs: 2", "runs: 0").replace("10 s", "10")
    assert len(problems_of(text)) == 3


@pytest.mark.parametrize(
    "text", ["", "# nothing", "just words", "- a\n- list", "a: b: c", "\x00", "{", "? [a]\n: b"]
)
def test_texts_that_are_no_scenario(text: str) -> None:
    assert problems_of(text)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="does not exist"):
        load(tmp_path / "none.yaml")
    (tmp_path / "folder.yaml").mkdir()
    with pytest.raises(DataError, match="is a folder"):
        load(tmp_path / "folder.yaml")
    (tmp_path / "binary.yaml").write_bytes(b"schema: \xff\xfe")
    with pytest.raises(DataError, match="is not UTF-8"):
        load(tmp_path / "binary.yaml")
    with pytest.raises(DataError, match='did you mean "first-look"'):
        load("first-lok")


def test_overrides(tmp_path: Path) -> None:
    file = tmp_path / "x.yaml"
    file.write_text(GOOD)
    overrides = [
        Override.from_set("path.forward.0.rate=5 Mbit/s"),
        Override.from_set("transport.ack_every=4"),
        Override("--runs", "runs", "5"),
        Override("--schemes", "schemes", "[reno]"),
    ]
    scenario = load(file, overrides).scenario
    assert scenario.to_json()["network"]["forward"][0]["rate"]["rate"] == 5_000_000
    assert scenario.transport["ack_every"] == 4
    assert (scenario.runs, [row.label for row in scenario.schemes]) == (5, ["reno"])
    with pytest.raises(ScenarioError, match=r"^--set path\.forward\.0\.rate: 5 has no unit"):
        load(file, [Override.from_set("path.forward.0.rate=5")])
    with pytest.raises(ScenarioError, match=r"^--runs: 0 is out of range"):
        load(file, [Override("--runs", "runs", "0")])
    with pytest.raises(UsageError, match="is a list of 3"):
        load(file, [Override.from_set("path.forward.7.rate=5 Mbit/s")])
    with pytest.raises(UsageError, match='did you mean "path"'):
        load(file, [Override.from_set("pth.forward.0.rate=5 Mbit/s")])
    with pytest.raises(UsageError, match="takes KEY=VALUE"):
        Override.from_set("runs")


def _mutate(text: str, seed: int, steps: int) -> str:
    """Damages the text like a human or tool error."""
    dice = random.Random(seed)
    fragments = [
        "- ",
        ": ",
        "{",
        "}",
        "[",
        "]",
        "\n",
        "  ",
        "#",
        "&a ",
        "*a",
        "!x ",
        "'",
        '"',
        "-1",
        "0",
        "1e99 s",
        "%",
        "bdp",
        "null",
        "~",
        "<<",
        "? ",
        "|",
        ">",
        "\t",
        "\u0000",
        "é",
        "forward",
        "rate",
        "reno",
        "12 Mbit/s",
    ]
    for _ in range(steps):
        start = dice.randrange(len(text) + 1)
        end = min(len(text), start + dice.choice([0, 0, 1, 1, 3, 10]))
        match dice.randrange(4):
            case 0:
                text = text[:start] + text[end:]
            case 1:
                text = text[:start] + dice.choice(fragments) + text[end:]
            case 2:
                text = text[:end] + text[start:]
            case _:
                lines = text.split("\n")
                dice.shuffle(lines)
                text = (
                    "\n".join(lines)
                    if dice.random() < 0.1
                    else text[:start] + dice.choice(fragments) + text[start:]
                )
    return text


@settings(max_examples=1500, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 2**32), st.integers(1, 4))
def test_any_mutation_gives_a_scenario_or_a_clean_error(seed: int, steps: int) -> None:
    _check(_mutate(GOOD, seed, steps))


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(max_size=200))
def test_any_text_gives_a_scenario_or_a_clean_error(text: str) -> None:
    _check(text)


def _check(text: str) -> None:
    try:
        scenario = loads(text, "test.yaml")
    except NarrowsError as error:
        for line in str(error).splitlines():
            assert line.startswith("test.yaml:"), line
    else:
        assert isinstance(scenario, Scenario)
        for cell in cells_of(scenario)[:3]:
            assert cell.hash
