"""`narrows plot`: any figure of any campaigns, with its numbers beside it."""

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
from click.testing import CliRunner
from matplotlib.figure import Figure
from PIL import Image

from campaign_kit import simulate
from narrows import report
from narrows.cli.all_commands import app
from narrows.errors import NarrowsError, UsageError
from narrows.report import figures, overlay, plotting, style
from narrows.report.data import load
from narrows.report.drawing import Options
from narrows.report.figures import pairs, parameter, summary
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
    kind.name
    for kind in figures.registry().values()
    if kind.scope == "run" and kind.name not in ("playback", "rrul")
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
        if several and name != "pacing":  # Only one of them has it.
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
    total = load(made).of_scheme("reno")[0].rows["all"].metrics
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
    (legend,) = made.legends
    assert [text.get_text() for text in legend.get_texts()] == [
        "capacity",
        "cubic (campaign)",
        "cubic (other)",
    ]
    # A scheme has one colour; marker and dash identify the campaign.
    here, there = (data.styles[name] for name in data.schemes)
    assert here.color == there.color == style.of("cubic").color
    assert here.marker != there.marker and here.dash != there.dash


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
        (["--figure", "nonsense"], "figure 'nonsense' does not exist; choose one of path, summary"),
        (["--figure", "delays"], "figure 'delays' does not exist; did you mean"),
        (["--schemes", "cubik"], "scheme 'cubik' does not exist; did you mean"),
        (["--figure", "delay", "--runs", "99"], "there is no run '99' with a record"),
        (["--figure", "delay", "--flows", "7"], "has no flow 7; it has 1, 2"),
        (["--figure", "parameter"], "The scenario has no matrix"),
        (["--figure", "pairs"], "Fewer than two pairs"),
        (["--figure", "pacing", "--schemes", "reno"], "No sender of this run reported a pacing rate"),
    ],
)
def test_refusals_list_the_existing_names(
    folder: Path, arguments: list[str], words: str, tmp_path: Path
) -> None:
    with pytest.raises(NarrowsError, match=re.escape(words)):
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
    rates = {n: data.of_scheme("two")[0].rows[n].metrics["throughput_bps"] or 0.0 for n in ("1", "2")}
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
    assert "rate (Mbit/s)" in [text.get_text() for text in picture.texts]
    assert max(np.asarray(picture.axes[0].lines[0].get_xdata(), dtype=float)) == 8.0
    # The second panel's data lie inside the axes that both share.
    for axes in picture.axes:
        assert all(0 <= y <= axes.get_ylim()[1] for line in axes.lines for y in np.ravel(line.get_ydata()))
    assert "A panel for each value of queue" in parameter.caption(data)
    marks = figures.registry()["summary"].figure(data, Options())
    assert marks.axes
    looks = summary.styles_of(data)
    assert len({(look.color, look.marker) for look in looks.values()}) == 12
    assert {look.color for look in looks.values()} == {style.of("cubic").color, style.of("reno").color}
    assert parameter.absent(load(folder)) == "The scenario has no matrix."


def test_values_of_a_matrix_are_numbers_where_they_can_be() -> None:
    assert parameter.numeric(["1 Mbit/s", "500 kbit/s"]) == ([1.0, 0.5], "Mbit/s")
    assert parameter.numeric(["10 ms", "1 s"]) == ([10.0, 1000.0], "ms")
    assert parameter.numeric(["droptail 1 bdp", "droptail 0.5 bdp"]) == ([1.0, 0.5], "bdp")
    assert parameter.numeric(["1", "2.5"]) == ([1.0, 2.5], "")
    assert parameter.numeric(["1 %", "5 ms"]) is None
    assert parameter.numeric(["droptail 1 bdp", "codel"]) is None


MATRIX = """\
schema: narrows/scenario/1
question: What do buffers change?
where: simulate
path: {forward: [{rate: 4 Mbit/s, queue: {droptail: 1 bdp}}, {delay: 10 ms}]}
schemes: [cubic, reno, vegas]
matrix:
  path.forward.0.queue.droptail: [1 bdp, 2 bdp]
  path.forward.1.delay: [10 ms, 20 ms]
duration: 500 ms
"""


@pytest.fixture(scope="module")
def matrix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return simulate(tmp_path_factory.mktemp("plot") / "matrix", MATRIX)


def test_schemes_and_values_of_a_matrix_are_chosen_by_the_words_of_the_scenario(
    matrix: Path, tmp_path: Path
) -> None:
    out = tmp_path / "s.pdf"
    narrows(matrix, "-o", out, "--schemes", "cubic,reno", "--only", "droptail=1 bdp", "--json")
    found = rows(tmp_path / "s.csv")
    assert {row["scheme"] for row in found} == {"cubic", "reno"}
    assert {row["droptail"] for row in found} == {"1 bdp"}
    assert {row["delay"] for row in found} == {"10 ms", "20 ms"}
    # Values of one key are alternatives, and other units of the same quantity are equivalent.
    narrows(matrix, "-o", out, "--only", "delay=0.01 s", "--only", "delay=20 ms", "--only", "droptail=2 bdp")
    assert {(row["droptail"], row["delay"]) for row in rows(tmp_path / "s.csv")} == {
        ("2 bdp", "10 ms"),
        ("2 bdp", "20 ms"),
    }
    # The address of the key in the scenario is a name as well.
    narrows(matrix, "-o", out, "--only", "path.forward.1.delay=20 ms")
    assert {row["delay"] for row in rows(tmp_path / "s.csv")} == {"20 ms"}


