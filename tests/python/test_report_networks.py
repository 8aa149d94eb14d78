"""Reports of networks with several links, background traffic, transfers, datagrams and timelines."""

from __future__ import annotations

import csv
import itertools
import sys
from pathlib import Path

import numpy as np
import pytest

import processes
from narrows import _native
from narrows.report import build, document, prose, tables
from narrows.report.data import Campaign, load
from narrows.report.figures import _layout, _network, completion, throughput

SCENARIO = """
schema: narrows/scenario/1
question: How long do short transfers take beside bulk ones?
where: simulate
topology: {dumbbell: {pairs: 3}}
path:
  forward: [{rate: 10 Mbit/s, queue: {droptail: 50 kB}}, {delay: 10 ms}]
  backward: [{delay: 10 ms}]
schemes: [cubic]
flows:
  - {count: 1}
  - {start: 1 s, interval: 500 ms, count: 3, traffic: {transfer: 100 kB}}
background:
  - {scheme: reno, count: 1}
  - {scheme: udp, traffic: {cbr: {rate: 1 Mbit/s}}}
timeline:
  - {at: 2 s, set: {forward.0: {rate: 5 Mbit/s}}}
expect:
  - {metric: utilization_ratio, at_least: 50 %}
  - {metric: throughput_bps, at_least: 1 Gbit/s}
duration: 5 s
runs: 1
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A campaign of one run, made on the command line."""
    root = tmp_path_factory.mktemp("networks")
    (root / "s.yaml").write_text(SCENARIO)
    command = [sys.executable, "-m", "narrows", "run", "s.yaml", "--no-report", "-o", "out"]
    done = processes.run(command, cwd=root, seconds=240)
    # One of the expectations fails.
    assert done.returncode == 5, done.stderr
    return root / "out"


@pytest.fixture(scope="module")
def campaign(folder: Path) -> Campaign:
    return load(folder)


def test_the_record_of_the_graph_is_possible(campaign: Campaign) -> None:
    record = campaign.runs[0].record
    assert record is not None and all(check.ok for check in record.checks), record
    assert next(check for check in record.checks if check.name == "rate").skipped is False


def test_background_is_shown_and_counts_nowhere(campaign: Campaign) -> None:
    run = campaign.runs[0]
    assert [flow.number for flow in run.background] == [5, 6]
    shown = {row[1].text for row in tables.results(campaign).rows if len(row) > 6} | {
        row[0].text for row in tables.results(campaign).rows if len(row) == 6
    }
    assert shown.isdisjoint({"5", "6"})
    columns = throughput.numbers(run)
    assert "background_delivered_mbps" in columns and "flow_5_sent_mbps" not in columns
    series = run.throughput.flows
    wanted = (series[5].arrived_bps + series[6].arrived_bps) / 1e6
    assert columns["background_delivered_mbps"] == pytest.approx(wanted)
    head = [column.head for column in tables.run_statistics(campaign, run).columns]
    assert "flow 5 (background)" in head


def test_capacity_follows_the_timeline(campaign: Campaign) -> None:
    run = campaign.runs[0]
    columns = {name: np.asarray(values) for name, values in throughput.numbers(run).items()}
    before = columns["time_s"] < 2 - run.bin_ns / 1e9
    after = columns["time_s"] > 2
    assert columns["capacity_mbps"][before] == pytest.approx(10)
    assert columns["capacity_mbps"][after] == pytest.approx(5)
    assert run.change_times_s == [2.0]
    assert throughput.chart(run).marks == [2.0]
    assert "At 2 s, forward.0: rate 5 Mbit/s." in prose.workload_sentences(campaign)


def test_capacities_of_all_bottlenecks(folder: Path, campaign: Campaign) -> None:
    found = _native.capacity_series(folder / "cells" / campaign.runs[0].cell, 1_000_000_000)
    assert found["elements"]["forward.0"] == pytest.approx([10e6, 10e6, 5e6, 5e6, 5e6])
    assert found["time_s"] == pytest.approx([0, 1, 2, 3, 4])


