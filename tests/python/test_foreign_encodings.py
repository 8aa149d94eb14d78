"""Records whose files pyarrow has written again, in other encodings and pages, are read as the originals."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from campaign_kit import narrows
from narrows import _native

SCENARIO = """\
schema: narrows/scenario/1
name: lossy
question: Are the words the same?
where: simulate
path: {forward: [{rate: 4 Mbit/s, queue: {droptail: 20 packets}}, {delay: 10 ms}, {loss: 1 %}]}
schemes: [cubic]
duration: 3 s
runs: 1
"""
WORDS = ("direction", "fate", "element", "reason")


@pytest.fixture(scope="module")
def cell(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("foreign")
    (folder / "lossy.yaml").write_text(SCENARIO)
    assert narrows("run", folder / "lossy.yaml", "--no-report", "-o", folder / "out").exit_code == 0
    return folder / "out" / "cells" / "cubic-r1"


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"use_dictionary": False},
        {"use_dictionary": False, "column_encoding": dict.fromkeys(WORDS, "DELTA_BYTE_ARRAY")},
        {"use_dictionary": False, "column_encoding": dict.fromkeys(WORDS, "DELTA_LENGTH_BYTE_ARRAY")},
        {"data_page_version": "2.0", "compression": "none"},
        {"row_group_size": 700, "data_page_size": 200, "write_batch_size": 10},
        {"dictionary_pagesize_limit": 12, "data_page_size": 100, "write_batch_size": 50},
    ],
    ids=["defaults", "plain", "delta", "delta-length", "second-version", "small", "dictionary-given-up"],
)
def test_files_in_other_encodings_are_read_as_the_originals(
    cell: Path, tmp_path: Path, options: dict[str, Any]
) -> None:
    copy = tmp_path / "cell"
    shutil.copytree(cell, copy)
    for path in copy.glob("*.parquet"):
        words = {
            name: how
            for name, how in options.items()
            if path.name == "packets.parquet" or name != "column_encoding"
        }
        # Without the checksum of the original.
        table = pq.read_table(path).replace_schema_metadata(None)
        pq.write_table(table, path, **({"compression": "zstd"} | words))
    assert _native.measure(copy) == _native.measure(cell)
    (tmp_path / "one").mkdir()
    (tmp_path / "other").mkdir()
    _native.export_csv(cell, tmp_path / "one")
    _native.export_csv(copy, tmp_path / "other")
    names = sorted(path.name for path in (tmp_path / "one").iterdir())
    assert "packets.csv" in names
    for name in names:
        assert (tmp_path / "other" / name).read_bytes() == (tmp_path / "one" / name).read_bytes()
