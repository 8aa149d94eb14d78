"""Readings of runs that are under way, their view in a terminal, and orders that change them."""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from live_kit import SCENARIO, Recorder, cell_of, load, sample, watch_run
from narrows.documents.live import Changed
from narrows.errors import NarrowsError, UsageError
from narrows.live.as_run import portable
from narrows.live.canvas import Canvas, chart, nice_top
from narrows.live.orders import Desk
from narrows.live.terminal import draw, in_a_line
from narrows.live.watch import Watch
from narrows.scenario import cells_of
from narrows.scenario.loading import load as load_file
from narrows.scenario.loading import load_text
from narrows.scenario.overrides import Override
from narrows.text import is_text

# -- readings --------------------------------------------------------------------------------------


def test_readings_are_what_happened_between_two_samples() -> None:
    watch, _ = watch_run(samples=3)
    last = watch.look().readings[-1]
    assert last.time_ns == 600_000_000
    # By hand: 20 packets of 1500 B in 200 ms, each 10 ms in queues, 1 of 21 dropped.
    second = last.flows[1]
    assert second.throughput_bps == pytest.approx(20 * 1500 * 8 / 0.2)
    assert second.queueing_ns == pytest.approx(10_000_000)
    assert second.loss_ratio == pytest.approx(1 / 21)
    assert second.cwnd_bytes == 60_000 and second.srtt_ns is None
    (queue,) = last.queues
    assert queue.throughput_bps == pytest.approx(45_000 * 8 / 0.2)
    assert (queue.queued_packets, queue.dropped_packets, queue.rate_bps) == (7, 6, 12_000_000)


def test_a_silent_flow_has_no_delay_and_no_loss() -> None:
    watch = Watch()
    hear = watch.begin(cell_of(), Recorder())
    quiet = {
        "flow": 1,
        "delivered_packets": 5,
        "delivered_bytes": 500,
        "dropped_packets": 0,
        "queueing_ns": 9,
    }
    for time_ns in (200_000_000, 400_000_000):
        hear(json.dumps({"event": "live", "time_ns": time_ns, "flows": [quiet], "elements": []}).encode())
    flow = watch.look().readings[-1].flows[0]
    assert (flow.throughput_bps, flow.queueing_ns, flow.loss_ratio) == (0, None, None)


def test_samples_at_the_same_time_and_damaged_lines_are_ignored() -> None:
    watch, run = watch_run(samples=2)
    for line in (sample(2), b"", b"{", b'{"event": "live"}', b'{"event": "live", "time_ns": -1}', b"[]"):
        watch.hear(line)
    assert len(watch.look().readings) == 2
    assert run.lines == []


def test_another_run_begins_without_the_readings_of_the_last() -> None:
    watch, _ = watch_run()
    watch.note("said before")
    watch.begin(cell_of(), Recorder())
    state = watch.look()
    assert (state.readings, state.notes, state.over) == ([], [], False)
    watch.end(cell_of())
    assert watch.look().over


# -- the terminal ----------------------------------------------------------------------------------


def _columns(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text)


@pytest.mark.parametrize("size", [(80, 24), (200, 60), (80, 10), (40, 12), (20, 5), (1, 1)])
@pytest.mark.parametrize(("flows", "queues"), [(1, 1), (2, 1), (6, 2), (40, 9), (1, 0)])
def test_the_view_fits_any_terminal_without_wrapped_lines(
    size: tuple[int, int], flows: int, queues: int
) -> None:
    watch, _ = watch_run(flows=flows, queues=queues)
    watch.note("a message that is much too long for one line of a terminal " * 3)
    lines = draw(watch.look(), *size, prompt="rate 5 Mbit/s")
    assert len(lines) <= size[1]
    assert all(_columns(line.plain) <= size[0] for line in lines)
    assert not any("\n" in line.plain for line in lines)


def test_the_view_shows_numbers_charts_and_queues_at_80_by_24() -> None:
    watch, _ = watch_run()
    text = "\n".join(line.plain for line in draw(watch.look(), 80, 24))
    assert "reno run 1  8.0 s of 30 s" in text
    # Flow 2: 1.2 Mbit/s, 10 ms, 1 of 21, 60 kB.
    row = next(line for line in text.splitlines() if line.startswith("   2 reno"))
    assert row.split() == ["2", "reno", "1.20", "10.0", "4.76", "60.0", "-"]
    queue = next(line for line in text.splitlines() if line.startswith("forward.0"))
    assert queue.split() == ["forward.0", "1.80", "12.00", "7", "10.5", "80"]
    assert "throughput (Mbit/s)" in text and "queueing delay (ms)" in text
    assert any("\u2800" < letter <= "\u28ff" for letter in text)


