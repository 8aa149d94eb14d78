"""The lesson over the live view: answers are compared with the record of the changed run."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import processes

PROGRAM = [sys.executable, "-m", "narrows"]
TASK = ("lab", "run", "lesson-live", "--quick", "-o", "mine", "--task", "slower")

pytestmark = [pytest.mark.system, pytest.mark.timeout(240)]


def test_answers_are_compared_with_the_record_of_the_changed_run(tmp_path: Path) -> None:
    def call(*words: str) -> subprocess.CompletedProcess[str]:
        done = processes.run([*PROGRAM, *words], cwd=tmp_path, seconds=120)
        assert "Traceback" not in done.stderr, done.stderr
        return done

    asked = call(*TASK, "--live", "--interactive")
    assert asked.returncode == 3 and "slower.predict is empty" in asked.stderr
    sheet = tmp_path / "mine" / "answers.yaml"
    sheet.write_text(
        sheet.read_text()
        .replace("slower.predict:", "slower.predict: four times as long")
        .replace("slower.queue:", "slower.queue: 160")
        .replace("slower.why:", "slower.why: the same bytes leave more slowly")
    )
    with subprocess.Popen(
        [*PROGRAM, *TASK, "--live", "--interactive"],
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin and process.stdout and process.stderr
        lines = []
        for line in process.stderr:
            lines.append(line)
            if "flow 1" in line and not process.stdin.closed:
                process.stdin.write("rate 3 Mbit/s\n")
                process.stdin.close()
        printed = process.stdout.read()
    assert process.returncode in (0, 6), lines
    assert "slower.factor" in printed
    # The full queue of 60 kB takes 160 ms at 3 Mbit/s, and 40 ms at the 12 Mbit/s of the lesson.
    rows = json.loads((tmp_path / "mine/slower/results.json").read_text())["rows"]
    (metrics,) = (row["metrics"] for row in rows if row["flow"] is None)
    assert 130e6 < metrics["queueing_delay_p95_ns"] < 190e6
    mark = json.loads(call("lab", "mark", "mine", "--answers", "--json").stdout)
    text = json.dumps(mark)
    assert "slower.queue" in text
    answers = {answer["question"]: answer for student in mark["students"] for answer in student["answers"]}
    assert answers["slower.queue"]["right"] and answers["slower.why"]["right"]
    # The changed run is kept: without --live as well, nothing is left to run.
    again = call(*TASK)
    assert again.returncode in (0, 6) and "nothing is left to run" in again.stderr, again.stderr
