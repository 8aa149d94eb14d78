"""Scenarios of pairs: rows, refusals, and the heat map of a simulated campaign."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from campaign_kit import narrows
from narrows.errors import DataError
from narrows.scenario import registry
from narrows.scenario.model import Scenario
from narrows.scenario.resolve import resolve
from narrows.scenario.yaml_tree import parse

SCENARIO = """\
schema: narrows/scenario/1
question: Does one starve the other?
where: simulate
path: {forward: [{rate: 10 Mbit/s, queue: {droptail: 1 bdp}}, {delay: 10 ms}]}
duration: 4 s
record: bins
"""
LIST = "pairs: [cubic, vegas, {scheme: cubic, beta: 0.5, name: gentle}]\n"


def scenario(more: str) -> Scenario:
    return resolve(parse(SCENARIO + more, "test.yaml"), registry.load(), "test.yaml")


def wrong(more: str) -> str:
    with pytest.raises(DataError) as caught:
        scenario(more)
    return str(caught.value)


def test_each_runs_alone_with_itself_and_beside_each_other() -> None:
    rows = scenario(LIST).schemes
    assert [row.label for row in rows] == [
        "cubic",
        "vegas",
        "gentle",
        "cubic + cubic",
        "cubic + vegas",
        "cubic + gentle",
        "vegas + vegas",
        "vegas + gentle",
        "gentle + gentle",
    ]
    assert len({row.slug for row in rows}) == len(rows)
    assert [len(row.flows) for row in rows] == [1] * 3 + [2] * 6
    pair = rows[7]
    assert [flow.scheme for flow in pair.flows] == ["vegas", "cubic"]
    assert pair.flows[1].params["beta"] == 0.5
    assert pair.pair == ["vegas", "gentle"]


def test_flows_that_differ_are_run_in_both_orders() -> None:
    rows = scenario(LIST + "flows: {count: 2, interval: 1 s}\n").schemes
    labels = [row.label for row in rows]
    assert len(labels) == 3 + 9
    assert {"cubic + vegas", "vegas + cubic"} <= set(labels)
    assert rows[4].flows[1].start_ns == 1_000_000_000
    # Background runs in every row, also alone.
    rows = scenario(LIST + "background: [{scheme: reno}]\n").schemes
    assert [len(row.flows) for row in rows] == [2] * 3 + [3] * 6


def test_pairs_and_a_matrix_go_together() -> None:
    found = scenario(LIST + "matrix: {path.forward.0.rate: [5 Mbit/s, 10 Mbit/s]}\n")
    assert len(found.schemes) == 18
    assert found.schemes[4].pair == ["cubic", "vegas"]


def test_each_mistake_has_its_sentence() -> None:
    assert "says which schemes are tested; remove one of the two" in wrong(LIST + "schemes: [cubic]\n")
    assert "must be a list of 2 to 40 schemes" in wrong("pairs: [cubic]\n")
    assert "must be a list" in wrong("pairs: cubic\n")
    assert "needs two flows that name no scheme, and there are 3" in wrong(LIST + "flows: {count: 3}\n")
    mixed = "flows: [{scheme: reno}, {}]\n"
    assert "one of them names its scheme" in wrong(LIST + mixed)
    assert "cubic is in the list already" in wrong("pairs: [cubic, cubic]\n")
    assert "pairs is the same for a whole campaign" in wrong(LIST + "matrix: {pairs: [[cubic, reno]]}\n")


def test_the_schema_knows_pairs() -> None:
    import jsonschema
    import yaml

    from narrows.scenario.schema import schema

    validator = jsonschema.Draft7Validator(schema(registry.load()))
    assert not list(validator.iter_errors(yaml.safe_load(SCENARIO + LIST)))
    assert list(validator.iter_errors(yaml.safe_load(SCENARIO + "pairs: [cubic]\n")))


def test_shares_and_harm_are_a_heat_map(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.yaml").write_text(SCENARIO + "pairs: [cubic, {scheme: cubic, beta: 0.3, name: gentle}]\n")
    done = narrows("run", "s.yaml", "-o", "out")
    assert done.exit_code == 0, done.output
    assert "Shares of pairs" in (tmp_path / "out" / "report.html").read_text()
    done = narrows("plot", "out", "--figure", "pairs", "-o", "pairs.png")
    assert done.exit_code == 0, done.output
    lines = (tmp_path / "pairs.csv").read_text().splitlines()
    head = next(line for line in lines if line.startswith("scheme,")).split(",")
    rows = [
        dict(zip(head, line.split(","), strict=True)) for line in lines if line.count(",") == len(head) - 1
    ][1:]
    harm = {(row["scheme"], row["beside"]): float(row["harm"]) for row in rows}
    assert set(harm) == {(one, other) for one in ("cubic", "gentle") for other in ("cubic", "gentle")}
    assert 0.3 < harm["cubic", "cubic"] < 0.7, "two alike halve the link"
    assert harm["gentle", "cubic"] > harm["cubic", "gentle"], "who gives way more loses more"
    results = json.loads((tmp_path / "out" / "results.json").read_text())
    assert {line["scheme"] for line in results["summary"]} >= {"cubic", "cubic + cubic", "cubic + gentle"}
