"""The figures of a report, their style and their helpers."""

from __future__ import annotations

import csv
import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from narrows import report
from narrows.report import accounts, figures, labels, prose, style, units
from narrows.report.data import load, thin
from narrows.report.drawing import Options
from narrows.report.figures import _scatter as scatter
from narrows.report.figures import summary
from narrows.report.labels import Box, Label
from narrows.text import plural
from report_campaigns import Spec, network, write_campaign

CUBIC = ("cubic", "cubic")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    specs = [
        Spec("cubic", 1, CUBIC),
        Spec("linux:bbr", 1, ("reno", "reno")),
        Spec("mix", 1, ("cubic", "reno")),
    ]
    made = write_campaign(tmp_path_factory.mktemp("figures") / "campaign", specs, duration_s=3.0)
    report.build(made, pdf=False, html=False, files=True)
    return made


def test_every_figure_module_keeps_the_contract() -> None:
    for kind in figures.registry().values():
        assert kind.scope in ("campaign", "run")
        assert kind.title
        for name in ("numbers", "figure", "caption", "absent"):
            assert callable(getattr(kind.module, name)), f"{kind.name} lacks {name}"
    for scope, order in (
        ("campaign", ["path", "summary"]),
        ("run", ["throughput", "delay", "queue", "window"]),
    ):
        assert [k.name for k in figures.of_scope(scope) if k.name in order] == order


def test_each_figure_is_svg_png_and_its_numbers(folder: Path) -> None:
    stems = [
        "path",
        "summary",
        *(f"{c}/{f}" for c in ("cubic-r1", "mix-r1") for f in ("throughput", "delay")),
    ]
    for stem in stems:
        svg = folder / "figures" / f"{stem}.svg"
        root = ET.parse(svg).getroot()
        assert float(root.attrib["width"].removesuffix("pt")) == pytest.approx(180 / 25.4 * 72, abs=0.5)
        assert not re.search(r"<text\b|font-family", svg.read_text()), (
            "text must be outlines, which need no font"
        )
        with Image.open(svg.with_suffix(".png")) as image:
            assert image.size[0] == pytest.approx(180 / 25.4 * 300, abs=2)
            assert len(image.convert("L").getcolors(256) or []) > 8, "the picture is blank"
        with svg.with_suffix(".csv").open() as lines:
            rows = list(csv.reader(lines))
        assert len(rows) > 1
        assert len({len(r) for r in rows}) == 1
    narrow = ET.parse(folder / "figures" / "summary-88mm.svg").getroot()
    assert float(narrow.attrib["width"].removesuffix("pt")) == pytest.approx(88 / 25.4 * 72, abs=0.5)


def test_the_same_campaign_gives_the_same_bytes(folder: Path) -> None:
    def drawn() -> dict[Path, bytes]:
        return {p.relative_to(folder): p.read_bytes() for p in (folder / "figures").rglob("*.*")}

    before = drawn()
    first = report.build(folder, all_runs=True, files=True)
    assert first.pdf is not None
    assert first.html is not None
    kept = first.pdf.read_bytes(), first.html.read_bytes()
    assert drawn() == before
    report.build(folder)
    # Only the pictures of the PDF, and the figures of the comparison with their numbers.
    assert sum(p.suffix == ".png" for p in drawn()) == 0
    assert Path("figures/summary.csv") in drawn()
    again = report.build(folder, all_runs=True, files=True)
    assert again.pdf is not None
    assert again.html is not None
    assert drawn() == before
    assert (again.pdf.read_bytes(), again.html.read_bytes()) == kept


def test_drawn_numbers_are_those_of_the_run(folder: Path) -> None:
    run = next(r for r in load(folder).runs if r.cell == "cubic-r1")
    numbers = figures.registry()["throughput"].numbers(run)
    start = float(numbers["time_s"][10])
    assert start == pytest.approx(1.0)
    assert np.isnan(numbers["flow_2_delivered_mbps"][5]), "before its start a flow has no rate"
    bits = np.nansum(numbers["flow_1_delivered_mbps"]) * 1e6 * run.bin_ns / 1e9
    document = json.loads((run.folder / "run.json").read_text())
    received = document["flows"][0]["receiver"]["received_bytes"]
    assert bits / 8 == pytest.approx(received, rel=0.01)
    assert run.throughput.time_s.max() < run.duration_s, "no bin without width at the end"


def test_throughput_is_drawn_to_the_end_of_the_last_bin(folder: Path) -> None:
    run = next(r for r in load(folder).runs if r.cell == "cubic-r1")
    kind = figures.registry()["throughput"]
    bins = len(kind.numbers(run)["time_s"])
    steps = [
        line for line in kind.figure(run, Options()).axes[0].lines if line.get_drawstyle() == "steps-post"
    ]
    assert len(steps) == 2 * len(run.flows)
    for line in steps:
        x, y = (np.asarray(values, dtype=float) for values in line.get_data())
        assert len(x) == bins + 1
        assert x[-1] == pytest.approx(run.duration_s)
        assert y[-1] == y[-2] or np.isnan(y[-2:]).all()


