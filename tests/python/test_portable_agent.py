"""Installations without narrows-agent simulate with the extension module, and say what they can't do."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from campaign_kit import narrows
from narrows.agent import location
from narrows.agent.location import find_agent
from narrows.errors import UnavailableError

PORTABLE = [sys.executable, "-m", "narrows.agent.portable"]


def make_cell(folder: Path, seconds: float = 2, **more: object) -> Path:
    """The file of a cell of CUBIC over 20 Mbit/s."""
    end = int(seconds * 1e9)
    rate = {"kind": "constant", "rate": 20_000_000}
    bottleneck = {"name": "forward.0", "kind": "bottleneck", "rate": rate}
    cell = {
        "format": "narrows/cell/1", "id": "portable", "scheme": "cubic", "where": "simulate", "seed": 7,
        "duration_ns": end, "record": "packets", "bin_ns": 100_000_000, "sample_ns": 10_000_000,
        "network": {
            "kind": "dumbbell",
            "forward": [{**bottleneck, "queue": {"kind": "droptail", "bytes": 37_500}}],
            "backward": [{"name": "backward.0", "kind": "delay", "delay": 10_000_000}],
        },
        "flows": [{"flow": 1, "scheme": "cubic", "start_ns": 0, "stop_ns": end}],
        **more,
    }  # fmt: skip
    file = folder / "cell.json"
    file.write_text(json.dumps(cell), encoding="utf-8")
    return file


def start(*words: object) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    command = [*PORTABLE, *map(str, words)]
    return subprocess.Popen(command, text=True, stdin=pipe, stdout=pipe, stderr=pipe)


def call(*words: object) -> tuple[int, list[dict[str, Any]], str]:
    process = start(*words)
    out, err = process.communicate(timeout=60)
    return process.returncode, [json.loads(line) for line in out.splitlines()], err


def read_files(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def test_a_record_is_that_of_narrows_agent_byte_by_byte(tmp_path: Path) -> None:
    cell = make_cell(tmp_path)
    ours, agents = tmp_path / "ours", tmp_path / "agents"
    code, events, _ = call("simulate", "--cell", cell, "--out", ours)
    subprocess.run(
        [find_agent(), "simulate", "--cell", cell, "--out", agents], check=True, capture_output=True
    )
    assert code == 0
    assert events[-1] == {"event": "done", "verdict": "ok", "reasons": []}
    assert read_files(ours) == read_files(agents)


def test_version_is_that_of_narrows_agent() -> None:
    agents = subprocess.run([find_agent(), "version"], check=True, capture_output=True, text=True).stdout
    assert call("version")[1] == [json.loads(agents)]


@pytest.mark.parametrize(
    ("more", "kind", "words"),
    [
        ({"flows": []}, "input", "cell.json: "),
        ({"format": "narrows/cell/99"}, "input", "narrows/cell/99"),
    ],
)
def test_a_bad_cell_is_refused(tmp_path: Path, more: dict[str, Any], kind: str, words: str) -> None:
    code, events, err = call("simulate", "--cell", make_cell(tmp_path, **more), "--out", tmp_path / "out")
    assert (code, events[-1]["kind"]) == (3, kind)
    assert words in events[-1]["message"]
    assert err.startswith("narrows-agent: ")
    assert not (tmp_path / "out").exists()


def test_an_existing_folder_stays(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    code, events, _ = call("simulate", "--cell", make_cell(tmp_path), "--out", tmp_path / "out")
    assert code == 3
    assert events[-1]["message"].endswith(f"{tmp_path / 'out'} exists already")


@pytest.mark.parametrize("how", ["SIGTERM", "SIGINT", "end of input"])
def test_a_run_that_is_ended_leaves_nothing(tmp_path: Path, how: str) -> None:
    cell = make_cell(tmp_path, seconds=100_000)
    process = start("simulate", "--cell", cell, "--out", tmp_path / "out", "--watch-stdin")
    assert process.stdout and process.stdin
    progress = json.loads(process.stdout.readline())
    assert progress["event"] == "progress"
    assert 0 < progress["time_ns"] < progress["of_ns"] == 10**14
    if how == "end of input":
        process.stdin.close()
        process.stdin = None
    else:
        process.send_signal(getattr(signal, how))
    out, err = process.communicate(timeout=60)
    assert process.returncode == (130 if how == "SIGINT" else 143)
    assert json.loads(out.splitlines()[-1])["kind"] == "interrupted"
    assert err == "narrows-agent: the run was interrupted; no part of it was kept\n"
    assert [file.name for file in tmp_path.iterdir()] == ["cell.json"]


def test_a_run_ends_at_its_limit_of_memory(tmp_path: Path) -> None:
    cell = make_cell(tmp_path, seconds=100_000)
    code, events, _ = call("simulate", "--cell", cell, "--out", tmp_path / "out", "--memory", 1_000_000)
    assert (code, events[-1]["kind"]) == (1, "memory")
    assert "allow more with --memory" in events[-1]["message"]
    assert [file.name for file in tmp_path.iterdir()] == ["cell.json"]


@pytest.fixture
def without_agent(monkeypatch: pytest.MonkeyPatch) -> None:
    """An installation without narrows-agent."""
    monkeypatch.delenv("NARROWS_AGENT", raising=False)
    monkeypatch.setattr(location, "_PACKAGED", Path("/nonexistent/narrows-agent"))
    monkeypatch.setenv("PATH", os.defpath)


@pytest.mark.usefixtures("without_agent")
def test_a_campaign_is_simulated_without_the_agent(tmp_path: Path) -> None:
    words = ("run", "first-look", "--where", "simulate", "--time", "5", "--no-report")
    result = narrows(*words, "-o", tmp_path / "look")
    assert result.exit_code == 0, result.output
    shown = narrows("show", tmp_path / "look")
    assert "reno" in shown.output
    assert (tmp_path / "look" / "results.parquet").is_file()


@pytest.mark.usefixtures("without_agent")
def test_emulation_without_the_agent_is_refused_in_a_sentence(tmp_path: Path) -> None:
    result = narrows("run", "first-look", "-o", tmp_path / "look")
    assert isinstance(result.exception, UnavailableError)
    assert "narrows-agent does not exist; build it" in str(result.exception)
    assert not (tmp_path / "look").exists()


@pytest.mark.usefixtures("without_agent")
def test_doctor_says_what_works_without_the_agent() -> None:
    result = narrows("doctor")
    assert result.exit_code == 4
    assert "simulation, reports, comparisons: work here" in result.output
    assert "no   network namespaces: the program narrows-agent does not exist" in result.output
