"""The page in a real browser: opens offline, draws charts, obeys the keyboard, complains about nothing."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from browser import PROGRAM, Browser
from narrows import report
from report_campaigns import Spec, write_campaign

WHY = "no Chromium is installed, so the page is not tried in a browser (Debian package: chromium)"

pytestmark = pytest.mark.skipif(PROGRAM is None and os.environ.get("CI") != "true", reason=WHY)

CHART = "document.querySelector('.chart[data-key=\"cubic-r1/throughput\"]')"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    specs = [Spec("cubic", 1, ("cubic", "cubic")), Spec("mix", 1, ("cubic", "reno"))]
    folder = write_campaign(tmp_path_factory.mktemp("browser") / "campaign", specs, duration_s=3.0)
    made = report.build(folder, pdf=False).html
    assert made is not None
    alone = tmp_path_factory.mktemp("alone") / "report.html"  # nothing else is beside it
    shutil.copyfile(made, alone)
    return alone


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Browser]:
    with Browser(tmp_path / "profile") as made:
        yield made


def test_the_console_is_heard(browser: Browser, tmp_path: Path) -> None:
    bad = tmp_path / "bad.html"
    bad.write_text("<script>console.error('seen'); nothing.at.all()</script>")
    browser.open(bad)
    assert any("seen" in line for line in browser.said)
    assert any("nothing is not defined" in line for line in browser.said)


def opened(browser: Browser, page: Path, **how: Any) -> None:
    """Opens the report and waits until the runs that are open are unpacked."""
    browser.open(page, **how)
    browser.until("narrowsReport.isReady()")


def test_charts_are_drawn_when_they_come_into_view(browser: Browser, page: Path) -> None:
    opened(browser, page, height=600)
    assert browser.run("narrowsReport.total") == 8
    assert browser.run("narrowsReport.drawn()") < 8
    browser.run("document.querySelector('[data-key=\"mix-r1/window\"]').scrollIntoView()")
    browser.until("document.querySelector('[data-key=\"mix-r1/window\"]').dataset.drawn")
    browser.run("narrowsReport.drawAll()")
    browser.until("narrowsReport.drawn() === 8")
    assert browser.said == []
    assert {u for u in browser.requests if not u.startswith("data:")} == {page.as_uri()}, (
        "offline means offline"
    )


@pytest.mark.parametrize(("dark", "paper", "flow"), [(False, "ffffff", "c78200"), (True, "14181d", "f3b13c")])
def test_charts_are_seen_on_light_and_dark_pages(
    browser: Browser, page: Path, tmp_path: Path, dark: bool, paper: str, flow: str
) -> None:
    opened(browser, page, dark=dark)
    browser.run("narrowsReport.drawAll()")
    browser.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))")
    with Image.open(browser.picture(tmp_path / "page.png")) as image:
        pixels = np.asarray(image.convert("RGB"), dtype=np.uint32).reshape(-1, 3)
    colours, counts = np.unique(pixels @ np.array([65536, 256, 1], dtype=np.uint32), return_counts=True)
    seen = {f"{c:06x}": int(n) for c, n in zip(colours, counts, strict=True)}
    assert max(seen, key=lambda c: seen[c]) == paper
    # The second flow of a run has this colour, and nothing else in the page: so its lines are really drawn.
    assert seen.get(flow, 0) > 200
    assert browser.said == []


def test_nothing_runs_out_of_a_narrow_page(browser: Browser, page: Path) -> None:
    opened(browser, page, width=400)
    browser.run("narrowsReport.drawAll()")
    assert browser.run("document.documentElement.scrollWidth") <= 400


def test_the_keyboard_zooms_and_moves_and_all_charts_of_a_run_follow(browser: Browser, page: Path) -> None:
    opened(browser, page)
    browser.run("narrowsReport.drawAll()")
    browser.run(f"{CHART}.focus()")
    span = "narrowsReport.span('cubic-r1/{0}')"
    low, high = browser.run(span.format("throughput"))
    browser.press("+")
    nearer = browser.run(span.format("throughput"))
    assert nearer[1] - nearer[0] == pytest.approx((high - low) / 2, rel=0.01)
    assert browser.run(span.format("delay")) == pytest.approx(nearer)
    assert browser.run(span.format("window")) == pytest.approx(nearer)
    browser.press("ArrowRight")
    value = f"{CHART}.querySelector('.u-legend tr:nth-child(3) .u-value').textContent"
    assert re.fullmatch(r"[\d.]+", browser.run(value)), "the legend has the values at the cursor"
    browser.press("0")
    assert browser.run(span.format("throughput"))[1] == pytest.approx(high)
    assert browser.run(span.format("delay"))[1] >= 0.95 * high
    assert browser.said == []


def test_the_legend_hides_a_flow_by_keyboard(browser: Browser, page: Path) -> None:
    opened(browser, page)
    browser.run("narrowsReport.drawAll()")
    row = f"{CHART}.querySelectorAll('.u-legend tr.u-series')[2]"
    assert browser.run(f"{row}.getAttribute('role')") == "button"
    assert browser.run(f"{row}.getAttribute('aria-pressed')") == "true"
    browser.run(f"{row}.focus()")
    browser.press("Enter")
    assert browser.run(f"{row}.classList.contains('u-off')")
    assert browser.run(f"{row}.getAttribute('aria-pressed')") == "false"


def test_the_theme_can_be_chosen(browser: Browser, page: Path) -> None:
    opened(browser, page)
    browser.run("narrowsReport.drawAll()")
    colour = "getComputedStyle(document.body).backgroundColor"
    assert browser.run(colour) == "rgb(255, 255, 255)"
    browser.run("document.getElementById('theme').click()")
    assert browser.run(colour) == "rgb(20, 24, 29)"
    browser.run("document.getElementById('theme').click()")
    assert browser.run(colour) == "rgb(255, 255, 255)"
    assert browser.said == []


def test_the_page_prints_with_all_charts(browser: Browser, page: Path, tmp_path: Path) -> None:
    opened(browser, page, height=600, dark=True)
    printed = browser.print(tmp_path / "page.pdf").read_bytes()
    assert browser.run("narrowsReport.drawn()") == 8
    assert len(re.findall(rb"/Type\s*/Page\b", printed)) >= 4
    assert browser.said == []
