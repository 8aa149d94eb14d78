"""Bars of a metric, and the tags of figures."""

from __future__ import annotations

import csv
import json
import statistics
from pathlib import Path

import pytest

from campaign_kit import narrows, simulate
from narrows import __version__
from narrows.campaign.store import CampaignFolder
from narrows.errors import UsageError


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return simulate(tmp_path_factory.mktemp("bars") / "campaign")


@pytest.mark.parametrize("ending", ["svg", "png", "pdf"])
def test_figures_name_their_campaigns_by_digest_and_the_version(
    folder: Path, tmp_path: Path, ending: str
) -> None:
    out = tmp_path / f"a.{ending}"
    narrows("plot", folder, "--figure", "bars", "-o", out)
    content = out.read_bytes()
    digest = CampaignFolder.read(folder).header.hash
    if ending == "pdf":
        # Text of a PDF's metadata may be in UTF-16.
        content = content.replace(b"\x00", b"")
    for word in (digest, f"Narrows {__version__}"):
        assert word.encode() in content


def test_bars_end_at_the_medians_of_the_results(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "a.pdf"
    narrows("plot", folder, "--figure", "bars", "--metric", "loss", "-o", out)
    with (tmp_path / "a.csv").open(newline="") as stream:
        rows = {row["scheme"]: row for row in csv.DictReader(stream)}
    results = json.loads((folder / "results.json").read_text())
    for scheme, row in rows.items():
        own = [
            entry["metrics"]["loss_ratio"]
            for entry in results["rows"]
            if entry["row"] == scheme and entry["flow"] is None and entry["verdict"] in ("ok", "degraded")
        ]
        assert float(row["median"]) == pytest.approx(100 * statistics.median(own), rel=1e-8, abs=1e-12)
        assert float(row["low"]) <= float(row["median"]) <= float(row["high"])
        assert int(row["runs"]) == len(own)
    assert rows


def test_a_metric_is_refused_where_a_figure_shows_its_own(folder: Path, tmp_path: Path) -> None:
    done = narrows("plot", folder, "--figure", "summary", "--metric", "loss", "-o", tmp_path / "a.pdf")
    assert isinstance(done.exception, UsageError)
    assert str(done.exception) == "figure summary does not show any metric; --metric is for bars"
    done = narrows("plot", folder, "--figure", "bars", "--metric", "losss", "-o", tmp_path / "a.pdf")
    assert isinstance(done.exception, UsageError) and 'did you mean "loss"' in str(done.exception)
