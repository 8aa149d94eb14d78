"""The command `python -m validation schemes`."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import processes

ROOT = Path(__file__).resolve().parent.parent.parent


def call(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return processes.run(
        [sys.executable, "-m", "validation", "schemes", *arguments],
        seconds=240,
        cwd=cwd,
        env={**os.environ, "NO_COLOR": "1", "PYTHONPATH": str(ROOT)},
    )


def test_a_quick_look_at_reno(tmp_path: Path) -> None:
    done = call("reno", "--quick", "--simulate-only", "-o", "out", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    entry = json.loads(done.stdout)["schemes"]["reno"]
    assert len(entry["checks"]) >= 5
    assert {one["outcome"] for one in entry["checks"]} == {"holds"}
    # Not verified: the emulator was not run.
    assert (entry["status"], entry["reason"]) == ("unverified", "not compared with linux:reno yet")
    assert "## `reno`" in (tmp_path / "out" / "schemes.md").read_text(encoding="utf-8")
    # The second time nothing remains to be done.
    again = call("reno", "--quick", "--simulate-only", "-o", "out", cwd=tmp_path)
    assert again.returncode == 0
    assert "theory" not in again.stderr
    assert "unverified" in again.stdout
    # Removed results are computed again.
    removed = min(tmp_path.glob("out/**/cells/*/run.json")).parent
    shutil.rmtree(removed)
    completed = call("reno", "--quick", "--simulate-only", "-o", "out", cwd=tmp_path)
    assert completed.returncode == 0, completed.stderr
    assert (removed / "run.json").exists()


def test_wrong_usage_is_refused(tmp_path: Path) -> None:
    both = call("--simulate-only", "--emulate-only", cwd=tmp_path)
    assert both.returncode == 2
    unknown = call("renno", "--simulate-only", cwd=tmp_path)
    assert unknown.returncode == 3
    assert 'did you mean "reno"' in unknown.stderr
