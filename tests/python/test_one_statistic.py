"""One number per quantity: tables, figures, site, JSON and sweeps summarise the runs of a row alike.

The runs of each row are so far apart that mean and median differ in the first digits. The expected value is
computed from the rows of single runs, by sorting."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import narrows
from compare_kit import on_terminal
from narrows.cli.all_commands import app
from narrows.statistics.runs import median_over_runs, quantiles_over_runs

#: The rate of the bottleneck differs between the runs, and so do their numbers.
TEXT = """\
schema: narrows/scenario/1
name: skewed
question: One number?
where: simulate
schemes: [cubic, reno]
duration: 3 s
runs: 3
path:
  forward: [{rate: 4 Mbit/s, queue: {droptail: 30 kB}}, {delay: 10 ms}]
  backward: [{delay: 10 ms}]
draw: {path.forward.0.rate: {loguniform: [500 kbit/s, 20 Mbit/s]}}
"""
MATRIX = "matrix: {path.forward.0.queue.droptail: [15 kB, 60 kB], path.forward.1.delay: [5 ms, 40 ms]}\n"
LABEL = "cubic (droptail 60 kB, delay 40 ms)"


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("statistic") / "skewed"
    narrows.run(TEXT + MATRIX, folder, progress=False)
    return folder


def shown(*command: object) -> Any:
    result = CliRunner().invoke(app, [*map(str, command), "--json"])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def middle(rows: list[dict[str, Any]], metric: str) -> float:
    """The second of three values, which is not their mean."""
    values = sorted(row["metrics"][metric] for row in rows)
    assert len(values) == 3
    assert abs(sum(values) / 3 / values[1] - 1) > 0.005, "mean and median must be told apart"
    return float(values[1])


@cache
def expected(campaign: Path) -> dict[str, float]:
    rows = json.loads((campaign / "results.json").read_text())["rows"]
    own = [row for row in rows if row["row"] == LABEL and row["flow"] is None]
    return {name: middle(own, name) for name in ("throughput_bps", "delay_p95_ns")}


def test_json_and_terminal_show_the_median_of_runs(campaign: Path) -> None:
    document = shown("show", campaign)
    (line,) = [one for one in document["summary"] if one["row"] == LABEL and one["flow"] is None]
    text = on_terminal("show", campaign, columns=160)
    for name, value in expected(campaign).items():
        assert line["metrics"][name]["median"] == value
        assert f"{value / 1e6:.4g}"[:5] in text


def test_report_on_screen_and_on_paper(campaign: Path) -> None:
    assert CliRunner().invoke(app, ["report", str(campaign)]).exit_code == 0
    page = re.sub(r"<[^>]+>", " ", (campaign / "report.html").read_text())
    texts = [page]
    if program := shutil.which("pdftotext"):
        told = [program, "-layout", str(campaign / "report.pdf"), "-"]
        texts.append(subprocess.run(told, capture_output=True, text=True, check=True).stdout)
    for name, value in expected(campaign).items():
        digits = re.compile(rf"(?<![\d.])({value / 1e6:.1f}|{value / 1e6:.2f}|{value / 1e6:.3f})(?![\d.])")
        assert all(digits.search(text) for text in texts), name


@pytest.mark.parametrize(
    ("figure", "column"),
    [
        ("parameter", "median"),
        ("surface", "median"),
        ("summary", "delay_p95_ms"),
        ("delay_box", "p95_ms"),
        ("delay_cdf", "delay_ms"),
    ],
)
def test_figures(campaign: Path, tmp_path: Path, figure: str, column: str) -> None:
    import csv

    picture = tmp_path / "figure.svg"
    done = CliRunner().invoke(app, ["plot", str(campaign), "--figure", figure, "-o", str(picture)])
    assert done.exit_code == 0, done.output
    with picture.with_suffix(".csv").open() as file:
        rows = list(csv.DictReader(file))
    if figure == "summary":
        rows = [row for row in rows if row["run"] == "median"]
    if figure == "delay_cdf":
        rows = [row for row in rows if float(row["share"]) == 0.95]
        assert rows, "the quantile that tables have is a point of the curve"
    values = [float(row[column]) for row in rows]
    assert any(value == pytest.approx(expected(campaign)["delay_p95_ns"] / 1e6, rel=1e-9) for value in values)
    described = shown("plot", campaign, "--figure", figure, "-o", picture)
    assert "edian" in json.dumps(described), "the caption names the statistic"


def test_site(campaign: Path, tmp_path: Path) -> None:
    target = tmp_path / "site"
    assert CliRunner().invoke(app, ["site", str(campaign), "-o", str(target)]).exit_code == 0
    (page,) = (target / "campaigns").glob("*/index.html")
    numbers = re.search(r'id="numbers">(.*?)</script>', page.read_text(), re.DOTALL)
    assert numbers is not None
    places = [(one.get("x"), one.get("y")) for one in json.loads(numbers[1])["schemes"]]
    found = expected(campaign)
    assert (found["delay_p95_ns"] / 1e6, found["throughput_bps"] / 1e6) in places


def test_points_of_a_sweep(tmp_path: Path) -> None:
    file = tmp_path / "space.yaml"
    lossy = TEXT.partition("draw:")[0].replace(
        "{delay: 10 ms}]\n  back", "{delay: 10 ms}, {loss: 4 %}]\n  back"
    )
    file.write_text(lossy + "sweep: {path.forward.1.delay: [5 ms, 40 ms]}\n")
    folder = tmp_path / "space"
    done = CliRunner().invoke(app, ["sweep", "run", str(file), "-o", str(folder)])
    assert done.exit_code == 0, done.output
    import pyarrow.dataset

    rows = pyarrow.dataset.dataset(folder / "data").to_table().to_pylist()
    for one in shown("sweep", "show", folder, "--metric", "throughput_bps"):
        ((_, means),) = one["means"].items()
        for value, mean in means:
            own = [
                {"metrics": row}
                for row in rows
                if row["scheme"] == one["scheme"] and row["flow"] is None and value in row.values()
            ]
            assert mean == pytest.approx(middle(own, "throughput_bps"), rel=1e-9)


def test_the_median_of_runs_is_the_middle_one_or_halfway_between_two() -> None:
    assert median_over_runs([3.0, 1.0, 10.0]) == 3.0
    assert median_over_runs([4.0, 1.0, 10.0, 2.0]) == 3.0
    with pytest.raises(ValueError, match="no value"):
        median_over_runs([])


def test_quantiles_are_those_of_each_run_and_not_of_all_values_together() -> None:
    runs = [list(range(1, 101)), list(range(1001, 1101)), list(range(101, 201))]
    # Nearest rank: 95 of 100 values do not exceed the 95th.
    assert quantiles_over_runs(runs, [0.5, 0.95, 1.0]).tolist() == [150, 195, 200]
    assert quantiles_over_runs([[7.0]], [0.05, 0.95]).tolist() == [7, 7]
