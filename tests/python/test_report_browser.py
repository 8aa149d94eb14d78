"""The page in a real browser: it opens offline, draws its charts and complains about nothing."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from PIL import Image

from narrows import report
from report_campaigns import Spec, write_campaign

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
WHY = "no Chromium is installed, so the page is not tried in a browser (Debian package: chromium)"

pytestmark = pytest.mark.skipif(BROWSER is None and os.environ.get("CI") != "true", reason=WHY)


def _browse(file: Path, profile: Path, *options: str) -> tuple[str, list[str]]:
    """The page after its scripts have run, and what it wrote to the console."""
    assert BROWSER is not None, WHY
    command = [
        BROWSER,
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--hide-scrollbars",
        f"--user-data-dir={profile}",
        "--host-resolver-rules=MAP * ~NOTFOUND",
        "--enable-logging=stderr",
        "--force-device-scale-factor=1",
        "--window-size=1100,9000",
        "--virtual-time-budget=20000",
        *options,
        file.as_uri(),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    said = [line for line in done.stderr.splitlines() if ":CONSOLE" in line]
    return done.stdout, said


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    specs = [Spec("cubic", 1, ("cubic", "cubic")), Spec("mix", 1, ("cubic", "reno"))]
    folder = write_campaign(tmp_path_factory.mktemp("browser") / "campaign", specs, duration_s=3.0)
    made = report.build(folder, pdf=False).html
    assert made is not None
    alone = tmp_path_factory.mktemp("alone") / "report.html"  # nothing else is beside it
    shutil.copyfile(made, alone)
    return alone


def test_the_console_is_heard(tmp_path: Path) -> None:
    bad = tmp_path / "bad.html"
    bad.write_text("<script>console.error('seen'); nothing.at.all()</script>")
    _, said = _browse(bad, tmp_path / "profile", "--dump-dom")
    assert any("seen" in line for line in said)
    assert any("nothing is not defined" in line for line in said)


def test_the_page_draws_every_chart_without_complaint(page: Path, tmp_path: Path) -> None:
    dom, said = _browse(page, tmp_path / "profile", "--dump-dom")
    assert said == []
    charts = re.findall(r'<div class="chart"[^>]*data-key="([^"]*)"[^>]*>', dom)
    drawn = re.findall(r'<div class="chart"[^>]*data-drawn="1"[^>]*>', dom)
    assert len(charts) == 8
    assert len(drawn) == 8
    assert dom.count("<canvas") >= 8
    assert len(re.findall(r'class="u-series"[^>]*role="button"', dom)) > 8, (
        "legend entries are reachable by keyboard"
    )


@pytest.mark.parametrize(
    ("scheme", "paper", "flow"), [("1", (255, 255, 255), "c78200"), ("0", (20, 24, 29), "f3b13c")]
)
def test_charts_are_seen_on_light_and_dark_pages(
    page: Path, tmp_path: Path, scheme: str, paper: tuple[int, int, int], flow: str
) -> None:
    shot = tmp_path / "page.png"
    options = (f"--screenshot={shot}", f"--blink-settings=preferredColorScheme={scheme}")
    _, said = _browse(page, tmp_path / "profile", *options)
    assert said == []
    with Image.open(shot) as image:
        seen = {c: n for n, c in image.convert("RGB").getcolors(1 << 24) or []}
    assert max(seen, key=lambda c: seen[c]) == paper
    # The second flow of a run has this colour, and nothing else in the page: so lines are really drawn.
    assert seen.get(tuple(int(flow[i : i + 2], 16) for i in (0, 2, 4)), 0) > 200


def test_the_page_prints_with_all_charts(page: Path, tmp_path: Path) -> None:
    target = tmp_path / "page.pdf"
    _browse(page, tmp_path / "profile", f"--print-to-pdf={target}", "--no-pdf-header-footer")
    assert target.stat().st_size > 50_000
    assert len(re.findall(rb"/Type\s*/Page\b", target.read_bytes())) >= 4
