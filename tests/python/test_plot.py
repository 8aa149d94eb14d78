"""`narrows plot`: any figure of any campaigns, with what was drawn beside it."""

from __future__ import annotations

import csv
import json
import re
import shutil
import subprocess
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure
from PIL import Image
from typer.testing import CliRunner

from narrows import report
from narrows.cli.all_commands import app
from narrows.errors import NarrowsError, UsageError
from narrows.report import figures, overlay, plotting, style
from narrows.report.data import load
from narrows.report.drawing import Options
from narrows.report.figures import pairs, parameter
from report_campaigns import Spec, write_campaign

CUBIC, RENO, MIX = ("cubic", "cubic"), ("reno", "reno"), ("cubic", "reno")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    specs = [
        Spec("cubic", 1, CUBIC),
        Spec("cubic", 2, CUBIC),
        Spec("reno", 1, RENO),
        Spec("mix", 1, MIX),
        Spec("bbr1", 1, ("bbr1", "bbr1")),
    ]
    return write_campaign(tmp_path_factory.mktemp("plot") / "campaign", specs, duration_s=3.0)


def narrows(*arguments: Any) -> str:
    done = CliRunner().invoke(app, ["plot", *map(str, arguments)], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def rows(path: Path) -> list[dict[str, str]]:
    with path.open() as lines:
        return list(csv.DictReader(lines))


RUN_FIGURES = [
    kind.name for kind in figures.registry().values() if kind.scope == "run" and kind.name != "playback"
]
CAMPAIGN_FIGURES = ["summary", "path", "delay_cdf", "delay_box"]


@pytest.mark.parametrize("name", RUN_FIGURES)
def test_every_figure_of_a_run_is_drawn_alone_and_over_others(
    folder: Path, name: str, tmp_path: Path
) -> None:
    for which, several in (("bbr1-r1", False), ("bbr1-r1,cubic-r1,reno-r1", True)):
        out = tmp_path / f"{several}.png"
        narrows(folder, "--figure", name, "--runs", which, "-o", out, "--preset", "column")
        with Image.open(out) as image:
            assert image.size[0] == pytest.approx(88 / 25.4 * 300, abs=2)
            assert len(image.convert("L").getcolors(256) or []) > 8, "the picture is blank"
        found = rows(out.with_suffix(".csv"))
        assert len(found) > 10
        if several and name != "pacing":  # which only one of them has
            assert {row["scheme"] for row in found} >= {"bbr1"}


@pytest.mark.parametrize("name", CAMPAIGN_FIGURES)
def test_every_figure_of_a_campaign_is_drawn(folder: Path, name: str, tmp_path: Path) -> None:
    out = tmp_path / "figure.svg"
    narrows(folder, "--figure", name.replace("_", "-"), "-o", out)
    assert float(ET.parse(out).getroot().attrib["width"].removesuffix("pt")) == pytest.approx(510.2, abs=0.5)
    assert len(rows(tmp_path / "figure.csv")) > 1


def test_runs_with_nothing_to_show_are_named(folder: Path, tmp_path: Path) -> None:
    told = json.loads(narrows(folder, "--figure", "pacing", "-o", tmp_path / "p.png", "--json"))
    assert len(told["runs"]) == 1
    assert "Nothing to show of cubic-r1, reno-r1, mix-r1." in told["caption"]


def test_fairness_is_drawn_over_the_lengths_of_windows(tmp_path: Path) -> None:
    made = write_campaign(tmp_path / "c", [Spec("cubic", 1, CUBIC), Spec("reno", 1, RENO)], duration_s=12.0)
    numbers = figures.registry()["fairness_scales"].numbers(load(made))
    found = {
        (m, s, w): v
        for m, s, w, v in zip(*(numbers[k] for k in ("metric", "scheme", "window_s", "median")), strict=True)
    }
    total = load(made).of_scheme("reno")[0].rows["all"]["metrics"]
    assert found["jain", "reno", 5.0] == total["jain_5s"]
    assert found["cov", "reno", 1.0] == total["cov_1s"]
    for width in (88, 180):
        assert len(report.plot(made, "fairness-scales", width_mm=width).axes) == 2


def test_the_middle_run_of_each_scheme_is_shown_over_time(folder: Path, tmp_path: Path) -> None:
    told = json.loads(narrows(folder, "--figure", "window", "-o", tmp_path / "w.pdf", "--json"))
    assert len(told["runs"]) == 4
    assert told["files"] == [str(tmp_path / "w.pdf"), str(tmp_path / "w.csv")]
    told = json.loads(
        narrows(folder, "--figure", "window", "-o", tmp_path / "w.pdf", "--json", "--schemes", "cubic")
    )
    assert len(told["runs"]) == 1


def test_the_pdf_has_text_and_the_names_of_its_runs(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "figure.pdf"
    narrows(
        folder, "--figure", "throughput", "--schemes", "cubic,reno", "-o", out, "--csv", tmp_path / "n.csv"
    )
    content = out.read_bytes()
    assert b"/Keywords" in content
    assert b"campaign/cubic-r1" in content
    assert b"/Type3" not in content, "text must stay text"
    assert (tmp_path / "n.csv").exists()
    assert not (tmp_path / "figure.csv").exists()
    if program := shutil.which("pdftotext"):
        text = subprocess.run([program, out, "-"], capture_output=True, text=True, check=True).stdout
        assert "throughput (Mbit/s)" in text
    again = tmp_path / "again.pdf"
    narrows(folder, "--figure", "throughput", "--schemes", "cubic,reno", "-o", again)
    assert again.read_bytes() == content, "the same figure gives the same bytes"


def test_axes_are_where_they_were_asked_for(folder: Path) -> None:
    made = report.plot(folder, "throughput", runs=["mix-r1"], x=(1.0, 2.0), y=(None, 20.0))
    assert isinstance(made, Figure)
    assert made.axes[0].get_xlim() == (1.0, 2.0)
    assert made.axes[0].get_ylim() == (0.0, 20.0)
    scatter = report.plot(folder, "summary", x=(20.0, 200.0), y=(0.0, 20.0))
    assert scatter.axes[0].get_xlim() == (200.0, 20.0), "the delay axis stays reversed"
    assert len(scatter.axes) == 1


def test_several_campaigns_lie_in_one_figure(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(folder, other)
    data = plotting.select(plotting.Choice((folder, other), "summary", schemes=("cubic",)))
    assert data.schemes == ["cubic (campaign)", "cubic (other)"]
    assert len(data.runs) == 4
    made = report.plot([folder, other], "throughput", schemes=["cubic"], flows=[1])
    legend = made.axes[0].get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == [
        "capacity",
        "cubic (campaign)",
        "cubic (other)",
    ]


def test_a_flow_stands_alone_where_it_is_chosen(folder: Path) -> None:
    whole = plotting.compose(plotting.Choice((folder,), "summary"), Options()).numbers
    first = plotting.compose(plotting.Choice((folder,), "summary", flows=(1,)), Options()).numbers
    second = plotting.compose(plotting.Choice((folder,), "summary", flows=(2,)), Options()).numbers
    assert whole["scheme"] == first["scheme"]
    assert np.all(np.asarray(first["throughput_mbps"]) < np.asarray(whole["throughput_mbps"]))
    assert first["throughput_mbps"] != second["throughput_mbps"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--figure", "nonsense"], "there is no figure 'nonsense'; choose one of path, summary"),
        (["--figure", "delays"], "there is no figure 'delays'; did you mean"),
        (["--schemes", "cubik"], "there is no scheme 'cubik'; did you mean"),
        (["--figure", "delay", "--runs", "99"], "there is no run '99' with a record"),
        (["--figure", "delay", "--flows", "7"], "has no flow 7; it has 1, 2"),
        (["--figure", "parameter"], "The scenario has no matrix"),
        (["--figure", "pairs"], "Fewer than two pairs"),
        (["--figure", "pacing", "--schemes", "reno"], "No sender of this run reported a pacing rate"),
    ],
)
def test_refusals_say_what_there_is(folder: Path, arguments: list[str], words: str, tmp_path: Path) -> None:
    with pytest.raises(report.ReportError, match=re.escape(words)):
        narrows(folder, *arguments, "-o", tmp_path / "x.pdf")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "arguments",
    [["--x", "3"], ["--y", "a:b"], ["--x", "5:1"], ["--flows", "one"], ["-o", "x.gif"], ["-o", "."]],
)
def test_usage_is_checked_before_anything_is_read(arguments: list[str]) -> None:
    with pytest.raises(UsageError):
        narrows("nowhere", *arguments)
    with pytest.raises(UsageError, match="--list"):
        narrows()


def test_a_damaged_record_is_one_sentence(folder: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    shutil.copytree(folder, broken)
    (broken / "cells" / "mix-r1" / "packets.parquet").write_bytes(b"PAR1 nothing PAR1")
    with pytest.raises(report.ReportError, match=r"packets\.parquet"):
        narrows(broken, "--figure", "sequence", "--runs", "mix-r1", "-o", tmp_path / "x.pdf")


def test_a_figure_that_can_not_be_written_is_one_sentence(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(NarrowsError, match="the figure can't be written"):
        narrows(folder, "-o", tmp_path / "file" / "x.pdf")


def test_the_list_fits_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert max(map(len, narrows("--list").splitlines())) <= 80


def test_the_list_names_every_figure_in_a_sentence() -> None:
    told = json.loads(narrows("--list", "--json"))
    assert {one["name"] for one in told} == set(figures.registry())
    assert all(one["shows"].endswith(".") and len(one["shows"]) < 130 for one in told)
    assert "delay-cdf" in narrows("--list")


def test_figures_are_found_by_the_words_of_the_field() -> None:
    found = {"scatter": "summary", "cwnd": "window", "CDF": "delay_cdf", "fairness": "fairness_scales"}
    assert {word: plotting.kind_of(word).name for word in found} == found
    words = [
        word.replace("-", "_") for kind in figures.registry().values() for word in (kind.name, *kind.also)
    ]
    assert len(words) == len(set(words)), "each word means one figure"
    with pytest.raises(report.ReportError, match='did you mean "scatter"'):
        plotting.kind_of("scater")


def test_too_many_lines_are_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overlay, "MOST_LINES", 3)
    with pytest.raises(report.ReportError, match="choose some with --schemes"):
        report.plot(folder, "window")


def test_shares_of_pairs_add_up(tmp_path: Path) -> None:
    specs = [
        Spec("one", 1, ("cubic", "reno")),
        Spec("one", 2, ("cubic", "reno")),
        Spec("two", 1, ("cubic", "vegas")),
        Spec("three", 1, ("reno", "reno")),
    ]
    data = load(write_campaign(tmp_path / "c", specs, duration_s=3.0))
    found = {
        (a, b): s
        for a, b, s in zip(*(pairs.numbers(data)[k] for k in ("scheme", "beside", "share")), strict=True)
    }
    assert set(found) == {("cubic", "reno"), ("reno", "cubic"), ("cubic", "vegas"), ("vegas", "cubic")}
    assert found["cubic", "reno"] + found["reno", "cubic"] == pytest.approx(1.0)
    rates = {n: data.of_scheme("two")[0].rows[n]["metrics"]["throughput_bps"] for n in ("1", "2")}
    assert found["cubic", "vegas"] == pytest.approx(rates["1"] / (rates["1"] + rates["2"]))
    assert isinstance(pairs.figure(data, Options()), Figure)


def test_a_matrix_gives_lines_over_its_widest_parameter(folder: Path, tmp_path: Path) -> None:
    specs = [
        Spec(f"{scheme} (rate {rate} Mbit/s, queue {queue} kB)", 1, (scheme,))
        for scheme in ("cubic", "reno")
        for rate in (2, 4, 8)
        for queue in (30, 60)
    ]
    made = write_campaign(tmp_path / "c", specs, duration_s=1.0)
    document = json.loads((made / "campaign.json").read_text())
    document["scenario"]["resolved"]["schemes"] = [
        {"label": s.scheme, "values": dict(re.findall(r"(\w+) (\d+ [\w/]+)", s.scheme))} for s in specs
    ]
    (made / "campaign.json").write_text(json.dumps(document))
    data = load(made)
    assert parameter.absent(data) is None
    numbers = parameter.numbers(data)
    assert set(numbers["scheme"]) == {"cubic", "reno"}
    assert set(numbers["rate"]) == {"2 Mbit/s", "4 Mbit/s", "8 Mbit/s"}
    assert len(numbers["scheme"]) == 24
    picture = parameter.figure(data, Options())
    assert len(picture.axes) == 4, "two metrics, two queues"
    assert picture.axes[2].get_xlabel() == "rate (Mbit/s)"
    assert max(np.asarray(picture.axes[0].lines[0].get_xdata(), dtype=float)) == 8.0
    assert "A column for each value of queue" in parameter.caption(data)
    marks = figures.registry()["summary"].figure(data, Options())
    assert marks.axes
    looks = style.of_matrix({s.scheme: (s.scheme.split()[0], s.scheme[6:]) for s in specs})
    assert looks is not None
    assert len({(look.color, look.marker) for look in looks.values()}) == 12
    assert {look.color for look in looks.values()} == {style.of("cubic").color, style.of("reno").color}
    assert style.of_matrix({f"a {n}": ("a", str(n)) for n in range(13)}) is None
    assert parameter.absent(load(folder)) == "The scenario has no matrix."


def test_values_of_a_matrix_are_numbers_where_they_can_be() -> None:
    assert parameter.numeric(["1 Mbit/s", "500 kbit/s"]) == ([1.0, 0.5], "Mbit/s")
    assert parameter.numeric(["10 ms", "1 s"]) == ([10.0, 1000.0], "ms")
    assert parameter.numeric(["droptail 1 bdp", "droptail 0.5 bdp"]) == ([1.0, 0.5], "bdp")
    assert parameter.numeric(["1", "2.5"]) == ([1.0, 2.5], "")
    assert parameter.numeric(["1 %", "5 ms"]) is None
    assert parameter.numeric(["droptail 1 bdp", "codel"]) is None