def test_completion_times_are_those_of_the_transfers(folder: Path, campaign: Campaign) -> None:
    raw = _native.transfers(folder / "cells" / campaign.runs[0].cell)
    assert list(raw["flow"]) == [2, 3, 4]
    times = sorted((raw["ended_s"] - raw["started_s"]) * 1e3)
    drawn = completion.numbers(campaign)
    assert drawn["completion_ms"] == pytest.approx(times)
    assert drawn["share"] == pytest.approx([1 / 3, 2 / 3, 1])
    table = tables.medians(campaign, "completion")
    assert table is not None and table.rows[0][1].text == "3"


def test_datagrams_and_expectations_have_tables(campaign: Campaign) -> None:
    found = {table.title: table.table for table in document.compose(campaign, {}).tables}
    assert list(found) == ["Flows together", "Completion times of transfers", "Datagrams", "Expectations"]
    assert [row[1].text for row in found["Datagrams"].rows] == ["6 (udp, background)"]
    assert [row[2].text for row in found["Expectations"].rows] == ["holds", "fails"]


def test_meaningless_metrics_are_omitted(campaign: Campaign) -> None:
    names = {metric.name for metric in tables.meaningful_metrics(campaign)}
    assert "completion_p50_ns" in names and "jain_index" in names
    # The run is shorter than such a window.
    assert "jain_160s" not in names


def test_the_report_is_written(folder: Path) -> None:
    paths = build(folder)
    assert paths.html is not None and paths.pdf is not None
    html = paths.html.read_text(encoding="utf-8")
    for words_ in ("A network of 6 hosts and 2 routers.", "Completion times of transfers", "Datagrams"):
        assert words_ in html
    with (folder / "figures" / "path.csv").open(encoding="utf-8") as file:
        assert [row["element"] for row in csv.DictReader(file)] == [
            "forward.0",
            "forward.1",
            "backward.0",
        ]


def _apart(places: dict[str, tuple[float, float]]) -> float:
    pairs = itertools.combinations(places.values(), 2)
    return min(max(abs(a[0] - b[0]), abs(a[1] - b[1])) for a, b in pairs)


def _link(one: str, other: str) -> tuple[str, str]:
    return one, other


def test_nodes_have_distinct_places() -> None:
    sides = ["top", "bottom", "left", "right"]
    star = _layout.places(sides, ["center"], [_link(side, "center") for side in sides])
    assert star["center"] == (0.5, 0.5)
    assert star["top"][1] > 0.9 and star["left"][0] < 0.1 and _apart(star) > 0.3
    routers = ["r1", "r2", "r3", "r4"]
    hosts = ["a", "b", "c", "d"]
    row = [_link(*pair) for pair in itertools.pairwise(routers)]
    arms = [_link(host, router) for host, router in zip(hosts, routers, strict=True)]
    lot = _layout.places(hosts, routers, row + arms)
    assert [lot[r][0] for r in routers] == sorted(lot[r][0] for r in routers) and _apart(lot) > 0.1
    many = [f"h{i}" for i in range(12)]
    wide = _layout.places(many, ["x", "y"], [_link("x", "y"), *(_link(h, "x") for h in many)])
    assert len(set(wide.values())) == 14
    line = _layout.places(["a", "b"], [], [_link("a", "b")])
    assert line == {"a": (0.0, 0.5), "b": (1.0, 0.5)}


def test_the_same_links_share_a_line_of_the_list(campaign: Campaign) -> None:
    assert campaign.settings is not None
    lines, marks = _network._list(campaign.settings.network)
    assert len(lines) == 2 and lines[0].startswith("1  ") and lines[1] == "    back: delay 10 ms"
    assert set(marks.values()) == {"1"}


def test_round_trips_follow_routes(campaign: Campaign) -> None:
    settings = campaign.settings
    assert settings is not None
    for flow in settings.flows:
        assert settings.network.rtt_ns(flow) == 20_000_000
