"""Runs between two hosts that are watched while they are under way, and whose flows start and stop."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

import hosts_kit as kit
import processes
import shell_kit
from hosts_kit import NAME, Hosts
from live_kit import load
from narrows.campaign.live_peers import LivePeers
from narrows.documents.live import ArrivedCounts, PeerSample, Reading, SentCounts
from narrows.errors import UsageError
from narrows.live.orders import Desk
from narrows.live.two_ends import TwoEnds
from narrows.live.watch import Watch
from narrows.scenario import cells_of
from real_path_kit import Lab, slow

SCENARIO = f"""\
schema: narrows/scenario/1
question: What does a watched run between hosts look like?
where: hosts
real_path: {{other: {NAME}, sender: here, ports: 5001-5002}}
schemes: ['linux:cubic']
flows: {{count: 2, interval: 7 s}}
duration: 8 s
seed: 5
"""
MS = 1_000_000
#: The rate of the path (`real_path_kit.slow`).
RATE_BPS = 20_000_000


def sample(number: int, sent: int = 0, before: int = 0, arrived: int = 0, late_ms: int = 0) -> PeerSample:
    """A sample of both directions: `sent` packets of flow 1 before its interval; `arrived` of flow 2, of
    which those before the last interval but one are `before`; each of 1500 B and 3 ms above the smallest
    delay."""
    return PeerSample(
        number=number,
        time_ns=500 * MS * number + late_ms * MS,
        sent=[SentCounts(flow=1, interval=100 + number, before=sent, cwnd_bytes=30_000)],
        arrived=[
            ArrivedCounts(
                flow=2,
                packets=arrived,
                size=1500 * arrived,
                queueing_ns=3 * MS * arrived,
                interval=100 + number - 1,
                before=before,
            )
        ],
    )


def other(sample: PeerSample) -> PeerSample:
    """The same at the other end: flow 2 is sent there, and flow 1 arrives."""
    (sent,), (arrived,) = sample.sent, sample.arrived
    return PeerSample(
        number=sample.number,
        time_ns=sample.time_ns,
        sent=[SentCounts(flow=2, interval=sent.interval, before=sent.before)],
        arrived=[
            ArrivedCounts(
                flow=1,
                packets=arrived.packets,
                size=arrived.size,
                queueing_ns=arrived.queueing_ns,
                interval=arrived.interval,
                before=arrived.before,
            )
        ],
    )


def test_readings_join_departures_at_one_end_and_arrivals_at_the_other() -> None:
    ends = TwoEnds()
    assert ends.read("here", sample(1, sent=50, arrived=40)) is None
    first = ends.read("there", other(sample(1, sent=50, arrived=40)))
    assert first is not None and first.time_ns == 500 * MS
    # Until the intervals are complete no loss is known. 40 packets in half a second.
    one, two = first.flows
    assert (one.flow, two.flow) == (1, 2)
    assert one.throughput_bps == two.throughput_bps == pytest.approx(40 * 1500 * 8 / 0.5)
    assert one.queueing_ns == pytest.approx(3 * MS) and one.loss_ratio is None
    assert (one.cwnd_bytes, two.cwnd_bytes) == (30_000, None)
    # By hand: of the 50 packets before interval 101, 45 have arrived.
    second = sample(2, sent=100, before=45, arrived=90)
    ends.read("there", other(second))
    reading = ends.read("here", second)
    assert reading is not None
    assert reading.flows[0].loss_ratio == pytest.approx(0.1)
    # 40 of the next 50.
    third = sample(3, sent=150, before=85, arrived=120)
    ends.read("here", third)
    reading = ends.read("there", other(third))
    assert reading is not None
    assert reading.flows[1].loss_ratio == pytest.approx(0.2)
    assert reading.flows[1].throughput_bps == pytest.approx(30 * 1500 * 8 / 0.5)


def test_a_sample_of_one_end_alone_is_skipped_when_a_later_pair_is_complete() -> None:
    ends = TwoEnds()
    assert ends.read("here", sample(1, sent=10, arrived=10)) is None
    assert ends.read("here", sample(2, sent=20, arrived=20)) is None
    reading = ends.read("there", other(sample(2, sent=20, arrived=20)))
    assert reading is not None and reading.time_ns == 1000 * MS
    assert reading.flows[0].throughput_bps == pytest.approx(20 * 1500 * 8 / 1.0)
    assert ends.read("there", other(sample(1, sent=10, arrived=10))) is None, "it is too late"


def test_without_a_tunnel_the_sender_knows_acknowledged_data_and_round_trip_times() -> None:
    ends = TwoEnds()

    def read(number: int, acknowledged: int, srtt_ms: int) -> Reading | None:
        sent = SentCounts(flow=1, acknowledged_bytes=acknowledged, srtt_ns=srtt_ms * MS)
        time_ns = 500 * MS * number
        ends.read("there", PeerSample(number=number, time_ns=time_ns, sent=[], arrived=[]))
        return ends.read("here", PeerSample(number=number, time_ns=time_ns, sent=[sent], arrived=[]))

    read(1, 100_000, 20)
    reading = read(2, 350_000, 50)
    assert reading is not None
    (flow,) = reading.flows
    assert flow.throughput_bps == pytest.approx(250_000 * 8 / 0.5)
    assert (flow.queueing_ns, flow.loss_ratio, flow.srtt_ns) == (30 * MS, None, 50 * MS)


COUNT = st.integers(0, 2**63)
SENT = st.builds(
    SentCounts, flow=st.integers(1, 3), interval=st.none() | COUNT, before=st.none() | COUNT, srtt_ns=COUNT
)
ARRIVED = st.builds(
    ArrivedCounts,
    flow=st.integers(1, 3),
    packets=COUNT,
    size=COUNT,
    queueing_ns=COUNT,
    interval=COUNT,
    before=COUNT,
)
SAMPLE = st.builds(
    PeerSample,
    number=st.integers(1, 9),
    time_ns=COUNT,
    sent=st.lists(SENT, max_size=4),
    arrived=st.lists(ARRIVED, max_size=4),
)


@given(st.lists(st.tuples(st.sampled_from(["here", "there"]), SAMPLE), max_size=30))
def test_readings_are_possible_whatever_an_end_says(samples: list[tuple[str, PeerSample]]) -> None:
    ends, time_ns = TwoEnds(), -1
    for end, one in samples:
        reading = ends.read(end, one)
        if reading is None:
            continue
        assert reading.time_ns > time_ns
        time_ns = reading.time_ns
        for flow in reading.flows:
            assert 0 <= flow.throughput_bps < float("inf")
            assert flow.queueing_ns is None or flow.queueing_ns >= 0
            assert flow.loss_ratio is None or 0 <= flow.loss_ratio <= 1


# -- orders ----------------------------------------------------------------------------------------


class Orders:
    """Both agents of a run, as stand-ins that confirm commands."""

    def __init__(self) -> None:
        self.loaded = load(SCENARIO)
        (self.cell,) = cells_of(self.loaded.scenario)
        self.watch = Watch(Desk(self.loaded))
        self.peers = LivePeers(self.cell, self.watch, 1000 * MS)
        self.watch.begin(self.cell, self.peers)

    def confirm(self, flow: int, late_ms: int = 0) -> None:
        for end, late_ns in (("here", 0), ("there", late_ms * MS)):
            line = {"event": "rescheduled", "flow": flow, "late_ns": late_ns}
            self.peers.hear(end, json.dumps(line).encode())

    def timeline(self) -> list[dict[str, object]]:
        changed = self.watch.orders.scenario_with_changes()  # type: ignore[union-attr]
        return yaml.safe_load(changed.text)["timeline"] if changed is not None else []


def test_an_order_becomes_a_command_to_both_agents_and_an_entry_of_the_timeline() -> None:
    orders = Orders()
    assert orders.watch.order("start 2") is None
    command = orders.peers.next_command(1_200_300_000)
    assert command == {
        "order": "reschedule",
        "flow": 2,
        "start_ns": 2201 * MS,
        "stop_ns": 8000 * MS,
        "at_ns": 2201 * MS,
    }
    assert orders.watch.order("stop 1") is None
    assert orders.peers.next_command(1300 * MS) is None, "the first one has no answer yet"
    orders.confirm(2)
    assert orders.timeline() == [{"at": "2.201 s", "start": 2}]
    command = orders.peers.next_command(2000 * MS)
    assert command is not None and command["stop_ns"] == 3000 * MS
    # An end that hears of it late has carried it out at once, and the timeline has that time.
    orders.confirm(1, late_ms=40)
    assert orders.timeline()[1] == {"at": "3.04 s", "stop": 1}
    assert "40 ms late" in orders.watch.look().notes[-1].text
    changed = orders.watch.orders.cell_with_changes()  # type: ignore[union-attr]
    assert changed is not None and changed.id == orders.cell.id
    assert [(flow.start_ns, flow.stop_ns) for flow in changed.flows] == [
        (0, 3040 * MS),
        (2201 * MS, 8000 * MS),
    ]


@pytest.mark.parametrize(
    ("order", "now_ms", "why"),
    [
        ("start 1", 100, "flow 1 has started already"),
        ("stop 2", 100, "flow 2 has not started yet"),
        ("start 2", 7500, "the run is almost over, so that nothing can change any more"),
    ],
)
def test_orders_that_come_too_late_or_too_early_are_refused(order: str, now_ms: int, why: str) -> None:
    orders = Orders()
    assert orders.watch.order(order) is None
    assert orders.peers.next_command(now_ms * MS) is None
    assert orders.watch.look().notes[-1].text == why
    assert orders.timeline() == []


@pytest.mark.parametrize("order", ["rate 5 Mbit/s", "delay 40 ms", "set forward.0 {rate: 1 Mbit/s}"])
def test_a_real_path_cannot_be_changed(order: str) -> None:
    with pytest.raises(UsageError) as refused:
        Desk(load(SCENARIO)).read(order)
    assert str(refused.value) == (
        "the rate, delay and queues of a real path can't be changed; between hosts, write start 2 or stop 1"
    )


def test_damaged_lines_of_agents_are_ignored() -> None:
    orders = Orders()
    for line in (b"", b"{", b"[]", b'{"event": "counts"}', b'{"event": "rescheduled", "flow": -1}'):
        orders.peers.hear("here", line)
    orders.confirm(1)
    assert orders.watch.look().readings == []


# -- whole runs ------------------------------------------------------------------------------------


@pytest.fixture
def pair(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hosts]:
    if shell_kit.refusal():
        pytest.skip(shell_kit.refusal())
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "cache-of-hosts"))
    with kit.hosts(tmp_path_factory.mktemp("hosts")) as made, slow(made):
        yield made


def events_of(started: subprocess.Popen[str], orders: list[str]) -> list[dict[str, Any]]:
    """The events of a campaign, which receives orders while its run is under way."""
    assert started.stdin and started.stdout
    events = []
    for line in started.stdout:
        events.append(json.loads(line))
        if events[-1]["event"] == "live" and events[-1]["time_ns"] > 900 * MS and orders:
            started.stdin.write(orders.pop(0) + "\n")
            started.stdin.flush()
    return events


@pytest.mark.system
@pytest.mark.timeout(300)
def test_a_run_between_hosts_is_watched_and_its_flows_start_and_stop(pair: Hosts, tmp_path: Path) -> None:
    lab = Lab(pair, tmp_path, SCENARIO)
    with lab.start(
        *("--no-report", "--live", "--interactive", "--events"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as started:
        events = events_of(started, ["rate 5 Mbit/s", "start 2", "stop 1"])
        assert started.stderr
        problems = started.stderr.read()
    assert started.returncode in (0, 6), problems
    live = [event for event in events if event["event"] == "live"]
    assert 10 <= len(live) <= 17
    timeline = yaml.safe_load((lab.out / "as-run.yaml").read_text())["timeline"]
    assert [list(entry)[1:] for entry in timeline] == [["start"], ["stop"]], timeline
    started_s, stopped_s = (float(entry["at"].split()[0]) for entry in timeline)
    assert started_s < 4 and stopped_s < 6

    # The path carries 20 Mbit/s of the tunnel's datagrams: 92 to 100 % of it are packets inside.
    both = [sum(flow["throughput_bps"] for flow in event["flows"]) for event in live]
    full = [bits for event, bits in zip(live, both, strict=True) if 2e9 < event["time_ns"] < 7.5e9]
    assert 0.8 * RATE_BPS < sum(full) / len(full) < 1.01 * RATE_BPS
    after = [event for event in live if event["time_ns"] / 1e9 > stopped_s + 1.2]
    assert after and all(event["flows"][0]["throughput_bps"] < 0.05 * RATE_BPS for event in after)
    # The queue of the path has 500 kB, so that its delay is at most 200 ms and more than half of it at times.
    queueing = [flow["queueing_ns"] for event in live for flow in event["flows"] if flow.get("queueing_ns")]
    assert 50 * MS < max(queueing) < 400 * MS
    assert any(flow.get("cwnd_bytes") for event in live for flow in event["flows"])

    # The record is of the changed run, and counts the same packets.
    run = lab.run_json("linux-cubic-r1")
    assert [round(flow["start_ns"] / 1e9, 3) for flow in run["cell"]["flows"]] == [0, started_s]
    assert run["cell"]["flows"][0]["stop_ns"] == round(stopped_s * 1e9)
    forward = next(element for element in run["elements"] if element["name"] == "forward.0")
    seen, before = 0.0, 0
    for event, bits in zip(live, both, strict=True):
        seen, before = seen + bits * (event["time_ns"] - before) / 8e9, event["time_ns"]
    assert seen == pytest.approx(forward["out_bytes"], rel=0.1)
    done = processes.run([sys.executable, "-m", "narrows", "check", str(lab.out)])
    assert done.returncode == 0, done.stderr


@pytest.mark.system
@pytest.mark.timeout(200)
def test_without_a_tunnel_the_ends_are_watched_alone(pair: Hosts, tmp_path: Path) -> None:
    text = SCENARIO.replace("sender: here,", "sender: here, tunnel: off,").replace("8 s", "4 s")
    lab = Lab(pair, tmp_path, text.replace("flows: {count: 2, interval: 7 s}\n", ""))
    done = lab.run("--no-report", "--live")
    assert done.returncode in (0, 6), done.stderr
    lines = [line for line in done.stderr.splitlines() if line.startswith("linux:cubic run 1, ")]
    assert len(lines) >= 2 and "Mbit/s" in lines[-1] and "window" in lines[-1], done.stderr
    assert "loss" not in "".join(lines)
