"""Importers report the unread parts of their files: in the run, on the terminal, in the JSON."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from narrows.cli.all_commands import app
from narrows.formats.importing import describe_unread, import_runs, sum_unread
from narrows.formats.imports import iperf3
from narrows.formats.runs import Flow, MeasuredRun, Progress, Unread

FRAGMENTS = Unread("fragments without ports", 400, matters=True)
ARP = Unread("ARP frames", 3)


def a_run(*unread: Unread) -> MeasuredRun:
    time = np.array([0, 1_000_000_000, 2_000_000_000], dtype=np.int64)
    total = np.array([0.0, 125_000, 250_000])
    progress = [Progress(1, time, total, total)]
    return MeasuredRun("cubic", [Path("a.log")], [Flow(1, "cubic")], progress=progress, unread=list(unread))


def reasons_of(folder: Path, cell: str) -> list[tuple[str, str, str]]:
    run = json.loads((folder / "cells" / cell / "run.json").read_text())
    return [(one["code"], one["severity"], one["text"]) for one in run["reasons"] if one["code"] != "one_end"]


def test_a_run_of_which_parts_matter_is_degraded_and_says_how_many(tmp_path: Path) -> None:
    said: list[str] = []
    runs = [a_run(FRAGMENTS, ARP), a_run(ARP), a_run()]
    done = import_runs("ss", runs, tmp_path / "c", name="x", argv=[], say=said.append)
    assert [cell.verdict for cell in done.folder.cells] == ["degraded", "ok", "ok"]
    partly = "The numbers rest on a part of what was logged; not read: fragments without ports (400)."
    unread = "Not read, without effect on the numbers: ARP frames (3)."
    assert reasons_of(tmp_path / "c", "cubic-r1") == [
        ("partly_read", "degraded", partly),
        ("unread", "note", unread),
    ]
    assert reasons_of(tmp_path / "c", "cubic-r2") == [("unread", "note", unread)]
    assert reasons_of(tmp_path / "c", "cubic-r3") == []
    assert done.unread == (FRAGMENTS, Unread("ARP frames", 6))
    assert said[-2:] == [partly, "Not read, without effect on the numbers: ARP frames (6)."]


def test_equal_kinds_are_summed_and_nothing_is_said_of_none() -> None:
    parts = [ARP, FRAGMENTS, Unread("ARP frames", 2, matters=True), Unread("comments", 0)]
    assert sum_unread(parts) == [Unread("ARP frames", 5, matters=True), FRAGMENTS]
    assert describe_unread([]) == describe_unread([Unread("comments", 0)]) == []


def test_the_json_of_an_import_counts_unread_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(iperf3, "read", lambda files, scheme: [a_run(FRAGMENTS)])
    (tmp_path / "a.json").write_text("{}")
    arguments = ["import", "iperf3", str(tmp_path / "a.json"), "-o", str(tmp_path / "c"), "--no-report"]
    result = CliRunner().invoke(app, [*arguments, "--json"])
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["unread"] == [
        {"kind": "fragments without ports", "count": 400, "matters": True}
    ]
    assert "fragments without ports (400)" in result.stderr
