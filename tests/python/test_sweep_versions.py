"""Sweeps that a newer version of Narrows wrote."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from narrows.campaign import sealing
from narrows.errors import DataError
from narrows.sweep.merge import merge
from narrows.sweep.store import SweepFolder
from test_sweep import loaded, run


@pytest.mark.parametrize("part", ["", "sessions"])
def test_a_sweep_with_members_of_a_newer_version_is_read_and_not_continued(tmp_path: Path, part: str) -> None:
    sweep = loaded(tmp_path)
    run(sweep, tmp_path / "out")
    file = tmp_path / "out" / "sweep.json"
    document = json.loads(file.read_text())
    (document[part][0] if part else document)["invented"] = [1]
    file.write_text(sealing.seal(document, "narrows/sweep/1"))
    before = file.read_bytes()
    where = f"the file.{part}[0].invented" if part else "the file.invented"
    with pytest.raises(DataError, match=f"{re.escape(where)} was written by a newer version"):
        run(sweep, tmp_path / "out")
    with pytest.raises(DataError, match=f"{re.escape(where)} was written by a newer version"):
        merge(tmp_path / "all", [tmp_path / "out"])
    assert file.read_bytes() == before and not (tmp_path / "all").exists()
    assert SweepFolder.read(tmp_path / "out").document.parts
