"""The typed resolved scenario and its cells: the bytes of earlier versions, imports, and refusals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from narrows.documents.components import Element
from narrows.documents.data import DamagedError, to_data
from narrows.documents.resolved import read_cell, read_resolved
from narrows.scenario.loading import load_text
from narrows.scenario.model import cells_of

#: Scenarios with what the last version without types wrote of them.
EARLIER = sorted((Path(__file__).parent / "resolved").glob("*.json"))


@pytest.fixture(params=EARLIER, ids=lambda path: path.stem)
def earlier(request: pytest.FixtureRequest) -> dict[str, Any]:
    """A scenario, its resolved form, the hashes of its cells and the last cell."""
    document: dict[str, Any] = json.loads(request.param.read_text(encoding="utf-8"))
    return document


def test_scenarios_and_cells_have_the_bytes_of_earlier_versions(earlier: dict[str, Any]) -> None:
    scenario = load_text("\n".join(earlier["scenario"])).scenario
    cells = cells_of(scenario)
    assert json.dumps(scenario.to_json()) == json.dumps(earlier["resolved"])
    assert [[cell.id, cell.hash] for cell in cells] == earlier["cells"]
    assert cells[-1].to_text() == json.dumps(earlier["cell"])


def test_reading_and_writing_preserves_documents(earlier: dict[str, Any]) -> None:
    assert json.dumps(to_data(read_resolved(earlier["resolved"]))) == json.dumps(earlier["resolved"])
    assert read_cell(earlier["cell"]).to_text() == json.dumps(earlier["cell"])


def test_a_row_has_the_values_that_a_matrix_gave_it() -> None:
    document = json.loads(next(path for path in EARLIER if path.stem == "drawn").read_text(encoding="utf-8"))
    resolved = read_resolved(document["resolved"])
    fast, slow = (resolved.with_row(row) for row in (resolved.schemes[0], resolved.schemes[-1]))
    assert [fast.base_rtt_ns, slow.base_rtt_ns] == [20_000_000, 40_000_000]
    assert [[e.fixed_delay_ns for e in one.network.directed[1].elements] for one in (fast, slow)] == [
        [10_000_000],
        [20_000_000],
    ]
    assert [flow.scheme for flow in slow.flows] == ["copa"]


def test_members_and_kinds_of_newer_versions_are_read() -> None:
    element = {"name": "forward.0", "kind": "wormhole", "gain": 2, "exit": {"kind": "near", "at": [1, 2]}}
    network = {"kind": "dumbbell", "forward": [element], "backward": [], "colour": "red"}
    resolved = read_resolved({"network": network, "runs": 3, "mood": {"good": True}})
    (read,) = resolved.network.elements
    assert isinstance(read, Element) and (read.name, read.kind, read.integer("gain")) == (
        "forward.0",
        "wormhole",
        2,
    )
    inner = read.part("exit")
    assert inner is not None and inner.kind == "near"
    assert to_data(resolved.network)["forward"] == [element]


def test_an_import_has_no_more_than_its_records_share() -> None:
    path = [{"name": "forward.0", "kind": "path", "propagation_ns": 5}]
    rows = [{"label": "tool:cubic", "flows": []}, {"label": "other", "flows": None, "overlay": None}]
    members = {"network": {"kind": "dumbbell", "forward": path}, "schemes": rows, "expect": None}
    resolved = read_resolved({"name": "logs", "where": "import", "duration_ns": 9, **members})
    assert not resolved.is_planned and resolved.with_row(resolved.row("other")).flows == []
    assert resolved.with_row(resolved.row("absent")).flows == []
    cell = read_cell({"where": "import", "flows": [{"flow": 1, "direction": "backward"}], **members})
    assert not cell.flows[0].is_forward and cell.flows[0].traffic_kind == "bulk"
    data, acks = cell.network.ways(cell.flows[0])
    assert (data, [element.name for element in acks]) == ([], ["forward.0"])


@pytest.mark.parametrize(
    ("members", "problem"),
    [
        ({"network": 3}, "network is not an object"),
        ({"network": {"kind": "graph", "links": [{"name": "a"}]}}, "network.links[0].from is missing"),
        ({"network": {"kind": "dumbbell", "forward": ["loss"]}}, "network.forward[0] is not an object"),
        ({"schemes": [{"label": "a", "flows": [{"flow": -1}]}]}, "schemes[0].flows[0].flow is not a count"),
        ({"schemes": [{"flows": []}]}, "schemes[0].label is missing"),
        ({"schemes": "all"}, "schemes is not a list"),
        ({"title": "a\x1b[2Jb"}, "title is not printable text"),
        ({"timeline": [{"at_ns": 1, "element": "a", "set": []}]}, "timeline[0].set is not an object"),
        ([], "the file.scenario.resolved is not an object"),
    ],
)
def test_invalid_members_are_named_with_their_path(members: Any, problem: str) -> None:
    with pytest.raises(DamagedError) as refused:
        read_resolved(members)
    assert str(refused.value).removeprefix("the file.scenario.resolved.") == problem