def test_a_path_of_many_elements_is_drawn_in_rows(tmp_path: Path) -> None:
    path = network()
    delays = [{"name": f"forward.{i}", "kind": "delay", "delay": 1_000_000} for i in range(2, 9)]
    losses = [{"name": "forward.9", "kind": "loss", "ratio": 0.001}]
    path["forward"] += delays + losses
    path["backward"] = []
    campaign = load(write_campaign(tmp_path / "c", [Spec("cubic", 1, ("cubic",))], duration_s=0.5, path=path))
    kind = figures.registry()["path"]
    assert kind.absent(campaign) is None
    wide = kind.figure(campaign, Options())
    assert wide.get_figheight() > kind.figure(load(tmp_path / "c"), Options(width_mm=400)).get_figheight()
    assert len(kind.numbers(campaign)["element"]) == 10
    assert campaign.settings is not None
    sentences = prose.path_sentences(campaign.settings)
    assert "independent random loss of 0.1 % of the packets" in sentences[0]
    assert sentences[1] == "Backward (receiver to sender): nothing in between."


def test_delay_axis_is_logarithmic_only_when_the_range_asks() -> None:
    assert scatter.logarithmic([40.0, 120.0]) is None  # 32 to 128 is not more than four times.
    assert scatter.logarithmic([40.0, 130.0]) == (32.0, 256.0)
    assert scatter.logarithmic([0.3, 2.0]) == (0.25, 2.0)
    assert scatter.logarithmic([-1.0, 100.0]) is None, "clocks may disagree; there is no logarithm of that"
    assert scatter.logarithmic([]) is None


def test_summary_reverses_the_delay_axis_and_leaves_invalid_runs_out(tmp_path: Path) -> None:
    specs = [
        Spec("cubic", 1, CUBIC),
        Spec("cubic", 2, CUBIC, verdict="invalid"),
        Spec("reno", 1, ("reno", "reno")),
    ]
    campaign = load(write_campaign(tmp_path / "c", specs, duration_s=2.0))
    assert [d.run.cell for d in summary.dots(campaign)] == ["cubic-r1", "reno-r1"]
    axes = summary.figure(campaign, Options()).axes[0]
    left, right = axes.get_xlim()
    assert left > right
    assert axes.get_ylim()[0] > 5, "from zero on, the two would be one"
    assert "throughput axis doesn't start at zero" in summary.caption(campaign)
    assert len([line for line in axes.lines if line.get_label() == "_break"]) == 2
    assert scatter.upright([1.0, 9.0])[0] == 0.0
    told = accounts.of_campaign(campaign, "median over the valid runs").sentences()
    assert "1 run is invalid and not counted: The emulator was late" in told
    assert "cubic-r2" in told and "Of 2 valid runs: median over the valid runs." in told
    rows = summary.numbers(campaign)
    assert list(rows["run"]) == ["1", "1", "median", "median"]


def test_labels_do_not_overlap() -> None:
    chance = np.random.default_rng(3)
    wanted = [
        Label(float(x), float(y), 4, 55, 9)
        for x, y in zip(chance.uniform(100, 380, 16), chance.uniform(60, 220, 16), strict=True)
    ]
    frame = Box(0, 0, 480, 280)
    placed = labels.place(wanted, [], frame)
    assert placed == labels.place(wanted, [], frame), "the same every time"
    for i, one in enumerate(placed):
        assert one.box.outside(frame) == 0
        assert all(one.box.overlap(other.box) == 0 for other in placed[i + 1 :])
        for mark in wanted:
            assert one.box.overlap(Box(mark.x - 4, mark.y - 4, mark.x + 4, mark.y + 4)) == 0


