"""The journal of a campaign: surviving `kill -9`, detecting changes, and its cost."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import time
from pathlib import Path
from typing import Any

import pytest

import processes
from campaign_kit import edited, narrows, sentence, simulate
from narrows.campaign import entries, journal, store
from narrows.campaign.gathering import open_campaign
from narrows.campaign.journal import Journal
from narrows.documents.campaign import ScenarioSource, Versions
from narrows.errors import DataError, NarrowsError
from test_campaign import Lab


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path)


@pytest.fixture
def killed(lab: Lab) -> Lab:
    """A campaign that was killed after at least three cells."""
    process = lab.run_in_background(sleep=0.2)
    lab.wait_for_finished(3)
    process.kill()
    processes.finish(process, 30)
    return lab


def lines(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (out / journal.FILE).read_text().splitlines()]


def test_a_killed_campaign_shows_the_cells_that_its_journal_has(killed: Lab) -> None:
    noted = json.loads((killed.out / "campaign.json").read_text())["cells"]
    assert {cell["state"] for cell in noted} == {"pending"}
    finished = [cell["id"] for cell in killed.campaign["cells"] if cell["state"] == "finished"]
    assert len(finished) >= 3
    shown = json.loads(killed.call("show", "out", "--json")[1])
    assert {row["cell"] for row in shown["rows"]} == set(finished)


def test_a_killed_campaign_runs_no_finished_cell_again_and_rests_without_a_journal(killed: Lab) -> None:
    before = {cell["id"]: cell for cell in killed.campaign["cells"] if cell["state"] == "finished"}
    assert killed.run()[0] == 0
    assert killed.states() == ["finished"] * 6 and not killed.hidden()
    after = {cell["id"]: cell for cell in killed.campaign["cells"]}
    assert all(after[name] == entry for name, entry in before.items())


def test_a_signal_folds_the_journal_into_campaign_json(lab: Lab) -> None:
    process = lab.run_in_background(sleep=0.2)
    lab.wait_for_finished(2)
    assert (lab.out / journal.FILE).is_file()
    process.send_signal(signal.SIGINT)
    processes.finish(process, 30)
    assert not (lab.out / journal.FILE).exists()
    noted = json.loads((lab.out / "campaign.json").read_text())
    assert sum(cell["state"] == "finished" for cell in noted["cells"]) >= 2
    assert noted["sessions"][-1]["outcome"] == "interrupted"


def test_a_line_without_an_end_does_not_count(killed: Lab) -> None:
    whole = killed.campaign
    file = killed.out / journal.FILE
    for torn in (b'{"cell": {"id": "reno-r', b"\0" * 100, b'{"cell": {}, "sum": "00"}'):
        kept = file.read_bytes()
        file.write_bytes(kept + torn)
        assert killed.campaign == whole
        file.write_bytes(kept)
    # Even the first line may be torn.
    file.write_bytes(file.read_bytes()[:20])
    assert killed.states() == ["pending"] * 6
    assert killed.run()[0] == 0 and killed.states() == ["finished"] * 6


def _edited(content: bytes) -> bytes:
    return content.replace(b'"verdict": "ok"', b'"verdict": "no"', 1)


def _dropped(content: bytes) -> bytes:
    first, _, *rest = content.splitlines(keepends=True)
    return b"".join([first, *rest])


def _swapped(content: bytes) -> bytes:
    first, second, third, *rest = content.splitlines(keepends=True)
    return b"".join([first, third, second, *rest])


def _repeated(content: bytes) -> bytes:
    return content + content.splitlines(keepends=True)[-1]


def _padded(content: bytes) -> bytes:
    return content.replace(b"\n", b"\n\n", 1)


@pytest.mark.parametrize("change", [_edited, _dropped, _swapped, _repeated, _padded])
def test_a_changed_journal_is_refused_and_its_remedy_loses_no_cell(killed: Lab, change: Any) -> None:
    file = killed.out / journal.FILE
    content = file.read_bytes()
    assert change(content) != content
    file.write_bytes(change(content))
    for command in (["show", "out"], ["check", "out"], ["run", "test.yaml", "-o", "out"]):
        code, _, stderr = killed.call(*command)
        assert code == 3
        found = re.search(r"out/journal.jsonl: line \d+ is damaged or was tampered with; remove the", stderr)
        assert found is not None, stderr
    made = {path: path.stat().st_ino for path in killed.out.glob("cells/*/run.json")}
    file.unlink()
    assert killed.run()[0] == 0 and killed.states() == ["finished"] * 6
    assert all(path.stat().st_ino == number for path, number in made.items())


@pytest.mark.parametrize("name", ["run.json", "packets.parquet"])
def test_a_record_that_a_power_cut_tore_is_made_again_if_no_line_notes_it(tmp_path: Path, name: str) -> None:
    folder = simulate(tmp_path / "out")
    file = folder / "campaign.json"
    whole = (folder / "cells" / "reno-r1" / name).read_bytes()
    with edited(file) as document:
        document["sessions"][-1].update(ended_at=None, outcome=None)
        for entry in document["cells"]:
            if entry["id"] == "reno-r1":
                entry.update(state="pending", verdict=None, ended_at=None)
                del entry["digest"]
    killed = file.read_bytes()
    for torn in (b"", whole[: len(whole) // 2], None):
        part = folder / "cells" / "reno-r1" / name
        part.unlink() if torn is None else part.write_bytes(torn)
        file.write_bytes(killed)
        assert simulate(folder) and (folder / "cells" / "reno-r1" / name).read_bytes() == whole


def test_a_journal_of_another_campaign_is_refused(tmp_path: Path) -> None:
    folder = simulate(tmp_path / "out")
    with edited(folder / "campaign.json") as document:
        document["sessions"][-1].update(ended_at=None, outcome=None)
    for hash_, session in ((document["hash"], 2), ("0" * 12, 1)):
        one = Journal(folder, hash_, session)
        one.write(journal.CELL, document["cells"][0])
        one.close()
        refused = narrows("show", folder)
        assert "journal.jsonl: does not belong to the campaign.json beside it" in sentence(refused)


def test_members_of_journals_are_checked_like_those_of_campaign_json(tmp_path: Path) -> None:
    folder = simulate(tmp_path / "out")
    with edited(folder / "campaign.json") as document:
        document["sessions"][-1].update(ended_at=None, outcome=None)
    entry = document["cells"][0]
    for change, words in (
        ({"state": 7}, r"journal.jsonl: is damaged: the file.cells\[0\].state is not printable text"),
        ({"state": "eaten"}, "journal.jsonl: is damaged or was tampered with: cell 1 .* state 'eaten'"),
        ({"id": "../../x"}, "journal.jsonl: line 2 is about a cell that the campaign lacks"),
    ):
        one = Journal(folder, document["hash"], 1)
        one.write(journal.CELL, entry | change)
        one.close()
        with pytest.raises(DataError, match=words):
            store.read_document(folder)


def test_a_journal_that_was_folded_already_changes_nothing(killed: Lab) -> None:
    stale = (killed.out / journal.FILE).read_bytes()
    # A cell in it is run again by the next session.
    noted = next(line["cell"]["id"] for line in lines(killed.out)[1:])
    shutil.rmtree(killed.out / "cells" / noted)
    assert killed.run()[0] == 0
    whole = killed.campaign
    assert next(cell for cell in whole["cells"] if cell["id"] == noted)["attempts"] == 2
    # Killed between the writing of campaign.json and the removal of the journal; and a session later.
    (killed.out / journal.FILE).write_bytes(stale)
    assert killed.campaign == whole
    assert killed.run()[0] == 0
    assert not (killed.out / journal.FILE).exists()


def test_a_reader_sees_a_session_that_ends_between_its_two_files(
    killed: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = killed.campaign["cells"]
    read = journal.read
    calls: list[str] = []

    def ended_meanwhile(campaign: Path) -> journal.Written | None:
        if not calls:
            folder = store.CampaignFolder.read(killed.out)
            calls.append("ended")
            folder.end_session("interrupted")
        return read(campaign)

    # The parent folder is readable with the genuine one.
    def first(campaign: Path) -> journal.Written | None:
        monkeypatch.setattr(journal, "read", read)
        return ended_meanwhile(campaign)

    monkeypatch.setattr(journal, "read", first)
    assert store.read_document(killed.out)["cells"] == expected and calls == ["ended"]


def test_a_pipe_in_place_of_a_journal_is_refused_without_waiting(tmp_path: Path) -> None:
    folder = simulate(tmp_path / "out")
    os.mkfifo(folder / journal.FILE)
    assert "journal.jsonl: is not a regular file" in sentence(narrows("show", folder))


def test_a_full_disk_leaves_no_half_line_between_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = Journal(tmp_path, "abc", 1)
    one.write(journal.CELL, {"id": "a"})
    write, calls = os.write, []

    def full(handle: int, data: bytes) -> int:
        calls.append(len(data))
        if len(calls) == 1:
            return write(handle, data[:10])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(NarrowsError, match=r"journal.jsonl: can't be written: no space left on device"):
        one.write(journal.CELL, {"id": "b"})
    monkeypatch.undo()
    one.write(journal.CELL, {"id": "c"})
    one.close()
    written = journal.read(tmp_path)
    assert written is not None and [content["id"] for _, content in written.lines] == ["a", "c"]


def test_the_cost_of_a_cell_does_not_grow_with_their_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bytes written per cell are counted: seconds would depend on the machine."""

    def bytes_per_cell(number: int) -> float:
        path = tmp_path / str(number)
        (path / "cells").mkdir(parents=True)
        cells = [entries.new_entry(f"reno-r{run}", "reno", run) for run in range(1, number + 1)]
        document = entries.new_document("x", "simulate", ScenarioSource(), Versions(), cells)
        folder = store.CampaignFolder(path, document)
        folder.begin_session([])
        written, write = [], os.write

        def counted(handle: int, data: bytes) -> int:
            written.append(len(data))
            return write(handle, data)

        monkeypatch.setattr(os, "write", counted)
        for entry in folder.cells:
            folder.fail(entry.id, "internal", "no reason")
            folder.keep(entry.id)
        monkeypatch.undo()
        assert store.read_document(path) == folder.document
        folder.end_session("done")
        assert store.read_document(path) == folder.document
        return sum(written) / number

    assert bytes_per_cell(2000) < 1.1 * bytes_per_cell(200)


def test_lists_of_campaigns_take_the_journal_into_account(killed: Lab) -> None:
    found = open_campaign(killed.out)
    assert found.folder is not None
    assert sum(cell.is_finished for cell in found.folder.cells) >= 3


def test_the_disk_is_asked_once_a_second_and_not_for_each_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, synced = [100.0], []
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(os, "fdatasync", lambda handle: synced.append(clock[0]))
    one = Journal(tmp_path, "abc", 1)
    for number in range(30):
        one.write(journal.CELL, {"id": str(number)})
        clock[0] += 0.1
    one.close()
    assert len(synced) in (3, 4)
