"""Resolving the name of a trace in a scenario."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from narrows import traces
from narrows.errors import DataError
from narrows.traces import store


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's data folder, empty."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return traces.user_folder()


def test_the_folder_of_the_scenario_comes_first(home: Path, tmp_path: Path) -> None:
    shipped = traces.find("10-every-200.trace", tmp_path)
    assert shipped.parent == traces.find_shipped_folder()
    home.mkdir(parents=True)
    shutil.copy(shipped, home)
    assert traces.find("10-every-200.trace", tmp_path) == home / "10-every-200.trace"
    shutil.copy(shipped, tmp_path)
    assert traces.find("10-every-200.trace", tmp_path) == tmp_path / "10-every-200.trace"


def test_paths_are_relative_to_the_scenario(home: Path, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    file = tmp_path / "sub" / "mine"
    file.write_text("5\n")
    assert traces.find("sub/mine", tmp_path) == file
    assert traces.find(str(file), Path("/")) == file
    with pytest.raises(DataError, match=r'file "sub/other" does not exist \(looked for at '):
        traces.find("sub/other", tmp_path)
    with pytest.raises(DataError, match='"sub" is a folder'):
        traces.find("sub", tmp_path)


def test_the_suffix_may_be_left_out_unless_that_is_unclear(home: Path, tmp_path: Path) -> None:
    assert traces.find("10-every-200", tmp_path).name == "10-every-200.trace"
    home.mkdir(parents=True)
    (home / "mine.csv").write_text("")
    (home / "mine.trace").write_text("")
    (home / "notes.md").write_text("")
    assert traces.find("mine.csv", tmp_path) == home / "mine.csv"
    with pytest.raises(DataError, match=r"could be mine\.csv and mine\.trace; write the whole name"):
        traces.find("mine", tmp_path)
    with pytest.raises(DataError, match=r'no shipped trace is named "notes\.md"'):
        traces.find("notes.md", tmp_path)


def test_unknown_names_get_a_hint(home: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r'did you mean "10-every-200\.trace"\?'):
        traces.find("10-evry-200.trace", tmp_path)
    with pytest.raises(DataError, match="narrows trace list shows"):
        traces.find("qqq", tmp_path)


def test_imported_names_can_be_used_in_scenarios(home: Path) -> None:
    assert store.import_target(Path("x/lte.trace"), None) == home / "lte.trace"
    assert store.import_target(Path("x/lte.log"), "my-lte") == home / "my-lte.trace"
    assert store.import_target(Path("x/lte.csv"), "my-lte") == home / "my-lte.csv"
    with pytest.raises(DataError, match="can't be the name of a trace"):
        store.import_target(Path("x/lte.csv"), "../lte")


def test_a_relative_data_folder_is_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", "here")
    assert traces.user_folder() == Path.home() / ".local" / "share" / "narrows" / "traces"