def test_no_number_is_cut_where_columns_have_no_room() -> None:
    watch, _ = watch_run()
    for width in (60, 48, 40):
        lines = [line.plain for line in draw(watch.look(), width, 20)]
        assert not any("…" in line for line in lines[:6]), lines[:6]
        row = next(line for line in lines if line.startswith("forward.0"))
        assert row.split()[:3] == ["forward.0", "1.80", "12.00"]


def test_flows_without_room_are_counted() -> None:
    watch, _ = watch_run(flows=40, text=SCENARIO.replace("count: 2", "count: 40"))
    lines = [line.plain for line in draw(watch.look(), 80, 24)]
    more = next(line for line in lines if "more flows" in line)
    shown = sum(line[4:9] == " reno" for line in lines)
    assert f"and {40 - shown} more flows" in more


def test_before_the_first_reading_the_view_says_so() -> None:
    assert "waiting" in draw(Watch().look(), 80, 24)[0].plain
    watch = Watch()
    watch.begin(cell_of(), Recorder())
    assert any("start" in line.plain for line in draw(watch.look(), 80, 24))


def test_without_a_terminal_a_reading_is_one_line() -> None:
    watch, _ = watch_run()
    line = in_a_line(cell_of(), watch.look().readings[-1])
    assert is_text(line)
    assert line == (
        "reno run 1, 8.0 s: flow 1 0.60 Mbit/s, queue 5.0 ms, loss 9.09 %, window 30.0 kB;"
        " flow 2 1.20 Mbit/s, queue 10.0 ms, loss 4.76 %, window 60.0 kB; forward.0 7 packets of 10.5 kB"
    )


def test_a_curve_has_its_dots_where_the_unicode_standard_has_them() -> None:
    canvas = Canvas(1, 1)
    canvas.draw([(0.0, 1.0)], "")
    assert canvas.lines()[0].plain == "\u2801"  # dot 1, top left
    canvas = Canvas(1, 1)
    canvas.draw([(1.0, 0.0)], "")
    assert canvas.lines()[0].plain == "\u2880"  # dot 8, bottom right
    canvas = Canvas(2, 1)
    canvas.draw([(0.0, 0.0), None, (1.0, 0.0)], "")
    assert canvas.lines()[0].plain == "\u2840\u2880"  # a gap is not drawn


@given(st.floats(0, 1e12))
def test_an_axis_ends_at_or_above_its_largest_value(most: float) -> None:
    top = nice_top(most)
    assert top >= most and (most < 1e-6 or top <= 2.5 * most)


@given(
    st.lists(st.tuples(st.floats(0, 60), st.none() | st.floats(0, 1e9)), max_size=20),
    st.integers(1, 100),
    st.integers(1, 20),
)
def test_any_chart_keeps_its_size(points: list[tuple[float, float | None]], width: int, height: int) -> None:
    lines = chart("t", [(points, "red")], (0, 60), width, height)
    assert len(lines) == max(3, height)
    assert all(len(line.plain) <= width for line in lines)


# -- orders ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "element", "values"),
    [
        ("rate 5 Mbit/s", "forward.0", {"rate": {"kind": "constant", "rate": 5_000_000}}),
        ("rate forward.0 5 Mbit/s", "forward.0", {"rate": {"kind": "constant", "rate": 5_000_000}}),
        ("delay 40 ms", "forward.1", {"delay": 40_000_000}),
        ("delay backward.0 1 ms", "backward.0", {"delay": 1_000_000}),
        ("set forward.0 {queue: {droptail: 30 kB}}", "forward.0", {"queue": {"bytes": 30_000}}),
    ],
)
def test_orders_are_entries_of_a_timeline(text: str, element: str, values: dict[str, object]) -> None:
    line = json.loads(Desk(load()).read(text))
    assert line["order"] == "change" and line["element"] == element
    assert line["set"] == values


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("faster", '"faster" is not an order'),
        ("rate", "rate needs a value; write for example rate 5 Mbit/s"),
        ("delay", "delay needs a value; write for example delay 40 ms"),
        ("rate 5", "forward.0: "),
        ("rate -5 Mbit/s", "forward.0: "),
        ("rate 5 Mbit/s, delay: 3 ms", "forward.0: "),
        ("set nowhere {rate: 1 Mbit/s}", 'element "nowhere" does not exist; there are forward.0'),
        ("set forward.0 {colour: red}", "forward.0: "),
        ("set forward.0 {queue: {codel: 30 kB}}", "forward.0: "),
        ("set forward.0 }", "forward.0: "),
        ("start", "start needs the number of a flow"),
        ("stop all", "stop needs the number of a flow"),
        ("start 3", 'flow "3" does not exist; flows are 1 to 2'),
        ("stop 0", 'flow "0" does not exist'),
        ("rate " + "9" * 2000, "an order has at most 1000 characters"),
    ],
)
def test_what_is_no_order_is_refused_in_one_sentence(text: str, why: str) -> None:
    with pytest.raises(UsageError) as refused:
        Desk(load()).read(text)
    assert str(refused.value).startswith(why)
    assert "\n" not in str(refused.value)


