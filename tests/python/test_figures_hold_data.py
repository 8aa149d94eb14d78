"""Every figure of the registry over matrices, numbers of schemes and presets: no data is cut, no text
overlaps.

A new figure in the registry is tested here automatically, and must be drawn by one of the campaigns. The
campaigns are simulated once, and a figure is drawn once for all claims about it. With NARROWS_FIGURES=all
every figure is drawn in every size.
"""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

import figures_kit as kit
from narrows.cli.plot import _PRESETS
from narrows.report import ReportError, drawing, figures, overlay, plotting
from narrows.report.data import Campaign, Run, load
from narrows.report.drawing import Options
from narrows.report.plotting import Choice

#: The campaign is simulated before the first test, and machines may be busy.
pytestmark = pytest.mark.timeout(1200)

PRESETS = {name.value: Options(width, height, size) for name, (width, height, size) in _PRESETS.items()}
#: Numbers of combinations and schemes; the last ones take the longest. Usually three of them are drawn in the
#: narrowest preset, and one in that of a slide, whose height is fixed; with NARROWS_FIGURES=all (`make
#: nightly`) every size in every preset, which takes some ten minutes.
EVERY_SIZE = os.environ.get("NARROWS_FIGURES") == "all"
SIZES = [(1, 2), (1, 17), (1, 24), (6, 2), (6, 17), (6, 24), (18, 2), (18, 17), (18, 24)]
QUICK = {(1, 24), (6, 17), (18, 2)}
CAMPAIGN = [name for name, kind in figures.registry().items() if kind.scope == "campaign"]
# A figure of one run with several panels has a test in test_plot_rrul.py.
RUN = [n for n, kind in figures.registry().items() if kind.scope == "run" and overlay.possible(kind)]
#: The numbers of schemes that suffice for each number of combinations, and the campaign of these.
SCHEMES = {1: 24, 6: 17, 18: 2}
#: A campaign of so many combinations and schemes.
Matrix = Callable[[int, int], Path]


@dataclass(frozen=True)
class Looks:
    """Flaws and legends of a drawn figure."""

    problems: list[str]
    same: list[str]
    colours: dict[str, str]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("figures")


@pytest.fixture(scope="module")
def matrix(place: Path) -> Matrix:
    """Campaigns with at least so many combinations and schemes: the smallest, or the largest for all."""

    @functools.cache
    def simulate(combinations: int, schemes: int) -> Path:
        droptail, delays = {
            1: (("2 bdp",), ("40 ms",)), 6: (("2 bdp",), kit.DELAYS), 18: (kit.DROPTAIL, kit.DELAYS)
        }[combinations]  # fmt: skip
        return kit.write_matrix(place / f"matrix-{combinations}", schemes, droptail, delays)

    def find(combinations: int, schemes: int) -> Path:
        if EVERY_SIZE:
            return simulate(18, 24)
        assert schemes <= SCHEMES[combinations]
        return simulate(combinations, SCHEMES[combinations])

    return find


@functools.cache
def _loaded(folder: Path) -> Campaign:
    return load(folder)


