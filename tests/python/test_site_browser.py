"""A site in a real browser: opened as files and from a server, clicked, sorted, filtered, zoomed, toggled."""

from __future__ import annotations

import functools
import http.server
import os
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import compare_kit
from browser import PROGRAM, Browser
from narrows import site
from narrows.campaign import notes
from narrows.documents.site import SiteMade
from narrows.report.charts import NumberChart, Series
from narrows.site.campaigns import write_run
from report_campaigns import Spec, write_campaign

WHY = "no Chromium is installed, so the site is not tried in a browser (Debian package: chromium)"

pytestmark = pytest.mark.skipif(PROGRAM is None and os.environ.get("CI") != "true", reason=WHY)

WIDTHS = pytest.mark.parametrize("width", [390, 1200])


def fill(results: Path) -> None:
    """Two campaigns with records and two with numbers only."""
    specs = [
        Spec("cubic", 1, ("cubic", "cubic")),
        Spec("cubic", 2, ("cubic", "cubic"), verdict="degraded", stop_s={1: 1.5}),
        Spec("reno", 1, ("reno", "reno")),
        Spec("reno", 2, ("reno", "reno"), stop_s={1: 2.0}),
        Spec("mix", 1, ("bbr1", "reno")),
        Spec("mix", 2, ("bbr1", "reno"), stop_s={2: 2.0}),
    ]
    write_campaign(results / "first", specs, duration_s=3.0)
    write_campaign(results / "small", [Spec("vegas", 1, ("vegas",))], duration_s=3.0, simulated=True)
    notes.add_tags(results / "small", ["paper"])
    notes.add_note(results / "small", "one run only")
    for number in range(2):
        runs = {
            name: [{"throughput_bps": rate + 1e4 * k, "delay_p95_ns": 4e7 + 1e6 * k} for k in range(12)]
            for name, rate in (("cubic", 9e6), ("bbr1", 5e6))
        }
        document = {"name": f"many-{number}", "created_at": f"2026-11-2{number}T08:00:00.000Z"}
        compare_kit.campaign(results / f"many-{number}", runs, document=document)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> SiteMade:
    root = tmp_path_factory.mktemp("site")
    fill(root / "results")
    return site.build([root / "results"], root / "web")


def page_of(made: SiteMade, folder: str) -> Path:
    return next(Path(one.page) for one in made.campaigns if Path(one.folder).name == folder)


SHOWN = """[...document.querySelector('table.campaigns').tBodies[0].rows].filter((row) => row.offsetParent)
    .map((row) => row.cells[1].querySelector('a').textContent)"""
HEAD = "document.querySelector('table.campaigns').tHead.rows[0].cells[{0}]"
FITS = "document.documentElement.scrollWidth <= innerWidth"


@WIDTHS
def test_the_list_is_sorted_and_filtered(browser: Browser, made: SiteMade, width: int) -> None:
    browser.open(Path(made.index), width=width)
    latest = ["first-look", "first-look", "many-1", "many-0"]
    assert browser.run(SHOWN) == latest
    browser.run(f"{HEAD.format(0)}.querySelector('button').click()")
    assert browser.run(f"{HEAD.format(0)}.getAttribute('aria-sort')") == "ascending"
    assert browser.run(SHOWN)[0] == "many-0"
    browser.run(f"{HEAD.format(3)}.querySelector('button').click()")
    browser.run(f"{HEAD.format(3)}.querySelector('button').click()")
    assert browser.run(SHOWN)[:2] == ["many-1", "many-0"], "24 runs are more than 6"
    browser.run(f"{HEAD.format(3)}.querySelector('button').click()")
    assert browser.run(SHOWN) == latest

    def type_in(text: str) -> None:
        field = "document.querySelector('#campaigns .filter input')"
        browser.run(f"{field}.value = '{text}'; {field}.dispatchEvent(new Event('input'))")

    def only(name: str, value: str) -> None:
        select = f"document.getElementById('only-{name}')"
        browser.run(f"{select}.value = '{value}'; {select}.dispatchEvent(new Event('change'))")

    type_in("ONE RUN only")
    assert browser.run(SHOWN) == ["first-look"]
    type_in("")
    for name, value, count in (
        ("plane", "emulate", 1),
        ("scheme", "cubic", 3),
        ("scheme", "vegas", 1),
        ("tag", "paper", 1),
        ("verdict", "degraded", 1),
    ):
        only(name, value)
        assert len(browser.run(SHOWN)) == count, (name, value)
        only(name, "")
    only("plane", "simulate")
    only("scheme", "cubic")
    type_in("many-1")
    assert browser.run(SHOWN) == ["many-1"]
    assert browser.run("document.querySelector('#campaigns [role=status]').textContent") == "1 of 4 rows"
    only("tag", "paper")
    assert browser.run(SHOWN) == []
    assert browser.run(FITS)
    assert browser.said == []
    folder = Path(made.site).as_uri()
    assert all(url.startswith((folder, "data:")) for url in browser.requests), browser.requests