@given(st.text(max_size=60))
def test_any_text_is_an_order_or_refused(text: str) -> None:
    desk = Desk(load())
    for attempt in (text, f"rate {text}", f"set forward.0 {text}"):
        try:
            assert json.loads(desk.read(attempt))["order"] == "change"
        except NarrowsError as error:
            assert "\n" not in str(error)


@pytest.mark.parametrize(("text", "line"), [("start 2", ("start", 2)), ("stop 1", ("stop", 1))])
def test_flows_start_and_stop_by_their_numbers(text: str, line: tuple[str, int]) -> None:
    assert json.loads(Desk(load()).read(text)) == {"order": line[0], "flow": line[1]}


def test_a_flow_starts_and_stops_once() -> None:
    desk = Desk(load())
    assert _carry_out(desk, "stop 2", 3_000_000_000) == "stop of flow 2"
    with pytest.raises(UsageError, match="the stop of flow 2 is given already; a flow starts and stops once"):
        desk.read("stop 2")
    changed = desk.scenario_with_changes()
    assert changed is not None
    assert yaml.safe_load(changed.text)["timeline"] == [{"at": "3 s", "stop": 2}]
    (cell,) = cells_of(changed.scenario)
    assert [flow.stop_ns for flow in cell.flows] == [30_000_000_000, 3_000_000_000]


TIMES = SCENARIO.replace(
    "flows: {count: 2}",
    "flows:\n  - {label: bulk, count: 2, start: 10 s, stop: 25 s}\n  - {scheme: cubic}",
)


