"""Adding a figure takes one file: registry, report and numbers follow. (For the core:
tests/tests/all/adding.rs.)"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from narrows import report
from narrows.report import figures
from report_campaigns import Spec, write_campaign

FIGURE = """
from matplotlib.figure import Figure

TITLE, SCOPE, ORDER = "Number of runs", "campaign", 99


def absent(data):
    return None


def numbers(data):
    return {"runs": [len(data.runs)]}


def figure(data, options):
    drawn = Figure(figsize=(2, 1))
    drawn.subplots().bar([0], numbers(data)["runs"])
    return drawn


def caption(data):
    return "This figure was added by a test."
"""


@pytest.fixture
def added(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "added.py").write_text(FIGURE)
    monkeypatch.setattr(figures, "__path__", [*figures.__path__, str(tmp_path / "folder")])
    figures.registry.cache_clear()
    yield
    figures.registry.cache_clear()
    sys.modules.pop("narrows.report.figures.added", None)


def test_adding_a_figure_is_one_file(added: None, tmp_path: Path) -> None:
    made = write_campaign(tmp_path / "campaign", [Spec("cubic", 1, ("cubic",))], duration_s=1.0)
    report.build(made, pdf=False)
    assert (made / "figures" / "added.csv").read_text() == "runs\n1\n"
    assert (made / "figures" / "added.svg").is_file()
    page = (made / "report.html").read_text()
    assert "Number of runs" in page
    assert "This figure was added by a test." in page