def test_the_ranking_has_a_choice_of_metrics(browser: Browser, made: SiteMade) -> None:
    browser.open(Path(made.index))
    shown = "[...document.querySelectorAll('.rank')].filter((one) => one.offsetParent).map((one) => one.id)"
    cells = """[...document.querySelectorAll('#{0} tbody tr')].map((row) =>
        [...row.cells].map((one) => one.firstChild.textContent.trim()))"""
    assert browser.run(shown) == ["rank-throughput_bps"]
    rows = browser.run(cells.format("rank-throughput_bps"))
    many = [[text for text in row if text != "–"] for row in rows if row[0].startswith("many")]
    assert many == [["many-0", "simulate", "12", "1", "2"], ["many-1", "simulate", "12", "1", "2"]]
    browser.run("metric.value = 'rank-delay_p95_ns'; metric.dispatchEvent(new Event('change'))")
    assert browser.run(shown) == ["rank-delay_p95_ns"]
    browser.run("document.querySelector('.rank:not([hidden]) tbody a[href*=many]').click()")
    browser.until("location.pathname.includes('/campaigns/many-')")
    assert browser.said == []


def opened(browser: Browser, made: SiteMade, folder: str = "first", **how: Any) -> None:
    """The page of a campaign, with the first runs in its chart."""
    browser.open(page_of(made, folder), **how)
    browser.until("document.getElementById('overlay').dataset.drawn === '1'")


def place(browser: Browser, script: str) -> tuple[float, float]:
    x, y = browser.run(script)
    return float(x), float(y)


def see(browser: Browser, name: str) -> None:
    browser.run("document.documentElement.style.scrollBehavior = 'auto'")
    browser.run(f"document.getElementById('{name}').scrollIntoView({{ block: 'center' }})")


RUNS = "narrowsSite.chosen"


@WIDTHS
def test_a_run_is_put_into_the_chart_by_a_click_and_taken_out(
    browser: Browser, made: SiteMade, width: int
) -> None:
    opened(browser, made, width=width)
    assert len(browser.run(RUNS)) == 2
    see(browser, "scatter-plot")
    browser.drag(place(browser, "narrowsSite.scatter.at('mix-r2')"))
    browser.until(f"{RUNS}.length === 3")
    new = browser.run(RUNS)[2]
    assert new.startswith("mix-r")
    words = f"mix, run {new[-1]}"
    browser.until(f"narrowsSite.overlay.series().some(([label]) => label.startsWith('{words}'))")
    assert browser.run(f"document.querySelector('input[data-cell={new}]').checked")
    browser.run(f"document.querySelector('input[data-cell={new}]').click()")
    browser.until(f"{RUNS}.length === 2")
    browser.run("document.querySelector('#chosen-runs button').click()")
    browser.until(f"{RUNS}.length === 1")
    browser.until("narrowsSite.overlay.series().every(([label]) => label.startsWith('reno, run '))")
    assert browser.run(FITS)
    assert browser.said == []