def test_a_start_or_stop_of_the_scenario_is_replaced_by_that_of_an_order() -> None:
    desk = Desk(load(TIMES))
    _carry_out(desk, "start 2", 3_000_000_000)
    _carry_out(desk, "stop 2", 7_000_000_000)
    _carry_out(desk, "stop 3", 8_000_000_000)
    with pytest.raises(UsageError, match="a flow starts and stops once"):
        desk.read("start 2")
    changed = desk.scenario_with_changes()
    assert changed is not None
    (cell,) = cells_of(changed.scenario)
    times = [(flow.start_ns // 10**9, (flow.stop_ns or 0) // 10**9) for flow in cell.flows]
    assert times == [(10, 25), (3, 7), (0, 8)]
    assert desk.cell_with_changes() == cell
    # Another run begins.
    desk.clear()
    assert desk.scenario_with_changes() is None and desk.cell_with_changes() is None


def test_entries_of_a_written_timeline_give_way_to_orders_for_the_same_flow() -> None:
    text = TIMES + (
        "timeline:\n  - {at: 12 s, start: bulk, set: {forward.1: {delay: 30 ms}}}\n  - {at: 20 s, stop: 3}\n"
    )
    desk = Desk(load(text))
    _carry_out(desk, "start 1", 3_000_000_000)
    _carry_out(desk, "stop 3", 4_000_000_000)
    changed = desk.scenario_with_changes()
    assert changed is not None
    assert yaml.safe_load(changed.text)["timeline"] == [
        {"at": "12 s", "set": {"forward.1": {"delay": "30 ms"}}},
        {"at": "12 s", "start": 2},
        {"at": "3 s", "start": 1},
        {"at": "4 s", "stop": 3},
    ]
    (cell,) = cells_of(changed.scenario)
    assert [flow.start_ns // 10**9 for flow in cell.flows] == [3, 12, 0]


def test_files_of_a_changed_scenario_are_copied_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    origin, elsewhere = tmp_path / "origin", tmp_path / "elsewhere"
    for folder in (origin / "deep", elsewhere / "own"):
        folder.mkdir(parents=True)
    for number, folder in enumerate((origin, origin / "deep", elsewhere / "own"), 1):
        (folder / "link.trace").write_text("".join(f"{time}\n" for time in range(number, 200, number)))
    path = origin / "s.yaml"
    trace = "{rate: {trace: %s}, queue: {droptail: 60 kB}}"
    text = SCENARIO.replace("{rate: 12 Mbit/s, queue: {droptail: 60 kB}}", trace % "link.trace")
    text = text.replace(
        "  backward:\n", "  backward:\n    - " + trace % "'deep/link.trace'" + "  # comments\n"
    )
    path.write_text(text)
    monkeypatch.chdir(elsewhere)
    for overrides, kept in (
        ([], "# comments"),
        ([Override("--set", "path.forward.0.rate.trace", "own/link.trace")], ""),
    ):
        loaded = load_file(path, overrides)
        desk = Desk(loaded)
        _carry_out(desk, "delay forward.1 40 ms", 12_000_000_000)
        changed = desk.scenario_with_changes()
        assert changed is not None
        moved, copies = portable(changed)
        assert sorted(copies) == ["as-run.files/2/link.trace", "as-run.files/link.trace"]
        assert kept in moved.text
        target = tmp_path / f"campaign {bool(overrides)}"
        for name, content in copies.items():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            (target / name).write_bytes(content)
        (target / "as-run.yaml").write_text(moved.text)
        again = load_file(target / "as-run.yaml", [])
        assert again.scenario.hash == changed.scenario.hash
        assert [cell.hash for cell in cells_of(again.scenario)] == [
            cell.hash for cell in cells_of(changed.scenario)
        ]


def test_a_manifest_of_a_program_is_named_by_its_whole_path(tmp_path: Path) -> None:
    (tmp_path / "tools").mkdir()
    manifest = tmp_path / "tools" / "own.yaml"
    manifest.write_text((Path(__file__).parents[2] / "programs" / "iperf3.yaml").read_text())
    path = tmp_path / "s.yaml"
    path.write_text(
        SCENARIO.replace("schemes: [reno]", "schemes: [{program: tools/own.yaml, variant: cubic}]")
    )
    desk = Desk(load_file(path, []))
    _carry_out(desk, "delay 40 ms", 12_000_000_000)
    changed = desk.scenario_with_changes()
    assert changed is not None
    moved, copies = portable(changed)
    assert copies == {}
    (scheme,) = yaml.safe_load(moved.text)["schemes"]
    assert scheme == {"program": str(manifest), "variant": "cubic"}


def _carry_out(desk: Desk, text: str, at_ns: int) -> str:
    desk.read(text)
    return desk.keep(Changed(at_ns=at_ns))


def test_orders_that_were_carried_out_become_the_timeline_of_the_scenario() -> None:
    desk = Desk(load())
    assert desk.scenario_with_changes() is None
    assert _carry_out(desk, "rate 5 Mbit/s", 3_214_000_000) == "forward.0 rate: 5 Mbit/s"
    _carry_out(desk, "delay 40 ms", 12_000_000_000)
    desk.read("rate 1 Mbit/s")
    desk.drop()  # The agent has refused it.
    changed = desk.scenario_with_changes()
    assert changed is not None
    assert changed.text.startswith(SCENARIO)
    # Read by another reader of YAML.
    assert yaml.safe_load(changed.text)["timeline"] == [
        {"at": "3.214 s", "set": {"forward.0": {"rate": "5 Mbit/s"}}},
        {"at": "12 s", "set": {"forward.1": {"delay": "40 ms"}}},
    ]
    assert [change.at_ns for change in changed.scenario.timeline] == [3_214_000_000, 12_000_000_000]
    assert load_text(changed.text).scenario.hash == changed.scenario.hash


def test_a_scenario_with_a_timeline_and_options_keeps_both() -> None:
    text = SCENARIO + 'timeline: [{at: 1 s, set: {forward.0: {rate: 3 Mbit/s}}}]\ntitle: "A, b: # [c]"\n'
    desk = Desk(load_text(text, [Override("--time", "duration", "10 s")]))
    _carry_out(desk, "rate 5 Mbit/s", 2_000_000_000)
    changed = desk.scenario_with_changes()
    assert changed is not None
    assert [change.at_ns for change in changed.scenario.timeline] == [1_000_000_000, 2_000_000_000]
    assert changed.scenario.duration_ns == 10_000_000_000
    assert changed.scenario.title == "A, b: # [c]"
    assert yaml.safe_load(changed.text)["question"] == "How does a change look, while it happens?"


def test_orders_without_a_run_or_a_desk_are_refused() -> None:
    watch, run = watch_run()
    assert watch.order("rate 5 Mbit/s") == "this run takes no orders; start it with --interactive"
    watch.orders = Desk(load())
    assert watch.order("  ") is None
    assert watch.order("rate 5 Mbit/s") is None and len(run.lines) == 1
    watch.hear(b'{"event": "refused", "message": "the run is almost over"}')
    assert watch.look().notes[-1].text == "the run is almost over"
    watch.end(cell_of())
    assert watch.order("rate 5 Mbit/s") == "no run is under way"
