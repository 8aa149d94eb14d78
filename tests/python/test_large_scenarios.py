"""Scenarios of the size of a large network are planned; larger ones are refused at the limit."""

from __future__ import annotations

import cProfile

import pytest

from narrows.campaign.plan import make_plan
from narrows.documents.agent import MachineFacts
from narrows.errors import ScenarioError
from narrows.scenario import loads
from narrows.scenario.loading import load_text
from narrows.scenario.resolve import MOST_ELEMENTS
from narrows.scenario.routes import Routes
from narrows.scenario.yaml_tree import MOST_VALUES, parse

HEAD = """schema: narrows/scenario/1
question: Can it be planned?
where: simulate
schemes: [reno]
duration: 1 s
"""


def test_too_many_values_are_refused_where_they_stand() -> None:
    rows = "flows:\n" + "  - {scheme: reno}\n" * MOST_VALUES
    with pytest.raises(ScenarioError, match=f"the scenario has more than {MOST_VALUES} values") as refused:
        parse(HEAD + rows, "large.yaml")
    # A row is a mapping with a key and a value.
    line = int(str(refused.value).split(":")[1])
    assert line == pytest.approx(MOST_VALUES / 3, rel=0.01), "nothing behind it was read"


@pytest.mark.parametrize("text", ["[" * 100_000, "- " * 100_000, "a: " + "{a: " * 100_000, "? " * 100_000])
def test_any_depth_is_refused(text: str) -> None:
    with pytest.raises(ScenarioError, match="nested more than 50 deep"):
        parse(text, "deep.yaml")


def test_aliases_count_as_their_expansion() -> None:
    text = "a: &a [1,1,1,1,1,1,1,1,1,1]\n"
    for one, more in zip("abcde", "bcdef", strict=True):
        text += f"{more}: &{more} [" + ",".join([f"*{one}"] * 10) + "]\n"
    with pytest.raises(ScenarioError, match="more than 100000 values"):
        parse(text, "laughs.yaml")


def test_aliases_are_independent_values() -> None:
    tree = parse("a: &x {k: [1]}\nb: *x\n", "alias.yaml")
    first, second = tree.entries["a"], tree.entries["b"]
    assert second is not first and second == first.copy("b")
    assert (first.mark.path, second.mark.path) == ("a", "b")


def test_more_elements_than_a_network_may_have_are_refused() -> None:
    rows = "    - {delay: 1 us}\n" * MOST_ELEMENTS
    text = HEAD + "path:\n  forward:\n    - {rate: 1 Mbit/s, queue: {droptail: 60 kB}}\n" + rows
    with pytest.raises(ScenarioError, match=f"elements on its links; there can be {MOST_ELEMENTS}"):
        loads(text, "elements.yaml")


def test_a_star_of_two_thousand_hosts_is_planned() -> None:
    names = ", ".join(f"h{number}" for number in range(2000))
    flows = ", ".join(f"{{from: h{2 * n}, to: h{2 * n + 1}}}" for n in range(100))
    access = "[{rate: 1 Gbit/s, queue: {droptail: 1 bdp}}, {delay: 1 ms}]"
    text = HEAD + f"topology: {{star: {{hosts: [{names}], access: {access}}}}}\nflows: [{flows}]\n"
    scenario = loads(text, "star.yaml")
    assert len(scenario.to_json()["network"]["routes"]) == 200
    first = scenario.to_json()["network"]["links"][0]["elements"][0]
    assert first["queue"] == {"kind": "droptail", "bytes": 500_000, "packets": None}, "1 Gbit/s x 4 ms"


def test_a_chain_of_routers_is_searched_once_per_pair(monkeypatch: pytest.MonkeyPatch) -> None:
    searched: list[tuple[str, str]] = []
    search = Routes._search

    def counted(self: Routes, origin: str, target: str) -> object:
        searched.append((origin, target))
        return search(self, origin, target)

    monkeypatch.setattr(Routes, "_search", counted)
    count = 300
    links = "".join(f"    - {{between: [h{n}, r{n}], forward: [{{rate: 1 Gbit/s}}]}}\n" for n in range(count))
    links += "".join(
        f"    - {{between: [r{n}, r{n + 1}], forward: [{{rate: 100 Mbit/s}}, {{delay: 1 ms}}]}}\n"
        for n in range(count - 1)
    )
    hosts, routers = (", ".join(f"{letter}{n}" for n in range(count)) for letter in "hr")
    text = HEAD + f"network:\n  hosts: [{hosts}]\n  routers: [{routers}]\n  links:\n{links}"
    text += f"flows: [{{from: h0, to: h{count - 1}}}, {{from: h5, to: h9}}]\n"
    scenario = loads(text, "chain.yaml")
    assert scenario.base_rtt_ns == 2 * (count - 1) * 1_000_000
    assert sorted(searched) == sorted(set(searched)) and len(searched) <= 4


def _named(count: int, form: str) -> str:
    """A scenario with a number of names of a kind."""
    head = "schema: narrows/scenario/1\nquestion: Why?\nduration: 1 s\n"
    head += "path: {forward: [{rate: 10 Mbit/s}, {delay: 5 ms}]}\n"
    names = range(count)
    if form == "schemes":
        return head + f"schemes: [{', '.join(f'{{scheme: cubic, name: n{k}}}' for k in names)}]\n"
    if form == "alike":
        # Letters that ids do not contain.
        alike = [f"{{scheme: cubic, name: ü{chr(0x4E00 + k)}}}" for k in names]
        return head + f"schemes: [{', '.join(alike)}]\n"
    flows = head + f"schemes: [reno]\nflows: [{', '.join(f'{{label: n{k}}}' for k in names)}]\n"
    stops = f"timeline: [{', '.join(f'{{at: 500 ms, stop: n{k}}}' for k in names)}]\n"
    return flows + (stops if form == "timeline" else "")


@pytest.mark.parametrize("form", ["schemes", "alike", "labels", "timeline"])
def test_the_work_of_planning_grows_with_the_number_of_names_and_not_with_its_square(form: str) -> None:
    def plan(text: str) -> None:
        make_plan(load_text(text).scenario, MachineFacts())

    calls = []
    for count in (50, 200, 400):
        profile = cProfile.Profile()
        profile.runcall(plan, _named(count, form))
        calls.append(sum(entry.callcount for entry in profile.getstats()))
    # The first one imports what the others need.
    assert calls[2] < 2.2 * calls[1]