def test_the_scatter_tells_zooms_and_hides(browser: Browser, made: SiteMade) -> None:
    opened(browser, made, width=1000)
    see(browser, "scatter-plot")
    tip = "document.querySelector('.scatter-tip').textContent"
    x, y = place(browser, "narrowsSite.scatter.at('cubic-r2')")
    browser.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
    assert "cubic, run 2 (degraded): " in browser.run(tip) and "Mbit/s" in browser.run(tip)
    whole, chosen = browser.run("narrowsSite.scatter.view()"), browser.run(RUNS)
    browser.drag((x - 40, y - 40), (x + 40, y + 40))
    nearer = browser.run("narrowsSite.scatter.view()")
    assert nearer["y"][1] - nearer["y"][0] < 0.5 * (whole["y"][1] - whole["y"][0])
    assert browser.run(RUNS) == chosen, "dragging chooses nothing"
    browser.run("document.querySelector('#scatter-plot .scatter-bar button:last-child').click()")
    assert browser.run("narrowsSite.scatter.view()") == whole
    drawn = "document.querySelectorAll('#scatter-plot > svg path[data-cell]').length"
    assert browser.run(drawn) == 6
    legend = "document.querySelector('.scatter-legend button')"
    browser.run(f"{legend}.click()")
    assert browser.run(f"{legend}.getAttribute('aria-pressed')") == "false"
    assert browser.run(drawn) == 4
    assert browser.run("narrowsSite.scatter.hidden()") == ["cubic"]
    assert browser.said == []


def test_the_keyboard_goes_from_mark_to_mark_and_chooses(browser: Browser, made: SiteMade) -> None:
    opened(browser, made)
    browser.run("document.querySelector('#scatter-plot > svg').focus()")
    told = []
    for _ in range(9):
        browser.press("ArrowRight")
        told.append(browser.run("document.querySelector('.scatter-tip').textContent").split(":")[0])
    assert told[:3] == ["cubic, median of 2 runs", "cubic, run 1", "cubic, run 2 (degraded)"]
    assert len(set(told)) == 9
    browser.press("Enter")
    browser.until(f"{RUNS}.includes('mix-r2')")
    before = browser.run("narrowsSite.scatter.view()")
    browser.press("+")
    assert browser.run("narrowsSite.scatter.view()") != before
    browser.press("0")
    assert browser.run("narrowsSite.scatter.view()") == before
    assert browser.said == []


@WIDTHS
def test_the_chart_zooms_and_its_lines_are_switched(browser: Browser, made: SiteMade, width: int) -> None:
    opened(browser, made, width=width)
    see(browser, "overlay")
    span = "narrowsSite.overlay.span()"
    low, high = browser.run(span)
    assert low == 0 and high == pytest.approx(3.0, abs=0.2)
    over = """(() => {
        const box = document.querySelector('#overlay .u-over').getBoundingClientRect();
        return [box.left + SHARE * box.width, box.top + box.height / 2];
    })()"""
    browser.drag(place(browser, over.replace("SHARE", "0.25")), place(browser, over.replace("SHARE", "0.5")))
    nearer = browser.run(span)
    assert nearer == pytest.approx([high / 4, high / 2], abs=0.05)
    buttons = "[...document.querySelectorAll('.chart-tools button')]"
    browser.run(f"{buttons}.find((one) => one.textContent === 'Show all').click()")
    assert browser.run(span) == [low, high]
    browser.run("document.getElementById('overlay').focus()")
    browser.press("+")
    assert browser.run(span)[1] - browser.run(span)[0] == pytest.approx((high - low) / 2, rel=0.01)
    browser.press("0")
    browser.press("ArrowRight")
    value = "document.querySelector('#overlay .u-legend tr:nth-child(3) .u-value').textContent"
    assert float(browser.run(value)) >= 0
    shown = "narrowsSite.overlay.series()"
    row = "document.querySelectorAll('#overlay .u-legend tr.u-series')[1]"
    was = dict(browser.run(shown))
    browser.run(f"{row}.focus()")
    browser.press("Enter")
    name = next(iter(was))
    assert dict(browser.run(shown)) == {**was, name: not was[name]}
    assert browser.run(f"{row}.getAttribute('aria-pressed')") == str(not was[name]).lower()
    assert browser.run(FITS)
    assert browser.said == []


def test_every_quantity_is_drawn(browser: Browser, made: SiteMade) -> None:
    opened(browser, made)
    browser.run("narrowsSite.toggle('mix-r1')")  # The only sender that paces.
    names = browser.run("[...quantity.options].map((one) => one.value)")
    assert {"throughput", "delay", "queue", "window", "rtt", "share", "sequence"} <= set(names)
    for name in names:
        browser.run(f"quantity.value = '{name}'; quantity.dispatchEvent(new Event('change'))")
        browser.until("document.getElementById('chosen').textContent !== 'loading'")
        assert browser.run("narrowsSite.overlay.series()"), name
        assert browser.run("narrowsSite.overlay.points()") > 10, name
    assert browser.said == []


