"""The content of a report: its structure, its numbers, and that it hides nothing."""

from __future__ import annotations

import html
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from campaign_kit import edited
from narrows import _native, report
from narrows.analysis import attempts
from narrows.analysis.checks import count_in_words
from narrows.blocks.model import Cell
from narrows.documents.campaign import CellEntry, Failure
from narrows.documents.data import from_data
from narrows.documents.run import Check
from narrows.report import document, tables
from narrows.report.content import Report
from narrows.report.data import load
from narrows.report.packed import unpack
from report_campaigns import QUESTION, TIMES, Spec, network, write_campaign

SKIPPED = {"scheme": "linux:vegas", "reason": "this kernel does not offer vegas; it offers reno, bbr, cubic"}
RENO, CUBIC = ("reno", "reno"), ("cubic", "cubic")


class Page(HTMLParser):
    """The parts of a page that tests look at."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.headings: list[str] = []
        self.loads: list[str] = []
        self.text: list[str] = []
        self.data: dict[str, Any] = {}
        self._open: list[tuple[str, str | None]] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        if found.get("id"):
            self.ids.append(str(found["id"]))
        if tag in (
            "script",
            "img",
            "link",
            "iframe",
            "object",
            "embed",
            "source",
            "video",
            "audio",
            "use",
            "image",
        ):
            for name in ("src", "href", "xlink:href", "data", "srcset"):
                if found.get(name):
                    self.loads.append(str(found[name]))
        if tag not in ("meta", "link", "br", "path", "use", "image", "img", "input"):
            self._open.append((tag, found.get("data-pack")))

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop()[0] != tag:
            pass

    def handle_data(self, data: str) -> None:
        tag, pack = self._open[-1] if self._open else ("", None)
        if pack:
            self.data |= unpack(data)[0]
        elif tag in ("h1", "h2", "h3"):
            self.headings.append(data.strip())
        if tag not in ("script", "style"):
            self.text.append(data)

    @property
    def words(self) -> str:
        """All text in one line."""
        return re.sub(r"\s+", " ", " ".join(self.text))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    specs = [
        Spec("cubic", 1, CUBIC),
        Spec("cubic", 2, CUBIC, verdict="degraded"),
        Spec("reno", 1, RENO),
        Spec("reno", 2, RENO, verdict="invalid", reason="Rings dropped 12 packets."),
        Spec("copa", 1, CUBIC, verdict="invalid", reason="The clock stood still."),
        Spec("sprout", 1, CUBIC, state="failed", reason="The sender exited with status 1."),
        Spec("verus", 1, CUBIC, state="pending"),
    ]
    made = write_campaign(tmp_path_factory.mktemp("content") / "campaign", specs, skipped=[SKIPPED])
    record = json.loads((made / "campaign.json").read_text())
    record["cells"][1]["failures"] = [{"at": TIMES[0], "kind": "vanished", "message": "<there> has vanished"}]
    (made / "campaign.json").write_text(json.dumps(record))
    report.build(made, pdf=False)
    return made


@pytest.fixture(scope="module")
def page(folder: Path) -> Page:
    return Page((folder / "report.html").read_text())


@pytest.fixture(scope="module")
def doc(folder: Path) -> Report:
    return document.compose(load(folder), {})


def test_sections_come_in_the_order_of_a_readers_questions(page: Page) -> None:
    order = [
        "question",
        "answer",
        "path",
        "verdicts",
        "comparison",
        "runs",
        "system",
        "reproduce",
        "definitions",
    ]
    assert [i for i in page.ids if i in order] == order
    assert page.headings[0] == "first-look"


def test_no_name_is_used_twice_in_a_page(page: Page) -> None:
    assert len(page.ids) == len(set(page.ids))


def test_nothing_is_loaded_from_outside(folder: Path, page: Page) -> None:
    assert [u for u in page.loads if not u.startswith(("#", "data:"))] == []
    text = (folder / "report.html").read_text()
    style = "".join(re.findall(r"<style>(.*?)</style>", text, re.DOTALL))
    assert "@import" not in style
    assert re.findall(r"url\((?!#)[^)]*\)", style) == []
    assert "default-src 'none'" in html.unescape(text)


def test_reports_show_the_question_and_the_answer(page: Page) -> None:
    assert QUESTION in page.words
    # Two runs of a scheme are too few to show an order.
    assert "2 valid runs of each scheme cannot show an order: it takes at least 6" in page.words
    assert "Highest throughput" not in page.words
    assert "2 invalid runs, 1 failed run, 1 unfinished run, 1 skipped scheme" in page.words


def test_every_cell_is_listed_with_its_outcome_and_reason(doc: Report, page: Page) -> None:
    rows = {(r[0].text, r[1].text, r[2].text): r[3].text for r in doc.verdicts.table.rows}
    assert rows[("reno", "2", "invalid")] == "Rings dropped 12 packets."
    assert rows[("sprout", "1", "failed")] == "The sender exited with status 1."
    assert rows[("verus", "1", "pending")] == "not run yet"
    assert rows[("linux:vegas", "–", "skipped")] == SKIPPED["reason"]
    assert rows[("cubic", "1", "ok")] == "nothing to report"
    counts = {c.outcome: c.count for c in doc.verdicts.counts}
    assert counts == {"ok": 2, "degraded": 1, "invalid": 2, "failed": 1, "pending": 1, "skipped": 1}
    for text in rows.values():
        assert text in page.words


def test_attempts_that_failed_before_a_run_succeeded_are_reported(doc: Report, page: Page) -> None:
    told = "1 attempt of cubic failed and was made again (run 2): <there> has vanished."
    assert doc.verdicts.attempts == [told] and told in page.words
    assert dict(doc.facts)["Runs"].endswith("1 scheme skipped, 1 failed attempt")


def failing(scheme: str, run: int, messages: list[str], state: str = "finished") -> CellEntry:
    failures = [Failure(message=message) for message in messages]
    return CellEntry(id=f"{scheme}-{run}", scheme=scheme, run=run, state=state, failures=failures)


def test_failed_attempts_are_summed_by_scheme() -> None:
    cells = [
        failing("reno", 2, ["it is gone.", "no room"]),
        failing("copa", 1, ["it is gone"], state="pending"),
        failing("reno", 1, ["it is gone"]),
        failing("cubic", 1, []),
    ]
    assert attempts.sentences(cells, ["copa", "cubic", "reno"]) == [
        "1 attempt of copa failed, and the run is still to be made (run 1): it is gone.",
        "3 attempts of reno failed and were made again (runs 1, 2): it is gone (2 times); no room.",
    ]
    assert attempts.count(cells) == 4


@given(st.lists(st.lists(st.text(max_size=5), max_size=4), max_size=30))
def test_every_failed_attempt_is_counted_and_sentences_stay_short(messages: list[list[str]]) -> None:
    cells = [failing("reno", run, found) for run, found in enumerate(messages, 1)]
    told = attempts.sentences(cells, ["reno"])
    number = sum(map(len, messages))
    assert len(told) == (number > 0) and all(one.startswith(f"{number} attempt") for one in told)
    assert all(len(one) < 250 for one in told)


def test_invalid_runs_enter_no_mean(folder: Path, doc: Report) -> None:
    campaign = load(folder)
    valid, invalid = (r.rows["1"].metrics["throughput_bps"] or 0.0 for r in campaign.of_scheme("reno"))
    row = _row(doc, "reno", "1")
    assert row[1].text == "1 of 2"
    assert row[2].text == f"{valid / 1e6:.2f}"
    assert campaign.of_scheme("reno")[1].verdict == "invalid"
    assert invalid is not None
    assert "copa" not in " ".join(doc.answer)
    assert [r.scheme for r in doc.runs] == ["cubic", "cubic", "reno", "reno", "copa"], "but they are shown"


def test_skipped_checks_are_not_counted_as_holding(doc: Report) -> None:
    for run in doc.runs:
        assert dict(run.facts)["checks"] == "21 of 22 hold, 1 skipped"


def test_checks_are_counted_in_words() -> None:
    holds = Check(name="files", ok=True, detail="")
    skipped, fails = replace(holds, skipped=True), replace(holds, ok=False)
    assert count_in_words([holds, holds, skipped]) == "2 of 3 hold, 1 skipped"
    assert count_in_words([holds, fails]) == "1 of 2 hold, 1 fails"
    assert count_in_words([skipped, fails, fails]) == "0 of 3 hold, 1 skipped, 2 fail"
    # Records of the first versions do not have `skipped`.
    first = from_data({"name": "files", "ok": True, "detail": ""}, Check)
    assert count_in_words([first]) == "1 of 1 hold"


def _row(doc: Report, scheme: str, flow: str) -> list[Cell]:
    """The cells from `flow` on, of one row of the main table."""
    current = ""
    for row in doc.results.table.rows:
        cells = row
        if row[0].kind == "scheme":
            current, cells = row[0].text, row[1:]
        if current == scheme and cells[0].text == flow:
            return list(cells)
    raise AssertionError(f"no row for {scheme}, flow {flow}")


def test_unavailable_metrics_have_a_reason(doc: Report) -> None:
    for table in [doc.results.table, *(r.table for r in doc.runs if r.table)]:
        notes = {n.mark: n.text for n in table.notes}
        for row in table.rows:
            for cell in row:
                if cell.text == "N/A":
                    assert cell.marks
                    assert all(notes[m] for m in cell.marks)
    table = doc.results.table
    notes = {n.mark: n.text for n in table.notes}
    assert notes[_row(doc, "copa", "all")[2].marks[0]] == "no valid run"
    assert notes[_row(doc, "reno", "1")[1].marks[0]] == "reno: run 2 invalid, not in these numbers"


def test_a_flow_without_packets_is_absent_and_not_zero(tmp_path: Path) -> None:
    folder = write_campaign(tmp_path / "c", [Spec("cubic", 1, CUBIC, stop_s={2: 1.000001})], duration_s=2.0)
    with edited(folder / "results.json") as results:
        row = next(r for r in results["rows"] if r["flow"] == 2)
        row["metrics"]["delay_p95_ns"], row["absent"]["delay_p95_ns"] = None, "no packet of the flow arrived"
        results["summary"] = [s for s in results["summary"] if s["flow"] != 2]
    table = tables.results(load(folder))
    assert {"no packet of the flow arrived"} <= {n.text for n in table.notes}


def test_few_runs_show_their_range_and_many_an_interval(tmp_path: Path) -> None:
    # Runs with different schemes, so that they are not identical.
    specs = [Spec("cubic", r, (("cubic", "vegas", "bbr1")[r % 3],)) for r in range(1, 7)]
    few = write_campaign(tmp_path / "few", specs[:2], duration_s=2.0)
    text = tables.results_words(load(few))
    assert "median of the runs and, below it, their smallest and largest" in text
    assert "bootstrap" not in text
    assert " to " in (tables.results(load(few)).rows[0][3].small or "")
    many = write_campaign(tmp_path / "many", specs, duration_s=2.0)
    assert "bootstrap" in tables.results_words(load(many))
    assert (tables.results(load(many)).rows[0][3].small or "").startswith("[")
    same = write_campaign(
        tmp_path / "same", [Spec("cubic", r, ("cubic",)) for r in range(1, 7)], duration_s=2.0
    )
    assert tables.results(load(same)).rows[0][3].small == "identical"
    one = write_campaign(tmp_path / "one", [Spec("cubic", 1, ("cubic",))], duration_s=2.0)
    assert tables.results(load(one)).rows[0][3].small is None
    assert "nothing is known about how much it varies" in " ".join(document.compose(load(one), {}).answer)


def test_identical_simulated_runs_are_explained(tmp_path: Path) -> None:
    specs = [Spec("cubic", r, ("cubic",)) for r in (1, 2)]
    same = write_campaign(tmp_path / "same", specs, duration_s=2.0, simulated=True)
    words = tables.results_words(load(same))
    assert words.endswith("Runs of a simulated scheme are identical when nothing on the path uses chance.")
    report.build(same, pdf=False)
    assert tables.SAME in Page((same / "report.html").read_text()).words

    lossy = network()
    lossy["forward"].append({"name": "forward.2", "kind": "loss", "ratio": 0.01})
    chance = write_campaign(tmp_path / "chance", specs, duration_s=2.0, simulated=True, path=lossy)
    assert tables.SAME not in tables.results_words(load(chance))
    lossy["forward"][-1]["ratio"] = 1e-9
    lucky = write_campaign(tmp_path / "lucky", specs, duration_s=2.0, simulated=True, path=lossy)
    assert tables.SAME not in tables.results_words(load(lucky)), "a lossy link that happened to lose nothing"
    emulated = write_campaign(tmp_path / "emulated", specs, duration_s=2.0)
    assert tables.SAME not in tables.results_words(load(emulated))
    one = write_campaign(tmp_path / "one", specs[:1], duration_s=2.0, simulated=True)
    assert tables.SAME not in tables.results_words(load(one)), "one run can't repeat itself"


def test_every_metric_is_defined_and_shown(doc: Report, page: Page) -> None:
    every = json.loads(_native.metrics())
    defined = [d.name for d in doc.definitions]
    # Only metrics about a part that the scenario lacks are omitted; the core says which these are.
    left_out = [m["name"] for m in every if m["name"] not in defined]
    assert {m["group"] for m in every if m["name"] in left_out} == {
        "sharing",
        "transfers",
        "datagrams",
        "load",
        "frames",
    }
    assert not [m["name"] for m in every if m["group"] is None and m["name"] in left_out]
    assert "completion_p50_ns" in left_out and "jain_160s" in left_out and "jain_1s" in defined
    metrics = [m for m in every if m["name"] in defined]
    assert defined == [m["name"] for m in metrics]
    for metric in metrics:
        assert metric["definition"] in page.words
        assert f"metric-{metric['name']}" in page.ids
    table = doc.runs[0].table
    assert table is not None
    assert [row[0].text for row in table.rows] == [m["label"] for m in metrics]


def test_system_is_that_of_the_record_and_reproducing_is_explained(
    folder: Path, page: Page, doc: Report
) -> None:
    assert "Example CPU 9000" in page.words
    assert "net.ipv4.tcp_rmem" in page.words
    started = next(machine for machine in doc.system if machine.title == "When the campaign was started")
    assert dict(started.rows)["python"] == "3.11.7" and "abc1234" in dict(started.rows)["agent"]
    assert doc.reproduce.commands == ["narrows run scenarios/basic/first-look.yaml -o 'my results'"]
    assert ("scenario hash", load(folder).header.hash) in doc.reproduce.facts
    assert "schema: narrows/scenario/1" in page.words
    assert {row[0].text for row in doc.fingerprints.rows} == {"cubic", "reno", "copa"}


def test_the_path_is_described_in_words(doc: Report) -> None:
    words = " ".join(doc.path.sentences)
    assert "12 Mbit/s" in words
    assert "droptail 60 kB, at most 40 ms of waiting, 1 × the bandwidth-delay product" in words
    assert "The smallest possible round trip takes 40 ms" in words
    assert "2 flows that start 1 s apart" in " ".join(doc.path.workload)


def test_charts_have_the_numbers_of_the_record(folder: Path, page: Page) -> None:
    assert {k.partition("/")[0] for k in page.data} == {
        "cubic-r1",
        "cubic-r2",
        "reno-r1",
        "reno-r2",
        "copa-r1",
    }
    chart = page.data["cubic-r1/throughput"]
    labels = [s.label for s in chart.series]
    assert labels == ["capacity", "flow 1 sent", "flow 1 delivered", "flow 2 sent", "flow 2 delivered"]
    run = next(r for r in load(folder).runs if r.cell == "cubic-r1")
    delivered = run.throughput.flows[1].arrived_bps / 1e6
    assert chart.series[2].y[:-1] == pytest.approx(list(delivered), rel=1e-4)
    delay = page.data["cubic-r1/delay"]
    for flow, series in enumerate(delay.series, 1):
        largest = (run.value(str(flow), "delay_max_ns") or 0.0) / 1e6
        assert max(series.y) == pytest.approx(largest, rel=1e-4), "thinning keeps extremes"


def test_text_of_users_stays_text(tmp_path: Path) -> None:
    evil = '</script><img src=x onerror=alert(1)> {{ 7*7 }} #strong[x] $y$ "q" & `raw`'
    specs = [Spec(evil, 1, ("cubic",)), Spec("reno", 1, ("reno",), verdict="degraded", reason=evil)]
    folder = write_campaign(
        tmp_path / "c",
        specs,
        duration_s=1.0,
        question=evil,
        title=evil,
        skipped=[{"scheme": evil, "reason": evil}],
    )
    paths = report.build(folder)
    assert paths.html is not None
    assert paths.pdf is not None
    page = Page(paths.html.read_text())
    assert "x" not in page.loads
    assert evil in page.words
    assert paths.pdf.read_bytes().startswith(b"%PDF-")
