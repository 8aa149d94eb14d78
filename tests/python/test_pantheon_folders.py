"""The folders that imports and exports write: complete or not at all, wherever they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from narrows.errors import DataError, NarrowsError, UsageError
from narrows.pantheon.importing import import_folder
from narrows.pantheon.source import read_source
from test_pantheon import data, events, narrows

__all__ = ["data"]


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder in which the command runs."""
    folder = tmp_path / "empty"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.mark.parametrize("command", ["import", "export"])
@pytest.mark.parametrize("name", [".", "folder", "link", "link to nothing", "new/one"])
def test_any_empty_folder_may_be_written(data: Path, empty: Path, command: str, name: str) -> None:
    campaign = import_folder(read_source(data), empty.parent / "campaign").folder.path
    out = empty / name
    if name == "folder":
        out.mkdir()
    if name.startswith("link"):
        place = empty.parent / "place"
        out.symlink_to(place)
        if name == "link":
            place.mkdir()
    before = out.stat().st_ino if out.is_dir() else None
    what: list[str | Path] = ["import", "pantheon", data, "--no-report"]
    if command == "export":
        what = ["export", campaign, "--format", "pantheon"]
    done = narrows(*what, "-o", name)
    assert done.exit_code == 0, (done.output, done.exception)
    assert out.is_symlink() == name.startswith("link")
    assert before in (None, out.stat().st_ino), "it is the same folder"
    assert (out / {"import": "campaign.json", "export": "pantheon_metadata.json"}[command]).is_file()
    assert not [path for path in empty.parent.rglob("*") if path.name.endswith(".partial")]


def test_folders_that_are_not_empty_are_refused_before_any_work(data: Path, empty: Path) -> None:
    (data / "cubic_datalink_run1.log").write_text("damaged")
    done = narrows("import", "pantheon", data, "-o", data)
    assert isinstance(done.exception, UsageError) and "is not empty" in str(done.exception)
    log = data / "cubic_stats_run1.log"
    (empty / "link").symlink_to(log)
    (empty / "circle").symlink_to("circle")
    for name in (str(log), "link", "circle"):
        done = narrows("import", "pantheon", data, "-o", name)
        assert isinstance(done.exception, UsageError) and "is not a folder" in str(done.exception)
    for name in ("x" * 300, f"{log}/below"):
        done = narrows("import", "pantheon", data, "-o", name)
        assert type(done.exception) is NarrowsError and "can't be written" in str(done.exception)


def test_a_failure_leaves_the_folder_empty(data: Path, empty: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (empty / ".narrows.partial").mkdir()  # a command was killed here
    log = (data / "cubic_datalink_run1.log").read_text()
    (data / "cubic_datalink_run1.log").write_text(events([]))
    done = narrows("import", "pantheon", data, "-o", ".")
    assert isinstance(done.exception, DataError)
    assert not list(empty.iterdir())

    (data / "cubic_datalink_run1.log").write_text(log)
    rename = Path.rename

    def full(self: Path, new: Path) -> Path:
        if self.name == "campaign.json":
            assert (empty / "cells").is_dir(), "what makes it a campaign comes last"
            raise OSError(28, "No space left on device")
        return rename(self, new)

    monkeypatch.setattr(Path, "rename", full)
    done = narrows("import", "pantheon", data, "-o", ".")
    assert str(done.exception) == ".: can't be written: no space left on device"
    assert not list(empty.iterdir())
