"""Labels, pairs, combinations left out and derived values of a matrix; names of schemes."""

from __future__ import annotations

from pathlib import Path

import pytest

from narrows.errors import DataError, ScenarioError
from narrows.scenario import Override, load, loads
from narrows.scenario.derived import evaluate
from narrows.scenario.quantity import QuantityError

pytestmark = pytest.mark.usefixtures("fixed_registry")

BASE = """\
schema: narrows/scenario/1
question: Why?
duration: 10 s
schemes: [reno]
path: {forward: [{rate: 10 Mbit/s, queue: {droptail: 1 bdp}}, {delay: 5 ms}]}
"""
MATRIX = """\
matrix:
  path.forward.0.rate: {label: capacity, values: [1 Mbit/s, 10 Mbit/s]}
  path.forward.1.delay: [5 ms, 20 ms]
"""


def labels(text: str) -> list[str]:
    return [row.label.removeprefix("reno ") for row in loads(text, "test.yaml").schemes]


def test_a_label_is_the_name_of_a_key() -> None:
    assert labels(BASE + MATRIX)[0] == "(capacity 1 Mbit/s, delay 5 ms)"
    assert loads(BASE + MATRIX).to_json()["matrix"] == {
        "capacity": "path.forward.0.rate",
        "delay": "path.forward.1.delay",
    }


def test_pairs_go_together() -> None:
    for written in ("[capacity, delay]", "[[capacity, path.forward.1.delay]]"):
        assert labels(f"{BASE}{MATRIX}  paired: {written}\n") == [
            "(capacity 1 Mbit/s, delay 5 ms)",
            "(capacity 10 Mbit/s, delay 20 ms)",
        ]


def test_combinations_are_left_out() -> None:
    text = f"{BASE}{MATRIX}  without: [{{capacity: 1000 kbit/s, delay: [20 ms, 30 ms]}}]\n"
    assert labels(text) == [
        "(capacity 1 Mbit/s, delay 5 ms)",
        "(capacity 10 Mbit/s, delay 5 ms)",
        "(capacity 10 Mbit/s, delay 20 ms)",
    ]


def test_derived_values_are_shown_and_change_nothing() -> None:
    text = f"{BASE}{MATRIX}  rtt: 2 x (2 ms + delay)\n  inside: capacity x 2 x delay\n"
    scenario = loads(text)
    assert [row.derived for row in scenario.schemes] == [
        {"rtt": "14 ms", "inside": "1.25 kB"},
        {"rtt": "44 ms", "inside": "5 kB"},
        {"rtt": "14 ms", "inside": "12.5 kB"},
        {"rtt": "44 ms", "inside": "50 kB"},
    ]
    assert scenario.hash == loads(BASE + MATRIX).hash


def test_a_scenario_has_the_hash_that_it_had_before() -> None:
    """Campaign folders stay resumable: new members are omitted if empty."""
    old = BASE + "matrix: {path.forward.0.rate: [1 Mbit/s, 10 Mbit/s]}\n"
    resolved = loads(old).to_json()
    assert "derived" not in resolved["schemes"][0]
    assert loads(old).hash == loads(old.replace("Why?", "Why not?")).hash


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("2 x (2 ms + delay)", "14 ms"),
        ("2×delay", "10 ms"),
        ("2*delay - 1 ms", "9 ms"),
        ("rate x delay", "1.25 kB"),
        ("10 kB / rate", "40 ms"),
        ("rate / 2 Mbit/s", "1"),
        ("x rate / 4", "500 kbit/s"),
        ("1 bdp x 3", "3 bdp"),
        ("10 packets / 4", "2.5 packets"),
        ("50 % x delay", "2.5 ms"),
        ("1 / 3", "0.333333333333"),
    ],
)
def test_expressions_are_evaluated_with_units(expression: str, value: str) -> None:
    values = {"rate": "2 Mbit/s", "delay": "5 ms", "x rate": "2 Mbit/s"}
    assert evaluate(expression, values) == value


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("2 x (delay", "has a parenthesis that is not closed"),
        ("2 x", "ends where a value is missing"),
        ("", "ends where a value is missing"),
        ("x 2", 'has "x" where a value is missing'),
        ("2 delay", '"delay" is not expected there'),
        ("delay + rate", "adds values of different kinds"),
        ("delay x delay", "gives neither a rate, a time, an amount of data nor a number"),
        ("delai", '"delai" is neither a number with a unit nor a key of the matrix; did you mean "delay"?'),
        ("2 x queue", 'queue is "codel", which is not a quantity'),
        ("delay / 0", "divides by zero"),
        ("(" * 40 + "1" + ")" * 40, "too many parentheses"),
        ("__import__('os')", "neither a number with a unit nor a key"),
    ],
)
def test_expressions_that_are_refused(expression: str, words: str) -> None:
    with pytest.raises(QuantityError) as error:
        evaluate(expression, {"rate": "2 Mbit/s", "delay": "5 ms", "queue": "codel"})
    assert words in str(error.value)


