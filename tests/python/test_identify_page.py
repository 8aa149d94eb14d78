"""The page of behaviour cards: a figure for each measured line, with all its data, on a desk and a phone."""

from __future__ import annotations

import os
import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import figures_kit as kit
from browser import PROGRAM, Browser
from campaign_kit import narrows
from narrows.documents.identify import Card
from narrows.identify import figures, loss_figures, text
from narrows.identify.features import COMBINED, FEATURES
from narrows.identify.page import draw_all
from narrows.identify.running import SIMULATE, Order, run_probes
from narrows.report.drawing import Options

NO_BROWSER = "no Chromium is installed, so pages are not opened (Debian package: chromium)"
#: Together they show every feature.
SCHEMES = ("cubic", "scalable", "bbr1", "copa", "compound")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cards")


@cache
def card(place: Path, scheme: str) -> Card:
    return run_probes(scheme, place / scheme, Order(SIMULATE, 1))


#: All schemes in the width that leaves less room, and the first in both.
SIZES = [
    pytest.param(name, width, marks=pytest.mark.nightly if width > 88 and name != SCHEMES[0] else ())
    for name in SCHEMES
    for width in (88.0, 120.0)
]


@pytest.mark.parametrize(("scheme", "width"), SIZES)
def test_figures_of_lines_show_all_their_data_and_no_text_over_another(
    place: Path, scheme: str, width: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(figures, "OPTIONS", Options(width))
    made = card(place, scheme)
    measured = [line for line in made.lines if line.why is None]
    drawn = []
    for probe in dict.fromkeys(line.probe for line in measured):
        for line, figure, _ in draw_all(made, [line for line in measured if line.probe == probe]):
            found = kit.problems(figure)
            assert found == [], (line.name, line.probe, found)
            drawn.append(line.key)
    assert drawn == [line.key for line in measured]


def test_every_feature_has_a_picture_and_is_drawn_for_a_scheme(place: Path) -> None:
    names = {feature.name for feature in (*FEATURES, *(feature for feature, _ in COMBINED))}
    assert names == set(figures.PICTURES) | set(loss_figures.PICTURES)
    measured = {line.name for scheme in SCHEMES for line in card(place, scheme).lines if line.why is None}
    drawn = {name if name in names else name.rpartition("-")[0] for name in measured}
    assert names == drawn


def test_a_measured_decrease_is_drawn_from_the_window_before_to_that_after(place: Path) -> None:
    made = card(place, "cubic")
    line = next(line for line in made.lines if line.key == ("decrease", "probe-long-rtt"))
    ((_, figure, _),) = draw_all(made, [line])
    (axes,) = figure.axes
    falls = [np.asarray(drawn.get_ydata(), float) for drawn in axes.get_lines() if drawn.get_marker() == "o"]
    assert [after / before for before, after in falls] == pytest.approx(
        [float(span.value) for span in line.spans], abs=1e-5
    )
    curve = max((np.asarray(drawn.get_ydata(), float) for drawn in axes.get_lines()), key=len)
    assert len(curve) > 100 and curve.max() >= max(before for before, _ in falls)


@pytest.mark.skipif(PROGRAM is None and os.environ.get("CI") != "true", reason=NO_BROWSER)
def test_the_page_has_all_lines_and_fits_a_phone_and_a_desk(place: Path, browser: Browser) -> None:
    made = card(place, "bbr1")
    done = narrows("identify", place / "bbr1", "-o", place / "page")
    assert done.exit_code == 0, done.output
    page = place / "page" / "identify.html"
    content = page.read_text(encoding="utf-8")
    measured = [line for line in made.lines if line.why is None]
    # Two more show the sender beside its nearest reference.
    assert content.count("<article") == content.count("<figure>") == len(measured) + 2
    assert "most like bbr1" in content and "speaks" in content
    assert {text.title_of(line) for line in measured} == set(re.findall(r"<h3>(.*?)</h3>", content))
    assert narrows("identify", place / "bbr1", "--html").stdout == content
    for width in (390, 1440):
        browser.open(page, width=width)
        assert browser.run("document.documentElement.scrollWidth") <= width
        assert set(browser.requests) == {page.as_uri()}
        wide = browser.run("document.querySelector('.line svg').getBoundingClientRect().width")
        assert 300 < wide <= 620
        assert browser.said == []


def test_without_a_report_only_the_document_is_written(place: Path) -> None:
    card(place, "bbr1")
    done = narrows("identify", place / "bbr1", "-o", place / "plain", "--no-report")
    assert done.exit_code == 0, done.output
    assert [file.name for file in (place / "plain").iterdir()] == ["identify.json"]
