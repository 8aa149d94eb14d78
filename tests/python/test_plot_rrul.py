"""The figure of load and exchanges, from a simulated run of flent's rrul."""

from __future__ import annotations

import csv
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from PIL import Image

import figures_kit as kit
from narrows.cli.all_commands import app
from narrows.cli.plot import _PRESETS
from narrows.report import ReportError, plot, plotting
from narrows.report.drawing import Options
from narrows.report.figures import rrul
from narrows.report.plotting import Choice

PRESETS = {name.value: Options(width, height, size) for name, (width, height, size) in _PRESETS.items()}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("rrul") / "campaign"
    settings = ["--set", "duration=8s", "--set", "schemes=[cubic]", "--report", "none"]
    result = CliRunner().invoke(app, ["run", "flent/rrul", "-o", str(out), *settings])
    assert result.exit_code == 0, result.output
    return out


def test_each_flow_is_in_the_panel_of_its_direction_with_its_class(folder: Path, tmp_path: Path) -> None:
    drawn = CliRunner().invoke(
        app, ["plot", str(folder), "--figure", "rrul", "-o", str(tmp_path / "rrul.png")]
    )
    assert drawn.exit_code == 0, drawn.output
    with Image.open(tmp_path / "rrul.png") as image:
        assert len(image.convert("L").getcolors(256) or []) > 8, "the picture is blank"
    with (tmp_path / "rrul.csv").open() as lines:
        rows = list(csv.DictReader(lines))
    seen = {(row["panel"], row["flow"], row["dscp"]) for row in rows}
    classes = ["0", "8", "40", "46"]
    expected = {("exchanges", str(n), dscp) for n, dscp in enumerate(["0", "8", "46"], 1)}
    expected |= {("upload", str(n), dscp) for n, dscp in enumerate(classes, 4)}
    expected |= {("download", str(n), dscp) for n, dscp in enumerate(classes, 8)}
    assert seen == expected
    # The times of exchanges are those of the record.
    table = pq.read_table(folder / "cells" / "cubic-r1" / "transfers.parquet").to_pylist()
    own = [row for row in table if row["flow"] == 1 and row["ended_ns"] is not None]
    times = [row for row in rows if row["flow"] == "1" and row["value"]]
    assert [float(row["value"]) for row in times] == pytest.approx(
        [(row["ended_ns"] - row["started_ns"]) / 1e6 for row in own]
    )


def test_classes_have_their_names() -> None:
    assert [rrul.class_name(dscp) for dscp in (0, 8, 40, 46, 63)] == [
        "best effort",
        "CS1",
        "CS5",
        "EF",
        "DSCP 63",
    ]


def test_a_run_without_load_and_exchanges_is_one_sentence(tmp_path: Path) -> None:
    scenario = tmp_path / "cbr.yaml"
    scenario.write_text(
        "schema: narrows/scenario/1\nwhere: simulate\nduration: 1 s\n"
        "path: {forward: [{rate: 12 Mbit/s}, {delay: 5 ms}], backward: [{delay: 5 ms}]}\n"
        "flows: [{traffic: {cbr: 1 Mbit/s}}]\n"
    )
    out = tmp_path / "cbr"
    done = CliRunner().invoke(app, ["run", str(scenario), "-o", str(out), "--report", "none"])
    assert done.exit_code == 0, done.exception
    with pytest.raises(ReportError, match="exchanges requests and answers"):
        plot(out, "rrul")


@pytest.mark.parametrize("preset", ["column", "text", "slide"])
def test_all_data_are_inside_the_axes_and_no_text_over_another(folder: Path, preset: str) -> None:
    drawn = plotting.compose(Choice((folder,), "rrul"), PRESETS[preset])
    assert kit.problems(drawn.figure) == []
