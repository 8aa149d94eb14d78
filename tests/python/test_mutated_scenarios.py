"""Mutated scenarios end in a sentence, within a gigabyte and 20 s of processor time: planned, and simulated.

`NARROWS_MUTATED=1000` plans a thousand and runs two hundred, from `NARROWS_MUTATED_SEED` on (`make explore`).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import mutated_kit

COUNT = int(os.environ.get("NARROWS_MUTATED", "100"))
SEED = int(os.environ.get("NARROWS_MUTATED_SEED", "1"))
#: Tests run in parallel; each of these has a separate share of the seeds, and starts a process for each task.
SHARES = 4 if COUNT > 100 else 1


@pytest.mark.parametrize("share", range(SHARES))
@pytest.mark.parametrize(("task", "count"), [("plan", COUNT), ("run", COUNT // 5)])
def test_changed_scenarios_end_in_a_sentence(task: str, count: int, share: int) -> None:
    each = count // SHARES
    command = [sys.executable, str(Path(mutated_kit.__file__)), task, str(SEED + share * each), str(each)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    *faults, last = done.stdout.splitlines()
    assert not faults, "\n".join(faults)
    ended = json.loads(last)["ended"]
    assert sum(ended.values()) == each
    # Some are planned and run, and some refused: otherwise they would show little.
    assert "3" in ended and set(ended) & {"0", "5"}


def test_violated_expectations_are_reported() -> None:
    fault = mutated_kit.fault
    assert fault(0, 1, "") is None and fault(3, 1, "narrows: no.") is None
    assert fault(1, 1, "narrows: no.") and fault(-24, 1, "narrows: no.")
    assert fault(3, 1, "") == "silence"
    assert fault(3, 1, "Traceback (most recent call last):") == "no sentence"
    assert fault(0, mutated_kit.MOST_BYTES + 1, "") == "1024 MiB"
    assert fault(3, 1, "narrows: \x1b[2J") == "unreadable"
