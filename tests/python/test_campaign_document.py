"""The typed cells of campaign.json: reading, refusals, and writing back."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from msgspec import UNSET

from campaign_kit import edited
from narrows.campaign import entries, sealing
from narrows.campaign.store import CampaignFolder, read_document
from narrows.documents.campaign import FORMAT, ScenarioSource, Versions
from narrows.errors import EXIT_BAD_INPUT, DataError


def write_campaign(folder: Path, **members: Any) -> Path:
    """A campaign of two cells that have not run, the first with these members."""
    cells = [entries.new_entry(f"reno-r{run}", "reno", run) for run in (1, 2)]
    cells[0].update(members)
    document = entries.new_document("made-up", "simulate", ScenarioSource(), Versions(), cells) | {
        "hash": "0123456789ab"
    }
    (folder / "campaign.json").write_text(sealing.seal(document, FORMAT), encoding="utf-8")
    return folder


def test_members_of_newer_versions_survive_a_change_of_their_cell(tmp_path: Path) -> None:
    reasons = [{"code": "late", "severity": "note", "text": "It was late.", "since": "1.7"}]
    folder = CampaignFolder.read(write_campaign(tmp_path, reasons=reasons, battery={"level": 0.5}))
    assert folder.cells[0].reasons[0].text == "It was late."
    entry = folder.change("reno-r1", state="failed", attempts=1)
    assert (entry.state, entry.attempts, folder.entry("reno-r1")) == ("failed", 1, entry)
    folder.save()
    (cell, other) = read_document(tmp_path)["cells"]
    assert (cell["battery"], cell["reasons"], cell["state"]) == ({"level": 0.5}, reasons, "failed")
    assert other == entries.new_entry("reno-r2", "reno", 2)


def test_a_campaign_that_is_read_and_saved_has_the_same_bytes(tmp_path: Path) -> None:
    file = write_campaign(tmp_path, seed=7, digest="sha256:00", failures=[{"at": None, "kind": "io"}])
    before = (file / "campaign.json").read_bytes()
    folder = CampaignFolder.read(tmp_path)
    assert [cell.seed for cell in folder.cells] == [7, None]
    folder.save()
    assert (tmp_path / "campaign.json").read_bytes() == before


def test_a_member_that_is_removed_is_no_longer_written(tmp_path: Path) -> None:
    folder = CampaignFolder.read(write_campaign(tmp_path, digest="sha256:00"))
    assert folder.change("reno-r1", digest=UNSET).digest is None
    assert "digest" not in folder.content_of("reno-r1")


def test_cells_of_the_first_versions_lack_what_came_later(tmp_path: Path) -> None:
    write_campaign(tmp_path)
    document = json.loads((tmp_path / "campaign.json").read_text(encoding="utf-8"))
    document = {name: value for name, value in document.items() if name != "digest"} | {"format": FORMAT}
    document["cells"] = [{"id": "reno-r1", "scheme": "reno", "run": 1, "state": "pending"}]
    (tmp_path / "campaign.json").write_text(json.dumps(document), encoding="utf-8")
    (entry,) = CampaignFolder.read(tmp_path).cells
    assert (entry.seed, entry.reasons, entry.failures, entry.attempts) == (None, [], [], 0)


@pytest.mark.parametrize(
    ("members", "words"),
    [
        ({"state": 7}, "the file.cells[0].state is not printable text"),
        ({"reasons": "none"}, "the file.cells[0].reasons is not a list"),
        ({"seed": "x"}, "the file.cells[0].seed is not a whole number"),
        ({"attempts": -1}, "the file.cells[0].attempts is not a count"),
        ({"failures": [7]}, "the file.cells[0].failures[0] is not an object"),
        ({"verdict": "\x1b[2Jok"}, "the file.cells[0].verdict is not printable text"),
    ],
)
def test_a_damaged_cell_is_one_sentence_with_file_and_key(
    members: dict[str, Any], words: str, tmp_path: Path
) -> None:
    write_campaign(tmp_path, **members)
    with pytest.raises(DataError) as caught:
        CampaignFolder.read(tmp_path)
    assert str(caught.value) == f"{tmp_path / 'campaign.json'}: is damaged: {words}"
    assert caught.value.exit_code == EXIT_BAD_INPUT


def test_members_of_newer_versions_survive_a_change_of_the_header(tmp_path: Path) -> None:
    file = write_campaign(tmp_path) / "campaign.json"
    with edited(file) as document:
        document.update(format=f"{FORMAT}.7", weather="fair")
        document["sessions"] = [{"argv": ["narrows"], "started_at": "2026-11-28T10:00:00Z", "mood": 3}]
        document["scenario"] = {"written": "x", "overrides": [], "resolved": {}, "author": "me"}
    folder = CampaignFolder.read(tmp_path)
    assert folder.header.is_open
    folder.end_session("done")
    assert folder.header.is_complete and folder.header.sessions[0].outcome == "done"
    written = json.loads(file.read_text(encoding="utf-8"))
    assert (written["weather"], written["scenario"]["author"]) == ("fair", "me")
    assert written["sessions"][0]["mood"] == 3


@pytest.mark.parametrize(
    ("members", "problem"),
    [
        ({"sessions": "one"}, "the file.sessions is not a list"),
        ({"sessions": [{"argv": [5]}]}, "the file.sessions[0].argv[0] is not printable text"),
        ({"versions": {"narrows": 1}}, "the file.versions.narrows is not printable text"),
        ({"host": {"cpus": "two"}}, "the file.host.cpus is not a whole number"),
        ({"skipped": [{"scheme": "bbr3"}]}, "the file.skipped[0].reason is missing"),
        ({"name": "\x1b[2J"}, "the file.name is not printable text"),
    ],
)
def test_a_damaged_header_is_refused_with_its_member(
    tmp_path: Path, members: dict[str, Any], problem: str
) -> None:
    with edited(write_campaign(tmp_path) / "campaign.json") as document:
        document.update(members)
    with pytest.raises(DataError, match=re.escape(f"campaign.json: is damaged: {problem}")):
        CampaignFolder.read(tmp_path)
