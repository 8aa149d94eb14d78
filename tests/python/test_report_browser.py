"""The page in a real browser: it opens offline, draws charts, obeys the keyboard, and reports no errors."""

from __future__ import annotations

import os
import re
import shutil
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
    alone = tmp_path_factory.mktemp("alone") / "report.html"  # Nothing else is beside it.
    shutil.copyfile(made, alone)
    return alone


def test_the_console_is_heard(browser: Browser, tmp_path: Path) -> None:
    bad = tmp_path / "bad.html"
    bad.write_text("<script>console.error('seen'); nothing.at.all()</script>")
    browser.open(bad)
    assert any("seen" in line for line in browser.said)
    assert any("nothing is not defined" in line for line in browser.said)


def opened(browser: Browser, page: Path, **how: Any) -> None:
    """Opens the report and waits until the open runs are unpacked."""
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


def test_the_first_chart_is_drawn_before_it_is_visible(browser: Browser, page: Path) -> None:
    browser.open(page, height=300)
    browser.until("narrowsReport.drawn() === 1")
    assert browser.run("document.querySelector('.chart').dataset.drawn") == "1"
    assert browser.run("document.querySelector('.chart').getBoundingClientRect().top > innerHeight + 600")
    assert browser.said == []


@pytest.mark.parametrize(
    ("dark", "paper", "flows"),
    [(False, "ffffff", ("0a4d77", "c44601")), (True, "14181d", ("8ec6eb", "f0733a"))],
)
def test_charts_are_seen_on_light_and_dark_pages(
    browser: Browser, page: Path, tmp_path: Path, dark: bool, paper: str, flows: tuple[str, str]
) -> None:
    opened(browser, page, dark=dark)
    browser.run("narrowsReport.drawAll()")
    browser.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))")
    with Image.open(browser.picture(tmp_path / "page.png")) as image:
        pixels = np.asarray(image.convert("RGB"), dtype=np.uint32).reshape(-1, 3)
    colours, counts = np.unique(pixels @ np.array([65536, 256, 1], dtype=np.uint32), return_counts=True)
    seen = {f"{c:06x}": int(n) for c, n in zip(colours, counts, strict=True)}
    assert max(seen, key=lambda c: seen[c]) == paper
    # The second flow of each run has one of these colours (the second tone of CUBIC's, and that of Reno), and
    # nothing else in the page has: so its lines are actually drawn.
    for flow in flows:
        assert seen.get(flow, 0) > 200, flow
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


RESULTS = "document.querySelector('table.results')"
SHOWN = f"""[...{RESULTS}.tBodies[0].rows].filter((row) => row.offsetParent).map((row) =>
    [...row.cells].filter((one) => !one.hidden).map((one) => {{
        const copy = one.cloneNode(true);
        copy.querySelectorAll("small, sup, .status").forEach((more) => more.remove());
        return copy.textContent.trim();
    }}))"""
HEAD = f"{RESULTS}.tHead.rows[0].cells[{{0}}]"


@pytest.mark.parametrize("width", [390, 1200])
def test_a_click_on_a_head_sorts_and_a_third_one_restores(browser: Browser, page: Path, width: int) -> None:
    opened(browser, page, width=width)
    before = browser.run(SHOWN)
    assert len(before) == 6
    assert len(before[1]) == len(before[0]) - 1, "the scheme stands once over its flows"
    head = HEAD.format(3)
    for order in ("ascending", "descending"):
        browser.run(f"{head}.querySelector('button').click()")
        assert browser.run(f"{head}.getAttribute('aria-sort')") == order
        values = [float(row[3]) for row in browser.run(SHOWN)]
        assert values == sorted(values, reverse=order == "descending")
        assert {len(row) for row in browser.run(SHOWN)} == {len(before[0])}, "each row has its scheme"
    browser.run(f"{head}.querySelector('button').click()")
    assert browser.run(f"{head}.getAttribute('aria-sort')") is None
    assert browser.run(SHOWN) == before
    assert browser.run("document.documentElement.scrollWidth") <= width
    assert browser.said == []


