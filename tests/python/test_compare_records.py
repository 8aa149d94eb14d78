"""Evidence behind the numbers: traces of states, performance envelopes, and comparisons of simulated
campaigns."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from campaign_kit import edited
from compare_kit import compare
from narrows.campaign import integrity
from narrows.cli.all_commands import app
from narrows.comparison import envelope
from narrows.comparison.document import Request
from narrows.comparison.traces import divergence
from narrows.documents.comparison import StateDifference
from narrows.errors import DataError

SCENARIO = """
schema: narrows/scenario/1
name: lossy
question: Which schemes stand random loss?
where: simulate
path:
  forward:
    - {rate: 12 Mbit/s, queue: {droptail: 60 kB}}
    - {loss: 0.5 %}
    - {delay: 20 ms}
  backward:
    - {delay: 20 ms}
schemes: SCHEMES
duration: 4 s
runs: RUNS
seed: SEED
"""


def simulated(folder: Path, schemes: str, runs: int = 2, seed: int = 1) -> Path:
    text = SCENARIO.replace("SCHEMES", schemes).replace("RUNS", str(runs)).replace("SEED", str(seed))
    (file := folder.with_suffix(".yaml")).write_text(text)
    result = CliRunner().invoke(app, ["run", str(file), "-o", str(folder), "--no-report"])
    assert result.exit_code == 0, result.output
    return folder


# -- traces -------------------------------------------------------------------------------------


def series(times: list[float], **columns: list[float]) -> dict[str, Any]:
    return {"time_s": np.array(times), **{name: np.array(values) for name, values in columns.items()}}


def test_traces_part_where_a_value_first_differs() -> None:
    first = series([0, 1, 2, 3], cwnd_bytes=[10, 20, 30, 40], pacing_bps=[1, 1, 1, 1])
    second = series([0, 1, 2, 3], cwnd_bytes=[10, 20, 31, 50], pacing_bps=[1, 1, 1, 9])
    differs = StateDifference(name="cwnd_bytes", unit="bytes", base=30.0, other=31.0)
    assert divergence(first, second, 0.0) == (4, 2.0, [differs])
    assert divergence(first, first, 0.0) == (4, None, [])


def test_values_within_the_tolerance_are_the_same() -> None:
    first = series([0, 1, 2], cwnd_bytes=[100, 100, 100])
    second = series([0, 1, 2], cwnd_bytes=[100, 104, 106])
    assert divergence(first, second, 0.05)[1] == 2.0


def test_values_are_held_between_samples_and_unknown_ones_say_nothing() -> None:
    first = series([0, 1, 2, 3], cwnd_bytes=[1, 2, 3, 4], ssthresh_bytes=[np.nan, np.nan, 5, 5])
    second = series([0.5, 2.5], cwnd_bytes=[1, 3], ssthresh_bytes=[7, 7])
    _, at_s, values = divergence(first, second, 0.0)
    assert at_s == 1.0
    assert [value.name for value in values] == ["cwnd_bytes"]
    assert divergence(series([], cwnd_bytes=[]), second, 0.0)[0] == 0


# -- envelopes ----------------------------------------------------------------------------------

SQUARE = np.array([[0.0, 0], [4, 0], [4, 4], [0, 4]])


def test_hull_and_its_area() -> None:
    inside = np.array([[1.0, 1], [2, 3], [2, 0], [4, 4]])
    assert envelope.hull(np.concatenate([inside, SQUARE])).tolist() == SQUARE.tolist()
    assert envelope.area(SQUARE) == 16
    assert len(envelope.hull(np.array([[1.0, 1], [2, 2], [3, 3]]))) == 2
    assert len(envelope.hull(np.ones((5, 2)))) == 1


def test_hull_agrees_with_scipy() -> None:
    points = np.random.RandomState(3).normal(size=(60, 2))
    # scipy.spatial.ConvexHull(points): 8 vertices, volume 13.852550384662404 (SciPy 1.17).
    found = envelope.hull(points)
    assert len(found) == 8
    assert envelope.area(found) == pytest.approx(13.852550384662404)
    assert [-2.915737751792712, -0.9718405025726093] in found.tolist()


def test_overlap_is_the_shared_area() -> None:
    moved = SQUARE + np.array([2, 0])
    assert envelope.area(envelope.intersection(SQUARE, moved)) == pytest.approx(8)
    assert envelope.overlap(SQUARE, moved) == pytest.approx(8 / 24)
    assert envelope.overlap(SQUARE, SQUARE) == pytest.approx(1)
    assert envelope.overlap(SQUARE, SQUARE + np.array([9, 0])) == 0
    assert envelope.overlap(SQUARE, SQUARE[:2]) is None
    inner = SQUARE / 2 + 1
    assert envelope.overlap(SQUARE, inner) == pytest.approx(0.25)


def test_overlap_agrees_with_counting() -> None:
    chance = np.random.RandomState(4)
    first, second = (envelope.hull(chance.normal(shift, 1, (40, 2))) for shift in (0, 0.7))
    grid = chance.uniform(-4, 5, (200_000, 2))
    inside = [envelope._inside(grid, corners) for corners in (first, second)]
    expected = (inside[0] & inside[1]).sum() / (inside[0] | inside[1]).sum()
    assert envelope.overlap(first, second) == pytest.approx(expected, abs=0.01)


def test_conformance_is_the_share_of_points_in_the_other_hull() -> None:
    first = np.concatenate([SQUARE, [[2.0, 2], [3, 3]]])
    second = first + np.array([2.0, 0])
    # From the first hull two corners and both points inside, from the second one two corners and one point.
    assert envelope.conformance(first, second) == pytest.approx(7 / 12)
    assert envelope.conformance(first, first) == 1
    assert envelope.conformance(first, first + np.array([100, 0])) == 0
    line = np.array([[0.0, 0], [1, 1], [2, 2]])
    assert envelope.conformance(line, line) == 1
    assert envelope.conformance(line, line + 3) == 0


def test_points_far_from_the_middle_are_omitted() -> None:
    points = np.random.RandomState(5).normal(size=(100, 2)) * [1e6, 1e9]
    points[7] = [5e7, 0]
    kept = envelope.nearest(points)
    assert len(kept) == 95
    assert not (kept == points[7]).all(axis=1).any()


def test_points_are_windows_of_arrivals() -> None:
    arrived = np.array([100, 150, 199, 200, 320, 450], dtype=np.int64)
    sent = arrived - np.array([10, 20, 30, 5, 7, 1])
    points = envelope.windows(arrived, sent, np.full(6, 1000.0), 100)
    # The last window is incomplete; the third one has a packet.
    assert points.tolist() == [[20.0, 3000 * 8e9 / 100], [5.0, 1000 * 8e9 / 100], [7.0, 1000 * 8e9 / 100]]
    assert envelope.windows(arrived[:0], sent[:0], np.empty(0), 100).shape == (0, 2)


# -- simulated campaigns ------------------------------------------------------------------------


def test_a_campaign_made_again_is_identical(tmp_path: Path) -> None:
    sides = [simulated(tmp_path / name, "[cubic]") for name in "ab"]
    document = compare(Request(sides))
    assert {finding["outcome"] for finding in document["rows"][0]["metrics"].values()} == {"identical"}
    assert document["traces"][0]["flows"][0]["at_s"] is None
    shape = document["envelopes"][0]
    assert (shape["conformance"], shape["overlap"]) == (1.0, pytest.approx(1.0))
    result = CliRunner().invoke(app, ["compare", *map(str, sides)])
    assert "All 5 comparisons are of identical numbers." in result.stdout
    assert "the states agree to the end" in result.stdout


def test_two_implementations_part_and_overlap(tmp_path: Path) -> None:
    folder = simulated(tmp_path / "a", "[cubic, cubic-linux, {scheme: cubic, beta: 0.5}]")
    document = compare(Request([folder], pairs=[("cubic", "cubic-linux"), ("cubic", "cubic beta=0.5")]))
    close, far = document["envelopes"]
    assert 0 < far["conformance"] < 1
    assert 0 < close["conformance"] <= 1
    (flow,) = document["traces"][1]["flows"]
    # Until the first loss everything is equal.
    assert 0 < flow["at_s"] < 4
    assert flow["values"]
    page = CliRunner().invoke(app, ["compare", str(folder), "--pair", "cubic=cubic-linux", "--html"])
    assert "<polygon" in page.stdout
    assert "Understanding Speciation in QUIC Congestion Control" in page.stdout


def test_other_seeds_are_not_paired(tmp_path: Path) -> None:
    sides = [simulated(tmp_path / name, "[reno, vegas]", 6, seed) for name, seed in (("a", 1), ("b", 2))]
    document = compare(Request(sides))
    assert not any(row["paired"] for row in document["rows"])
    assert {one["what"] for one in document["differences"]} == {"seed"}
    assert document["shown"] == 0


def test_records_without_packets_have_no_envelope(tmp_path: Path) -> None:
    folder = simulated(tmp_path / "a", "[reno, vegas]")
    with edited(folder / "campaign.json") as document:
        for entry in document["cells"]:
            cell = folder / "cells" / entry["id"]
            (cell / "packets.parquet").write_bytes(b"PAR1")
            entry["digest"] = integrity.digest(cell)
        digests = {entry["id"]: entry["digest"] for entry in document["cells"]}
    with edited(folder / "results.json") as results:
        assert results["digests"].keys() == digests.keys()
        results["digests"] = digests
    result = CliRunner().invoke(app, ["compare", str(folder), "--pair", "reno=vegas", "--json"])
    assert result.exit_code == 0, result.output
    (shape,) = json.loads(result.stdout)["envelopes"]
    assert "packets.parquet" in shape["absent"]


def test_two_cells_are_compared_as_two_runs(tmp_path: Path) -> None:
    cells = simulated(tmp_path / "a", "[cubic, cubic-linux]") / "cells"
    document = compare(Request([cells / "cubic-r1", cells / "cubic-linux-r1"]))
    assert [side["cells"] for side in document["sides"]] == [1, 1]
    (row,) = document["rows"]
    assert row["title"] == "cubic-linux for cubic"
    assert document["traces"][0]["flows"][0]["at_s"] > 0
    (cells.parent / "cells" / "stranger").mkdir()
    (cells / "stranger" / "run.json").write_text("{}")
    with pytest.raises(DataError, match="is not a cell of the campaign"):
        compare(Request([cells / "stranger", cells / "cubic-r1"]))
