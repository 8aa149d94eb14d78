"""The folder of a campaign: which records it adopts, and how its file is replaced."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from campaign_kit import edited
from narrows.campaign import json_files
from narrows.errors import NarrowsError
from test_campaign import Lab
from test_campaign_more import STORED, TRACE, with_trace


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path)


def test_the_record_of_another_cell_is_not_adopted(lab: Lab) -> None:
    assert lab.run()[0] == 0
    cells = lab.out / "cells"
    # As after manual copying of folders: complete, intact, but from another run of the same scheme.
    shutil.rmtree(cells / "reno-r1")
    shutil.copytree(cells / "reno-r2", cells / "reno-r1")
    code, _, stderr = lab.run()
    assert code == 3
    assert "is not the record of this campaign's cell reno-r1" in stderr


@pytest.mark.parametrize(
    ("reasons", "problem"),
    [
        ("late", "the file.reasons is not a list"),
        ([{"text": 5}], "the file.reasons[0].text is not printable text"),
        ([{"text": "\x1b[2J"}], "the file.reasons[0].text is not printable text"),
    ],
)
def test_damaged_reasons_of_an_adopted_record_are_a_fault_of_its_own_file(
    lab: Lab, tmp_path: Path, reasons: Any, problem: str
) -> None:
    assert lab.run()[0] == 0
    # As after a power cut, which destroyed the cell's line.
    with edited(lab.out / "campaign.json") as document:
        entry = document["cells"][0]
        entry.update(state="pending", verdict=None)
        del entry["digest"]
    file = lab.out / "cells" / entry["id"] / "run.json"
    run = json.loads(file.read_text(encoding="utf-8"))
    file.write_text(json.dumps(run | {"reasons": reasons}), encoding="utf-8")
    code, _, stderr = lab.run()
    assert code == 3
    assert f"{file.relative_to(tmp_path)}: is damaged: {problem}" in stderr
    assert "campaign.json" not in stderr


def test_a_file_is_replaced_and_never_written_in_place(tmp_path: Path) -> None:
    path = tmp_path / "campaign.json"
    json_files.write_atomically(path, "old")
    # A process with the file open continues to read the old one, as after a power cut: it is another file.
    os.link(path, tmp_path / "before")
    json_files.write_atomically(path, "new")
    assert (tmp_path / "before").read_text() == "old" and path.read_text() == "new"
    assert sorted(one.name for one in tmp_path.iterdir()) == ["before", "campaign.json"]


def test_a_file_is_on_the_disk_before_it_gets_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []
    sync, replace = os.fsync, Path.replace

    def synced(handle: int) -> None:
        steps.append("folder" if Path(f"/proc/self/fd/{handle}").readlink() == tmp_path else "file")
        sync(handle)

    def replaced(self: Path, target: Path) -> Path:
        steps.append("name")
        return replace(self, target)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(Path, "replace", replaced)
    json_files.write_atomically(tmp_path / "x", "text")
    assert steps == ["file", "name", "folder"]


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "campaign.json"
    json_files.write_atomically(path, "old")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(NarrowsError, match="no space left on device; what was finished before is kept"):
        json_files.write_atomically(path, "new")
    assert [one.name for one in tmp_path.iterdir()] == ["campaign.json"] and path.read_text() == "old"


def test_a_kept_file_that_was_changed_is_put_right(lab: Lab) -> None:
    with_trace(lab)
    assert lab.run()[0] == 0
    kept = lab.out / "files" / STORED
    kept.write_bytes(TRACE + b"9\n")
    assert lab.run()[0] == 0
    assert kept.read_bytes() == TRACE


def test_finished_cells_whose_record_is_gone_are_run_again(lab: Lab) -> None:
    assert lab.run()[0] == 0
    shutil.rmtree(lab.out / "cells" / "reno-r1")
    assert lab.run()[0] == 0
    assert lab.states() == ["finished"] * 6
    run = json.loads((lab.out / "cells" / "reno-r1" / "run.json").read_text())
    assert run["cell"]["id"] == "reno-r1"
