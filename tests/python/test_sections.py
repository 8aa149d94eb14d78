"""The typed keys of scenarios are those that the formats declare."""

from __future__ import annotations

import pytest

from narrows.scenario.expect import ExpectationKeys
from narrows.scenario.flows import FlowKeys
from narrows.scenario.keys import FORMAT, KEYS
from narrows.scenario.measure import MeasureKeys
from narrows.scenario.problems import Problems, Wrong
from narrows.scenario.requirement import RequirementKeys
from narrows.scenario.sections import ScenarioKeys, Section
from narrows.scenario.yaml_tree import Mark, Scalar, parse


@pytest.mark.parametrize(
    ("section", "declared"),
    [
        (ScenarioKeys, KEYS),
        (FlowKeys, FORMAT.definitions["flow"]["properties"]),
        (ExpectationKeys, FORMAT.definitions["expect"]["items"]["properties"]),
        (MeasureKeys, KEYS["measure"].schema["properties"]),
        (RequirementKeys, KEYS["measure"].schema["properties"]["requirement"]["properties"]),
    ],
)
def test_a_section_has_the_keys_of_its_format(section: type[Section], declared: dict[str, object]) -> None:
    assert set(section.list_keys()) == set(declared)


def test_a_section_knows_its_values_and_the_positions_of_their_keys() -> None:
    tree = parse("start: 1 s\nfrom: a\nodd: 3\n", "x.yaml")
    problems = Problems()
    keys = problems.section(tree, FlowKeys, "start: 0 s")
    assert isinstance(keys.start, Scalar)
    assert isinstance(keys.origin, Scalar)
    assert (keys.start.text, keys.origin.text, keys.stop) == ("1 s", "a", None)
    assert str(keys.key_mark(keys.origin)) == "x.yaml:2:1"
    assert [problem.position for problem in problems.entries] == ["x.yaml:3:1"]
    assert "unknown key" in problems.entries[0].text


def test_a_section_is_made_of_keys_with_values() -> None:
    with pytest.raises(Wrong, match=r"must be keys with values, such as \{start: 0 s\}"):
        Problems().section(Scalar(Mark("x.yaml"), "7"), FlowKeys, "start: 0 s")