@pytest.mark.parametrize("command", ["plot", "show", "compare"])
@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--only", "droptail=7 bdp"], "--only: droptail is never '7 bdp'; its values are 1 bdp, 2 bdp"),
        (["--only", "rate=1 Mbit/s"], "--only: the matrix has no 'rate'"),
        (["--only", "droptail"], 'is not a name and a value; write for example --only droptail="1 bdp"'),
        (["--schemes", "bbr"], "scheme 'bbr' does not exist"),
    ],
)
def test_names_and_values_that_do_not_exist_are_one_sentence_with_what_does(
    matrix: Path, command: str, arguments: list[str], says: str
) -> None:
    done = CliRunner().invoke(app, [command, str(matrix), *arguments])
    assert isinstance(done.exception, NarrowsError)
    assert says in str(done.exception)
    assert done.exception.exit_code == 2
    assert "\n" not in str(done.exception)


def test_show_and_compare_take_the_same_choice(matrix: Path) -> None:
    shown = CliRunner().invoke(
        app, ["show", str(matrix), "--schemes", "cubic", "--only", "droptail=2 bdp", "--json"]
    )
    told = json.loads(shown.output)
    assert {row["row"] for row in told["rows"]} == {row["row"] for row in told["summary"]}
    assert {row["row"] for row in told["rows"]} == {
        f"cubic (droptail 2 bdp, delay {delay} ms)" for delay in (10, 20)
    }
    compared = CliRunner().invoke(
        app, ["compare", str(matrix), "--schemes", "cubic,vegas", "--only", "delay=20 ms", "--json"]
    )
    pairs_of = {
        (row["base"]["scheme"], row["other"]["scheme"]) for row in json.loads(compared.output)["rows"]
    }
    assert len(pairs_of) == 2
    assert all("20 ms" in label and "reno" not in label for pair in pairs_of for label in pair)


def test_each_combination_has_a_file_where_it_is_asked_for(matrix: Path, tmp_path: Path) -> None:
    told = json.loads(narrows(matrix, "-o", tmp_path / "s.pdf", "--each", "--json"))
    assert [Path(one["files"][0]).name for one in told] == [
        f"s-droptail-{queue}-bdp-delay-{delay}-ms.pdf" for queue in (1, 2) for delay in (10, 20)
    ]
    assert all(Path(file).exists() for one in told for file in one["files"])
    with pytest.raises(report.ReportError, match="one combination"):
        narrows(
            matrix, "-o", tmp_path / "s.pdf", "--each", "--only", "droptail=1 bdp", "--only", "delay=10 ms"
        )


def test_flawed_runs_are_named_with_their_reasons_in_caption_metadata_and_json(tmp_path: Path) -> None:
    specs = [
        Spec("cubic", 1, CUBIC),
        Spec("cubic", 2, CUBIC, verdict="degraded", reason="The emulator was late."),
        Spec("reno", 1, RENO, verdict="invalid", reason="A ring dropped frames."),
        Spec("reno", 2, RENO, state="failed", reason="The agent was killed."),
        Spec("reno", 3, RENO),
    ]
    made = write_campaign(tmp_path / "c", specs, duration_s=2.0)
    out = tmp_path / "s.pdf"
    told = json.loads(narrows(made, "-o", out, "--json"))
    assert told["runs_shown"] == 3
    assert told["statistic"] == "median over the valid runs"
    assert told["degraded"] == [{"run": "cubic-r2", "reasons": ["The emulator was late."]}]
    assert told["invalid"] == [{"run": "reno-r1", "reasons": ["A ring dropped frames."]}]
    assert told["missing"] == [{"run": "reno-r2", "reasons": ["The agent was killed."]}]
    assert (
        "Of 3 valid runs: median over the valid runs."
        " 1 run is judged degraded: The emulator was late (cubic-r2)."
        " 1 run is invalid and not counted: A ring dropped frames (reno-r1). 1 run is missing: The agent was"
        " killed (reno-r2)."
    ) in told["caption"]
    if program := shutil.which("pdfinfo"):
        text = subprocess.run([program, out], capture_output=True, text=True, check=True).stdout
        assert "A ring dropped frames (reno-r1)" in text
        assert "degraded: The emulator was late." in text
    drawn = plotting.compose(plotting.Choice((made,), "window", runs=("cubic-r2",)), Options())
    assert "1 run is judged degraded: The emulator was late (cubic-r2)." in drawn.caption
    report.build(made, pdf=False, files=True)
    assert b"A ring dropped frames" in (made / "figures" / "summary.png").read_bytes()


def test_points_outside_of_chosen_ends_are_counted_and_marked(folder: Path) -> None:
    limits = Options(y=(0.0, 60.0))
    drawn = plotting.compose(plotting.Choice((folder,), "delay", runs=("cubic-r1",)), limits)
    delays = np.asarray(drawn.numbers["delay_ms"], dtype=float)
    assert 0 < (delays > 60).sum() < len(delays)
    match = re.search(r"chosen: ([0-9,]+) of ([0-9,]+) points lie outside", drawn.caption)
    assert match is not None
    assert int(match[1].replace(",", "")) >= (delays > 60).sum()
    marks = [
        line for line in drawn.figure.axes[0].lines if line.get_marker() == "^" and not line.get_clip_on()
    ]
    assert marks and all(np.all(np.ravel(line.get_ydata()) == 60.0) for line in marks)
    whole = plotting.compose(plotting.Choice((folder,), "delay", runs=("cubic-r1",)), Options())
    assert "outside" not in whole.caption
