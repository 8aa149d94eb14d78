"""Accessible pages: axe-core finds nothing serious in a report and a site, light and dark, on a phone and on
a desk.

`.ci/programs` fetches axe-core from npm into build/axe; it is not part of the product.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from browser import PROGRAM, Browser
from campaign_kit import narrows
from lab_kit import family
from narrows import report, site
from test_site_browser import fill

ROOT = Path(__file__).resolve().parents[2]
AXE = ROOT / "build" / "axe" / "node_modules" / "axe-core" / "axe.min.js"
MISSING = "axe-core is not installed (.ci/programs installs it from npm), so accessibility is not checked"
NO_BROWSER = "no Chromium is installed, so accessibility is not checked (Debian package: chromium)"

pytestmark = [
    pytest.mark.skipif(PROGRAM is None and os.environ.get("CI") != "true", reason=NO_BROWSER),
    pytest.mark.skipif(not AXE.is_file() and os.environ.get("CI") != "true", reason=MISSING),
]


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("accessible")
    fill(root / "results")
    (root / "results" / "broken").mkdir()
    (root / "results" / "broken" / "campaign.json").write_text("{")
    made = report.build(root / "results" / "first", pdf=False).html
    assert made is not None
    found = site.build([root / "results"], root / "web")
    campaign = next(one.page for one in found.campaigns if Path(one.folder).name == "first")
    card = ("identify", root / "results" / "first", "-o", root / "card")
    assert narrows(*card).exit_code == 0
    assert narrows("lab", "run", family(root / "family"), "-o", root / "lab").exit_code == 0
    return {
        "report": made,
        "list": Path(found.index),
        "campaign": Path(campaign),
        "laboratory": root / "lab" / "report.html",
        "card": root / "card" / "identify.html",
    }


DRAWN = "(narrowsReport.drawAll(), narrowsReport.drawn() === narrowsReport.total)"
READY = {
    "report": f"narrowsReport.isReady() && {DRAWN}",
    "list": "document.readyState === 'complete'",
    "campaign": "document.getElementById('overlay').dataset.drawn === '1'",
    "laboratory": "document.readyState === 'complete'",
    "card": "document.readyState === 'complete'",
}


def findings(browser: Browser) -> list[dict[str, Any]]:
    """The findings of axe-core in the open page."""
    browser.run(AXE.read_text(encoding="utf-8") + ";0")
    found: dict[str, Any] = json.loads(browser.run("axe.run().then((found) => JSON.stringify(found))"))
    assert len(found["passes"]) > 10, "the page was really looked at"
    violations: list[dict[str, Any]] = found["violations"]
    return violations


def test_faults_are_detected(browser: Browser, tmp_path: Path) -> None:
    bad = tmp_path / "bad.html"
    links = "<p><a href=x>y</a></p>" * 9
    bad.write_text(f"<html><title>x</title><main><h1>x</h1>{links}<button></button><img src=x></main>")
    browser.open(bad)
    assert {"html-has-lang", "button-name", "image-alt"} <= {one["id"] for one in findings(browser)}


def _look_for_serious_faults(browser: Browser, file: Path, page: str, dark: bool, width: int) -> list[str]:
    browser.open(file, dark=dark, width=width)
    browser.until(READY[page])
    browser.run("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    return [
        f"{one['id']}: {one['help']}: {node['html'][:120]} {node.get('failureSummary', '')}"
        for one in findings(browser)
        if one["impact"] in ("serious", "critical")
        for node in one["nodes"][:3]
    ]


# Colours follow from light or dark, the arrangement from the width: two pairs have each of them.
@pytest.mark.parametrize(("dark", "width"), [(False, 1200), (True, 390)], ids=["light-desk", "dark-phone"])
@pytest.mark.parametrize("page", list(READY))
def test_nothing_serious_is_found(
    browser: Browser, pages: dict[str, Path], page: str, dark: bool, width: int
) -> None:
    assert _look_for_serious_faults(browser, pages[page], page, dark, width) == []


@pytest.mark.nightly
@pytest.mark.parametrize(("dark", "width"), [(True, 1200), (False, 390)], ids=["dark-desk", "light-phone"])
@pytest.mark.parametrize("page", list(READY))
def test_nothing_serious_is_found_in_the_other_pairs(
    browser: Browser, pages: dict[str, Path], page: str, dark: bool, width: int
) -> None:
    assert _look_for_serious_faults(browser, pages[page], page, dark, width) == []
