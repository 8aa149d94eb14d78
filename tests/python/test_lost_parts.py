"""Sweeps, hunts, calibrations and campaigns whose folders lose files during the work."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import narrows
from campaign_kit import edited, sentence, simulate
from campaign_kit import narrows as call
from narrows.cli.all_commands import app
from narrows.documents.sweep import FailedCell
from narrows.errors import DataError, NarrowsError
from narrows.locks import FolderLock
from narrows.sweep.engines import engine
from narrows.sweep.execute import SweepRun
from narrows.sweep.loading import LoadedSweep, load_sweep
from narrows.sweep.merge import merge
from narrows.sweep.store import SweepFolder
from narrows.sweep.work import DEFAULT_MEMORY

SWEEP = """\
schema: narrows/scenario/1
question: Is everything there?
where: simulate
path: {forward: [{rate: 2 Mbit/s, queue: {droptail: 20 kB}}, {delay: 10 ms}]}
schemes: [cubic, reno]
duration: 200 ms
runs: 2
sweep: {path.forward.1.delay: {uniform: [5 ms, 50 ms]}, design: latin-hypercube, points: 6}
"""
CELLS = 24


@pytest.fixture
def loaded(tmp_path: Path) -> LoadedSweep:
    file = tmp_path / "space.yaml"
    file.write_text(SWEEP)
    return load_sweep(str(file), [])


@pytest.fixture
def sweep(tmp_path: Path, loaded: LoadedSweep) -> Path:
    """A complete sweep of several parts."""
    assert _run(loaded, tmp_path / "s") == CELLS
    return tmp_path / "s"


def _run(loaded: LoadedSweep, path: Path, meanwhile: Callable[[], object] = lambda: None) -> int:
    """Runs a sweep with one part per cell; `meanwhile` is called once when half of them exist."""
    folder = SweepFolder.open(path, loaded)
    done: list[bool] = []

    def watch(finished: int, *_: int) -> None:
        folder.flush()
        if finished >= CELLS // 2 and not done:
            done.append(True)
            meanwhile()

    try:
        SweepRun(loaded, folder, engine("local:1"), DEFAULT_MEMORY, (1, 1), watch).run()
        return len(folder.done)
    finally:
        folder.close()


def _lose(path: Path, count: int = 1) -> None:
    for part in sorted(path.glob("data/*/*.parquet"))[:count]:
        part.unlink()


def test_cells_that_were_removed_meanwhile_are_missing_at_the_end(
    tmp_path: Path, loaded: LoadedSweep
) -> None:
    path = tmp_path / "s"
    with pytest.raises(NarrowsError, match=r"of 24 cells are gone: .* -o .*s again") as error:
        _run(loaded, path, lambda: _lose(path))
    assert error.value.exit_code == 1
    document = json.loads((path / "sweep.json").read_text())
    assert document["cells"] < CELLS and document["sessions"][-1]["outcome"] == "incomplete"
    assert SweepFolder.read(path).document.cells == len(set(SweepFolder.read(path).column("cell")))
    assert _run(loaded, path) == CELLS
    assert SweepFolder.read(path).document.cells == CELLS


def test_the_command_says_how_many_cells_are_there(
    tmp_path: Path, loaded: LoadedSweep, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, flush = tmp_path / "s", SweepFolder.flush

    def losing(folder: SweepFolder) -> None:
        flush(folder)
        _lose(path)

    monkeypatch.setattr(SweepFolder, "flush", losing)
    done = CliRunner().invoke(app, ["sweep", "run", str(loaded.path), "-o", str(path), "--on", "local:1"])
    assert "cells are gone" in sentence(done) and f"{CELLS} cells in" not in done.output


@pytest.mark.parametrize("replaced", [False, True])
def test_a_folder_that_is_removed_meanwhile_is_named(
    tmp_path: Path, loaded: LoadedSweep, replaced: bool
) -> None:
    path = tmp_path / "s"

    def remove() -> None:
        shutil.rmtree(path)
        if replaced:
            path.mkdir()

    with pytest.raises(NarrowsError, match=r"was removed, or replaced by .*run the same command"):
        _run(loaded, path, remove)
    assert not list(path.glob("**/*.parquet"))


SHOWING: list[list[str]] = [
    ["sweep", "show"], ["show"], ["plot", "--figure", "effects", "-o", "x.svg"], ["site", "-o", "x"],
    ["query", "select count(*) from results"], ["merge", "-o", "y"],
]  # fmt: skip


def test_no_command_shows_a_sweep_that_has_lost_parts(
    sweep: Path, loaded: LoadedSweep, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    part = sorted(sweep.glob("data/*/*.parquet"))[0]
    content = part.read_bytes()
    for change, words in (
        (part.unlink, "has lost 1 of its"),
        (lambda: part.write_bytes(content[:-1] + b"2"), "was changed after it was written"),
        (lambda: _add(part, content), "was not written by this sweep"),
    ):
        change()
        for command in SHOWING:
            done = call(*command, sweep)
            told = " ".join((str(done.exception or "") + done.output).split())
            code = getattr(done.exception, "exit_code", done.exit_code)
            assert (code, words in told) == (3, True), (command, done.output, done.exception)
    part.with_name("more.parquet").unlink()
    _lose(sweep)
    assert _run(loaded, sweep) == CELLS
    assert call("sweep", "show", sweep).exit_code == 0


def _add(part: Path, content: bytes) -> None:
    part.write_bytes(content)
    part.with_name("more.parquet").write_bytes(content)


def test_merging_refuses_a_share_that_has_lost_parts(sweep: Path, tmp_path: Path) -> None:
    _lose(sweep, 2)
    with pytest.raises(DataError, match="has lost 2 of its"):
        merge(tmp_path / "m", [sweep])
    assert not (tmp_path / "m").exists()


def test_sweeps_without_digests_are_counted(sweep: Path) -> None:
    """As written by earlier versions."""
    document = json.loads((sweep / "sweep.json").read_text())
    del document["digest"], document["parts"]
    (sweep / "sweep.json").write_text(json.dumps(document | {"format": "narrows/sweep/1"}))
    assert len(set(SweepFolder.read(sweep).column("cell"))) == CELLS
    _lose(sweep)
    with pytest.raises(DataError, match=f"of its {CELLS} cells"):
        SweepFolder.read(sweep)


def test_a_sweep_whose_document_was_edited_is_refused(sweep: Path) -> None:
    file = sweep / "sweep.json"
    file.write_text(file.read_text().replace("Is everything there?", "Is nothing there?"))
    with pytest.raises(DataError, match=r"sweep\.json: was changed after it was written"):
        SweepFolder.read(sweep)


def test_a_hunt_and_a_calibration_detect_lost_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ended = SweepFolder.end

    def losing(folder: SweepFolder, outcome: str, failed: list[FailedCell]) -> None:
        # A fast machine would write its only part after this.
        folder.flush()
        _lose(folder.path)
        ended(folder, outcome, failed)

    monkeypatch.setattr(SweepFolder, "end", losing)
    words = ("hunt", "cubic", "--worst", "utilization", "--budget", "12", "--time", "1 s", "--on", "local:1")
    done = call(*words, "-o", tmp_path / "h", "--no-report")
    assert "cells are gone" in sentence(done)


def test_a_calibration_checks_its_evaluations_at_the_end(tmp_path: Path) -> None:
    from narrows.calibrate.paths import Workload
    from narrows.calibrate.simulate import Simulator

    file = tmp_path / "evaluations.jsonl"
    made: dict[str, Any] = {"link": "droptail", "path": {}, "runs": 1, "seed": 1, "seconds": 1.0, "found": {}}
    lines = [json.dumps({"key": str(n), **made}) for n in range(3)]
    file.write_text("\n".join(lines) + "\n")
    simulator = Simulator(tmp_path, {}, Workload((), 1, "0 s", "1 s"), 1)
    simulator.check_kept()
    file.write_text(lines[0] + "\n")
    with pytest.raises(NarrowsError, match="2 of 3 evaluations are gone"):
        simulator.check_kept()


def test_a_lock_knows_its_folder(tmp_path: Path) -> None:
    folder = tmp_path / "f"
    folder.mkdir()
    lock = FolderLock(folder, "campaign")
    lock.check()
    folder.rename(tmp_path / "g")
    with pytest.raises(NarrowsError, match="while narrows was working on this campaign"):
        lock.check()
    folder.mkdir()
    with pytest.raises(NarrowsError, match="while narrows was working on this campaign"):
        lock.check()
    lock.close()


def test_a_campaign_whose_folder_was_removed_names_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from narrows.campaign import results

    write: Any = results.write

    def removed(folder: Any, found: Any) -> None:
        shutil.rmtree(folder.path)
        write(folder, found)

    monkeypatch.setattr(results, "write", removed)
    file = tmp_path / "one.yaml"
    file.write_text(SWEEP[: SWEEP.index("sweep:")])
    told = sentence(call("run", file, "-o", tmp_path / "c", "--no-report"))
    assert "its folder was removed meanwhile; run the same command again" in told
    assert "\n" not in told


def test_lost_results_of_campaigns_are_reported(tmp_path: Path) -> None:
    folder = simulate(tmp_path / "c")
    (folder / "results.json").unlink()
    done = call("show", folder)
    assert done.exit_code == 0 and "results.json is missing" in done.stderr
    with edited(folder / "campaign.json") as document:
        document["ended_at"] = None
    assert not call("show", folder).stderr
    assert narrows.load(folder).results.num_rows == 12
