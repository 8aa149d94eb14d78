"""Reports of failed campaigns, and the files of a report."""

from __future__ import annotations

import json
import re
import shutil
import zlib
from pathlib import Path

import pytest

from narrows import report
from narrows.errors import DataError
from narrows.report import assemble, document
from narrows.report.content import Report
from narrows.report.data import load
from report_campaigns import Spec, write_campaign

ONE = ("cubic",)


def _texts(pdf: bytes) -> bytes:
    """A PDF with its compressed parts unpacked."""
    parts = [pdf]
    for match in re.finditer(rb"stream\r?\n(.*?)\r?\nendstream", pdf, re.DOTALL):
        try:
            parts.append(zlib.decompress(match.group(1)))
        except zlib.error:
            continue
    return b"\n".join(parts)


def test_pdf_has_pages_and_all_its_fonts(tmp_path: Path) -> None:
    folder = write_campaign(
        tmp_path / "c", [Spec("cubic", 1, ONE), Spec("reno", 1, ("reno",))], duration_s=2.0
    )
    pdf = report.build(folder, html=False).pdf
    assert pdf is not None
    assert not (folder / "report.html").exists()
    text = _texts(pdf.read_bytes())
    assert len(re.findall(rb"/Type\s*/Page\b", text)) >= 4
    fonts = len(re.findall(rb"/Type\s*/FontDescriptor", text))
    assert fonts >= 2
    assert len(re.findall(rb"/FontFile[23]?\b", text)) == fonts


def test_nothing_finished_is_still_a_report(tmp_path: Path) -> None:
    specs = [
        Spec("cubic", 1, state="failed", reason="The agent was killed."),
        Spec("reno", 1, state="pending"),
    ]
    folder = write_campaign(tmp_path / "c", specs)
    paths = report.build(folder)
    assert paths.html is not None
    text = paths.html.read_text()
    assert "No run is valid, so this campaign has no answer" in text
    assert "The agent was killed." in text
    assert paths.pdf is not None
    assert paths.pdf.stat().st_size > 1000


def test_a_campaign_without_cells_or_results_is_still_a_report(tmp_path: Path) -> None:
    folder = write_campaign(
        tmp_path / "c", [], skipped=[{"scheme": "linux:bbr", "reason": "not in simulation"}]
    )
    (folder / "results.json").unlink()
    campaign = json.loads((folder / "campaign.json").read_text())
    campaign["scenario"]["resolved"] = {}
    del campaign["sessions"], campaign["host"], campaign["versions"]
    (folder / "campaign.json").write_text(json.dumps(campaign))
    paths = report.build(folder)
    assert paths.html is not None
    assert "No run was started, so this campaign has no answer." in paths.html.read_text()


def test_bins_have_no_delays_of_packets_but_all_numbers(tmp_path: Path) -> None:
    folder = write_campaign(tmp_path / "c", [Spec("cubic", 1, ONE, record="bins")], duration_s=2.0)
    paths = report.build(folder)
    assert paths.html is not None
    text = paths.html.read_text()
    assert "recorded in bins (record: bins), which keep no delays of single packets" in text
    assert (folder / "figures" / "cubic-r1" / "throughput.svg").exists()
    assert not (folder / "figures" / "cubic-r1" / "delay.svg").exists()


def test_a_lost_or_damaged_record_fails_its_run_only(tmp_path: Path) -> None:
    folder = write_campaign(tmp_path / "c", [Spec("cubic", r, ONE) for r in (1, 2, 3, 4)], duration_s=1.0)
    shutil.rmtree(folder / "cells" / "cubic-r1")
    (folder / "cells" / "cubic-r2" / "run.json").write_text('{"format": ')
    (folder / "cells" / "cubic-r3" / "packets.parquet").write_bytes(b"PAR1 and then nothing")
    report.build(folder, pdf=False, files=True)
    outcomes = {r.cell: r.outcome for r in load(folder).runs}
    assert outcomes == {"cubic-r1": "failed", "cubic-r2": "failed", "cubic-r3": "ok", "cubic-r4": "ok"}
    text = (folder / "report.html").read_text()
    assert "is missing although the campaign lists it as finished" in text
    assert "This figure can&#39;t be drawn: " in text
    assert (folder / "figures" / "cubic-r4" / "delay.svg").exists()


def test_old_records_without_newer_fields_are_read(tmp_path: Path) -> None:
    folder = write_campaign(tmp_path / "c", [Spec("cubic", 1, ONE)], duration_s=1.0)
    path = folder / "cells" / "cubic-r1" / "run.json"
    record = json.loads(path.read_text())
    for name in ("lateness", "rings", "cpu", "processes", "checks", "host", "clock"):
        record.pop(name, None)
    record["format"] = "narrows/run/1.0"
    for flow in record["flows"]:
        flow["fingerprint"] = {"kind": "native", "name": "cubic"}
    path.write_text(json.dumps(record))
    assert report.build(folder, pdf=False).html is not None


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("campaign.json", None, "campaign.json: does not exist, so this is not a folder of results"),
        ("campaign.json", "{", "campaign.json: is damaged"),
        ("campaign.json", "[]", "campaign.json: is not a file of the format"),
        ("campaign.json", '{"format": "narrows/campaign/2"}', "update narrows"),
        ("results.json", '{"format": "narrows/run/1"}', "is not a file of the format narrows/results/2"),
    ],
)
def test_bad_folders_are_refused_in_one_sentence(
    tmp_path: Path, file: str, content: str | None, message: str
) -> None:
    folder = write_campaign(tmp_path / "c", [])
    if content is None:
        (folder / file).unlink()
    else:
        (folder / file).write_text(content)
    with pytest.raises(DataError, match=message) as caught:
        report.build(folder)
    assert "\n" not in str(caught.value)
    assert not list(folder.glob(".report.*"))


def test_an_interrupted_report_leaves_the_previous_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_campaign(tmp_path / "c", [Spec("cubic", 1, ONE)], duration_s=1.0)
    report.build(folder, pdf=False)
    before = {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()}

    def stop(*_: object, **__: object) -> Report:
        raise KeyboardInterrupt

    monkeypatch.setattr(document, "compose", stop)
    with pytest.raises(KeyboardInterrupt):
        report.build(folder, pdf=False)
    assert {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()} == before


def test_several_processes_draw_the_same_as_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_campaign(tmp_path / "c", [Spec("cubic", r, ONE) for r in (1, 2, 3)], duration_s=1.0)
    monkeypatch.setattr(assemble, "_cores", lambda: 1)
    first = report.build(folder, pdf=False).html
    assert first is not None
    alone = first.read_bytes()
    monkeypatch.setattr(assemble, "_cores", lambda: 2)
    monkeypatch.setattr(assemble, "RUNS_PER_WORKER", 1)
    second = report.build(folder, pdf=False).html
    assert second is not None
    assert second.read_bytes() == alone
