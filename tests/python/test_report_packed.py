"""Packing and unpacking charts of a page preserves them, and the PDF has the middle runs."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from narrows import report
from narrows.documents.resolved import read_resolved
from narrows.report import assemble, choice
from narrows.report.charts import NumberChart, Series
from narrows.report.data import load
from narrows.report.packed import pack, unpack
from report_campaigns import Spec, write_campaign

numbers = st.lists(st.floats(1e-12, 1e12) | st.just(0.0) | st.just(float("nan")), min_size=1, max_size=60)


@given(numbers, st.booleans())
def test_values_come_back_with_their_digits(values: list[float], even: bool) -> None:
    times = [0.1 * number for number in range(len(values))]
    if not even:
        times = [time + 0.04 * (number % 3) for number, time in enumerate(times)]
    chart = NumberChart("</script>", (), [np.array(times)], [Series("ä", "line", 0, np.array(values))])
    text = pack({"a/b": chart, "a/c": chart}, "<table>")
    # No text in it can end its element.
    assert re.fullmatch(r"[A-Za-z0-9+/=]+", text)
    found, table = unpack(text)
    assert table == "<table>" and list(found) == ["a/b", "a/c"]
    for one in found.values():
        assert one.xs[0] == pytest.approx(times, rel=1e-6, abs=1e-6)
        # Sixteen bits and the one before them: half a unit of the last place.
        assert one.series[0].y == pytest.approx(values, rel=2.0**-17, nan_ok=True)


def test_a_pack_is_smaller_than_its_numbers() -> None:
    times = np.arange(1000) / 10
    chart = NumberChart("", (), [times], [Series("", "line", 0, np.round(np.sin(times), 2).astype(float))])
    assert len(pack({"a": chart}, "")) < 4 * len(times)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    specs = [Spec("cubic", number, ("cubic",)) for number in range(1, 12)]
    specs += [Spec("reno", 1, ("reno",), verdict="degraded"), Spec("reno", 2, ("reno",))]
    return write_campaign(tmp_path_factory.mktemp("packed") / "campaign", specs, duration_s=1.0)


def test_the_run_nearest_to_the_medians_is_chosen(folder: Path) -> None:
    campaign = load(folder)
    runs = campaign.of_scheme("cubic")
    for number, run in enumerate(runs):
        run.rows["all"].metrics.update(
            throughput_bps=1e6 * (number % 11) ** 2, delay_p95_ns=1e6 * ((number + 3) % 11)
        )
    middle = choice.representative(runs)
    # Its delay is the median, and its throughput deviates by a fifth of the range; for the next run these are
    # a tenth and a sixth.
    assert middle is not None
    assert middle.number == 3
    # Runs that are not ok are drawn too, and schemes keep their order.
    campaign.of_scheme("reno")[0].verdict, campaign.of_scheme("reno")[1].verdict = "ok", "invalid"
    assert choice.choose_cells(campaign) == [middle.cell, "reno-r1", "reno-r2"]
    assert choice.representative([]) is None


def test_of_a_matrix_one_row_of_each_scheme_is_drawn(folder: Path) -> None:
    campaign = load(folder)
    rows = [("cubic", str(rate)) for rate in (1, 2, 3)] + [("reno", "1")]
    labels = [f"{scheme} (rate {rate} Mbit/s)" for scheme, rate in rows]
    described = [
        {"label": label, "values": {"rate": f"{rate} Mbit/s"}}
        for label, (_, rate) in zip(labels, rows, strict=True)
    ]
    campaign.resolved = read_resolved({"schemes": described})
    for run, label in zip(campaign.runs, labels * len(campaign.runs), strict=False):
        run.scheme = label
        run.verdict = "ok"
    chosen = {run.scheme for run in campaign.runs if run.cell in choice.choose_cells(campaign)}
    assert chosen == {"cubic (rate 2 Mbit/s)", "reno (rate 1 Mbit/s)"}


def test_paper_has_the_runs_in_the_middle_and_the_page_all(folder: Path) -> None:
    paths = report.build(folder)
    assert paths.html is not None and paths.pdf is not None
    page = paths.html.read_text()
    packs = dict(re.findall(r'data-pack="([^"]+)">([^<]+)<', page))
    assert len(packs) == 13
    charts, table = unpack(packs["cubic-r7"])
    assert "cubic-r7/throughput" in charts and "<table" in table
    assert page.count('class="on-demand"') == 11
    few = paths.pdf.stat().st_size
    paths = report.build(folder, all_runs=True)
    assert paths.pdf is not None and paths.pdf.stat().st_size > 2 * few


def test_charts_of_many_runs_are_thinned(folder: Path) -> None:
    runs = load(folder).runs
    assemble.thin_out(runs * 10, [runs[0].cell])
    assert runs[0].detail == 1.0
    assert 0.1 <= runs[5].detail < 0.2