@pytest.mark.parametrize(
    ("matrix", "words"),
    [
        ("{paired: [capacity, delay]}", "matrix: needs a key with a list of values"),
        ("{path.forward.0.rate: {label: x}}", "must be a list of values"),
        ("{path.forward.0.rate: {label: '', values: [1 Mbit/s]}}", "must be a name of at most 40 letters"),
        ("{path.forward.0.rate: {labl: x, values: [1 Mbit/s]}}", 'unknown key; did you mean "label"?'),
        (
            "{path.forward.0.rate: {label: a, values: [1 Mbit/s]},"
            " path.forward.1.delay: {label: a, values: [1 ms]}}",
            'another key has the label "a" as well',
        ),
        (
            "{path.forward.0.rate: [1 Mbit/s], path.forward.1.delay: [1 ms, 2 ms], paired: [rate, delay]}",
            "their numbers differ: 1 of rate, 2 of delay",
        ),
        ("{path.forward.0.rate: [1 Mbit/s], paired: [[rate, delai]]}", 'the matrix has no "delai"'),
        ("{path.forward.0.rate: [1 Mbit/s], paired: [rate]}", "must be a list of two names or more"),
        ("{path.forward.0.rate: [1 Mbit/s], paired: 1}", "must be lists of names"),
        ("{path.forward.0.rate: [1 Mbit/s], without: [{rate: 1 Mbit/s}]}", "leaves all combinations out"),
        ("{path.forward.0.rate: [1 Mbit/s], without: [{rate: 2 Mbit/s}]}", "leaves nothing out"),
        ("{path.forward.0.rate: [1 Mbit/s], without: rate}", "must be a list of combinations"),
        ("{path.forward.0.rate: [1 Mbit/s], rate: 1 ms}", '"rate" is a key of the matrix already'),
        ("{path.forward.0.rate: [1 Mbit/s], a: [1]}", "a: unknown key"),
        ("{path.forward.0.rate: [1 Mbit/s], a: 2 x b}", '"b" is neither a number'),
        ("{path.forward.0.rate: [1 Mbit/s], a: }", "ends where a value is missing"),
        ("{rate: [1 Mbit/s]}", "rate: unknown key; did you mean path.forward.0.rate"),
        ("{bandwidth: [1 Mbit/s]}", "as in {path.forward.0.rate: ["),
        ("{duration: 5 s}", "must be a list of values"),
        ("{rtt: 2 x 5 ms}", "needs a key with a list of values"),
    ],
)
def test_refusals(matrix: str, words: str) -> None:
    with pytest.raises(ScenarioError) as error:
        loads(f"{BASE}matrix: {matrix}\n", "test.yaml")
    found = [str(problem) for problem in error.value.problems]
    assert any(words in problem for problem in found), found
    assert all(problem.startswith("test.yaml:") for problem in found), found


@pytest.mark.parametrize("key", ["capacity", "rate", "path.forward.0.rate"])
def test_one_key_is_changed_from_the_command_line(tmp_path: Path, key: str) -> None:
    file = tmp_path / "s.yaml"
    file.write_text(BASE + MATRIX)
    scenario = load(file, [Override.from_set(f"matrix.{key}=[2 Mbit/s]")]).scenario
    assert [row.label for row in scenario.schemes] == [
        "reno (capacity 2 Mbit/s, delay 5 ms)",
        "reno (capacity 2 Mbit/s, delay 20 ms)",
    ]


def test_a_matrix_is_made_from_the_command_line(tmp_path: Path) -> None:
    file = tmp_path / "s.yaml"
    file.write_text(BASE)
    scenario = load(file, [Override.from_set("matrix.path.forward.1.delay=[1 ms, 2 ms]")]).scenario
    assert [row.label for row in scenario.schemes] == ["reno (delay 1 ms)", "reno (delay 2 ms)"]


def test_imported_schemes_have_distinct_names() -> None:
    text = BASE.replace(
        "[reno]", "[cubic, {scheme: cubic, beta: 0.8, name: gentle}, {scheme: 'linux:cubic', name: kernel}]"
    )
    rows = loads(text).schemes
    assert [row.label for row in rows] == ["cubic", "gentle", "kernel"]
    assert [row.slug for row in rows] == ["cubic", "gentle", "kernel"]
    assert rows[1].flows[0].scheme == "cubic" and rows[1].flows[0].params["beta"] == 0.8


@pytest.mark.parametrize(
    ("schemes", "words"),
    [
        ("[{scheme: cubic, name: ''}]", "must be a name of at most 40 letters"),
        ("[{scheme: cubic, name: [a]}]", "must be a name of at most 40 letters"),
        ("[{scheme: cubic, name: reno}]", '"reno" is another scheme; choose a name of your own'),
        ("[{scheme: cubic, name: 'linux:cubic'}]", '"linux:cubic" is another scheme'),
        ('[{scheme: cubic, name: "a\\tb"}]', "character 2 is U+0009, which can't be seen"),
        ("[cubic, {scheme: reno, name: a}, {scheme: cubic, name: a}]", "another scheme is called a as well"),
    ],
)
def test_names_of_schemes_that_are_refused(schemes: str, words: str) -> None:
    with pytest.raises(DataError) as error:
        loads(BASE.replace("[reno]", schemes), "test.yaml")
    assert words in str(error.value)