@pytest.fixture(autouse=True)
def _read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reads a campaign once; figures get copies."""
    monkeypatch.setattr(plotting, "load", lambda folder: replace(_loaded(folder)))


def _choice(matrix: Matrix, name: str, combinations: int, schemes: int) -> Choice:
    folder = matrix(combinations, schemes)
    only = {1: ("droptail=2 bdp", "delay=40 ms"), 6: ("droptail=2 bdp",), 18: ()}[combinations]
    return Choice((folder,), name, tuple(kit.SCHEMES[:schemes]), only=only)


def _drawn(chosen: Choice, options: Options) -> Figure:
    return plotting.compose(chosen, options).figure


@functools.cache
def _look(chosen: Choice, options: Options) -> Looks:
    figure = _drawn(chosen, options)
    try:
        return Looks(kit.problems(figure), kit.same_looks(figure), kit.colours_in_legends(figure))
    finally:
        figure.clear()


def _cases() -> list[Any]:
    found = []
    for name in CAMPAIGN:
        for size in SIZES:
            for preset in PRESETS:
                low = size == (6, 17) and preset == "slide"
                quick = size in QUICK and (preset == "column" or low)
                if quick or EVERY_SIZE:
                    found.append(pytest.param(name, *size, preset))
    return found


@pytest.mark.parametrize(("name", "combinations", "schemes", "preset"), _cases())
def test_a_figure_of_a_campaign_shows_all_its_data_and_no_text_over_another(
    matrix: Matrix, name: str, combinations: int, schemes: int, preset: str
) -> None:
    chosen = _choice(matrix, name, combinations, schemes)
    if (why := figures.registry()[name].absent(plotting.select(chosen))) is not None:
        with pytest.raises(ReportError, match=why.split(".")[0][:40]):
            _drawn(chosen, PRESETS[preset])
        return
    assert _look(chosen, PRESETS[preset]).problems == []


def _run_cases() -> list[Any]:
    every = [(1, 1), (1, 2), (1, 24), (6, 2), (6, 17), (18, 2)]
    return [
        pytest.param(name, *size, preset)
        for name in RUN
        for size in every
        for preset in PRESETS
        if EVERY_SIZE or size in {(1, 2), (1, 24)} or (size == (6, 2) and preset == "column")
    ]


@pytest.mark.parametrize(("name", "combinations", "schemes", "preset"), _run_cases())
def test_a_figure_of_runs_shows_all_its_data_and_no_text_over_another(
    matrix: Matrix, name: str, combinations: int, schemes: int, preset: str
) -> None:
    chosen = _choice(matrix, name, combinations, schemes)
    # More lines than can be distinguished are refused, so many schemes show one flow each.
    chosen = replace(chosen, flows=(1,) if schemes > 2 else ())
    data = plotting.select(chosen)
    if all(figures.registry()[name].absent(run) is not None for run in data.runs):
        return
    look = _look(chosen, PRESETS[preset])
    assert look.problems == []
    assert look.same == []


def test_runs_of_a_matrix_have_a_panel_for_each_condition(matrix: Matrix) -> None:
    drawn = plotting.compose(_choice(matrix, "window", 6, 2), PRESETS["text"])
    delays = ["20", "30", "40", "60", "80", "120"]
    assert [axes.get_title(loc="left").split()[-2:] for axes in drawn.figure.axes] == [
        [delay, "ms"] for delay in delays
    ]
    assert set(drawn.numbers["scheme"]) == {"cubic", "reno"}
    assert list(dict.fromkeys(drawn.numbers["delay"])) == [f"{delay} ms" for delay in delays]
    assert (
        "A panel for each of the 6 combinations of the matrix. All rows have droptail 2 bdp." in drawn.caption
    )


def test_maps_of_all_metrics_over_the_same_parameters_have_the_same_axes(matrix: Matrix) -> None:
    numbers = plotting.compose(_choice(matrix, "surface", 18, 2), PRESETS["text"]).numbers
    assert len(set(numbers["metric"])) > 1
    assert len({*zip(numbers["x"], numbers["y"], strict=True)}) == 1


@pytest.mark.parametrize("preset", ["column", "text"])
@pytest.mark.parametrize(("schemes", "delays"), [(2, 1), (6, 3)])
def test_pairs_show_all_their_fields(place: Path, schemes: int, delays: int, preset: str) -> None:
    folder = place / f"pairs-{schemes}"
    if not folder.exists():
        kit.write_pairs(folder, schemes, delays)
    data = load(folder)
    kind = figures.registry()["pairs"]
    if kind.absent(data) is None:
        assert kit.problems(_drawn(Choice((folder,), "pairs"), PRESETS[preset])) == []
    else:
        assert schemes == 2


@pytest.mark.parametrize("preset", ["column", "text"])
def test_frames_show_all_their_data(place: Path, preset: str) -> None:
    folder = place / "video"
    if not folder.exists():
        kit.write_video(folder)
    assert kit.problems(_drawn(Choice((folder,), "frames"), PRESETS[preset])) == []


def test_colours_are_those_of_the_schemes_in_every_figure(matrix: Matrix) -> None:
    found: dict[str, dict[str, str]] = {}
    for name in CAMPAIGN:
        for combinations, schemes in sorted(QUICK):
            try:
                look = _look(_choice(matrix, name, combinations, schemes), PRESETS["column"])
            except ReportError:
                continue
            for scheme, colour in look.colours.items():
                if scheme in kit.SCHEMES:
                    found.setdefault(scheme, {})[f"{name} of {schemes}"] = colour
    runs = _look(replace(_choice(matrix, "window", 1, 24), flows=(1,)), PRESETS["column"])
    for label, colour in runs.colours.items():
        found.setdefault(label.partition(" (")[0], {})["window"] = colour
    assert len(found) == 24
    assert len(found["cubic"]) > 6
    assert {scheme: set(own.values()) for scheme, own in found.items() if len(set(own.values())) > 1} == {}


def test_the_flows_of_a_run_have_the_colour_of_their_scheme(matrix: Matrix) -> None:
    campaign = _loaded(matrix(1, 24))
    run = next(run for run in campaign.runs if run.base == "vegas")
    looks = run.styles_of(run.tested)
    assert looks[0].color == campaign.styles["vegas"].color
    assert len({(look.color, look.marker) for look in looks}) == len(looks)


def test_every_figure_of_the_registry_is_drawn_by_a_campaign(matrix: Matrix, place: Path) -> None:
    drawn = set()
    for data in (_loaded(matrix(1, 24)), _loaded(matrix(18, 2))):
        drawn |= {name for name in CAMPAIGN if figures.registry()[name].absent(data) is None}
        drawn |= {
            name for name in RUN if any(figures.registry()[name].absent(run) is None for run in data.runs)
        }
    # Pairs and frames have separate campaigns here; films need a player, rrul a load.
    assert set(figures.registry()) - drawn == {"pairs", "frames", "playback", "rrul"}


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("schemes", [2, 17, 24])
def test_points_of_a_calibration_show_all_their_data(schemes: int, preset: str) -> None:
    from narrows.calibrate.figure import Pair, figure

    pairs = [
        Pair(name, (20.0 + 7 * n, 9.0 - n / 3), (24.0 + 6.5 * n, 8.8 - n / 3))
        for n, name in enumerate(kit.SCHEMES[:schemes])
    ]
    assert kit.problems(figure(pairs, PRESETS[preset])) == []


def test_the_figure_of_a_trace_shows_all_its_data() -> None:
    from narrows.report.trace import figure
    from narrows.traces.trace import Opportunities

    times = np.array([*range(1, 4000, 3), *range(4000, 9000, 11)], dtype=np.int64)
    trace = Opportunities(times)
    assert kit.problems(figure(trace, "a trace with a name of many letters")) == []


def test_cut_data_and_overlapping_texts_are_detected() -> None:
    options = Options(88)
    with drawing.paper_style(options):
        figure = drawing.new_figure(options, 60)
        axes = figure.add_axes((0.2, 0.2, 0.7, 0.7))
        axes.errorbar([1, 2], [1, 5], yerr=[0.5, 0.5])
        axes.set_ylim(0, 5.2)
        axes.set_xticks([1, 1.01], ["one hundred", "two hundred"])
        figure.text(0.99, 0.5, "beyond")
    found = " ".join(kit.problems(figure))
    assert "LineCollection lie outside" in found
    assert "'one hundred' and 'two hundred' overlap" in found
    assert "'beyond' leaves the page" in found


def test_json_says_which_runs_are_flawed_and_how_many_are_shown(matrix: Matrix, tmp_path: Path) -> None:
    del tmp_path
    drawn = plotting.compose(_choice(matrix, "parameter", 6, 17), PRESETS["text"])
    assert drawn.account is not None
    told = json.loads(json.dumps(drawn.account.to_json()))
    runs: list[Run] = _loaded(matrix(6, 17)).runs
    assert told["runs_shown"] == sum(run.valid for run in runs)
    assert told["statistic"] == "median over the valid runs"
    assert {one["run"] for one in told["invalid"]} == {run.cell for run in runs if not run.valid}
