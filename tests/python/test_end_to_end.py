"""The whole chain with the real agent: scenario, run, record, check, results, report."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import processes

PROGRAM = str(Path(sys.executable).parent / "narrows")


def call(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    done = processes.run([PROGRAM, *arguments], cwd=cwd, seconds=240)
    assert "Traceback" not in done.stderr, done.stderr
    return done


def simulate(folder: Path, out: str, *arguments: str) -> None:
    done = call("run", "first-look", "--where", "simulate", "--no-report", "-o", out, *arguments, cwd=folder)
    assert done.returncode == 0, done.stderr


def test_simulated_twice_gives_the_same_bytes(tmp_path: Path) -> None:
    simulate(tmp_path, "a")
    simulate(tmp_path, "b")
    names = sorted(
        str(path.relative_to(tmp_path / "a")) for path in (tmp_path / "a").rglob("*") if path.is_file()
    )
    assert "cells/cubic-r1/packets.parquet" in names
    for name in names:
        if name != "campaign.json":
            assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes(), name


def test_the_core_is_asked_about_whole_elements(tmp_path: Path) -> None:
    text = "schema: narrows/scenario/1\nquestion: Why?\nwhere: simulate\nduration: 1 s\nschemes: [reno]\n"
    text += "path:\n  forward:\n    - {rate: 1 Mbit/s, queue: {droptail: {}}}\n    - {delay: 1 ms}\n"
    (tmp_path / "s.yaml").write_text(text)
    done = call("run", "s.yaml", cwd=tmp_path)
    assert done.returncode == 3
    assert "s.yaml:8:7: path.forward.0: droptail: a limit is missing" in done.stderr, done.stderr
    assert not list(tmp_path.glob("results*"))


def test_check_holds_on_what_was_simulated(tmp_path: Path) -> None:
    simulate(tmp_path, "a", "--runs", "1")
    done = call("check", "a", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stdout
    assert json.loads(done.stdout)["ok"]
    cell = call("check", "a/cells/reno-r1", cwd=tmp_path)
    assert cell.returncode == 0
    assert "hold, 1 skipped" in cell.stdout, cell.stdout
    (tmp_path / "a" / "cells" / "reno-r1" / "packets.parquet").write_bytes(b"PAR1")
    done = call("check", "a", cwd=tmp_path)
    assert done.returncode in (1, 3)
    assert "reno-r1" in done.stdout + done.stderr


def test_a_skipped_check_is_never_called_passed(tmp_path: Path) -> None:
    simulate(tmp_path, "a", "--runs", "1", "--time", "5 s", "--schemes", "reno")
    checks = json.loads((tmp_path / "a/cells/reno-r1/run.json").read_text())["checks"]
    skipped = [check["name"] for check in checks if check["skipped"]]
    assert skipped == ["random_loss"], "no element of first-look drops at random"
    counts = f"{len(checks) - 1} of {len(checks)} hold, 1 skipped"

    done = call("check", "a", cwd=tmp_path)
    told = json.loads(call("check", "a", "--json", cwd=tmp_path).stdout)
    (cell,), (whole,) = told["cells"], told["campaigns"]
    # One more check than the record alone: the campaign knows the digest of its files.
    assert len(cell["checks"]) == len(checks) + 1
    every = len(cell["checks"]) + len(whole["checks"])
    assert f"checks on 1 record and its campaign: {every - 1} of {every} hold, 1 skipped" in done.stdout, (
        done.stdout
    )
    assert "skipped random loss: no element drops packets at random." in done.stdout

    shown = call("show", "a/cells/reno-r1", cwd=tmp_path).stdout.splitlines()
    assert "skipped random loss: no element drops packets at random." in shown
    assert not any(line.startswith("ok") and "random_loss" in line for line in shown)
    assert shown[-1] == f"checks: {counts}"


def test_numbers_are_plausible(tmp_path: Path) -> None:
    simulate(tmp_path, "a")
    results = json.loads((tmp_path / "a" / "results.json").read_text())
    for line in results["summary"]:
        if line["flow"] is None:
            assert 10e6 < line["metrics"]["throughput_bps"]["median"] <= 12e6
            assert 20e6 < line["metrics"]["delay_p95_ns"]["median"] <= 61e6
    shown = call("show", "a", cwd=tmp_path)
    assert shown.returncode == 0 and "cubic" in shown.stdout
    assert call("show", "a/cells/cubic-r1", cwd=tmp_path).returncode == 0


def test_report_is_written(tmp_path: Path) -> None:
    simulate(tmp_path, "a", "--runs", "1", "--time", "5 s")
    done = call("report", "a", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "a" / "report.html").stat().st_size > 10_000
    assert (tmp_path / "a" / "report.pdf").read_bytes()[:5] == b"%PDF-"


@pytest.mark.alone
def test_emulated_campaigns_end_with_judged_runs(tmp_path: Path) -> None:
    facts = json.loads(call("doctor", "--json", cwd=tmp_path).stdout)["facts"]
    if not (facts["namespaces"]["ok"] and facts["packet_socket"]["ok"]):
        why = facts["namespaces"]["why"] or facts["packet_socket"]["why"]
        pytest.skip(f"no emulation here: {why}")
    options = ("--runs", "1", "--time", "4 s", "--schemes", "linux:reno,reno", "--no-report")
    done = call("run", "first-look", *options, "-o", "a", cwd=tmp_path)
    # A busy machine may make a run invalid (6), and reports it; a failure is always our mistake.
    assert done.returncode in (0, 6), done.stderr
    campaign = json.loads((tmp_path / "a" / "campaign.json").read_text())
    assert [cell["state"] for cell in campaign["cells"]] == ["finished"] * 2, done.stderr
    assert call("check", "a", cwd=tmp_path).returncode == 0
    results = json.loads((tmp_path / "a" / "results.json").read_text())
    for row in results["rows"]:
        if row["flow"] is None and row["verdict"] == "ok":
            assert 10e6 < row["metrics"]["throughput_bps"] <= 12.1e6
