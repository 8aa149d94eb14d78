"""The bar on a terminal: when it appears, and what it shows of stages."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from narrows import console, progress
from narrows.progress import show_time


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    text = io.StringIO()
    terminal = Console(file=text, force_terminal=True, width=100)
    monkeypatch.setattr(console, "stderr_console", lambda: terminal)
    return text


def test_a_bar_shows_its_stage_its_count_and_not_earlier_stages(screen: io.StringIO) -> None:
    with progress.progress() as bar:
        bar.show("searching", 3, 10, "3 paths")
        bar.show("minimising", 0, None, "2 tried")
    painted = screen.getvalue()
    assert "2 tried" in painted
    assert painted.rindex("minimising") > painted.rfind("searching")


def test_a_bar_that_waits_does_not_appear_for_short_work(
    screen: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter([0.0, 0.0, 1.0, 3.0])
    monkeypatch.setattr("narrows.progress.time.monotonic", lambda: next(clock))
    with progress.progress("metrics", after_s=2.0) as bar:
        bar.count(1, 2, "runs")
        assert screen.getvalue() == ""
        bar.count(2, 2, "runs")
        assert "metrics" in screen.getvalue()


def test_a_quiet_bar_writes_nothing(screen: io.StringIO) -> None:
    with progress.progress("metrics", quiet=True) as bar:
        bar.count(1, 2, "runs")
    assert screen.getvalue().strip() == ""


def test_the_time_left_needs_some_done_work() -> None:
    assert show_time(48.4) == "48 s"
    assert show_time(200) == "3 min 20 s"
    assert show_time(7500) == "2 h 5 min"


def test_a_log_has_lines_of_new_and_of_lasting_stages(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    times = iter([0.0, 4.0, 11.0, 12.0, 30.0, 41.0, 45.0, 52.0])
    monkeypatch.setattr("narrows.progress.time.monotonic", lambda: next(times))
    lines = progress.ProgressLines("calibrate")
    stages = (
        "basic path",
        "basic path",
        "closing in",
        "basic path",
        "basic path",
        "closing in",
        "closing in",
    )
    for number, stage in enumerate(stages):
        lines.show(stage, f"{number} %")
    assert capsys.readouterr().err.splitlines() == [
        "calibrate: basic path, 1 %",
        "calibrate: basic path, 4 %",
        "calibrate: closing in, 6 %",
    ]


def test_a_terminal_and_quiet_commands_get_no_lines(
    screen: io.StringIO, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress.ProgressLines, "APART_S", 0.0)
    progress.ProgressLines("calibrate").show("closing in", "1 %")
    monkeypatch.undo()
    progress.ProgressLines("calibrate", quiet=True).show("closing in", "1 %")
    assert screen.getvalue() == capsys.readouterr().err == ""
