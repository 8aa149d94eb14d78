"""Campaigns of thousands of cells: default omissions, and costs that must not grow quadratically."""

from __future__ import annotations

from pathlib import Path

import pytest

from campaign_kit import SCENARIO, narrows
from narrows.campaign.progress import TimeLeft
from narrows.cli import run as command


def test_a_campaign_of_very_many_runs_gets_no_report_unless_it_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "MOST_REPORTED", 3)
    file = tmp_path / "x.yaml"
    file.write_text(SCENARIO)
    done = narrows("run", file, "-o", tmp_path / "out", "--report", "html")
    assert done.exit_code == 0, done.output
    assert "no report is written of 4 runs" in done.output
    assert f"narrows report {tmp_path / 'out'} writes it" in done.output.replace("\n", " ")
    assert not (tmp_path / "out" / "report.html").exists()


def test_the_time_that_is_left_is_the_mean_of_cells_that_ended() -> None:
    left = TimeLeft(4, 2, 10.0)
    assert left.estimate() == 20.0
    left.note_end("a", 1.0)
    left.note_end("b", 3.0)
    assert left.estimate() == 2.0