POINTS = 1_000_000


@pytest.mark.alone
def test_a_million_points_do_not_freeze_the_page(browser: Browser, tmp_path: Path) -> None:
    specs = [Spec("cubic", 1, ("cubic",))]
    write_campaign(tmp_path / "results" / "large", specs, duration_s=1.0)
    made = site.build([tmp_path / "results"], tmp_path / "web")
    page = page_of(made, "large")
    times = np.cumsum(np.random.RandomState(1).uniform(1e-5, 5e-5, POINTS))
    values = 20 + np.sin(times) + np.random.RandomState(2).uniform(0, 1, POINTS)
    values[654_321], values[123_456] = 99.0, 1.0
    series = Series("flow 1", "line", 0, values, "#0a5ea8", "#7ab8f0")
    chart = NumberChart("round-trip time (ms)", (), [times], [series])
    write_run(next(page.parent.glob("*/runs/0001.js")), "cubic-r1", {"throughput": chart})
    browser.open(page, width=1100)
    browser.until("document.getElementById('overlay').dataset.drawn === '1'")
    assert browser.run("narrowsSite.overlay.all()") == POINTS
    assert browser.run("narrowsSite.overlay.points()") <= 2 * 1100 + 2
    extremes = """(() => {
        const seen = document.querySelector('#overlay canvas') && narrowsSite.overlay.values(0);
        return [Math.min(...seen), Math.max(...seen)];
    })()"""
    assert browser.run(extremes) == [1.0, 99.0], "the smallest and the largest value of a pixel are drawn"
    took = browser.run("""(() => {
        const [first, last] = narrowsSite.overlay.span(), start = performance.now();
        for (let i = 1; i <= 20; i++) {
            const off = (last - first) * i / 80;
            narrowsSite.overlay.setSpan(first + off, last - off);
        }
        return (performance.now() - start) / 20;
    })()""")
    assert took < 250, f"a step of zooming takes {took:.0f} ms"
    middle = times[POINTS // 2]
    browser.run(f"narrowsSite.overlay.setSpan({middle}, {middle + 0.02})")
    exact = int(np.sum((times >= middle) & (times <= middle + 0.02)))
    assert exact <= browser.run("narrowsSite.overlay.points()") <= exact + 2, (
        "few points are drawn as they are"
    )
    assert browser.said == []


def test_the_theme_is_kept_from_page_to_page(browser: Browser, made: SiteMade) -> None:
    colour = "getComputedStyle(document.body).backgroundColor"
    browser.open(Path(made.index))
    assert browser.run(colour) == "rgb(255, 255, 255)"
    browser.run("document.getElementById('theme').click()")
    assert browser.run(colour) == "rgb(20, 24, 29)"
    opened(browser, made)
    assert browser.run(colour) == "rgb(20, 24, 29)"
    browser.run("document.getElementById('theme').click()")
    assert browser.run(colour) == "rgb(255, 255, 255)"
    assert browser.run("document.getElementById('overlay').dataset.drawn") == "1"
    assert browser.said == []


def test_a_campaign_without_records_still_has_its_tables(browser: Browser, made: SiteMade) -> None:
    browser.open(page_of(made, "many-0"))
    assert browser.run("document.querySelectorAll('table.runs tbody tr').length") == 24
    assert "No run left a record" in browser.run("document.getElementById('chart').textContent")
    assert browser.run("document.querySelectorAll('#scatter-plot > svg path[data-cell]').length") == 24
    assert browser.said == []


def test_a_link_of_the_verdicts_leads_to_the_run(browser: Browser, made: SiteMade) -> None:
    opened(browser, made)
    target = browser.run("document.querySelector('table.verdicts a').hash")
    assert browser.run(f"Boolean(document.querySelector('{target}'))")


def test_any_web_server_will_do(browser: Browser, made: SiteMade) -> None:
    handler = functools.partial(Silent, directory=made.site)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        name = page_of(made, "first").parent.name
        browser.call(
            "Page.navigate", url=f"http://127.0.0.1:{server.server_port}/campaigns/{name}/index.html"
        )
        browser.until(
            "location.protocol === 'http:' && document.getElementById('overlay')?.dataset.drawn === '1'"
        )
        server.shutdown()
    assert browser.said == []


class Silent(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        pass