def _contrast(one: str, other: str) -> float:
    def light(colour: str) -> float:
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    high, low = sorted((light(one), light(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_styles_follow_from_the_name_and_can_be_seen() -> None:
    known = [style.of(s) for s in ("cubic", "reno", "linux:cubic", "linux:bbr", "linux:reno")]
    assert len({(s.color, s.marker) for s in known}) == 5
    assert len({s.color for s in known}) == 5
    assert len({s.marker for s in known}) == 5
    assert style.of("somebody's scheme") == style.of("somebody's scheme")
    assert len({(s.color, s.marker, s.dash) for s in map(style.of, (f"scheme {i}" for i in range(40)))}) > 30
    for light, dark in style.PAIRS.items():
        assert _contrast(light, "#ffffff") >= 3
        assert _contrast(dark, "#14181d") >= 3
    flows = style.of_flows(["cubic"] * 3, ["flow 1", "flow 2", "flow 3"], {})
    assert len({f.marker for f in flows}) == len({f.color for f in flows}) == 3
    mixed = style.of_flows(["cubic", "reno"], ["flow 1", "flow 2"], {})
    assert [m.color for m in mixed] == [style.of("cubic").color, style.of("reno").color]


def test_no_two_schemes_of_a_figure_look_alike() -> None:
    names = ["cubic", "reno", *(f"scheme {i}" for i in range(46)), "cubic"]
    found = style.distinct(names)
    assert list(found) == names[:-1]
    assert len({(s.color, s.marker) for s in found.values()}) == 48
    assert len({(s.color, s.dash) for s in found.values()}) == 48
    assert len({(s.marker, s.dash) for s in found.values()}) == 48, "in grey they must differ, too"
    assert found["cubic"] == style.of("cubic"), "hand-picked styles stay"
    assert style.distinct(["only"])["only"] == style.of("only")


def test_schemes_close_together_get_a_closer_look() -> None:
    crowd = {f"s{i}": (0.1 + 0.01 * i, 0.5) for i in range(6)}
    assert scatter.core({**crowd, "far": (1.0, 0.4), "farther": (0.9, 0.0)}) == list(crowd)
    assert scatter.core({f"s{i}": (i / 9, i / 9) for i in range(10)}) is None
    assert scatter.core({"a": (0, 0), "b": (0.01, 0), "c": (1, 1)}) is None, "three can be told apart"


def test_the_ellipse_is_one_standard_deviation_of_the_runs() -> None:
    found = scatter.ellipse([(1.0, 5.0), (3.0, 5.0), (2.0, 6.0), (2.0, 4.0)], logarithmic=False)
    assert found is not None
    assert (np.max(found[0]), np.min(found[0])) == pytest.approx((2 + 0.5**0.5, 2 - 0.5**0.5))
    assert (np.max(found[1]), np.min(found[1])) == pytest.approx((5 + 0.5**0.5, 5 - 0.5**0.5))
    assert scatter.ellipse([(1.0, 5.0)] * 5, logarithmic=False) is None, "identical runs have no spread"
    assert scatter.ellipse([(1.0, 5.0), (2.0, 5.0)], logarithmic=False) is None
    found = scatter.ellipse([(1.0, 1.0), (10.0, 2.0), (100.0, 3.0)], logarithmic=True)
    assert found is not None
    assert np.max(found[0]) * np.min(found[0]) == pytest.approx(100.0)


def test_thinning_keeps_the_extremes() -> None:
    time = np.linspace(0, 10, 50_001)
    value = np.sin(time * 40)
    value[31_234], value[44_444] = 9.0, -9.0
    few_times, few = thin(time, value, 2_000)
    assert len(few) <= 2_000
    assert (few.max(), few.min()) == (9.0, -9.0)
    assert np.all(np.diff(few_times) >= 0)
    assert thin(time, np.full(len(time), np.nan), 100)[1].size == 50


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (units.rate(12e6), "12 Mbit/s"),
        (units.rate(2.5e9), "2500 Mbit/s".replace("25", "2\N{NARROW NO-BREAK SPACE}5")),
        (units.rate(1e9), "1 Gbit/s"),
        (units.span(20e6), "20 ms"),
        (units.span(1.5e9), "1.5 s"),
        (units.span(0), "0 ms"),
        (units.size(60_000), "60 kB"),
        (units.ratio(0.001), "0.1 %"),
        (units.number(-0.004, 2), "0.00"),
        (units.number(-3.14159), "\N{MINUS SIGN}3.14"),
        (units.number(1234567.0), "1\N{NARROW NO-BREAK SPACE}234\N{NARROW NO-BREAK SPACE}567"),
        (units.parameter("span", 5_000_000), "5 ms"),
        (units.parameter(None, True), "yes"),
        (plural(1, "run"), "1 run"),
    ],
)
def test_numbers_for_people(given: Any, wanted: str) -> None:
    assert given == wanted


def test_names_of_many_schemes_leave_out_what_most_of_them_have() -> None:
    from narrows.report.figures.summary import _common_parameters, _without

    labels = [
        "cubic",
        "copa profile=pantheon",
        "indigo model=indigo-1-32 profile=pantheon",
        "verus profile=pantheon",
    ]
    shared = _common_parameters(labels)
    assert shared == ["profile=pantheon"]
    assert [_without(one, shared) for one in labels] == ["cubic", "copa", "indigo-1-32", "verus"]
    # If nothing else distinguishes two rows, it stays.
    assert _common_parameters([*labels, "copa"]) == []
    assert _common_parameters(["copa delta=0.5", "copa delta=0.1"]) == []


def test_harm_is_the_throughput_lost_beside_another(tmp_path: Path) -> None:
    specs = [Spec("cubic", 1, ("cubic",)), Spec("cubic", 2, CUBIC), Spec("mix", 1, ("cubic", "reno"))]
    made = load(write_campaign(tmp_path / "campaign", specs, duration_s=3.0))
    rates = {
        (run.cell, flow.number): run.value(str(flow.number), "throughput_bps") or 0.0
        for run in made.runs
        for flow in run.tested
    }
    found = figures.registry()["pairs"].module.numbers(made)
    harm = dict(zip(zip(found["scheme"], found["beside"], strict=True), found["harm"], strict=True))
    alone = rates["cubic-r1", 1]
    assert harm["cubic", "reno"] == pytest.approx(1 - rates["mix-r1", 1] / alone)
    assert harm["cubic", "cubic"] == pytest.approx(
        1 - (rates["cubic-r2", 1] + rates["cubic-r2", 2]) / 2 / alone
    )
    # Reno never ran alone, so its share alone is unknown.
    assert np.isnan(harm["reno", "cubic"])