def test_the_keyboard_sorts_and_rows_without_a_value_come_last(browser: Browser, page: Path) -> None:
    opened(browser, page)
    head = HEAD.format(8)
    assert browser.run(f"{head}.textContent.trim()") == "Jain"
    browser.run(f"{head}.querySelector('button').focus()")
    for _ in range(2):
        browser.press("Enter")
        found = [row[8] for row in browser.run(SHOWN)]
        assert [value == "–" for value in found] == [False, False, True, True, True, True]


def test_the_filter_leaves_the_rows_with_a_text(browser: Browser, page: Path) -> None:
    opened(browser, page, width=390)
    field = "document.querySelector('#results ~ .filter input')"

    def type_in(text: str) -> None:
        browser.run(f"{field}.value = '{text}'; {field}.dispatchEvent(new Event('input'))")

    type_in("MIX")
    found = browser.run(SHOWN)
    assert len(found) == 3
    status = "document.querySelector('#results ~ .filter [role=status]').textContent"
    assert browser.run(status) == "3 of 6 rows"
    browser.run(f"{HEAD.format(3)}.querySelector('button').click()")
    assert len(browser.run(SHOWN)) == 3, "sorting keeps the filter"
    type_in("nothing of this")
    assert browser.run(SHOWN) == []
    type_in("")
    assert len(browser.run(SHOWN)) == 6
    assert browser.run(status) == ""
    assert browser.said == []


def test_tables_that_are_unpacked_later_sort_as_well(browser: Browser, page: Path) -> None:
    opened(browser, page)
    table = "document.querySelector('#run-cubic-r1 table.statistics')"
    browser.until(f"{table}?.dataset.ready")
    first = f"{table}.tBodies[0].rows[0].cells[0].textContent.trim()"
    browser.run(f"{table}.tHead.rows[0].cells[0].querySelector('button').click()")
    assert browser.run(first).startswith("95th percentile")
    empty = f"""[...{table}.tBodies[0].rows].filter((row) =>
        [...row.cells].slice(2).every((one) => one.classList.contains('absent'))).length"""
    assert browser.run(empty) == 0, "rows without any value are left out"


def test_the_contents_stay_in_sight_and_tell_the_place(browser: Browser, page: Path) -> None:
    opened(browser, page, width=390, height=700)
    browser.run("document.documentElement.style.scrollBehavior = 'auto'")
    browser.run("document.getElementById('system').scrollIntoView()")
    current = "document.querySelector('nav a[aria-current]')"
    browser.until(f"{current}?.hash === '#system'")
    place = browser.run(
        f"(() => {{ const r = {current}.getBoundingClientRect(); return [r.left, r.right, r.top]; }})()"
    )
    assert place[0] >= 0 and place[1] <= 390, "the entry is scrolled into sight"
    assert 0 <= place[2] < 60
    assert browser.said == []


def test_on_a_phone_nothing_is_cut_off_that_can_not_be_scrolled_to(browser: Browser, page: Path) -> None:
    opened(browser, page, width=390)
    browser.run("narrowsReport.drawAll()")
    beyond = """[...document.querySelectorAll('body *')].filter((one) => {
        const box = one.getBoundingClientRect();
        if (!box.width || box.right <= innerWidth + 1) return false;
        for (let up = one; up; up = up.parentElement) {
            if (['auto', 'scroll'].includes(getComputedStyle(up).overflowX)) return false;
        }
        return !one.closest('.hidden, .skip');
    }).map((one) => one.outerHTML.slice(0, 80))"""
    assert browser.run(beyond) == []
    scrolls = """[...document.querySelectorAll('.table, .sideways, pre')].filter((one) =>
        one.scrollWidth > one.clientWidth && one.tabIndex < 0).length"""
    assert browser.run(scrolls) == 0, "what scrolls can be reached with the keyboard"
